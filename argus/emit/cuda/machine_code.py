"""What the compiler made of a kernel's schedule, read from its machine code, by lines of the user's program.

The order of the emitted text is the program's. A wait for matrix products that precedes, in the machine code, what the
program computes ahead of it has been hoisted: nothing overlaps with the products then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core.ir import Fold, For, Map, Stmt, Wait, bodies
from argus.core.span import NOWHERE, Span
from argus.emit.cuda.flow import Flow, Loop, flow_of
from argus.emit.cuda.opcodes import (
    CALL,
    SPILL_LOAD,
    SPILL_STORE,
    bytes_accessed,
    is_arithmetic,
    is_control,
    is_exponential,
    is_group,
    is_memory,
    is_move,
    is_product,
    is_wait,
)
from argus.emit.cuda.sass import Function


@frozen
class Overlap:
    """What the program computes between matrix products and a wait for them.

    wait: of the program. exponentials, arithmetic: instructions, all of them, and those ahead of the wait in the
    machine code. Arithmetic is of floating-point numbers, exponentials and reciprocals among it.
    """

    wait: Span
    exponentials: int
    exponentials_ahead: int
    arithmetic: int
    arithmetic_ahead: int


@frozen
class LoopCode:
    """The instructions of a loop with matrix products, those of loops within it left out, by kind."""

    loop: Span
    instructions: int
    products: int
    exponentials: int
    arithmetic: int
    memory: int
    moves: int
    control: int


@frozen
class Spill:
    """Accesses to local memory for a statement, in bytes a thread. depth: loops around them."""

    at: Span
    stores: int
    loads: int
    depth: int


@frozen
class Call:
    """Calls of a subroutine of the compiler for a statement. depth: loops around them."""

    at: Span
    routine: str
    calls: int
    depth: int


@frozen
class MachineCode:
    """instructions: of the kernel, without subroutines. added_waits: statements after which the compiler waits for
    matrix products where the program does not. indirect: whether there are jumps that are not followed, so that
    `overlaps` and `loops` may lack some.
    """

    instructions: int
    loops: tuple[LoopCode, ...]
    overlaps: tuple[Overlap, ...]
    spills: tuple[Spill, ...]
    calls: tuple[Call, ...]
    added_waits: tuple[Span, ...]
    indirect: bool


@frozen
class _Code:
    """A function, its control flow, and the statement of each instruction."""

    function: Function
    flow: Flow
    statements: tuple[Stmt | None, ...]

    def at(self, place: int) -> Span:
        stmt = self.statements[place]
        return NOWHERE if stmt is None else stmt.span

    def loop(self, place: int) -> Loop | None:
        return self.flow.loop(self.flow.block(place))

    def depth(self, place: int) -> int:
        block = self.flow.block(place)
        return sum(block in loop.blocks for loop in self.flow.loops)

    def places(self, *names: str) -> list[int]:
        """Instructions by the name of their opcode."""
        return [place for place, each in enumerate(self.function.instructions) if each.name in names]


def machine_code(function: Function, statements: Sequence[Stmt | None], body: Sequence[Stmt]) -> MachineCode:
    """Read the machine code of a kernel.

    statements: of each line of the compiled text. body: the kernel's statements.
    """
    lines = (each.line for each in function.instructions)
    of = tuple(statements[line - 1] if 0 < line <= len(statements) else None for line in lines)
    code = _Code(function, flow_of(function), of)
    return MachineCode(
        instructions=len(function.instructions),
        loops=tuple(_loops(code, body)),
        overlaps=tuple(_overlaps(code)),
        spills=tuple(_spills(code)),
        calls=tuple(_calls(code)),
        added_waits=tuple(dict.fromkeys(_added_waits(code))),
        indirect=code.flow.indirect,
    )


def _overlaps(code: _Code) -> Iterator[Overlap]:
    """For each wait of the program, the sum over its copies in the machine code."""
    instructions = code.function.instructions
    found: dict[int, tuple[Span, Counter[str]]] = {}
    for wait, each in enumerate(instructions):
        stmt = code.statements[wait]
        if not (is_wait(each) and isinstance(stmt, Wait)):
            continue
        counts = found.setdefault(id(stmt), (stmt.span, Counter()))[1]
        for place in _computed_ahead(code, wait):
            kinds = ("arithmetic", "exponentials") if is_exponential(instructions[place]) else ("arithmetic",)
            counts.update(kinds)
            if not code.flow.precedes(wait, place):
                counts.update(f"{kind} ahead" for kind in kinds)
    for span, count in found.values():
        if count["arithmetic"]:
            yield Overlap(
                span,
                count["exponentials"],
                count["exponentials ahead"],
                count["arithmetic"],
                count["arithmetic ahead"],
            )


def _computed_ahead(code: _Code, wait: int) -> Iterator[int]:
    """Arithmetic in the wait's innermost loop that the program has between the last products ahead of it and the wait.

    The line of an instruction orders it by the program.
    """
    instructions, loop = code.function.instructions, code.loop(wait)
    line = instructions[wait].line
    same = [place for place in range(len(instructions)) if code.loop(place) == loop]
    groups = (instructions[place].line for place in same if is_group(instructions[place]))
    last = max((each for each in groups if each < line), default=0)
    between = (place for place in same if last < instructions[place].line < line)
    return (
        place
        for place in between
        if is_arithmetic(instructions[place]) and isinstance(code.statements[place], Map | Fold)
    )


def _loops(code: _Code, body: Sequence[Stmt]) -> Iterator[LoopCode]:
    """Loops with matrix products of their own."""
    instructions = code.function.instructions
    around = _loops_around(body)
    for loop in code.flow.loops:
        own = [place for block in sorted(loop.blocks) for place in code.flow.blocks[block] if code.loop(place) == loop]
        products = [place for place in own if is_product(instructions[place])]
        if not products:
            continue
        inside = Counter(around[id(stmt)] for stmt in (code.statements[place] for place in own) if id(stmt) in around)
        made = [instructions[place] for place in own]
        yield LoopCode(
            loop=max(inside, key=lambda span: inside[span], default=NOWHERE),
            instructions=len(made),
            products=len(products),
            exponentials=sum(map(is_exponential, made)),
            arithmetic=sum(map(is_arithmetic, made)),
            memory=sum(map(is_memory, made)),
            moves=sum(map(is_move, made)),
            control=sum(map(is_control, made)),
        )


def _loops_around(body: Sequence[Stmt], loop: Span | None = None) -> dict[int, Span]:
    """The innermost loop around each statement that is in one, by the statement's `id`; a loop's is itself."""
    found: dict[int, Span] = {}
    for stmt in body:
        innermost = stmt.span if isinstance(stmt, For) else loop
        if innermost is not None:
            found[id(stmt)] = innermost
        for part in bodies(stmt):
            found |= _loops_around(part, innermost)
    return found


def _spills(code: _Code) -> Iterator[Spill]:
    counts: dict[tuple[Span, int], Counter[str]] = {}
    for place in code.places(SPILL_STORE, SPILL_LOAD):
        key, each = (code.at(place), code.depth(place)), code.function.instructions[place]
        counts.setdefault(key, Counter())[each.name] += bytes_accessed(each)
    for (span, depth), count in sorted(counts.items(), key=lambda item: -item[0][1]):
        yield Spill(span, count[SPILL_STORE], count[SPILL_LOAD], depth)


def _calls(code: _Code) -> Iterator[Call]:
    counts = Counter(
        (code.at(place), code.function.instructions[place].target, code.depth(place)) for place in code.places(CALL)
    )
    for (span, target, depth), number in sorted(counts.items(), key=lambda item: -item[0][2]):
        yield Call(span, target.rpartition("$")[2], number, depth)


def _added_waits(code: _Code) -> Iterator[Span]:
    for place, each in enumerate(code.function.instructions):
        if is_wait(each) and not isinstance(code.statements[place], Wait):
            yield code.at(place)
