"""Chooses how rows that are no multiples of 16 bytes are multiplied on sm_90a: element by element, or by way of copies.

The product of the copies is modelled as any other; the rest by constants that fit times on one H200
(`benchmarks/dense_h200.py search`).
"""

from __future__ import annotations

from math import ceil

from argus.core.dsl.kernel import Template
from argus.core.dsl.programs import ProgramTemplate
from argus.kernels import few_rows, padded
from argus.kernels.cost_sm_90a import H200, PROCESSORS, Known, cheapest, microseconds, stores_elements
from argus.kernels.layouts import configs_for

COPIED, FEW = "padded_", "few_"
"""The first parts of the names of such configurations; the rest names one of the product of the copies, or the number
of rows of A and one of `argus.kernels.few_rows`.
"""
_CHUNK, _WHOLE = 8, 4
"""Elements in 16 bytes; columns of C that the sum of the parts of K stores at once."""
NARROWS = {"narrow": 128, "narrow_32": 32}
"""Columns of tiles of the configurations that read and store element by element."""
_LAUNCH, _WIDTH = 1.595, 128
_TILE, _STEP, _TILES = (0.206, 0.598), (0.606, 0.746), (2.299, -0.954)
"""Of those: microseconds of a launch; of a tile, of 64 of its K, and tiles that a processor has at a time, each at no
columns and for 128 more.
"""
_LEAVING = 0.556e6
"""Bytes of C that they store in a microsecond."""
_COPY, _BANDWIDTH = 2.307, 3.467e6
"""Microseconds that the launch that copies adds, and bytes that it moves in one."""
_LONG, _SHORT = 2048, 768
"""Rows of B from which a block has one, and from which a warp reads 1024 elements at a time."""


def select_unaligned(m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> str | None:
    """The configuration for C = A @ B^T of such rows; None where that is `Narrow`, and for multiples of 16 bytes.

    Few rows of A are for plain FMAs also where only rows of C are no such multiples.
    """
    aligned = not ((m if a_transposed else k) % _CHUNK or (n if b_transposed else k) % _CHUNK)
    if aligned and n % _CHUNK == 0:
        return None
    if not (a_transposed or b_transposed) and (m == 1 or (m <= few_rows.MOST and k >= _LONG)):
        reading = few_rows.LONG if k >= _LONG else few_rows.SHORT if k >= _SHORT else few_rows.SHORTEST
        return f"{FEW}{m}_{reading}"
    return None if aligned else _select_copies(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)


def _select_copies(m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> str | None:
    rows, columns, depth = (ceil(each / _CHUNK) * _CHUNK for each in (m, n, k))
    known: dict[str, object] = dict(
        configs_for(rows, columns, depth, a_transposed=a_transposed, b_transposed=b_transposed)
    )
    if n % _CHUNK:  # C cannot be stored by TMA
        known = {name: each for name, each in known.items() if stores_elements(each)}
    if n % _WHOLE == 0:
        known |= padded.shares_of(a_transposed=a_transposed, b_transposed=b_transposed)
    found = cheapest(known, m, n, depth)
    chosen = known[found]
    assert isinstance(chosen, Known)
    copied = _COPY + 2 * 2 * (m + n) * k / _BANDWIDTH + microseconds(chosen, m, n, depth, H200)
    single = min(element_by_element(m, n, k, each) for each in NARROWS.values())
    return COPIED + found if copied < single else None


def select_narrow(m: int, n: int, k: int) -> str:
    """The configuration that reads and stores element by element in the least time."""
    return min(NARROWS, key=lambda name: element_by_element(m, n, k, NARROWS[name]))


def element_by_element(m: int, n: int, k: int, columns: int) -> float:
    """Microseconds of `Narrow` with tiles of so many columns."""
    tile, step, resident = (none + more * columns / _WIDTH for none, more in (_TILE, _STEP, _TILES))
    tiles = ceil(m / 64) * ceil(n / columns)
    waves = max(1.0, tiles / (PROCESSORS * resident))
    return _LAUNCH + waves * (tile + step * ceil(k / 64)) + 2 * m * n / _LEAVING


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
