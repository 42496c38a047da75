"""Scalar arithmetic: SOP1, SOP2, SOPC and SOPK [MI300 ISA, chapter "Instructions"]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.row import Form, Formula, Row, row
from argus.interp.gfx942.state import Array

U32, U64, I32, I64 = np.uint32, np.uint64, np.int32, np.int64


def _add(a: Array, b: Array, carry: Array | int = 0) -> tuple[Array, Array]:
    whole = a.astype(U64) + b.astype(U64) + np.asarray(carry).astype(U64)
    return whole.astype(U32), whole > U64(0xFFFFFFFF)


def _sub(a: Array, b: Array, borrow: Array | int = 0) -> tuple[Array, Array]:
    taken = b.astype(U64) + np.asarray(borrow).astype(U64)
    return (a.astype(U64) - taken).astype(U32), taken > a.astype(U64)


def _add_signed(a: Array, b: Array) -> tuple[Array, Array]:
    whole = a.astype(I64) + b.astype(I64)
    return whole.astype(I32), whole != whole.astype(I32)


def _sub_signed(a: Array, b: Array) -> tuple[Array, Array]:
    whole = a.astype(I64) - b.astype(I64)
    return whole.astype(I32), whole != whole.astype(I32)


def _nonzero(run: Callable[[Array, Array], Array]) -> Callable[[Array, Array], tuple[Array, Array]]:
    """With SCC: whether the result is not zero."""

    def both(a: Array, b: Array) -> tuple[Array, Array]:
        found = run(a, b)
        return found, found != 0

    return both


def _nonzero_of_one(run: Callable[[Array], Array]) -> Callable[[Array], tuple[Array, Array]]:
    def both(a: Array) -> tuple[Array, Array]:
        found = run(a)
        return found, found != 0

    return both


def _least(a: Array, b: Array) -> tuple[Array, Array]:
    return np.minimum(a, b), a < b


def _most(a: Array, b: Array) -> tuple[Array, Array]:
    return np.maximum(a, b), a > b


def _low(b: Array, bits: int, kind: npt.DTypeLike) -> Array:
    return (b & U32(bits - 1)).astype(kind)


def _shifts(bits: int) -> tuple[Callable[[Array, Array], Array], ...]:
    unsigned, signed = (U32, I32) if bits == 32 else (U64, I64)
    return (
        lambda a, b: a << _low(b, bits, unsigned),
        lambda a, b: a >> _low(b, bits, unsigned),
        lambda a, b: a >> _low(b, bits, signed),
    )


def _field(a: Array, b: Array) -> Array:
    """Bits [offset, offset + width) of a, sign-extended if a is signed. b: the offset and, from bit 16, the width."""
    bits = a.dtype.itemsize * 8
    offset, width = b & U32(bits - 1), np.minimum(b >> U32(16) & U32(0x7F), bits)
    wide = (a >> offset.astype(a.dtype)).astype(a.dtype)
    unused = (bits - np.minimum(width, bits - offset)).astype(np.int64)
    kept = np.where(unused >= bits, 0, unused).astype(a.dtype)
    shifted = (wide << kept) >> kept
    return np.where(width == 0, a.dtype.type(0), shifted)


def _field_mask(a: Array, b: Array) -> Array:
    return ((U32(1) << (a & U32(31))) - U32(1)) << (b & U32(31))


def _wide_field_mask(a: Array, b: Array) -> Array:
    return ((U64(1) << _low(a, 64, U64)) - U64(1)) << _low(b, 64, U64)


def _high(a: Array, b: Array) -> Array:
    wide = U64 if a.dtype == U32 else I64
    return ((a.astype(wide) * b.astype(wide)) >> wide(32)).astype(a.dtype)


def _shift_add(amount: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    def run(a: Array, b: Array) -> tuple[Array, Array]:
        whole = (a.astype(U64) << U64(amount)) + b.astype(U64)
        return whole.astype(U32), whole > U64(0xFFFFFFFF)

    return run


def _pack(left: int, right: int) -> Callable[[Array, Array], Array]:
    return lambda a, b: (a >> U32(left) & U32(0xFFFF)) | (b >> U32(right) & U32(0xFFFF)) << U32(16)


def _first_one(a: Array) -> Array:
    """The lowest bit that is set, -1 if none is."""
    lowest = a & (~a + a.dtype.type(1))
    return np.where(a == 0, -1, _top(lowest)).astype(I32)


def _leading(a: Array) -> Array:
    """Zeros above the highest bit that is set, -1 if none is."""
    return np.where(a == 0, -1, a.dtype.itemsize * 8 - 1 - _top(a)).astype(I32)


def _leading_signs(a: Array) -> Array:
    """Bits below the highest one that equal it, and it; -1 if all do."""
    kind = U32 if a.dtype == I32 else U64
    differing = np.where(a < 0, ~a, a).view(kind)
    return _leading(differing)


def _zeros(a: Array) -> Array:
    return np.bitwise_count(~a).astype(I32)


def _replicated(a: Array) -> Array:
    """Each bit twice."""
    found = np.zeros(a.shape, U64)
    for bit in range(32):
        found |= (a.astype(U64) >> U64(bit) & U64(1)) * U64(3) << U64(2 * bit)
    return found


def _top(a: Array) -> Array:
    """The highest bit that is set."""
    found, rest = np.zeros(a.shape, np.int64), a.copy()
    for step in (32, 16, 8, 4, 2, 1):
        if step < a.dtype.itemsize * 8:
            high = rest >> a.dtype.type(step)
            found, rest = found + np.where(high != 0, step, 0), np.where(high != 0, high, rest)
    return found


def _reversed_bits(a: Array) -> Array:
    octets = np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, a.dtype.itemsize)
    bits = np.unpackbits(octets, axis=-1, bitorder="little")[..., ::-1]
    return np.packbits(bits, axis=-1, bitorder="little").view(a.dtype)[..., 0]


_LOGIC: tuple[tuple[str, int, Callable[[Array, Array], Array]], ...] = (
    ("and", 12, lambda a, b: a & b),
    ("or", 14, lambda a, b: a | b),
    ("xor", 16, lambda a, b: a ^ b),
    ("andn2", 18, lambda a, b: a & ~b),
    ("orn2", 20, lambda a, b: a | ~b),
    ("nand", 22, lambda a, b: ~(a & b)),
    ("nor", 24, lambda a, b: ~(a | b)),
    ("xnor", 26, lambda a, b: ~(a ^ b)),
)
_SAVED: tuple[tuple[str, int, Callable[[Array, Array], Array]], ...] = (
    ("and", 32, lambda a, e: a & e),
    ("or", 33, lambda a, e: a | e),
    ("xor", 34, lambda a, e: a ^ e),
    ("andn2", 35, lambda a, e: a & ~e),
    ("orn2", 36, lambda a, e: a | ~e),
    ("nand", 37, lambda a, e: ~(a & e)),
    ("nor", 38, lambda a, e: ~(a | e)),
    ("xnor", 39, lambda a, e: ~(a ^ e)),
)
_COMPARED: tuple[tuple[str, int, Callable[[Array, Array], Array]], ...] = (
    ("eq", 0, lambda a, b: a == b),
    ("lg", 1, lambda a, b: a != b),
    ("gt", 2, lambda a, b: a > b),
    ("ge", 3, lambda a, b: a >= b),
    ("lt", 4, lambda a, b: a < b),
    ("le", 5, lambda a, b: a <= b),
)


def _saving(run: Callable[[Array, Array], Array]) -> Callable[[Array, Array], tuple[Array, Array, Array]]:
    def both(a: Array, active: Array) -> tuple[Array, Array, Array]:
        found = run(a, active)
        return active, found, found != 0

    return both


def _writing(run: Callable[[Array, Array], Array]) -> Callable[[Array, Array], tuple[Array, Array, Array]]:
    def both(a: Array, active: Array) -> tuple[Array, Array, Array]:
        found = run(a, active)
        return found, found, found != 0

    return both


def _two(name: str, number: int, signature: str, run: Formula) -> Row:
    return row(name, "SOP2", number, signature, run)


def _logic() -> tuple[Row, ...]:
    return tuple(
        _two(f"s_{name}_b{bits}", number + (bits == 64), f"u{bits} scc = u{bits} u{bits}", _nonzero(run))
        for name, number, run in _LOGIC
        for bits in (32, 64)
    )


def _saves() -> tuple[Row, ...]:
    return tuple(
        row(f"s_{name}_saveexec_b64", "SOP1", number, "u64 exec scc = u64 exec", _saving(run))
        for name, number, run in _SAVED
    )


def _comparisons() -> tuple[Row, ...]:
    forms: tuple[tuple[str, Form, int, str], ...] = (("s_cmp_", "SOPC", 0, ""), ("s_cmpk_", "SOPK", 2, "k"))
    found: list[Row] = []
    for prefix, form, first, literal in forms:
        for name, number, run in _COMPARED:
            for kind, more in (("i32", 0), ("u32", 6)):
                sources = f"{kind} imm" if literal else f"{kind} {kind}"
                compare = _zero_extended(run) if literal and kind == "u32" else run
                found.append(row(f"{prefix}{name}_{kind}", form, first + number + more, f"scc = {sources}", compare))
    return tuple(found)


def _zero_extended(run: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: run(a, b.astype(np.uint16).astype(U32))


_SHIFT_32, _SHIFT_64 = _shifts(32), _shifts(64)

ROWS: tuple[Row, ...] = (
    *_logic(),
    *_saves(),
    *_comparisons(),
    _two("s_add_u32", 0, "u32 scc = u32 u32", _add),
    _two("s_sub_u32", 1, "u32 scc = u32 u32", _sub),
    _two("s_add_i32", 2, "i32 scc = i32 i32", _add_signed),
    _two("s_sub_i32", 3, "i32 scc = i32 i32", _sub_signed),
    _two("s_addc_u32", 4, "u32 scc = u32 u32 scc", _add),
    _two("s_subb_u32", 5, "u32 scc = u32 u32 scc", _sub),
    _two("s_min_i32", 6, "i32 scc = i32 i32", _least),
    _two("s_min_u32", 7, "u32 scc = u32 u32", _least),
    _two("s_max_i32", 8, "i32 scc = i32 i32", _most),
    _two("s_max_u32", 9, "u32 scc = u32 u32", _most),
    _two("s_cselect_b32", 10, "b32 = b32 b32 scc", lambda a, b, scc: np.where(scc, a, b)),
    _two("s_cselect_b64", 11, "b64 = b64 b64 scc", lambda a, b, scc: np.where(scc, a, b)),
    _two("s_lshl_b32", 28, "u32 scc = u32 u32", _nonzero(_SHIFT_32[0])),
    _two("s_lshl_b64", 29, "u64 scc = u64 u32", _nonzero(_SHIFT_64[0])),
    _two("s_lshr_b32", 30, "u32 scc = u32 u32", _nonzero(_SHIFT_32[1])),
    _two("s_lshr_b64", 31, "u64 scc = u64 u32", _nonzero(_SHIFT_64[1])),
    _two("s_ashr_i32", 32, "i32 scc = i32 u32", _nonzero(_SHIFT_32[2])),
    _two("s_ashr_i64", 33, "i64 scc = i64 u32", _nonzero(_SHIFT_64[2])),
    _two("s_bfm_b32", 34, "u32 = u32 u32", _field_mask),
    _two("s_bfm_b64", 35, "u64 = u32 u32", _wide_field_mask),
    _two("s_bfe_u64", 39, "u64 scc = u64 u32", _nonzero(_field)),
    _two("s_bfe_i64", 40, "i64 scc = i64 u32", _nonzero(_field)),
    _two("s_absdiff_i32", 42, "i32 scc = i32 i32", _nonzero(lambda a, b: np.abs(a - b))),
    _two("s_mul_i32", 36, "u32 = u32 u32", lambda a, b: a * b),
    _two("s_bfe_u32", 37, "u32 scc = u32 u32", _nonzero(_field)),
    _two("s_bfe_i32", 38, "i32 scc = i32 u32", _nonzero(_field)),
    _two("s_mul_hi_u32", 44, "u32 = u32 u32", _high),
    _two("s_mul_hi_i32", 45, "i32 = i32 i32", _high),
    *(_two(f"s_lshl{n}_add_u32", 45 + n, "u32 scc = u32 u32", _shift_add(n)) for n in (1, 2, 3, 4)),
    _two("s_pack_ll_b32_b16", 50, "u32 = u32 u32", _pack(0, 0)),
    _two("s_pack_lh_b32_b16", 51, "u32 = u32 u32", _pack(0, 16)),
    _two("s_pack_hh_b32_b16", 52, "u32 = u32 u32", _pack(16, 16)),
    row("s_mov_b32", "SOP1", 0, "b32 = b32", lambda a: a),
    row("s_mov_b64", "SOP1", 1, "b64 = b64", lambda a: a),
    row("s_not_b32", "SOP1", 4, "u32 scc = u32", _nonzero_of_one(lambda a: ~a)),
    row("s_not_b64", "SOP1", 5, "u64 scc = u64", _nonzero_of_one(lambda a: ~a)),
    row("s_brev_b32", "SOP1", 8, "u32 = u32", _reversed_bits),
    row("s_brev_b64", "SOP1", 9, "u64 = u64", _reversed_bits),
    row("s_cmov_b32", "SOP1", 2, "b32 = b32 scc old", lambda a, scc, old: np.where(scc, a, old)),
    row("s_cmov_b64", "SOP1", 3, "b64 = b64 scc old", lambda a, scc, old: np.where(scc, a, old)),
    row("s_bcnt0_i32_b32", "SOP1", 10, "i32 scc = u32", _nonzero_of_one(_zeros)),
    row("s_bcnt0_i32_b64", "SOP1", 11, "i32 scc = u64", _nonzero_of_one(_zeros)),
    row("s_bcnt1_i32_b64", "SOP1", 13, "i32 scc = u64", _nonzero_of_one(lambda a: np.bitwise_count(a).astype(I32))),
    row("s_ff0_i32_b32", "SOP1", 14, "i32 = u32", lambda a: _first_one(~a)),
    row("s_ff0_i32_b64", "SOP1", 15, "i32 = u64", lambda a: _first_one(~a)),
    row("s_ff1_i32_b64", "SOP1", 17, "i32 = u64", _first_one),
    row("s_flbit_i32_b64", "SOP1", 19, "i32 = u64", _leading),
    row("s_flbit_i32", "SOP1", 20, "i32 = i32", _leading_signs),
    row("s_flbit_i32_i64", "SOP1", 21, "i32 = i64", _leading_signs),
    row("s_bitset0_b64", "SOP1", 25, "u64 = u32 old", lambda a, old: old & ~(U64(1) << _low(a, 64, U64))),
    row("s_bitset1_b64", "SOP1", 27, "u64 = u32 old", lambda a, old: old | U64(1) << _low(a, 64, U64)),
    row("s_andn1_saveexec_b64", "SOP1", 51, "u64 exec scc = u64 exec", _saving(lambda a, e: ~a & e)),
    row("s_orn1_saveexec_b64", "SOP1", 52, "u64 exec scc = u64 exec", _saving(lambda a, e: ~a | e)),
    row("s_andn1_wrexec_b64", "SOP1", 53, "u64 exec scc = u64 exec", _writing(lambda a, e: ~a & e)),
    row("s_andn2_wrexec_b64", "SOP1", 54, "u64 exec scc = u64 exec", _writing(lambda a, e: a & ~e)),
    row("s_bitreplicate_b64_b32", "SOP1", 55, "u64 = u32", _replicated),
    row("s_bcnt1_i32_b32", "SOP1", 12, "i32 scc = u32", _nonzero_of_one(lambda a: np.bitwise_count(a).astype(I32))),
    row("s_ff1_i32_b32", "SOP1", 16, "i32 = u32", _first_one),
    row("s_flbit_i32_b32", "SOP1", 18, "i32 = u32", _leading),
    row("s_sext_i32_i8", "SOP1", 22, "i32 = u32", lambda a: a.astype(np.int8).astype(I32)),
    row("s_sext_i32_i16", "SOP1", 23, "i32 = u32", lambda a: a.astype(np.int16).astype(I32)),
    row("s_bitset0_b32", "SOP1", 24, "u32 = u32 old", lambda a, old: old & ~(U32(1) << (a & U32(31)))),
    row("s_bitset1_b32", "SOP1", 26, "u32 = u32 old", lambda a, old: old | U32(1) << (a & U32(31))),
    row("s_abs_i32", "SOP1", 48, "i32 scc = i32", _nonzero_of_one(np.abs)),
    row("s_cmp_eq_u64", "SOPC", 18, "scc = u64 u64", lambda a, b: a == b),
    row("s_cmp_lg_u64", "SOPC", 19, "scc = u64 u64", lambda a, b: a != b),
    row("s_bitcmp0_b64", "SOPC", 14, "scc = u64 u32", lambda a, b: a >> _low(b, 64, U64) & U64(1) == 0),
    row("s_bitcmp1_b64", "SOPC", 15, "scc = u64 u32", lambda a, b: a >> _low(b, 64, U64) & U64(1) == 1),
    row("s_bitcmp0_b32", "SOPC", 12, "scc = u32 u32", lambda a, b: a >> (b & U32(31)) & U32(1) == 0),
    row("s_bitcmp1_b32", "SOPC", 13, "scc = u32 u32", lambda a, b: a >> (b & U32(31)) & U32(1) == 1),
    row("s_cmovk_i32", "SOPK", 1, "i32 = imm scc old", lambda k, scc, old: np.where(scc, k, old)),
    row("s_movk_i32", "SOPK", 0, "i32 = imm", lambda k: k),
    row("s_addk_i32", "SOPK", 14, "i32 scc = imm old", lambda k, old: _add_signed(old, k)),
    row("s_mulk_i32", "SOPK", 15, "i32 = imm old", lambda k, old: (old.astype(I64) * k).astype(I32)),
)
