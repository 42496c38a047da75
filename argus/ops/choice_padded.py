"""Chooses how rows that are no multiples of 16 bytes are multiplied on sm_90a: element by element, or by way of copies.

The product of the copies is modelled as any other; the rest by constants that fit the times of 28 shapes on one H200.
"""

from __future__ import annotations

from math import ceil

from argus.kernels.cost_sm_90a import H200, PROCESSORS, Known, cheapest, is_swap_ab, microseconds
from argus.kernels.layouts import configs_for

PREFIX = "padded_"
"""Of the names of configurations of `argus.kernels.padded`; the rest names that of the product."""
_CHUNK = 8
_LAUNCH, _TILE, _STEP, _RESIDENT = 3.0, 4.5, 1.4, 1.45
"""Element by element: microseconds of a launch, of a tile, and of 64 of its K; tiles that a processor has at a time."""
_COPY, _BANDWIDTH = 7.0, 3.2e6
"""Microseconds of the launch that copies, and bytes that it moves in one."""


def select_padded(m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> str | None:
    """The configuration by way of copies for C = A @ B^T; None where reading element by element is expected to take
    less time, and where rows are multiples of 16 bytes.
    """
    if not ((m if a_transposed else k) % _CHUNK or (n if b_transposed else k) % _CHUNK):
        return None
    rows, columns, depth = (ceil(each / _CHUNK) * _CHUNK for each in (m, n, k))
    known = configs_for(rows, columns, depth, a_transposed=a_transposed, b_transposed=b_transposed)
    if n % _CHUNK:  # C cannot be stored by TMA
        known = {name: each for name, each in known.items() if is_swap_ab(each)}
    found = cheapest(known, m, n, depth)
    chosen = known[found]
    assert isinstance(chosen, Known)
    copied = _COPY + 2 * 2 * (m + n) * k / _BANDWIDTH + microseconds(chosen, m, n, depth, H200)
    return PREFIX + found if copied < element_by_element(m, n, k) else None


def element_by_element(m: int, n: int, k: int) -> float:
    """Microseconds of `Narrow`."""
    tiles = ceil(m / 64) * ceil(n / 128)
    return _LAUNCH + max(1.0, tiles / (PROCESSORS * _RESIDENT)) * (_TILE + _STEP * ceil(k / 64))
