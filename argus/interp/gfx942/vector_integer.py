"""Vector arithmetic of integers and bits: VOP1, VOP2, VOP3 [MI300 ISA, chapter "Instructions"]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.row import Formula, Row, row
from argus.interp.gfx942.state import LANES, Array

U16, U32, U64, I32, I64 = np.uint16, np.uint32, np.uint64, np.int32, np.int64
_BELOW = (np.uint64(1) << np.arange(LANES, dtype=U64)) - np.uint64(1)


def _amount(a: Array, bits: int, kind: npt.DTypeLike) -> Array:
    return (a & a.dtype.type(bits - 1)).astype(kind)


def _left(a: Array, b: Array) -> Array:
    return b << _amount(a, 32, U32)


def _right(a: Array, b: Array) -> Array:
    return b >> _amount(a, 32, b.dtype)


def _wide_shift(kind: npt.DTypeLike, *, left: bool) -> Callable[[Array, Array], Array]:
    def run(a: Array, b: Array) -> Array:
        amount = _amount(a, 64, kind)
        return b << amount if left else b >> amount

    return run


def _add_carry(a: Array, b: Array, carry: Array | bool = False) -> tuple[Array, Array]:
    whole = a.astype(U64) + b.astype(U64) + np.asarray(carry).astype(U64)
    return whole.astype(U32), whole > U64(0xFFFFFFFF)


def _sub_borrow(a: Array, b: Array, borrow: Array | bool = False) -> tuple[Array, Array]:
    taken = b.astype(U64) + np.asarray(borrow).astype(U64)
    return (a.astype(U64) - taken).astype(U32), taken > a.astype(U64)


def _high(a: Array, b: Array) -> Array:
    wide = U64 if a.dtype == U32 else I64
    return ((a.astype(wide) * b.astype(wide)) >> wide(32)).astype(a.dtype)


def _low_bits(a: Array) -> Array:
    """24 bits, sign-extended if signed."""
    return (a << a.dtype.type(8)) >> a.dtype.type(8)


def _product_24(a: Array, b: Array) -> Array:
    return _low_bits(a) * _low_bits(b)


def _high_24(a: Array, b: Array) -> Array:
    return _high(_low_bits(a), _low_bits(b))


def _multiply_add(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """64 bits of a * b + c, and the carry out of them."""
    wide = U64 if a.dtype == U32 else I64
    product = a.astype(wide) * b.astype(wide)
    whole = product + c
    carry = whole.view(U64) < product.view(U64)
    return whole, carry


def _extract(a: Array, offset: Array, width: Array) -> Array:
    at, count = offset & U32(31), width & U32(31)
    kept = np.where(at + count < 32, U32(32) - at - count, U32(0))
    whole = a << kept.astype(a.dtype) >> kept.astype(a.dtype) >> at.astype(a.dtype)
    return np.where(count == 0, a.dtype.type(0), whole)


def _permuted(a: Array, b: Array, select: Array) -> Array:
    """`v_perm_b32`: each byte of `select` names one of the eight bytes of {a, b}; 12 is 0x00, beyond is 0xFF."""
    if select.size == 1:
        return _permuted_alike(a, b, int(select.reshape(-1)[0]))
    a, b, select = np.broadcast_arrays(a, b, select)
    found = np.zeros(select.shape, U32)
    for each in np.unique(select):
        found = np.where(select == each, _permuted_alike(a, b, int(each)), found)
    return found


def _permuted_alike(a: Array, b: Array, select: int) -> Array:
    """With one selection for all lanes. 8 to 11 are copies of the signs of the four halves."""
    found = np.zeros(np.broadcast_shapes(a.shape, b.shape), U32)
    for number in range(4):
        code, place = select >> 8 * number & 0xFF, U32(8 * number)
        if code < 8:
            found |= (((a if code >= 4 else b) >> U32(code % 4 * 8)) & U32(0xFF)) << place
        elif code < 12:
            source = a if code >= 10 else b
            found |= ((source >> U32(31 if code % 2 else 15)) & U32(1)) * U32(0xFF) << place
        elif code > 12:
            found |= U32(0xFF) << place
    return found


def _aligned(unit: int) -> Callable[[Array, Array, Array], Array]:
    def run(a: Array, b: Array, c: Array) -> Array:
        whole = a.astype(U64) << U64(32) | b.astype(U64)
        return (whole >> (U64(unit) * (c & U32(31 if unit == 1 else 3)).astype(U64))).astype(U32)

    return run


def _count_below(low: bool) -> Callable[[Array, Array], Array]:
    below = (_BELOW if low else _BELOW >> U64(32)).astype(U32)
    return lambda a, b: np.bitwise_count(a & below).astype(U32) + b


def _middle(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _first_high(a: Array) -> Array:
    found = np.full(a.shape, -1, I32)
    for bit in range(32):
        found = np.where(a >> U32(bit) & U32(1), I32(31 - bit), found)
    return found


def _first_low(a: Array) -> Array:
    found = np.full(a.shape, -1, I32)
    for bit in range(31, -1, -1):
        found = np.where(a >> U32(bit) & U32(1), I32(bit), found)
    return found


def _first_other(a: Array) -> Array:
    """Bits below the highest one that equal it, and it; -1 if all do."""
    return _first_high(np.where(a < 0, ~a, a).view(U32))


def _reversed_bits(a: Array) -> Array:
    found = np.zeros_like(a)
    for bit in range(32):
        found |= (a >> U32(bit) & U32(1)) << U32(31 - bit)
    return found


def _three(name: str, number: int, kind: str, run: Formula) -> Row:
    return row(name, "VOP3", number, f"{kind} = {kind} {kind} {kind}", run)


def _two(name: str, number: int, kind: str, run: Formula) -> Row:
    return row(name, "VOP2", number, f"{kind} = {kind} {kind}", run)


def _bytes_as_float(number: int) -> Row:
    take = U32(8 * number)
    return row(
        f"v_cvt_f32_ubyte{number}", "VOP1", 17 + number, "f32 = u32",
        lambda a: (a >> take & U32(0xFF)).astype(np.float32),
    )  # fmt: skip


ROWS: tuple[Row, ...] = (
    row("v_nop", "VOP1", 0, "=", tuple),
    row("v_mov_b32", "VOP1", 1, "b32 = b32", lambda a: a),
    row("v_mov_b64", "VOP1", 56, "b64 = b64", lambda a: a),
    row("v_not_b32", "VOP1", 43, "u32 = u32", lambda a: ~a),
    row("v_bfrev_b32", "VOP1", 44, "u32 = u32", _reversed_bits),
    row("v_ffbh_u32", "VOP1", 45, "i32 = u32", _first_high),
    row("v_ffbh_i32", "VOP1", 47, "i32 = i32", _first_other),
    row("v_ffbl_b32", "VOP1", 46, "i32 = u32", _first_low),
    *(_bytes_as_float(number) for number in range(4)),
    row("v_cndmask_b32", "VOP2", 0, "b32 = b32 b32 mask", lambda a, b, mask: np.where(mask, b, a)),
    _two("v_mul_i32_i24", 6, "i32", _product_24),
    _two("v_mul_hi_i32_i24", 7, "i32", _high_24),
    _two("v_mul_u32_u24", 8, "u32", _product_24),
    _two("v_mul_hi_u32_u24", 9, "u32", _high_24),
    _two("v_min_i32", 12, "i32", np.minimum),
    _two("v_max_i32", 13, "i32", np.maximum),
    _two("v_min_u32", 14, "u32", np.minimum),
    _two("v_max_u32", 15, "u32", np.maximum),
    row("v_lshrrev_b32", "VOP2", 16, "u32 = u32 u32", _right),
    row("v_ashrrev_i32", "VOP2", 17, "i32 = u32 i32", _right),
    row("v_lshlrev_b32", "VOP2", 18, "u32 = u32 u32", _left),
    _two("v_and_b32", 19, "u32", lambda a, b: a & b),
    _two("v_or_b32", 20, "u32", lambda a, b: a | b),
    _two("v_xor_b32", 21, "u32", lambda a, b: a ^ b),
    _two("v_xnor_b32", 61, "u32", lambda a, b: ~(a ^ b)),
    row("v_add_co_u32", "VOP2", 25, "u32 mask = u32 u32", _add_carry),
    row("v_sub_co_u32", "VOP2", 26, "u32 mask = u32 u32", _sub_borrow),
    row("v_subrev_co_u32", "VOP2", 27, "u32 mask = u32 u32", lambda a, b: _sub_borrow(b, a)),
    row("v_addc_co_u32", "VOP2", 28, "u32 mask = u32 u32 mask", _add_carry),
    row("v_subb_co_u32", "VOP2", 29, "u32 mask = u32 u32 mask", _sub_borrow),
    row("v_subbrev_co_u32", "VOP2", 30, "u32 mask = u32 u32 mask", lambda a, b, borrow: _sub_borrow(b, a, borrow)),
    _two("v_add_u16", 38, "u16", lambda a, b: a + b),
    _two("v_sub_u16", 39, "u16", lambda a, b: a - b),
    _two("v_mul_lo_u16", 41, "u16", lambda a, b: a * b),
    _two("v_max_u16", 47, "u16", np.maximum),
    _two("v_max_i16", 48, "i16", np.maximum),
    _two("v_min_u16", 49, "u16", np.minimum),
    _two("v_min_i16", 50, "i16", np.minimum),
    _two("v_add_u32", 52, "u32", lambda a, b: a + b),
    _two("v_sub_u32", 53, "u32", lambda a, b: a - b),
    _two("v_subrev_u32", 54, "u32", lambda a, b: b - a),
    _three("v_mad_i32_i24", 450, "i32", lambda a, b, c: _product_24(a, b) + c),
    _three("v_mad_u32_u24", 451, "u32", lambda a, b, c: _product_24(a, b) + c),
    _three("v_bfe_u32", 456, "u32", _extract),
    row("v_bfe_i32", "VOP3", 457, "i32 = i32 u32 u32", _extract),
    _three("v_bfi_b32", 458, "u32", lambda a, b, c: (a & b) | (~a & c)),
    _three("v_alignbit_b32", 462, "u32", _aligned(1)),
    _three("v_alignbyte_b32", 463, "u32", _aligned(8)),
    _three("v_min3_i32", 465, "i32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    _three("v_min3_u32", 466, "u32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    _three("v_max3_i32", 468, "i32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    _three("v_max3_u32", 469, "u32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    _three("v_med3_i32", 471, "i32", _middle),
    _three("v_med3_u32", 472, "u32", _middle),
    row("v_mad_u64_u32", "VOP3", 488, "u64 mask = u32 u32 u64", _multiply_add),
    row("v_mad_i64_i32", "VOP3", 489, "i64 mask = i32 i32 i64", _multiply_add),
    _three("v_perm_b32", 493, "u32", _permuted),
    _three("v_xad_u32", 499, "u32", lambda a, b, c: (a ^ b) + c),
    _three("v_lshl_add_u32", 509, "u32", lambda a, b, c: (a << (b & U32(31))) + c),
    _three("v_add_lshl_u32", 510, "u32", lambda a, b, c: (a + b) << (c & U32(31))),
    _three("v_add3_u32", 511, "u32", lambda a, b, c: a + b + c),
    _three("v_lshl_or_b32", 512, "u32", lambda a, b, c: a << (b & U32(31)) | c),
    _three("v_and_or_b32", 513, "u32", lambda a, b, c: a & b | c),
    _three("v_or3_b32", 514, "u32", lambda a, b, c: a | b | c),
    row("v_lshl_add_u64", "VOP3", 520, "u64 = u64 u32 u64", lambda a, b, c: (a << (b & U32(7)).astype(U64)) + c),
    row("v_mul_lo_u32", "VOP3", 645, "u32 = u32 u32", lambda a, b: a * b),
    row("v_mul_hi_u32", "VOP3", 646, "u32 = u32 u32", _high),
    row("v_mul_hi_i32", "VOP3", 647, "i32 = i32 i32", _high),
    row("v_bcnt_u32_b32", "VOP3", 651, "u32 = u32 u32", lambda a, b: np.bitwise_count(a).astype(U32) + b),
    row("v_mbcnt_lo_u32_b32", "VOP3", 652, "u32 = u32 u32", _count_below(low=True)),
    row("v_mbcnt_hi_u32_b32", "VOP3", 653, "u32 = u32 u32", _count_below(low=False)),
    row("v_lshlrev_b64", "VOP3", 655, "u64 = u32 u64", _wide_shift(U64, left=True)),
    row("v_lshrrev_b64", "VOP3", 656, "u64 = u32 u64", _wide_shift(U64, left=False)),
    row("v_ashrrev_i64", "VOP3", 657, "i64 = u32 i64", _wide_shift(I64, left=False)),
    row("v_bfm_b32", "VOP3", 659, "u32 = u32 u32", lambda a, b: ((U32(1) << (a & U32(31))) - U32(1)) << (b & U32(31))),
    row("v_add_i32", "VOP3", 668, "i32 = i32 i32", lambda a, b: a + b),
    row("v_sub_i32", "VOP3", 669, "i32 = i32 i32", lambda a, b: a - b),
    row("v_pack_b32_f16", "VOP3", 672, "b32 = b16 b16", lambda a, b: a.astype(U32) | b.astype(U32) << U32(16)),
    row("v_accvgpr_read_b32", "VOP3P", 88, "b32 = b32", lambda a: a),
    row("v_accvgpr_write_b32", "VOP3P", 89, "b32 = b32", lambda a: a),
    row("v_accvgpr_mov_b32", "VOP1", 82, "b32 = b32", lambda a: a),
)
