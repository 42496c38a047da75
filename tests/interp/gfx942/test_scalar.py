"""Scalar instructions against references in Python integers: the result and SCC."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from argus.interp.gfx942.instruction import EXEC
from tests.interp.gfx942.executed import Instructions, group_of_one
from tests.interp.gfx942.references import M32, M64, s32, s64

# Of the sources a and b (32 bits, or 64 where the name says so) and SCC: the result and the new SCC, None if unchanged.
Reference = Callable[[int, int, int], tuple[int, int | None]]


def nonzero(value: int, mask: int = M32) -> tuple[int, int]:
    return value & mask, int(value & mask != 0)


def added(a: int, b: int, carry: int = 0) -> tuple[int, int]:
    return a + b + carry & M32, int(a + b + carry > M32)


def taken(a: int, b: int, borrow: int = 0) -> tuple[int, int]:
    return a - b - borrow & M32, int(a - b - borrow < 0)


def overflow(exact: int) -> tuple[int, int]:
    return exact & M32, int(s32(exact & M32) != exact)


def field(value: int, b: int, bits: int, signed: bool) -> tuple[int, int]:
    offset, width = b & (bits - 1), min(b >> 16 & 0x7F, bits)
    kept = min(width, bits - offset)
    found = value >> offset & (1 << width) - 1 if width else 0
    if signed and kept and found >> (kept - 1) & 1:
        found -= 1 << kept
    return nonzero(found, M32 if bits == 32 else M64)


def signs(a: int, bits: int) -> int:
    """Bits below the highest one that equal it, and it; -1 if all do."""
    text = f"{a:0{bits}b}"
    found = len(text) - len(text.lstrip(text[0]))
    return -1 if found == bits else found


LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
INVERTED: dict[str, Callable[[int, int], int]] = {"andn1": lambda a, b: ~a & b, "orn1": lambda a, b: ~a | b}
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
OF_32: dict[str, Reference] = {
    "s_add_u32": lambda a, b, _: added(a, b),
    "s_sub_u32": lambda a, b, _: taken(a, b),
    "s_addc_u32": added,
    "s_subb_u32": taken,
    "s_add_i32": lambda a, b, _: overflow(s32(a) + s32(b)),
    "s_sub_i32": lambda a, b, _: overflow(s32(a) - s32(b)),
    "s_min_i32": lambda a, b, _: (min(s32(a), s32(b)), int(s32(a) < s32(b))),
    "s_max_i32": lambda a, b, _: (max(s32(a), s32(b)), int(s32(a) > s32(b))),
    "s_min_u32": lambda a, b, _: (min(a, b), int(a < b)),
    "s_max_u32": lambda a, b, _: (max(a, b), int(a > b)),
    "s_cselect_b32": lambda a, b, scc: (a if scc else b, None),
    "s_lshl_b32": lambda a, b, _: nonzero(a << (b & 31)),
    "s_lshr_b32": lambda a, b, _: nonzero(a >> (b & 31)),
    "s_ashr_i32": lambda a, b, _: nonzero(s32(a) >> (b & 31)),
    "s_bfm_b32": lambda a, b, _: (((1 << (a & 31)) - 1) << (b & 31), None),
    "s_mul_i32": lambda a, b, _: (a * b, None),
    "s_mul_hi_u32": lambda a, b, _: (a * b >> 32, None),
    "s_mul_hi_i32": lambda a, b, _: (s32(a) * s32(b) >> 32, None),
    "s_bfe_u32": lambda a, b, _: field(a, b, 32, signed=False),
    "s_bfe_i32": lambda a, b, _: field(a, b, 32, signed=True),
    **{f"s_lshl{n}_add_u32": lambda a, b, _, n=n: ((a << n) + b, int((a << n) + b > M32)) for n in (1, 2, 3, 4)},
    "s_pack_ll_b32_b16": lambda a, b, _: (a & 0xFFFF | (b & 0xFFFF) << 16, None),
    "s_pack_lh_b32_b16": lambda a, b, _: (a & 0xFFFF | b & 0xFFFF0000, None),
    "s_pack_hh_b32_b16": lambda a, b, _: (a >> 16 | b & 0xFFFF0000, None),
    **{f"s_{name}_b32": lambda a, b, _, run=run: nonzero(run(a, b)) for name, run in LOGIC.items()},
    "s_absdiff_i32": lambda a, b, _: nonzero(abs(s32(a - b & M32))),
}
ALONE: dict[str, Reference] = {
    "s_mov_b32": lambda a, _, __: (a, None),
    "s_not_b32": lambda a, _, __: nonzero(~a),
    "s_brev_b32": lambda a, _, __: (int(f"{a:032b}"[::-1], 2), None),
    "s_bcnt1_i32_b32": lambda a, _, __: nonzero(a.bit_count()),
    "s_ff1_i32_b32": lambda a, _, __: ((a & -a).bit_length() - 1, None),
    "s_flbit_i32_b32": lambda a, _, __: (32 - a.bit_length() if a else -1, None),
    "s_sext_i32_i8": lambda a, _, __: ((a & 0xFF) - ((a & 0x80) << 1), None),
    "s_sext_i32_i16": lambda a, _, __: ((a & 0xFFFF) - ((a & 0x8000) << 1), None),
    "s_abs_i32": lambda a, _, __: nonzero(abs(s32(a))),
    "s_bcnt0_i32_b32": lambda a, _, __: nonzero(32 - a.bit_count()),
    "s_ff0_i32_b32": lambda a, _, __: (next((n for n in range(32) if not a >> n & 1), -1), None),
    "s_flbit_i32": lambda a, _, __: (signs(a, 32), None),
    "s_cmov_b32": lambda a, old, scc: (a if scc else old, None),
}
COMPARISONS: dict[str, Reference] = {
    **{f"s_cmp_{n}_u32": lambda a, b, _, run=run: (0, int(run(a, b))) for n, run in COMPARED.items()},
    **{f"s_cmp_{n}_i32": lambda a, b, _, run=run: (0, int(run(s32(a), s32(b)))) for n, run in COMPARED.items()},
    "s_bitcmp0_b32": lambda a, b, _: (0, 1 - (a >> (b & 31) & 1)),
    "s_bitcmp1_b32": lambda a, b, _: (0, a >> (b & 31) & 1),
    "s_bitcmp0_b64": lambda a, b, _: (0, 1 - (a >> (b & 63) & 1)),
    "s_bitcmp1_b64": lambda a, b, _: (0, a >> (b & 63) & 1),
}
OF_64: dict[str, Reference] = {
    "s_lshl_b64": lambda a, b, _: nonzero(a << (b & 63), M64),
    "s_lshr_b64": lambda a, b, _: nonzero(a >> (b & 63), M64),
    "s_ashr_i64": lambda a, b, _: nonzero(s64(a) >> (b & 63), M64),
    "s_cselect_b64": lambda a, b, scc: (a if scc else b, None),
    **{f"s_{name}_b64": lambda a, b, _, run=run: nonzero(run(a, b), M64) for name, run in LOGIC.items()},
    "s_bfm_b64": lambda a, b, _: (((1 << (a & 63)) - 1) << (b & 63), None),
    "s_bfe_u64": lambda a, b, _: field(a, b, 64, signed=False),
    "s_bfe_i64": lambda a, b, _: field(a, b, 64, signed=True),
}
SAVING = {"and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor", "andn1", "orn1"}
WRITING = {"andn1", "andn2"}
LITERAL = -1234
MOVES = {"s_cmov_b32", "s_cmov_b64"}
IN_PLACE: dict[str, Reference] = {
    "s_movk_i32": lambda _, __, ___: (LITERAL, None),
    "s_cmovk_i32": lambda a, _, scc: (LITERAL if scc else a, None),
    "s_addk_i32": lambda a, _, __: overflow(s32(a) + LITERAL),
    "s_mulk_i32": lambda a, _, __: (a * LITERAL, None),
    **{f"s_cmpk_{n}_i32": lambda a, _, __, run=run: (a, int(run(s32(a), LITERAL))) for n, run in COMPARED.items()},
    **{f"s_cmpk_{n}_u32": lambda a, _, __, run=run: (a, int(run(a, LITERAL & 0xFFFF))) for n, run in COMPARED.items()},
}


COUNTED: dict[str, Reference] = {
    "s_bcnt0_i32_b64": lambda a, _, __: nonzero(64 - a.bit_count()),
    "s_bcnt1_i32_b64": lambda a, _, __: nonzero(a.bit_count()),
    "s_ff0_i32_b64": lambda a, _, __: (next((n for n in range(64) if not a >> n & 1), -1), None),
    "s_ff1_i32_b64": lambda a, _, __: ((a & -a).bit_length() - 1, None),
    "s_flbit_i32_b64": lambda a, _, __: (64 - a.bit_length() if a else -1, None),
    "s_flbit_i32_i64": lambda a, _, __: (signs(a, 64), None),
}
"""32 bits of a source of 64."""
BITS: dict[str, Callable[[int, int], int]] = {
    "s_bitset0_b32": lambda old, a: old & ~(1 << (a & 31)),
    "s_bitset1_b32": lambda old, a: old | 1 << (a & 31),
    "s_bitset0_b64": lambda old, a: old & ~(1 << (a & 63)),
    "s_bitset1_b64": lambda old, a: old | 1 << (a & 63),
}

WIDE_COMPARISONS: dict[str, Reference] = {
    "s_cmp_eq_u64": lambda a, b, _: (0, int(a == b)),
    "s_cmp_lg_u64": lambda a, b, _: (0, int(a != b)),
}
WIDE_ALONE: dict[str, Reference] = {
    "s_mov_b64": lambda a, _, __: (a, None),
    "s_not_b64": lambda a, _, __: nonzero(~a, M64),
    "s_cmov_b64": lambda a, old, scc: (a if scc else old, None),
    "s_bitreplicate_b64_b32": lambda a, _, __: (sum((a >> n & 1) * 3 << 2 * n for n in range(32)), None),
    "s_brev_b64": lambda a, _, __: (int(f"{a:064b}"[::-1], 2), None),
}


def operands_of_64(name: str) -> str:
    """Amounts and fields are of 32 bits."""
    if name == "s_bfm_b64":
        return "s4, s6"
    return "s[4:5], s6" if "sh" in name or "bfe" in name else "s[4:5], s[6:7]"


LINES = {
    **{name: f"{name} s[4:5], s[6:7]" for name in WIDE_COMPARISONS},
    **{name: f"{name} s[8:9], {'s4' if name.endswith('b32') else 's[4:5]'}" for name in WIDE_ALONE},
    **{name: f"{name} s8, s[4:5]" for name in COUNTED},
    **{name: f"{name} s8, s4, s6" for name in OF_32},
    **{name: f"{name} {'s[8:9]' if '64' in name else 's8'}, s4" for name in (*ALONE, *BITS)},
    **{name: f"{name} {'s[4:5]' if '64' in name else 's4'}, s6" for name in COMPARISONS},
    **{name: f"{name} s[8:9], {operands_of_64(name)}" for name in OF_64},
    **{name: f"{name} s8, 0x{LITERAL & 0xFFFF:x}" for name in IN_PLACE},
    **{f"s_{name}_saveexec_b64": f"s_{name}_saveexec_b64 s[8:9], s[4:5]" for name in sorted(SAVING)},
    **{f"s_{name}_wrexec_b64": f"s_{name}_wrexec_b64 s[8:9], s[4:5]" for name in sorted(WRITING)},
}
REFERENCES = OF_32 | ALONE | COMPARISONS | OF_64 | IN_PLACE | WIDE_COMPARISONS | WIDE_ALONE | COUNTED
VALUES = [0, 1, 2, 31, 32, 33, 63, M32, M32 - 1, 1 << 31, (1 << 31) - 1, 0x12345678, 0x00080004, 0x001F0003, 0xFFFF8000]


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions(list(LINES.values()))


@pytest.mark.share(12)
@pytest.mark.parametrize("name", LINES)
def test_a_scalar_instruction_computes_what_its_reference_does(code: Instructions, name: str) -> None:
    random = np.random.default_rng(len(name))
    group = group_of_one()
    wide = "64" in name
    for _ in range(20):
        a, b, old, active = (int(each) for each in random.choice(VALUES, 4))
        a, b = (a | int(random.choice(VALUES)) << 32, b | int(random.choice(VALUES)) << 32) if wide else (a, b)
        scc = int(random.integers(2))
        group.waves[0].scc = np.array([scc == 1])
        held = {4: a & M32, 5: a >> 32, 6: b & M32, 7: b >> 32, 8: old}
        held |= {4: old, 8: a} if name in IN_PLACE else {9: 3}
        wave = code.run(LINES[name], {}, held, active=active | 5 << 32, group=group)
        found = int(wave.s[8, 0]) | (int(wave.s[9, 0]) << 32 if wide else 0)
        now = int(wave.scc[0])
        if "exec" in name:
            before = active | 5 << 32
            wanted = (LOGIC | INVERTED)[name.split("_")[1]](a, before) & M64
            kept = before if "saveexec" in name else wanted
            assert (found, int(wave.s[EXEC, 0]) | int(wave.s[EXEC + 1, 0]) << 32) == (kept, wanted)
            assert now == (wanted != 0)
        elif name in BITS:
            assert (found, now) == (BITS[name](old | 3 << 32 if wide else old, a) & (M64 if wide else M32), scc)
        else:
            compares = name in COMPARISONS or name in WIDE_COMPARISONS
            if name in MOVES:
                b = old | 3 << 32 if wide else old
            value, flag = REFERENCES[name](a, b, scc)
            value &= M32 if name in COUNTED else M64
            value |= 3 << 32 if name in COUNTED else 0
            value = value if wide else value & M32
            wanted = (old | 3 << 32 if wide else old) if compares else value
            assert (found, now) == (wanted, scc if flag is None else flag), (hex(a), hex(b), scc)
