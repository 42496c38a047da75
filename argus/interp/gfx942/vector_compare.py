"""Vector comparisons, VOPC: they write one bit for each lane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.interp.gfx942.row import Row, row
from argus.interp.gfx942.state import Array

_OF_INTEGERS: tuple[tuple[str, int, Callable[[Array, Array], Array]], ...] = (
    ("lt", 1, lambda a, b: a < b),
    ("eq", 2, lambda a, b: a == b),
    ("le", 3, lambda a, b: a <= b),
    ("gt", 4, lambda a, b: a > b),
    ("ne", 5, lambda a, b: a != b),
    ("ge", 6, lambda a, b: a >= b),
)
_OF_FLOATS: tuple[tuple[str, int, Callable[[Array, Array], Array]], ...] = (
    ("lt", 1, lambda a, b: a < b),
    ("eq", 2, lambda a, b: a == b),
    ("le", 3, lambda a, b: a <= b),
    ("gt", 4, lambda a, b: a > b),
    ("lg", 5, lambda a, b: (a < b) | (a > b)),
    ("ge", 6, lambda a, b: a >= b),
    ("o", 7, lambda a, b: ~(np.isnan(a) | np.isnan(b))),
    ("u", 8, lambda a, b: np.isnan(a) | np.isnan(b)),
    ("nge", 9, lambda a, b: ~(a >= b)),
    ("nlg", 10, lambda a, b: ~((a < b) | (a > b))),
    ("ngt", 11, lambda a, b: ~(a > b)),
    ("nle", 12, lambda a, b: ~(a <= b)),
    ("neq", 13, lambda a, b: a != b),
    ("nlt", 14, lambda a, b: ~(a < b)),
)
_FIRST = {
    "f16": 0x20, "f32": 0x40, "f64": 0x60, "i16": 0xA0, "u16": 0xA8, "i32": 0xC0, "u32": 0xC8, "i64": 0xE0, "u64": 0xE8,
}  # fmt: skip


def _class(a: Array, wanted: Array) -> Array:
    """Whether a value is of a class whose bit is set: NaNs, then -inf, -normal, -subnormal, -0, +0, ..., +inf."""
    tiny = np.finfo(a.dtype).tiny
    size = np.select([np.isinf(a), np.abs(a) >= tiny, a != 0], [3, 2, 1], 0)
    number = np.where(np.signbit(a), 5 - size, 6 + size)
    quiet = 1 << (np.finfo(a.dtype).nmant - 1)
    bits = a.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize])
    number = np.where(np.isnan(a), np.where(bits & bits.dtype.type(quiet), 1, 0), number)
    return wanted >> number.astype(np.uint32) & np.uint32(1) != 0


def _rows() -> tuple[Row, ...]:
    found: list[Row] = []
    for kind, first in _FIRST.items():
        for name, number, run in _OF_FLOATS if kind.startswith("f") else _OF_INTEGERS:
            found.append(row(f"v_cmp_{name}_{kind}", "VOPC", first + number, f"mask = {kind} {kind}", run))
    return tuple(found)


ROWS: tuple[Row, ...] = (
    *_rows(),
    row("v_cmp_class_f64", "VOPC", 0x12, "mask = f64 u32", _class),
    row("v_cmp_class_f16", "VOPC", 0x14, "mask = f16 u32", _class),
    row("v_cmp_class_f32", "VOPC", 0x10, "mask = f32 u32", _class),
)
