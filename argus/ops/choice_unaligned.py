"""Chooses how rows that are no multiples of 16 bytes are multiplied on sm_90a: element by element, or by way of copies.

The product of the copies is modelled as any other; the rest by constants that fit the times of 28 shapes on one H200.
"""

from __future__ import annotations

from math import ceil

from argus.core.dsl.kernel import Template
from argus.core.dsl.programs import ProgramTemplate
from argus.kernels import few_rows, padded
from argus.kernels.cost_sm_90a import H200, PROCESSORS, Known, cheapest, is_swap_ab, microseconds
from argus.kernels.layouts import configs_for

COPIED, FEW = "padded_", "few_"
"""The first parts of the names of such configurations; the rest names one of the product of the copies, or the number
of rows of A and one of `argus.kernels.few_rows`.
"""
_CHUNK = 8
_LAUNCH, _TILE, _STEP, _RESIDENT = 3.0, 4.5, 1.4, 1.45
"""Element by element: microseconds of a launch, of a tile, and of 64 of its K; tiles that a processor has at a time."""
_COPY, _BANDWIDTH = 7.0, 3.2e6
"""Microseconds of the launch that copies, and bytes that it moves in one."""
_LONG, _SHORT = 2048, 768
"""Rows of B from which a block has one, and from which a warp reads 1024 elements at a time."""


def select_unaligned(m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> str | None:
    """The configuration for C = A @ B^T of such rows; None where that is `Narrow`, and for multiples of 16 bytes."""
    if not ((m if a_transposed else k) % _CHUNK or (n if b_transposed else k) % _CHUNK):
        return None
    if not (a_transposed or b_transposed) and (m == 1 or (m <= few_rows.MOST and k >= _LONG)):
        reading = few_rows.LONG if k >= _LONG else few_rows.SHORT if k >= _SHORT else few_rows.SHORTEST
        return f"{FEW}{m}_{reading}"
    return _select_copies(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)


def _select_copies(m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> str | None:
    rows, columns, depth = (ceil(each / _CHUNK) * _CHUNK for each in (m, n, k))
    known = configs_for(rows, columns, depth, a_transposed=a_transposed, b_transposed=b_transposed)
    if n % _CHUNK:  # C cannot be stored by TMA
        known = {name: each for name, each in known.items() if is_swap_ab(each)}
    found = cheapest(known, m, n, depth)
    chosen = known[found]
    assert isinstance(chosen, Known)
    copied = _COPY + 2 * 2 * (m + n) * k / _BANDWIDTH + microseconds(chosen, m, n, depth, H200)
    return COPIED + found if copied < element_by_element(m, n, k) else None


def element_by_element(m: int, n: int, k: int) -> float:
    """Microseconds of `Narrow`."""
    tiles = ceil(m / 64) * ceil(n / 128)
    return _LAUNCH + max(1.0, tiles / (PROCESSORS * _RESIDENT)) * (_TILE + _STEP * ceil(k / 64))


def is_for_unaligned(config: str) -> bool:
    """Whether it is the name of such a configuration, which reads dense operands."""
    return config.startswith((COPIED, FEW))


def unaligned(family: str, config: str) -> tuple[Template | ProgramTemplate, str] | None:
    """The kernels of a family (`gemm_nt` and others) that have a configuration of such a name, and its name there."""
    made: Template | ProgramTemplate | None = None
    name = config.removeprefix(COPIED)
    if config.startswith(COPIED):
        made = padded.FAMILIES.get(family)
    elif config.startswith(FEW):
        count, _, name = config.removeprefix(FEW).partition("_")
        made = few_rows.FAMILIES.get(family, {}).get(int(count)) if count.isdecimal() else None
    return (made, name) if made is not None and name in made.configs else None
