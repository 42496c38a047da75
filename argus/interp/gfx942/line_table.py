"""The compiler's line table: which line of the source each instruction comes from [DWARF 5, section 6.2]."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

from attrs import define, field, frozen

from argus.interp.gfx942.code_object import CodeObject, damaged

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2


@frozen
class LineTable:
    """addresses: where the code of another line begins, ascending. lines: of them; 0 for code of no line."""

    addresses: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()

    def line_of(self, address: int) -> int:
        """The line of an instruction, 0 if it is not known."""
        at = bisect_right(self.addresses, address) - 1
        return self.lines[at] if at >= 0 else 0


def line_table(code: CodeObject) -> LineTable:
    """The table of a code object of one source file; empty if it carries none. Raises ArgusError (E420)."""
    section = code.sections.get(".debug_line")
    if section is None:
        return LineTable()
    try:
        rows = sorted(_rows(section.data))
    except (struct.error, IndexError) as error:
        raise damaged(f"its line table is damaged ({error})") from error
    return LineTable(tuple(address for address, _ in rows), tuple(line for _, line in rows))


def _rows(data: bytes) -> Iterator[tuple[int, int]]:
    """(address, line) of every program in the section."""
    at = 0
    while at < len(data):
        length, version, _, _, header = struct.unpack_from("<IHBBI", data, at)
        if version != 5:
            raise damaged(f"its line table is of DWARF {version}, expected 5")
        smallest, _, _, base, span, first = struct.unpack_from("<BBBbBB", data, at + 12)
        counts = data[at + 18 : at + 18 + first - 1]
        end = at + 4 + length
        yield from _Program(data[at + 12 + header : end], smallest, base, span, first, counts).rows()
        at = end


@define
class _Program:
    """A line number program. smallest: bytes of the shortest instruction. base, span, first: of special opcodes."""

    code: bytes
    smallest: int
    base: int
    span: int
    first: int
    counts: bytes
    at: int = 0
    address: int = 0
    line: int = field(default=1)

    def rows(self) -> Iterator[tuple[int, int]]:
        while self.at < len(self.code):
            opcode = self._byte()
            if opcode >= self.first:
                self._advance((opcode - self.first) // self.span)
                self.line += self.base + (opcode - self.first) % self.span
                yield self.address, self.line
            elif opcode == 0:
                yield from self._extended()
            elif opcode == _COPY:
                yield self.address, self.line
            else:
                self._standard(opcode)

    def _extended(self) -> Iterator[tuple[int, int]]:
        size = self._unsigned()
        end = self.at + size
        opcode = self.code[self.at]
        if opcode == _SET_ADDRESS:
            self.address = struct.unpack_from("<Q", self.code, self.at + 1)[0]
        elif opcode == _END_SEQUENCE:
            yield self.address, 0
            self.address, self.line = 0, 1
        self.at = end

    def _standard(self, opcode: int) -> None:
        if opcode == _ADVANCE_PC:
            self._advance(self._unsigned())
        elif opcode == _ADVANCE_LINE:
            self.line += self._signed()
        elif opcode == _CONST_ADD_PC:
            self._advance((255 - self.first) // self.span)
        elif opcode == _FIXED_ADVANCE_PC:
            self.address += struct.unpack_from("<H", self.code, self.at)[0]
            self.at += 2
        else:
            for _ in range(self.counts[opcode - 1]):
                self._unsigned()

    def _advance(self, operations: int) -> None:
        self.address += operations * self.smallest

    def _byte(self) -> int:
        self.at += 1
        return self.code[self.at - 1]

    def _unsigned(self) -> int:
        found, shift = 0, 0
        while True:
            octet = self._byte()
            found |= (octet & 127) << shift
            shift += 7
            if octet < 128:
                return found

    def _signed(self) -> int:
        start = self.at
        found = self._unsigned()
        bits = 7 * (self.at - start)
        return found - (1 << bits) if found >> (bits - 1) else found
