"""Parse the machine code of sm_90a (SASS) as `nvdisasm --print-code --print-line-info-inline` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import evolve, field, frozen

_FUNCTION = re.compile(r"\.type\s+(\S+),@function")
_LABEL = re.compile(r"([.$\w]+):$")
_LINE = re.compile(r'//## File ".*", line (\d+)( inlined at ".*", line \d+)?$')
_INSTRUCTION = re.compile(r"/\*[0-9a-f]+\*/\s+(?:(@!?\w+)\s+)?([A-Z]\w*(?:\.\w+)*)\s*([^;]*?)\s*;")
_TARGET = re.compile(r"`\(([^)]+)\)")


@frozen
class Instruction:
    """One instruction. opcode: with its modifiers. predicate: `@P0`, `@!UP1`, or empty.

    line: in the compiled text, where an inlined function is called; 0 if unknown.
    """

    opcode: str
    operands: str
    predicate: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def target(self) -> str:
        """The label or the function that a jump names; empty if it names none."""
        found = _TARGET.search(self.operands)
        return "" if found is None else found[1]


@frozen
class Function:
    """A function's instructions, and the index of the instruction after each label."""

    name: str
    instructions: tuple[Instruction, ...] = ()
    labels: Mapping[str, int] = field(factory=dict[str, int])


def parse(text: str) -> tuple[Function, ...]:
    """The functions in order, subroutines of the compiler among them."""
    return tuple(each for each in _functions(text) if each.instructions)


def _functions(text: str) -> Iterator[Function]:
    names = frozenset(_FUNCTION.findall(text))
    name, line = "", 0
    found, labels = list[Instruction](), dict[str, int]()
    for raw in text.splitlines():
        stripped = raw.strip()
        if place := _LINE.match(stripped):
            line = int(place[1])  # the last of several is the outermost call
        elif label := _LABEL.match(stripped):
            if label[1] in names:
                yield Function(name, tuple(found), labels)
                name, line, found, labels = label[1], 0, [], {}
            else:
                labels[label[1]] = len(found)
        elif code := _INSTRUCTION.match(stripped):
            found.append(Instruction(code[2], code[3], code[1] or "", line))
    yield Function(name, tuple(found), labels)


def named(functions: tuple[Function, ...], name: str) -> Function:
    """The function of that name; one without instructions if there is none."""
    return next((each for each in functions if each.name == name), Function(name))


def without_padding(function: Function) -> Function:
    """The function without the jump to itself and the `NOP`s that fill its last cache line."""
    count = len(function.instructions)
    while count and function.instructions[count - 1].name == "NOP":
        count -= 1
    return evolve(function, instructions=function.instructions[:count])
