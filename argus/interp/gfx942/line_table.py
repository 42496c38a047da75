"""The compiler's line table: which file and line each instruction comes from [DWARF 4 and 5, section 6.2]."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from posixpath import join, normpath

from attrs import define, field, frozen

from argus.interp.gfx942.code_object import CodeObject, damaged

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2


@frozen
class LineTable:
    """addresses: where the code of another line begins, ascending. lines: of them, 0 for code of no line; files: of
    them, empty if it is not known.
    """

    addresses: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    files: tuple[str, ...] = ()

    def line_of(self, address: int) -> int:
        """The line of an instruction, 0 if it is not known."""
        return self.place_of(address)[1]

    def place_of(self, address: int) -> tuple[str, int]:
        """The file and line of an instruction; an empty name and 0 if they are not known."""
        at = bisect_right(self.addresses, address) - 1
        return (self.files[at], self.lines[at]) if at >= 0 else ("", 0)


def line_table(code: CodeObject) -> LineTable:
    """The table of a code object; empty if it carries none. Raises ArgusError (E420)."""
    section = code.sections.get(".debug_line")
    if section is None:
        return LineTable()
    try:
        texts = {name: code.sections[name].data for name in (".debug_line_str", ".debug_str") if name in code.sections}
        # Of several rows at one address the last one holds, and one of no line only where there is no other.
        rows = sorted(_rows(section.data, texts), key=lambda row: (row[0], row[1] != 0))
    except (struct.error, IndexError, ValueError, KeyError, OverflowError) as error:
        raise damaged(f"its line table is damaged ({error})") from error
    addresses, lines, files = zip(*rows, strict=True) if rows else ((), (), ())
    return LineTable(addresses, lines, files)


def _rows(data: bytes, texts: Mapping[str, bytes]) -> Iterator[tuple[int, int, str]]:
    """(address, line, file) of every program in the section."""
    at = 0
    while at < len(data):
        length, version = struct.unpack_from("<IH", data, at)
        if version not in {4, 5}:
            raise damaged(f"its line table is of DWARF {version}, expected 4 or 5")
        end, head = at + 4 + length, at + 6 + (2 if version == 5 else 0)
        (header,) = struct.unpack_from("<I", data, head)
        smallest, _, _, base, span, first = struct.unpack_from("<BBBbBB", data, head + 4)
        counts = data[head + 10 : head + 10 + first - 1]
        names = _Names(data, head + 9 + first, texts)
        files = names.of_version_5() if version == 5 else names.of_version_4()
        code = data[head + 4 + header : end]
        yield from _Program(code, smallest, base, span, first, counts, files).rows()
        at = end


@define
class _Names:
    """The file names of a program's header. texts: sections of strings."""

    data: bytes
    at: int
    texts: Mapping[str, bytes]

    def of_version_4(self) -> tuple[str, ...]:
        folders = [""]
        while text := self._text():
            folders.append(text)
        files = [""]
        while text := self._text():
            folder = folders[self._unsigned()]
            self._unsigned()
            self._unsigned()
            files.append(normpath(join(folder, text)))
        return tuple(files)

    def of_version_5(self) -> tuple[str, ...]:
        folders = [each.get(1, "") for each in self._entries()]
        root = str(folders[0]) if folders else ""
        return tuple(
            normpath(join(root, str(folders[int(each.get(2, 0))]), str(each.get(1, "")))) for each in self._entries()
        )

    def _entries(self) -> list[dict[int, str | int]]:
        """Of each entry, values by kind of content: 1 a path, 2 the number of a folder."""
        count = self.data[self.at]
        self.at += 1
        form = [(self._unsigned(), self._unsigned()) for _ in range(count)]
        return [{kind: self._value(shape) for kind, shape in form} for _ in range(self._unsigned())]

    def _value(self, form: int) -> str | int:
        if form == _STRING:
            return self._text()
        if form in _OFFSETS:
            (start,) = struct.unpack_from("<I", self.data, self.at)
            self.at += 4
            text = self.texts[_OFFSETS[form]]
            return text[start : text.index(b"\0", start)].decode("utf-8", "replace")
        if form == _UDATA:
            return self._unsigned()
        size = _SIZES[form]
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def _text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return found

    def _unsigned(self) -> int:
        found, self.at = unsigned(self.data, self.at)
        return found


_STRING, _UDATA = 0x08, 0x0F
_OFFSETS = {0x1F: ".debug_line_str", 0x0E: ".debug_str"}
_SIZES = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
"""Bytes of the forms data1, data2, data4, data8, data16."""


def unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and where it ends."""
    found, shift = 0, 0
    while True:
        octet = data[at]
        at += 1
        found |= (octet & 127) << shift
        shift += 7
        if octet < 128:
            return found, at


@define
class _Program:
    """A line number program. smallest: bytes of the shortest instruction. base, span, first: of special opcodes."""

    code: bytes
    smallest: int
    base: int
    span: int
    first: int
    counts: bytes
    files: tuple[str, ...]
    at: int = 0
    address: int = 0
    line: int = field(default=1)
    file: int = field(default=1)

    def rows(self) -> Iterator[tuple[int, int, str]]:
        while self.at < len(self.code):
            opcode = self._byte()
            if opcode >= self.first:
                self._advance((opcode - self.first) // self.span)
                self.line += self.base + (opcode - self.first) % self.span
                yield self._row()
            elif opcode == 0:
                yield from self._extended()
            elif opcode == _COPY:
                yield self._row()
            else:
                self._standard(opcode)

    def _row(self) -> tuple[int, int, str]:
        return self.address, self.line, self.files[self.file] if self.file < len(self.files) else ""

    def _extended(self) -> Iterator[tuple[int, int, str]]:
        size = self._unsigned()
        end = self.at + size
        opcode = self.code[self.at]
        if opcode == _SET_ADDRESS:
            self.address = struct.unpack_from("<Q", self.code, self.at + 1)[0]
        elif opcode == _END_SEQUENCE:
            yield self.address, 0, ""
            self.address, self.line, self.file = 0, 1, 1
        self.at = end

    def _standard(self, opcode: int) -> None:
        if opcode == _ADVANCE_PC:
            self._advance(self._unsigned())
        elif opcode == _ADVANCE_LINE:
            self.line += self._signed()
        elif opcode == _SET_FILE:
            self.file = self._unsigned()
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
        found, self.at = unsigned(self.code, self.at)
        return found

    def _signed(self) -> int:
        start = self.at
        found = self._unsigned()
        bits = 7 * (self.at - start)
        return found - (1 << bits) if found >> (bits - 1) else found
