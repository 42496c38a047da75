"""Inputs of grouped products: random numbers of rows of experts, the tiles that these make, and random tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.core.ir import Kernel
from argus.ops.grouped_tiles import count_of
from argus.runtime.run import tensors_read
from benchmarks.corpus_cases import shape_of

Array = npt.NDArray[Any]
BLOCK = 128
"""Elements of k, and of columns, that share a scale."""


def sizes_of(rows: int, experts: int, columns: int, depth: int, height: int) -> dict[str, int]:
    """The sizes of a grouped product with tiles of at most so many rows, those of scales among them."""
    tiles = count_of(rows, experts, height)
    known = {"M": rows, "E": experts, "N": columns, "K": depth, "R": experts + 1, "S": tiles + 1, "T": tiles}
    return known | {"KB": -(-depth // BLOCK), "NB": -(-columns // BLOCK)}


def counts_of(rows: int, experts: int, random: np.random.Generator) -> list[int]:
    """Random numbers of rows of experts, about half of which have none."""
    shares = np.where(random.random(experts) < 0.5, 0, random.random(experts))
    shares[random.integers(experts)] = 1.0
    return [int(each) for each in random.multinomial(rows, shares / shares.sum())]


def integers_of(counts: Sequence[int], height: int) -> dict[str, Array]:
    """The experts' first rows, and their tiles as `argus.ops.grouped_tiles` lists them."""
    starts = [0, *accumulate(counts)]
    tiles = [(r, e) for e, count in enumerate(counts) for r in range(starts[e], starts[e] + count, height)]
    tiles += [(starts[-1], len(counts) - 1)] * (count_of(starts[-1], len(counts), height) - len(tiles))
    named = {
        "starts": starts,
        "tile_starts": [*(r for r, _ in tiles), starts[-1]],
        "tile_experts": [e for _, e in tiles],
    }
    return {name: np.array(each, np.int32) for name, each in named.items()}


def grouped_inputs(kernel: Kernel, sizes: Mapping[str, int], height: int, seed: int) -> dict[str, Array]:
    """One array per parameter of a grouped product, in order, for random numbers of rows."""
    random = np.random.default_rng(seed)
    integers = integers_of(counts_of(sizes["M"], sizes["E"], random), height)
    read, found = tensors_read(kernel), dict[str, Array]()
    for buffer in kernel.parameters:
        shape = shape_of(buffer, kernel, sizes)
        plain = random.standard_normal(shape, np.float32) if buffer in read else np.zeros(shape)
        found[buffer.name] = integers.get(buffer.name, plain.astype(buffer.dtype.numpy))
    return found
