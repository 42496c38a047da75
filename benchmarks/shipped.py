"""The shipped configurations: every kernel and program of products in `argus.kernels`, and sizes to run each at.

Attention, grouped products and the kernels of rows have other sizes, and checks of their own: `attention_h200.py`,
`attention_windows_h200.py`, `decode_h200.py`, `moe_h200.py`, `moe_decode_h200.py`, `rows_h200.py`, and tests/kernels.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Container, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from attrs import evolve, frozen

from argus.core.index import Const
from argus.core.ir import Kernel, Program
from argus.kernels.cdna3_split import Cdna3Split
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.ragged import Ragged
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.stream_cdna3 import Cdna3Stream
from argus.kernels.streamk import Stream
from benchmarks.corpus_cases import meets

BLOCK = 128
"""Elements of K, and columns, that share a scale of the block-scaled FP8 kernels."""
_MULTIPLES = (1, 4, 8, 16)
"""What schedules may ask of an extent, for rows of 16 bytes."""
CARD_SIZES: tuple[tuple[int, int, int], ...] = ((1, 1, 1), (301, 523, 331), (2057, 3079, 2603))
"""M, N and K on a GPU: one element; a few tiles; more tiles than a GPU has processors, with K longer than the ring."""
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

    @property
    def value(self) -> Any:  # noqa: ANN401 reason: a family's configuration is its author's type
        return self.template.configs[self.config]

    def trace(self) -> Kernel | Program:
        return self.template.trace(self.config)

    def trace_for(self, processors: int) -> Kernel:
        """The kernel of this configuration for a GPU of another number of processors, which is that of its blocks."""
        target = evolve(self.value.target, processors=processors)
        return evolve(self.template, target=target).trace(self.config)


def is_of_another_type(family: str, known: Container[str]) -> bool:
    """Whether a family is of f16, and one of bf16 is alike otherwise. known: names of families."""
    return "_f16" in family and any(family.replace("_f16", other) in known for other in ("", "_bf16"))


def families() -> Iterator[tuple[str, Any]]:
    """Every kernel and program that `argus.kernels` defines, by the name of its function."""
    package = importlib.import_module("argus.kernels")
    modules = (importlib.import_module(each.name) for each in pkgutil.walk_packages(package.__path__, "argus.kernels."))
    found = {id(v): (n, v) for module in modules for n, v in vars(module).items() if is_traced(v) and n == v.name}
    return iter(sorted(found.values(), key=lambda pair: pair[0]))


def configurations(target: str) -> dict[str, list[str]]:
    """Every configuration for a target, by family."""
    found: dict[str, list[str]] = {}
    for name, template in families():
        for config, value in template.configs.items():
            if getattr(getattr(value, "target", None), "name", "") == target:
                found.setdefault(name, []).append(config)
    return found


def is_traced(value: object) -> bool:
    return type(value).__name__ in {"Template", "ProgramTemplate"}


def shipped() -> Iterator[Shipped]:
    """Every configuration of every family; kernels that only programs launch have no configurations of their own."""
    for name, template in families():
        whole = template.function.__module__
        module = whole.rpartition(".")[2]
        apart = ("attention", "windowed_attention", "packed_attention")
        if module not in apart and not module.startswith("grouped") and not whole.startswith("argus.kernels.rows."):
            yield from (Shipped(module, name, config, template) for config in template.configs)


@frozen
class Text:
    """A kernel or program to execute on the CPU. label: of which kind. sizes: from the least to the most work."""

    label: str
    made: Kernel | Program
    sizes: tuple[dict[str, int], ...]


def texts(each: Shipped) -> tuple[Text, ...]:
    """What of a configuration is executed on the CPU.

    The shipped text runs at three sizes: one element; several tiles in every direction, each with a tail; K longer than
    the ring. Tiles for every one of 132 persistent blocks would take too long on the CPU; how a block goes on to its
    next tile is executed in the text of the same configuration for two blocks, or two clusters.
    """
    made, (rows, columns, depth, ring) = each.trace(), tile_of(each.value)
    wanted = (
        (1, 1, 1),
        (rows + rows // 8 + 1, columns + columns // 8 + 1, 2 * depth + depth // 4 + 1),
        (rows // 2 + 1, columns // 2 + 1, ring + depth + depth // 4 + 1),
    )
    found = [Text("shipped", made, tuple(near(made, _extents(2, *extents)) for extents in wanted))]
    if isinstance(made, Kernel) and all(isinstance(extent, Const) for extent in made.grid):
        few = each.trace_for(2 * prod(made.cluster))
        several = (rows + rows // 8 + 1, 2 * columns + columns // 8 + 1, depth + depth // 4 + 1)
        found.append(Text("two blocks", few, (near(few, _extents(1, *several)),)))
    return tuple(found)


def tile_of(config: Any) -> tuple[int, int, int, int]:  # noqa: ANN401 reason: as `Shipped.value`
    """Rows and columns of C that a block or cluster takes at once, the K of an iteration of all that share a tile (half
    of it where they take shares of K one after the other), and the K at which the ring of each is full.
    """
    match config:
        case Narrow():
            return 64, config.bn, config.bk, config.bk
        case Ragged():
            return 128, config.bn, config.bk, config.bk * config.stages
        case Split():
            rows, columns = (config.bn, config.bm) if config.swap_ab else (config.bm, config.bn)
            depth = config.bk * config.splits
            return rows, columns, depth, depth * config.stages
        case Stream():
            depth = config.bk * config.chunks
            return *config.tile, depth // 2, depth * config.stages // config.run
        case Cdna3Stream():
            depth = config.bk * config.chunks
            return config.bm, config.bn, depth // 2, depth
        case Cdna3Split():
            depth = config.bk * config.splits
            return config.bm, config.bn, depth, depth * config.buffers
        case _:
            cluster = (*getattr(config, "cluster", ()), 1, 1)
            bk = getattr(config, "bk", BLOCK)
            return config.bm * cluster[0], config.bn * cluster[1], bk, bk * getattr(config, "stages", 2)


def _extents(z: int, m: int, n: int, k: int) -> dict[str, int]:
    return {"Z": z, "M": m, "N": n, "K": k}


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


def card_sizes(each: Shipped) -> tuple[dict[str, int], ...]:
    """Three sizes for a GPU."""
    made = each.trace()
    batched = any(symbol.name == "Z" for symbol in made.sizes)
    wanted = [
        dict(zip("ZMNK" if batched else "MNK", e, strict=True)) for e in (CARD_BATCHES if batched else CARD_SIZES)
    ]
    wanted[-1]["K"] = max(wanted[-1]["K"], tile_of(each.value)[-1] + 1)
    return tuple(near(made, sizes) for sizes in wanted)
