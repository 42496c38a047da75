"""Matrix products (MFMA) with one block.

Lane layouts [AMD matrix instruction calculator; MI300 ISA, "Matrix arithmetic instructions"], for M x N x K with
g = 64 / M groups of lanes: lane l holds of A the K / g consecutive elements of row l % M that start at (l / M) * K / g,
of B likewise for column l % N; register r of the sum is row (r / 4) * 4g + 4 * (l / N) + r % 4, column l % N. EXEC is
ignored.

Products and their sum with C are formed in f64 and rounded once to f32. The machine rounds partial sums in an order
that AMD does not publish: the two agree wherever all partial sums are exact in f32.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from argus.interp.gfx942.instruction import Constant, Instruction, Operand, Vector
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.state import LANES, Array, Group, Wave

_FORMATS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "f32": (4, lambda raw: raw.view(np.float32)),
    "f16": (2, lambda raw: raw.view(np.float16)),
    "bf16": (2, lambda raw: (raw.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)),
    "fp8": (1, lambda raw: raw.view(ml_dtypes.float8_e4m3fnuz).astype(np.float32)),
    "bf8": (1, lambda raw: raw.view(ml_dtypes.float8_e5m2fnuz).astype(np.float32)),
    "i8": (1, lambda raw: raw.view(np.int8)),
}


def _elements(wave: Wave, operand: Operand, form: str, rows: int) -> Array:
    """An operand as (workgroup, row, k) in f64."""
    assert isinstance(operand, Vector)
    size, read = _FORMATS[form]
    words = wave.v[operand.first : operand.first + operand.count].transpose(1, 2, 0)
    held = read(np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape[:2], -1))
    groups = LANES // rows
    whole = held.astype(np.float64).reshape(len(words), groups, rows, operand.count * 4 // size)
    return whole.transpose(0, 2, 1, 3).reshape(len(words), rows, -1)


def _multiply(rows: int, left: str, right: str) -> Callable[[Group, Wave, Instruction], None]:
    kind = np.int32 if left == "i8" else np.float32

    def run(_group: Group, wave: Wave, instruction: Instruction) -> None:
        a, b, c = instruction.sources
        product = _elements(wave, a, left, rows) @ _elements(wave, b, right, rows).transpose(0, 2, 1)
        count, groups = rows * rows // LANES, LANES // rows
        parts = product.reshape(-1, count // 4, groups, 4, rows)
        found = parts.transpose(1, 3, 0, 2, 4).reshape(count, -1, LANES)
        if isinstance(c, Vector):
            found = found + wave.v[c.first : c.first + count].view(kind)
        else:
            assert isinstance(c, Constant)
            found = found + np.array(c.word, np.uint32).view(kind)
        whole = found.astype(np.int64).astype(np.int32) if left == "i8" else found.astype(np.float32)
        (target,) = instruction.results
        assert isinstance(target, Vector)
        wave.v[target.first : target.first + count] = whole.view(np.uint32)
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
