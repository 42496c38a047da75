"""The compiler's assembly of one kernel: its instructions, the text's line of each, and where they may go next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core.diagnostic import InternalError
from argus.emit.hip.intervals import Boundary, Ends

MARK = re.compile(r"\s+// wait (\w+)$")
"""Assembly ahead of a wait of the program, with its counts. Arithmetic and weaker waits may stand between them."""
_LINE = re.compile(r"\s+\.loc\s+\d+ (\d+)")
_LABEL = re.compile(r"(\.L\w+):")
_INSTRUCTION = re.compile(r"\s+([a-z]\w*)(?:\s+([^;]*?))?\s*(?:;.*|//.*)?$")
_ARITHMETIC = re.compile(r"(?!v_mfma|s_barrier|s_branch|s_cbranch|s_endpgm)[sv]_")
_COUNT = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_TARGET = re.compile(r"(\.L\w+)$")


@frozen
class Listed:
    """One instruction. line: of the text, 0 if it has none. place: its line in the assembly, from 1. next: numbers of
    the instructions that may follow. marked: whether it is a wait of the program, or
    one in its place that waits for as much.
    """

    text: str
    line: int
    place: int
    next: tuple[int, ...]
    marked: bool = False

    @property
    def opcode(self) -> str:
        return self.text.partition(" ")[0]


def listing(assembly: str, symbol: str) -> tuple[Listed, ...]:
    """The instructions of a kernel that was compiled with lines. Raises InternalError if there is no such kernel."""
    labels: dict[str, int] = {}
    found: list[tuple[str, int, int, bool]] = []
    line, wanted = 0, -1
    for place, row in _rows(assembly, symbol):
        if located := _LINE.match(row):
            line = int(located[1])
        elif label := _LABEL.match(row):
            labels[label[1]], wanted = len(found), -1
        elif mark := MARK.match(row):
            wanted = int(mark[1], 0)
        elif instruction := _INSTRUCTION.match(row):
            opcode = instruction[1]
            text = f"{opcode} {instruction[2] or ''}".rstrip()
            own = wanted >= 0 and _waits(text, wanted)
            found.append((text, line, place, own))
            wanted = wanted if _ARITHMETIC.match(opcode) and not own else -1
    return tuple(
        Listed(text, line, place, tuple(at for at in _next(number, text, labels) if at < len(found)), own)
        for number, (text, line, place, own) in enumerate(found)
    )


def _rows(assembly: str, symbol: str) -> Iterator[tuple[int, str]]:
    """The lines of a function, with their numbers."""
    rows = assembly.splitlines()
    begins = [number for number, row in enumerate(rows) if row.startswith(f"{symbol}:")]
    if not begins:
        message = f"the compiler's assembly has no kernel `{symbol}`"
        raise InternalError(message)
    for number in range(begins[0] + 1, len(rows)):
        if rows[number].startswith(".Lfunc_end"):
            return
        yield number + 1, rows[number]


def _waits(text: str, wanted: int) -> bool:
    """Whether an instruction waits at least for the counts that `wait_immediate` encodes."""
    if not text.startswith("s_waitcnt "):
        return False
    found = {name: int(count) for name, count in _COUNT.findall(text)}
    vector, local = wanted & 15 | (wanted >> 14 & 3) << 4, wanted >> 8 & 15
    return found.get("vmcnt", 63) <= vector and found.get("lgkmcnt", 15) <= local


def _next(number: int, text: str, labels: dict[str, int]) -> Iterator[int]:
    if text.startswith(("s_endpgm", "s_trap", "s_setpc")):
        return
    target = _TARGET.search(text) if text.startswith(("s_branch", "s_cbranch")) else None
    if target is not None:
        yield labels[target[1]]
    if not text.startswith("s_branch"):
        yield number + 1


def nearest(code: Sequence[Listed], own: Sequence[Boundary | None], *, backward: bool) -> list[Ends]:
    """For each instruction the boundaries that stand next before it on any path (behind it, if `backward`); None for
    the begin or an end of the kernel. own: the boundary that an instruction is. An empty set if no path leads there.
    """
    into: list[list[int]] = [[] for _ in code]
    for number, each in enumerate(code):
        for after in each.next:
            into[number if backward else after].append(after if backward else number)
    ends = [not each.next if backward else number == 0 for number, each in enumerate(code)]
    found: list[Ends] = [frozenset({None}) if end else frozenset() for end in ends]
    order = range(len(code) - 1, -1, -1) if backward else range(len(code))
    changed = True
    while changed:
        changed = False
        for number in order:
            come = (frozenset({own[other]}) if own[other] is not None else found[other] for other in into[number])
            new = found[number].union(*come)
            changed = changed or new != found[number]
            found[number] = new
    return found
