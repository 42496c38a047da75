"""Matrix products (MFMA) with one block.

Lane layouts [AMD matrix instruction calculator; MI300 ISA, "Matrix arithmetic instructions"], for M x N x K with
g = 64 / M groups of lanes: lane l holds of A the K / g consecutive elements of row l % M that start at (l / M) * K / g,
of B likewise for column l % N; register r of the sum is row (r / 4) * 4g + 4 * (l / N) + r % 4, column l % N. EXEC is
ignored.

Products and their sum with C are formed in f64 and rounded once to f32, or in f32 where that is the same. The machine
rounds partial sums in an order that AMD does not publish: the two agree wherever all partial sums are exact in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from attrs import define

from argus.interp.gfx942.instruction import Constant, Instruction, Vector
from argus.interp.gfx942.instruction import Operand as Source
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.state import LANES, Array, Group, Wave

_FORMATS: dict[str, tuple[int, Any]] = {
    "f32": (4, np.float32),
    "f16": (2, np.float16),
    "bf16": (2, None),
    "fp8": (1, ml_dtypes.float8_e4m3fnuz),
    "bf8": (1, ml_dtypes.float8_e5m2fnuz),
    "i8": (1, np.int8),
}
"""Bytes of an element, and its NumPy type if NumPy converts it fast."""
_UPPER = np.uint32(0xFFFF0000)


@define
class Operand:
    """An operand as (workgroup, k, row) in f32, at a time of the wave's clock. Both operands of a product have k in the
    same order, which is not that of the matrices.

    steps: the greatest size of an element in units of 1 / 64, infinite if one is not a multiple of that. wide: in f64,
    once it has been asked for.
    """

    clock: int
    held: Array
    steps: float
    wide: Array | None = None

    def in_f64(self) -> Array:
        if self.wide is None:
            self.wide = self.held.astype(np.float64)
        return self.wide


def _operand(wave: Wave, source: Source, form: str, rows: int, *, left: bool) -> Operand:
    """The rows of the left one are in the order of the result's registers.

    Converted operands are reused until one of their registers is written: each takes part in several products.
    """
    assert isinstance(source, Vector)
    key = (source.first, rows, form, left)
    kept = wave.converted.get(key)
    if kept is not None and kept.clock >= max(wave.stamps[source.first : source.first + source.count]):
        return kept
    words = wave.v[source.first : source.first + source.count]
    if left:
        words = words.take(_result_lanes(rows), axis=2)
    whole = _in_f32(words, form, rows)
    made = wave.converted[key] = Operand(wave.clock, whole, steps_of(whole))
    return made


def _in_f32(words: Array, form: str, rows: int) -> Array:
    """Registers (register, workgroup, lane) as (workgroup, k, row), k by register, element and group of lanes."""
    size, kind = _FORMATS[form]
    count, workgroups, lanes = words.shape
    found = np.empty((workgroups, count, 4 // size, lanes), np.float32)
    if kind is not None:
        elements = np.ascontiguousarray(words).view(kind).reshape(count, workgroups, lanes, -1)
        found[...] = elements.transpose(1, 0, 3, 2)
    else:
        by_register = found.view(np.uint32).transpose(1, 0, 2, 3)
        np.left_shift(words, np.uint32(16), out=by_register[:, :, 0])
        np.bitwise_and(words, _UPPER, out=by_register[:, :, 1])
    return found.reshape(workgroups, -1, rows)


def steps_of(values: Array) -> float:
    """The greatest size of a value in units of 1 / 64, infinite if one is not a multiple of that."""
    scaled = values * np.float32(_UNITS)
    most = float(max(scaled.max(), -scaled.min()))
    return most if most < _EXACT and (np.rint(scaled) == scaled).all() else np.inf


_UNITS, _EXACT = 64, 1 << 24


def product_of(left: Operand, right: Operand) -> Array:
    """Exact sums of products where f32 holds all of them, in whatever order they are added; else in f64.

    If all elements are multiples of a unit, so are all partial sums, which f32 holds up to 2 ** 24 units.
    """
    depth = left.held.shape[1]
    if depth * left.steps * right.steps <= _EXACT:
        return np.matmul(left.held.transpose(0, 2, 1), right.held)
    return np.matmul(left.in_f64().transpose(0, 2, 1), right.in_f64())


@cache
def _result_rows(rows: int) -> Array:
    """The rows of the result by register and, within it, by group of lanes."""
    groups = LANES // rows
    register, group = np.divmod(np.arange(rows), groups)
    return register // 4 * 4 * groups + 4 * group + register % 4


@cache
def _result_lanes(rows: int) -> Array:
    """Of each group of lanes, those with the rows of the result in that order."""
    return (np.arange(0, LANES, rows)[:, None] + _result_rows(rows)).reshape(-1)


def _multiply(rows: int, left: str, right: str) -> Callable[[Group, Wave, Instruction], None]:
    kind = np.int32 if left == "i8" else np.float32
    count = rows * rows // LANES

    def run(_group: Group, wave: Wave, instruction: Instruction) -> None:
        a, b, c = instruction.sources
        product = product_of(_operand(wave, a, left, rows, left=True), _operand(wave, b, right, rows, left=False))
        found = product.reshape(-1, count, LANES).transpose(1, 0, 2)
        if isinstance(c, Vector):
            added = wave.v[c.first : c.first + count].view(kind)
        else:
            assert isinstance(c, Constant)
            added = np.array(c.word, np.uint32).view(kind)
        (target,) = instruction.results
        assert isinstance(target, Vector)
        into = wave.v[target.first : target.first + count].view(kind)
        if left == "i8":
            np.add(found.astype(np.int32), added, out=into)
        else:
            np.add(found, added, out=into, casting="same_kind")
        wave.stamp(target.first, count)
        wave.whole[target.first : target.first + count] = [True] * count

    return run


def _row(number: int, rows: int, depth: int, left: str, right: str = "") -> Row:
    sums, size = rows * rows // LANES, _FORMATS[left][0]
    bits = depth * rows * size * 8 // LANES
    result, forms = ("i32" if left == "i8" else "f32"), (f"{left}_{right}" if right else left)
    signature = f"v{sums}{result} = b{bits} b{bits} v{sums}{result}"
    run = _multiply(rows, left, right or left)
    return act(f"v_mfma_{result}_{rows}x{rows}x{depth}_{forms}", "MAI", number, signature, run)


ROWS: tuple[Row, ...] = (
    _row(68, 32, 2, "f32"),
    _row(69, 16, 4, "f32"),
    _row(76, 32, 8, "f16"),
    _row(77, 16, 16, "f16"),
    _row(86, 32, 16, "i8"),
    _row(87, 16, 32, "i8"),
    _row(96, 32, 8, "bf16"),
    _row(97, 16, 16, "bf16"),
    _row(112, 16, 32, "bf8", "bf8"),
    _row(113, 16, 32, "bf8", "fp8"),
    _row(114, 16, 32, "fp8", "bf8"),
    _row(115, 16, 32, "fp8", "fp8"),
    _row(116, 32, 16, "bf8", "bf8"),
    _row(117, 32, 16, "bf8", "fp8"),
    _row(118, 32, 16, "fp8", "bf8"),
    _row(119, 32, 16, "fp8", "fp8"),
)
