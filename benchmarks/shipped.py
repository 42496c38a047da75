"""The shipped configurations: every kernel and program of `argus.kernels`, and sizes to run each at."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from attrs import frozen

from argus.core.ir import Kernel, Program
from benchmarks.corpus_cases import meets

BLOCK = 128
"""Elements of K, and columns, that share a scale of the block-scaled FP8 kernels."""
_MULTIPLES = (1, 4, 8, 16)
"""What schedules may ask of an extent, for rows of 16 bytes."""
CARD_SIZES: tuple[tuple[int, int, int], ...] = ((1, 1, 1), (301, 523, 331), (2057, 3079, 2603))
"""M, N and K on a GPU: one element; a few tiles; more tiles than a GPU has units, with K longer than any ring."""
CARD_BATCHES: tuple[tuple[int, int, int, int], ...] = ((1, 1, 1, 1), (3, 203, 331, 267), (5, 1033, 1543, 1291))
"""The number of products, M, N and K of batched kernels on a GPU."""


@frozen
class Shipped:
    """One configuration. module: the file of `argus.kernels` with its kernel or program, whose name is `family`."""

    module: str
    family: str
    config: str
    template: Any

    @property
    def stem(self) -> str:
        return f"{self.family}-{self.config}"

    def trace(self) -> Kernel | Program:
        return self.template.trace(self.config)


def families() -> Iterator[tuple[str, Any]]:
    """Every kernel and program that `argus.kernels` defines, by the name of its function."""
    package = importlib.import_module("argus.kernels")
    modules = (importlib.import_module(each.name) for each in pkgutil.walk_packages(package.__path__, "argus.kernels."))
    found = {id(v): (n, v) for module in modules for n, v in vars(module).items() if is_traced(v) and n == v.name}
    return iter(sorted(found.values(), key=lambda pair: pair[0]))


def is_traced(value: object) -> bool:
    return type(value).__name__ in {"Template", "ProgramTemplate"}


def shipped() -> Iterator[Shipped]:
    """Every configuration of every family; kernels that only programs launch have no configurations of their own."""
    for name, template in families():
        module = template.function.__module__.rpartition(".")[2]
        yield from (Shipped(module, name, config, template) for config in template.configs)


def near(made: Kernel | Program, wanted: Mapping[str, int]) -> dict[str, int]:
    """Sizes of which M, N and K are the wanted ones, each rounded up to the least multiple that the assumptions allow.

    Raises ValueError if no multiples of 1, 4, 8 and 16 meet them.
    """
    names = [name for name in "MNK" if name in wanted]
    for multiples in sorted(product(_MULTIPLES, repeat=len(names)), key=sum):
        rounded = {name: -(-wanted[name] // by) * by for name, by in zip(names, multiples, strict=True)}
        extents = {**wanted, **rounded}
        extents |= {"KB": -(-extents["K"] // BLOCK), "NB": -(-extents["N"] // BLOCK)}
        sizes = {symbol.name: extents[symbol.name] for symbol in made.sizes}
        if meets(made, sizes):
            return sizes
    message = f"`{made.name}` takes no sizes near {dict(wanted)}"
    raise ValueError(message)


def card_sizes(made: Kernel | Program) -> tuple[dict[str, int], ...]:
    """Three sizes for a GPU."""
    batched = any(symbol.name == "Z" for symbol in made.sizes)
    wanted = [
        dict(zip("ZMNK" if batched else "MNK", e, strict=True)) for e in (CARD_BATCHES if batched else CARD_SIZES)
    ]
    return tuple(near(made, each) for each in wanted)
