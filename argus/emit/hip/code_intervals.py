"""Whether memory accesses and matrix instructions stand between the waits and barriers of the program.

The text has the program's order; the compiler's assembly need not. An instruction whose next boundary, before it or
behind it, on any path through the code, is none that the program has there was moved across one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Copy, Kernel, Mma, Stmt, Sync, Wait
from argus.emit.hip.intervals import Boundary, Ends, Interval, intervals
from argus.emit.hip.listing import Listed, listing, nearest
from argus.emit.shuffles import is_shuffle

_PRODUCT = re.compile(r"v_mfma_")
_ACCESS = re.compile(r"(buffer|global|flat)_(load|store|atomic)|ds_(read|write|load|store|add)")
"""`scratch_*` is left out: it accesses registers that the compiler spills."""
_SHOWN = 4
"""Moved statements that one diagnostic names."""


@frozen
class Moved:
    """Instructions of one statement on the other side of a boundary. early: whether they precede it, where the program
    has it first. example: one of them.
    """

    stmt: Stmt
    boundary: Boundary | None
    early: bool
    count: int
    example: str


@frozen
class CodeIntervals:
    """What was read from the code of a kernel. boundaries: waits and barriers of the program, and of them those in the
    code; placed: instructions in their interval; unplaced: of no known statement.
    """

    boundaries: tuple[int, int]
    placed: int
    unplaced: int
    moved: tuple[Moved, ...]


def numbers_of_lines(statements: Sequence[Stmt | None]) -> list[int]:
    """For each line of a text the first line of its statement. statements: of the lines.

    Where the compiler makes one instruction of two lines of a statement, the instruction then has a line.
    """
    first: dict[Stmt, int] = {}
    return [at if each is None else first.setdefault(each, at) for at, each in enumerate(statements, 1)]


def code_intervals(kernel: Kernel, assembly: str, symbol: str, statements: Sequence[Stmt | None]) -> CodeIntervals:
    """Compare code that was compiled with `numbers_of_lines` with its program. statements: of the text's lines.

    Raises InternalError if the assembly has no kernel `symbol`.
    """
    program, code = intervals(kernel), listing(assembly, symbol)
    of = [statements[each.line - 1] if 0 < each.line <= len(statements) else None for each in code]
    own = [_boundary(each, stmt) for each, stmt in zip(code, of, strict=True)]
    before, behind = (nearest(code, own, backward=backward) for backward in (False, True))
    placed = unplaced = 0
    found: Counter[tuple[Stmt, Boundary | None, bool]] = Counter()
    examples: dict[Stmt, str] = {}
    for number, each in enumerate(code):
        stmt = own[number] or _subject(each, of[number])
        if stmt is None or stmt not in program:
            unplaced += stmt is None and of[number] is None and _is_checked(each)
            continue
        crossed = tuple(_crossed(program[stmt], before[number], behind[number]))
        placed += not crossed
        examples.setdefault(stmt, each.text)
        found.update((stmt, *each) for each in crossed)
    moved = (Moved(stmt, boundary, early, n, examples[stmt]) for (stmt, boundary, early), n in found.items())
    there = sum(isinstance(each, Boundary) for each in program)
    return CodeIntervals((there, len(set(own) - {None})), placed, unplaced, tuple(moved))


def _boundary(each: Listed, stmt: Stmt | None) -> Boundary | None:
    """The wait or barrier of the program that an instruction is."""
    if isinstance(stmt, Wait) and each.marked:
        return stmt
    return stmt if isinstance(stmt, Sync) and each.opcode == "s_barrier" else None


def _is_checked(each: Listed) -> bool:
    return bool(_PRODUCT.match(each.opcode) or _ACCESS.match(each.opcode))


def _subject(each: Listed, stmt: Stmt | None) -> Stmt | None:
    """The product or copy that an instruction belongs to."""
    if isinstance(stmt, Mma) and _PRODUCT.match(each.opcode):
        return stmt
    return stmt if isinstance(stmt, Copy) and not is_shuffle(stmt) and _ACCESS.match(each.opcode) else None


def _crossed(program: Interval, before: Ends, behind: Ends) -> Iterator[tuple[Boundary | None, bool]]:
    """The boundaries on the wrong side of an instruction, each with whether the instruction precedes it.

    Where the one that it precedes is known, that it stands behind others follows.
    """
    late = [(each, True) for each in behind - program.after]
    yield from late or [(each, False) for each in before - program.before]


def moved_warnings(kernel: Kernel, found: CodeIntervals) -> Iterator[Diagnostic]:
    """E308 for each wait or barrier that instructions were moved across: a note where they are matrix instructions,
    whose results are the same, and a warning where accesses to memory are among them.
    """
    for boundary in dict.fromkeys(each.boundary for each in found.moved):
        moved = [each for each in found.moved if each.boundary is boundary]
        first = moved[0]
        where = "precede" if first.early else "follow"
        name = "the kernel's begin or end" if boundary is None else f"the {_kind(boundary)}"
        count = sum(each.count for each in moved)
        yield Diagnostic(
            "E308",
            "warning" if any(isinstance(each.stmt, Copy) for each in moved) else "note",
            f"`{kernel.name}` has {count} instructions that {where} {name} in the machine code, such as "
            f"`{first.example}`, expected none",
            Label(kernel.span if boundary is None else boundary.span, "instructions were moved across this"),
            tuple(Label(each.stmt.span, f"{each.count} instructions of this {where} it") for each in moved[:_SHOWN]),
            help="let fewer registers be live across it: where registers spill, the text lets the compiler move them",
            kernel=kernel.name,
        )


def _kind(boundary: Boundary) -> str:
    return "wait" if isinstance(boundary, Wait) else "barrier"
