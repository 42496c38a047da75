"""Bytes to instructions.

[AMD Instinct MI300 ISA, chapter 12, "Microcode formats"; every row of the opcode table is checked against the bytes
that LLVM's assembler makes for gfx942, in tests/interp/gfx942.]
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from argus.interp.gfx942.instruction import (
    ACC,
    DWORD,
    EXEC,
    EXECZ,
    M0,
    PRIVATE_APERTURE,
    SCC,
    SHARED_APERTURE,
    VCC,
    VCCZ,
    Constant,
    Dpp,
    Instruction,
    Operand,
    Scalar,
    SubDword,
    Vector,
)
from argus.interp.gfx942.row import IMPLICIT, Form, Row, dwords
from argus.interp.gfx942.table import rows_by_opcode
from argus.interp.gfx942.unmodelled import not_modelled

_LITERAL, _DPP, _SDWA = 255, 250, 249


def decode(code: bytes, at: int, address: int) -> Instruction:
    """The instruction at an offset of the code. Raises ArgusError (E502) for one that is not modelled."""
    first = _word(code, at)
    second = _word(code, at + 4) if at + 8 <= len(code) else 0
    form, number = _form(first)
    known = rows_by_opcode().get((form, number))
    if known is None:
        what = f"opcode {number} of the encoding {form}" if number >= 0 else "an unknown encoding"
        raise not_modelled(what, first, second, address)
    found = _BY_FORM[form](known, first, second, address)
    if (wrong := _wrong_operand(found)) is not None:
        raise not_modelled(f"{wrong} of `{known.name}`", first, second, address)
    return found


_FLAGS = frozenset({SCC, VCCZ, EXECZ})
_ORDINARY = (range(VCC + 2), range(M0, M0 + 1), range(EXEC, EXEC + 2))


def _wrong_operand(instruction: Instruction) -> str | None:
    """An operand that is not modelled: a register of the trap handler, an aperture, a constant where none may be."""
    for each in (*instruction.results, *instruction.sources):
        if isinstance(each, Scalar) and not _is_known(each):
            return f"the operand code {each.first}"
    labels = _explicit(instruction.row.sources)
    named = dict(zip(labels, instruction.sources, strict=False))
    if isinstance(named.get("mask"), Constant):
        return "a constant mask"
    if instruction.row.form == "MAI" and not all(isinstance(each, Vector) for each in instruction.sources[:2]):
        return "an operand in no vector register"
    return None


def _is_known(operand: Scalar) -> bool:
    if operand.first in {SHARED_APERTURE, PRIVATE_APERTURE}:
        return operand.count == 2  # what 32 bits of them read is not documented
    last = operand.first + operand.count - 1
    return (operand.first in _FLAGS and operand.count == 1) or any(
        operand.first in kind and last in kind for kind in _ORDINARY
    )


def _word(code: bytes, at: int) -> int:
    return struct.unpack_from("<I", code, at)[0]


def _form(word: int) -> tuple[Form, int]:
    """The encoding and opcode of a first word."""
    prefix = word >> 23
    if prefix == 0x17D:
        return "SOP1", word >> 8 & 0xFF
    if prefix == 0x17E:
        return "SOPC", word >> 16 & 0x7F
    if prefix == 0x17F:
        return "SOPP", word >> 16 & 0x7F
    if word >> 28 == 0xB:
        return "SOPK", prefix & 0x1F
    if word >> 30 == 2:
        return "SOP2", prefix & 0x7F
    if word >> 31 == 0:
        opcode = word >> 25
        if opcode == 63:
            return "VOP1", word >> 9 & 0xFF
        return ("VOPC", word >> 17 & 0xFF) if opcode == 62 else ("VOP2", opcode)
    if prefix == 0x1A7:
        number = word >> 16 & 0x7F
        return ("MAI", number) if number >= 0x3E and number not in {0x58, 0x59} else ("VOP3P", number)
    top = word >> 26
    if top == 0x34:
        return "VOP3", word >> 16 & 0x3FF
    if top == 0x36:
        return "DS", word >> 17 & 0xFF
    if top == 0x37:
        segments: tuple[Form, ...] = ("FLAT", "SCRATCH", "GLOBAL")
        segment = word >> 14 & 3
        return segments[segment] if segment < 3 else "FLAT", word >> 18 & 0x7F
    if top == 0x38:
        return "MUBUF", word >> 18 & 0x7F
    if top == 0x30:
        return "SMEM", word >> 18 & 0xFF
    return "FLAT", -1


def _explicit(tokens: tuple[str, ...]) -> list[str]:
    return [each for each in tokens if each not in IMPLICIT]


def _scalar_destination(known: Row, code: int) -> tuple[Operand, ...]:
    named = _explicit(known.results)
    return (Scalar(code, dwords(named[0])),) if named else ()


def _sop2(known: Row, word: int, second: int, address: int) -> Instruction:
    return _scalar(known, word, second, address, (word & 0xFF, word >> 8 & 0xFF))


def _sop1(known: Row, word: int, second: int, address: int) -> Instruction:
    return _scalar(known, word, second, address, (word & 0xFF,))


def _scalar(known: Row, word: int, second: int, address: int, codes: tuple[int, ...]) -> Instruction:
    named = _explicit(known.sources)
    codes = codes[: len(named)]
    sources = tuple(_source(c, dwords(t), second) for c, t in zip(codes, named, strict=True))
    results = () if known.form == "SOPC" else _scalar_destination(known, word >> 16 & 0x7F)
    return Instruction(known, address, 8 if _LITERAL in codes else 4, results, sources)


def _sopk(known: Row, word: int, second: int, address: int) -> Instruction:
    register = word >> 16 & 0x7F
    if "k" in known.sources:
        immediate = _signed(word & 0xFFFF, 16)
        return Instruction(known, address, 8, (), (Constant(_LITERAL, second),), immediate=immediate)
    sources = tuple(Scalar(register, dwords(label)) for label in _explicit(known.sources))
    immediate = _signed(word & 0xFFFF, 16)
    return Instruction(known, address, 4, _scalar_destination(known, register), sources, immediate=immediate)


def _sopp(known: Row, word: int, _second: int, address: int) -> Instruction:
    return Instruction(known, address, 4, immediate=_signed(word & 0xFFFF, 16))


def _smem(known: Row, word: int, second: int, address: int) -> Instruction:
    named = _explicit(known.sources)
    sources: list[Operand] = [Scalar((word & 0x3F) << 1, dwords(label)) for label in named[:1]]
    has_immediate, has_register = word >> 17 & 1, word >> 14 & 1
    if not named:
        return Instruction(known, address, 8)
    if has_register:
        sources.append(Scalar(second >> 25))
    elif not has_immediate:
        sources.append(Scalar(second & 0x7F))
    immediate = _signed(second & 0x1FFFFF, 21) if has_immediate else 0
    results = tuple(Scalar(word >> 6 & 0x7F, dwords(label)) for label in _explicit(known.results))
    return Instruction(known, address, 8, results, tuple(sources), immediate=immediate)


def _short_vector(
    known: Row, second: int, address: int, results: tuple[Operand, ...], codes: tuple[int, ...]
) -> Instruction:
    """VOP1, VOP2 and VOPC: the first source may be a literal, or be followed by a word of DPP or SDWA."""
    named = [each for each in _explicit(known.sources) if each not in {"mask", "k"}]
    codes = codes[: len(named)]
    dpp, sdwa, negate, absolute = None, None, 0, 0
    if codes and codes[0] == _DPP:
        codes = ((second & 0xFF) + ACC, *codes[1:])
        dpp = Dpp(second >> 8 & 0x1FF, second >> 28, second >> 24 & 15, bool(second >> 19 & 1))
        negate, absolute = second >> 20 & 1 | second >> 21 & 2, second >> 21 & 1 | second >> 22 & 2
    elif codes and codes[0] == _SDWA:
        scalar = (second >> 23 & 1, second >> 31)
        low = (second & 0xFF, *(code - ACC for code in codes[1:]))
        codes = tuple(code if scalar[number] else code + ACC for number, code in enumerate(low))
        sdwa = _sub_dword(known, second, len(codes))
        negate, absolute = second >> 20 & 1 | second >> 27 & 2, second >> 21 & 1 | second >> 28 & 2
    sources = [_source(c, dwords(t), second) for c, t in zip(codes, named, strict=True)]
    has_literal = "k" in known.sources
    if has_literal:
        sources.insert(known.sources.index("k"), Constant(_LITERAL, second))
    sources += [Scalar(VCC, 2)] * known.sources.count("mask")
    named_mask = known.form == "VOPC" and sdwa is not None and second >> 15 & 1
    mask = Scalar(second >> 8 & 0x7F if named_mask else VCC, 2)
    masks: tuple[Operand, ...] = tuple(mask for label in known.results if label == "mask")
    long = has_literal or dpp is not None or sdwa is not None or _LITERAL in codes
    modified = sdwa is not None and known.form != "VOPC"
    return Instruction(
        known, address, 8 if long else 4, (*results, *masks), tuple(sources), dpp=dpp, sdwa=sdwa, negate=negate,
        absolute=absolute, clamp=modified and bool(second >> 13 & 1), scale=second >> 14 & 3 if modified else 0,
    )  # fmt: skip


def _sub_dword(known: Row, second: int, count: int) -> SubDword:
    """What the second word of SDWA says [MI300 ISA, "VOP_SDWA" and "VOPC_SDWA"]."""
    parts = (second >> 16 & 7, second >> 24 & 7)[:count]
    extended = second >> 19 & 1 | second >> 26 & 2
    if known.form == "VOPC":
        return SubDword(parts, extended, DWORD, 0)
    return SubDword(parts, extended, second >> 8 & 7, second >> 11 & 3)


def _vop1(known: Row, word: int, second: int, address: int) -> Instruction:
    if known.name == "v_accvgpr_mov_b32":
        target, source = (Vector((code & 0xFF) + ACC) for code in (word >> 17, word))
        return Instruction(known, address, 4, (target,), (source,))
    return _short_vector(known, second, address, _destination(known, word >> 17 & 0xFF), (word & 0x1FF,))


def _vop2(known: Row, word: int, second: int, address: int) -> Instruction:
    codes = (word & 0x1FF, (word >> 9 & 0xFF) + ACC)
    return _short_vector(known, second, address, _destination(known, word >> 17 & 0xFF), codes)


def _vopc(known: Row, word: int, second: int, address: int) -> Instruction:
    return _short_vector(known, second, address, (), (word & 0x1FF, (word >> 9 & 0xFF) + ACC))


def _destination(known: Row, code: int, accumulator: bool = False) -> tuple[Operand, ...]:
    """The first result, a vector register unless the row says that it is scalar."""
    named = [each for each in _explicit(known.results) if each != "mask"]
    if not named:
        return ()
    if known.name in _SCALAR_RESULTS:
        return (Scalar(code),)
    return (Vector(code + (ACC if accumulator else 0), dwords(named[0])),)


_SCALAR_RESULTS = frozenset({"v_readfirstlane_b32", "v_readlane_b32"})


def _vop3(known: Row, word: int, second: int, address: int) -> Instruction:
    named = _explicit(known.sources)
    codes = (second & 0x1FF, second >> 9 & 0x1FF, second >> 18 & 0x1FF)[: len(named)]
    sources = tuple(_source(c, dwords(t), 0) for c, t in zip(codes, named, strict=True))
    results: tuple[Operand, ...]
    carries = "mask" in known.results
    if known.results and known.results[0] == "mask":
        results = (Scalar(word & 0xFF, 2),)
        carries = False
    else:
        results = _destination(known, word & 0xFF)
        results += (Scalar(word >> 8 & 0x7F, 2),) if carries else ()
    return Instruction(
        known,
        address,
        8,
        results,
        sources,
        negate=second >> 29,
        absolute=0 if carries else word >> 8 & 7,
        select=0 if carries else word >> 11 & 15,
        clamp=bool(word >> 15 & 1),
        scale=second >> 27 & 3,
    )


def _vop3p(known: Row, word: int, second: int, address: int) -> Instruction:
    named = _explicit(known.sources)
    codes = (second & 0x1FF, second >> 9 & 0x1FF, second >> 18 & 0x1FF)[: len(named)]
    moves = known.name.startswith("v_accvgpr")
    sources = tuple(_source(c, dwords(t), 0) for c, t in zip(codes, named, strict=True))
    if known.name == "v_accvgpr_read_b32":
        sources = tuple(Vector(s.first + ACC) if isinstance(s, Vector) else s for s in sources)
    return Instruction(
        known,
        address,
        8,
        _destination(known, word & 0xFF, accumulator=known.name == "v_accvgpr_write_b32"),
        sources,
        negate=0 if moves else second >> 29,
        negate_high=0 if moves else word >> 8 & 7,
        select=0 if moves else word >> 11 & 7,
        select_high=0 if moves else (second >> 27 & 3) | (word >> 14 & 1) << 2,
        clamp=bool(word >> 15 & 1) and not moves,
    )


def _mai(known: Row, word: int, second: int, address: int) -> Instruction:
    if word >> 8 & 0x7F or second >> 29:
        raise not_modelled(f"broadcasts or permutations (cbsz, abid, blgp) of `{known.name}`", word, second, address)
    codes = (second & 0x1FF, second >> 9 & 0x1FF, second >> 18 & 0x1FF)
    accumulators = (second >> 27 & 1, second >> 28 & 1, word >> 15 & 1)
    found = [_source(c, dwords(t), 0) for c, t in zip(codes, known.sources, strict=True)]
    sources = tuple(
        Vector(each.first + ACC, each.count) if flag and isinstance(each, Vector) else each
        for each, flag in zip(found, accumulators, strict=True)
    )
    results = _destination(known, word & 0xFF, accumulator=bool(accumulators[2]))
    return Instruction(known, address, 8, results, sources)


def _ds(known: Row, word: int, second: int, address: int) -> Instruction:
    base = ACC if word >> 25 & 1 else 0
    where = (second & 0xFF, (second >> 8 & 0xFF) + base, (second >> 16 & 0xFF) + base)
    named = _explicit(known.sources)
    sources = tuple(Vector(c, dwords(t)) for c, t in zip(where[: len(named)], named, strict=True))
    results = tuple(Vector((second >> 24) + base, dwords(label)) for label in _explicit(known.results))
    if word >> 16 & 1:
        raise not_modelled(f"global data share of `{known.name}`", word, second, address)
    paired = known.name.startswith(("ds_read2", "ds_write2"))
    offset = word & 0xFF if paired else word & 0xFFFF
    return Instruction(known, address, 8, results, sources, immediate=offset, second=word >> 8 & 0xFF)


def _flat(known: Row, word: int, second: int, address: int) -> Instruction:
    base = ACC if second >> 23 & 1 else 0
    register, data, target = second & 0xFF, (second >> 8 & 0xFF) + base, (second >> 24) + base
    scalar = second >> 16 & 0x7F
    named = _explicit(known.sources)
    held: list[Operand] = [Vector(data, dwords(t)) for t in named if t.startswith("b")]
    sources: list[Operand] = []
    flags = set[str]()
    if known.form == "SCRATCH":
        sources += [Vector(register), *held] if word >> 13 & 1 else held
        sources += [Scalar(scalar)] if scalar != 0x7F else []
        flags = {name for name, set_ in (("vaddr", word >> 13 & 1), ("saddr", scalar != 0x7F)) if set_}
    elif known.form == "GLOBAL" and scalar != 0x7F:
        sources, flags = [Vector(register), *held, Scalar(scalar, 2)], {"saddr"}
    else:
        sources = [Vector(register, 2), *held]
    returns = bool(word >> 16 & 1) or "atomic" not in known.name
    results = tuple(Vector(target, dwords(label)) for label in _explicit(known.results) if returns)
    offset = word & 0xFFF if known.form == "FLAT" else _signed(word & 0x1FFF, 13)
    return Instruction(known, address, 8, results, tuple(sources), immediate=offset, flags=frozenset(flags))


def _mubuf(known: Row, word: int, second: int, address: int) -> Instruction:
    if not _explicit(known.sources) and not known.results:
        return Instruction(known, address, 8)
    flags = {name for name, bit in (("offen", 12), ("idxen", 13), ("lds", 16)) if word >> bit & 1}
    if "idxen" in flags:
        raise not_modelled(f"an index register of `{known.name}`", word, second, address)
    base = ACC if second >> 23 & 1 else 0
    data = (second >> 8 & 0xFF) + base
    described, offset = Scalar((second >> 16 & 0x1F) << 2, 4), _source(second >> 24, 1, 0)
    sources: list[Operand] = [Vector(second & 0xFF)] if "offen" in flags else []
    sources += [described, offset]
    named = [each for each in _explicit(known.sources) if each != "v#"]
    sources += [Vector(data, dwords(label)) for label in named]
    returns = "lds" not in flags and ("atomic" not in known.name or word >> 14 & 1)
    results = tuple(Vector(data, dwords(t)) for t in _explicit(known.results) if returns)
    return Instruction(known, address, 8, results, tuple(sources), immediate=word & 0xFFF, flags=frozenset(flags))


def _source(code: int, count: int, literal: int) -> Operand:
    if code >= ACC:
        return Vector(code - ACC, count)
    if code == _LITERAL:
        return Constant(code, literal)
    return Constant(code) if 128 <= code <= 208 or 240 <= code <= 248 else Scalar(code, count)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


_BY_FORM: dict[Form, Callable[[Row, int, int, int], Instruction]] = {
    "SOP1": _sop1,
    "SOP2": _sop2,
    "SOPC": _sop2,
    "SOPK": _sopk,
    "SOPP": _sopp,
    "SMEM": _smem,
    "VOP1": _vop1,
    "VOP2": _vop2,
    "VOPC": _vopc,
    "VOP3": _vop3,
    "VOP3P": _vop3p,
    "MAI": _mai,
    "DS": _ds,
    "FLAT": _flat,
    "GLOBAL": _flat,
    "SCRATCH": _flat,
    "MUBUF": _mubuf,
}
