"""Decoded instructions and their operands."""

from __future__ import annotations

import struct

from attrs import Factory, field, frozen

from argus.interp.gfx942.row import Row

SCC, VCCZ, EXECZ = 253, 251, 252
VCC, M0, EXEC = 106, 124, 126
SHARED_APERTURE, PRIVATE_APERTURE = 235, 237
ACC = 256
"""The first AccVGPR among the vector registers of a wave: `a5` is vector register 261."""


@frozen
class Vector:
    """`count` vector registers from `first` on; AccVGPRs follow the 256 ArchVGPRs."""

    first: int
    count: int = 1

    def __str__(self) -> str:
        letter, first = ("a", self.first - ACC) if self.first >= ACC else ("v", self.first)
        return f"{letter}{first}" if self.count == 1 else f"{letter}[{first}:{first + self.count - 1}]"


@frozen
class Scalar:
    """`count` scalar registers from `first` on, special ones by their codes."""

    first: int
    count: int = 1

    def __str__(self) -> str:
        names = {VCC: "vcc", EXEC: "exec", M0: "m0", SCC: "src_scc", VCCZ: "src_vccz", EXECZ: "src_execz"}
        halves = {VCC: "vcc_lo", VCC + 1: "vcc_hi", EXEC: "exec_lo", EXEC + 1: "exec_hi"}
        if self.first in names and (self.count > 1 or self.first not in halves):
            return names[self.first]
        if self.count == 1:
            return halves.get(self.first, f"s{self.first}")
        return f"s[{self.first}:{self.first + self.count - 1}]"


@frozen
class Constant:
    """A constant of the encoding. code: 128 to 248 for an inline one; 255 for a 32-bit literal with its bits."""

    code: int
    bits: int = 0

    @property
    def integer(self) -> int:
        """The value of an integer constant."""
        if self.code == 255:
            return self.bits
        assert self.code <= 208, "a constant of floating point as an integer"
        return self.code - 128 if self.code <= 192 else 192 - self.code

    @property
    def word(self) -> int:
        """The 32 bits that an operand of 32 bits reads."""
        if self.code in FLOATS:
            return struct.unpack("<I", struct.pack("<f", FLOATS[self.code]))[0]
        return self.integer % (1 << 32)

    def __str__(self) -> str:
        if self.code == 255:
            return f"0x{self.bits:x}"
        return str(self.integer) if self.code <= 208 else str(FLOATS[self.code])


FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0, 248: 0.15915494309189532}
Operand = Vector | Scalar | Constant


@frozen
class Dpp:
    """Data parallel primitives of the first source. bound: whether a lane without a source lane reads 0."""

    control: int
    rows: int
    banks: int
    bound: bool


DWORD = 6
"""Of SDWA: all of a register. 0 to 3 are its bytes, 4 and 5 its halves."""


@frozen
class SubDword:
    """Sub-dword addressing (SDWA). parts: of each source, what it reads; extended: bits for those that are
    sign-extended. target: what of the destination is written; unused: 0 if its other bits become 0, 1 if those above
    become copies of the sign and those below 0, 2 if they are kept.
    """

    parts: tuple[int, ...]
    extended: int
    target: int
    unused: int


def _written(of: Instruction) -> frozenset[int]:
    return frozenset(vectors(of.results))


@frozen
class Instruction:
    """One instruction. results, sources: the operands of the row's signature that the encoding names, in order.

    negate, absolute: bits for the sources, of floating point (of VOP3P: negate of the low halves, `negate_high` of the
    others). select, select_high: op_sel and op_sel_hi. immediate: SIMM16, or an offset in bytes. flags: bits of memory
    instructions, by name. address, size: in bytes.
    """

    row: Row
    address: int
    size: int
    results: tuple[Operand, ...] = ()
    sources: tuple[Operand, ...] = ()
    negate: int = 0
    negate_high: int = 0
    absolute: int = 0
    select: int = 0
    select_high: int = 0
    clamp: bool = False
    scale: int = 0
    dpp: Dpp | None = None
    sdwa: SubDword | None = None
    immediate: int = 0
    second: int = 0
    flags: frozenset[str] = field(default=frozenset[str]())
    written: frozenset[int] = field(init=False, eq=False, default=Factory(_written, takes_self=True))
    """The vector registers among the results."""

    def __str__(self) -> str:
        """Close to the assembler's text; modifiers are left out."""
        named = [str(each) for each in (*self.results, *self.sources)]
        if self.row.form in {"SOPP", "SOPK"}:
            named.append(str(self.immediate))
        offset = f" offset:{self.immediate}" if self.immediate and self.row.form in _WITH_OFFSET else ""
        return f"{self.row.name} {', '.join(named)}{offset}".rstrip()


_WITH_OFFSET = frozenset({"DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "SMEM"})


def vectors(operands: tuple[Operand, ...]) -> tuple[int, ...]:
    """The vector registers of operands."""
    return tuple(r for each in operands if isinstance(each, Vector) for r in range(each.first, each.first + each.count))


def scalars(operands: tuple[Operand, ...]) -> tuple[int, ...]:
    """The scalar registers of operands."""
    return tuple(r for each in operands if isinstance(each, Scalar) for r in range(each.first, each.first + each.count))
