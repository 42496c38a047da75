"""bf16 GEMM of rows that are no multiples of 16 bytes vs. cuBLAS: by way of copies, and element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families.gemm import OUTPUT, PEER, Shape, exact, peers, sizes, tensors

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

SHAPES: tuple[Shape, ...] = (
    *((4095, 4095, 4095), (1000, 1001, 1001), (559, 624, 5417), (16, 4099, 4097), (2639, 397, 4821)),
    *((1971, 10853, 585), (2020, 1217, 193), (70, 4183, 133), (588, 155, 8557), (35, 1485, 15201)),
)


def variants() -> Mapping[str, Callable[[], Any]]:
    """Element by element, and those by way of copies that are selected for these shapes."""
    from argus.kernels.gemm import gemm  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.kernels.padded import FAMILIES  # noqa: PLC0415 reason: as above
    from argus.ops.choice_unaligned import COPIED  # noqa: PLC0415 reason: as above

    named = sorted({name for name in map(select, SHAPES) if name is not None and name.startswith(COPIED)})
    programs = {name: lambda n=name: FAMILIES["gemm_nt"].trace(n.removeprefix(COPIED)) for name in named}
    return {"narrow": lambda: gemm.trace("narrow"), **programs}


def checked(random: Random) -> list[Shape]:
    """Rows shorter and longer than 16 bytes, of every remainder."""
    shapes = [(1, 1, 1), (5, 3, 7), (64, 9, 8193)]
    return shapes + [(random.randint(1, 900), random.randint(1, 900), random.randint(1, 2000)) for _ in range(13)]


def select(shape: Shape) -> str | None:
    from argus.ops.choice import candidates  # noqa: PLC0415 reason: as above

    return candidates("gemm_nt", shape, a_transposed=False, b_transposed=False, device="")[0]
