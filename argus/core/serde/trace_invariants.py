"""Checks the invariants that tracing establishes, and that later analyses trust, on a deserialised kernel.

Every query trusts a symbol's bounds, every proof about stores trusts a tensor's strides, and analyses trust the names
of constructs. A kernel that states such facts falsely could be "proved", so each fact is derived here from the binding
and compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from argus.core.algebra import TRUE, coord
from argus.core.index import Coord, Held, Index, Read, Sym, Symbol
from argus.core.index_text import show
from argus.core.ir import (
    Assert,
    Atomic,
    ClaimedProgram,
    Equals,
    For,
    Kernel,
    Launch,
    Let,
    Products,
    Program,
    Relation,
    Roles,
    View,
    program_claims,
    walk,
)
from argus.core.serde.operations import formula_violation, operation_violations
from argus.core.serde.storage import storage_violations
from argus.core.serde.texts import text_violations
from argus.core.serde.writing import parts
from argus.core.target import LARGEST_SIZE
from argus.core.values.rewriting import bound_variables, free_symbols
from argus.core.walk import substitute, symbols, topological

_NAME = re.compile(r"[\w.]+( [\w.]+)*")

Bounds = tuple[int | None, int | None]


def trace_violation(found: Kernel | Program) -> str:
    """Why tracing cannot have produced it; empty if it can. Well-formedness is left to `check`, which runs later."""
    if isinstance(found, Kernel):
        return next(_of_kernel(found), "")
    return next(_of_program(found), "")


def reachable(root: object) -> list[object]:
    """The object and all its transitive parts, each once."""
    seen: dict[int, object] = {id(root): root}
    stack = [root]
    while stack:
        for part in parts(stack.pop()):
            if id(part) not in seen:
                seen[id(part)] = part
                stack.append(part)
    return list(seen.values())


def _of_kernel(kernel: Kernel) -> Iterator[str]:
    things = reachable(kernel)
    if any(isinstance(each, Kernel) for each in things if each is not kernel):
        yield "contains another kernel"
    if not kernel.name.isidentifier():
        yield "has a name that is no identifier"
    if len(kernel.grid) != len(kernel.blocks):
        yield "has a different number of block indices than grid axes"
    if any(mentions_memory(extent) for extent in kernel.grid):
        yield "has a grid that depends on the contents of memory"
    yield from _repeated(kernel)
    yield from _symbols(kernel, things)
    yield from storage_violations(kernel, things)
    yield from text_violations(kernel, things)
    yield from operation_violations(kernel, things)


def mentions_memory(*nodes: Index) -> bool:
    """Whether an expression depends on memory, registers or coordinates of an element."""
    return any(isinstance(node, Read | Held | Coord) for node in topological(nodes))


def _repeated(kernel: Kernel) -> Iterator[str]:
    """Statements are distinguished by identity, so each may occur only once."""
    if len(kernel.body) != len({id(stmt) for stmt in kernel.body}):
        yield "contains a statement twice"
    occurrences = Counter(id(stmt) for stmt in walk(kernel.body))
    if any(count > 1 for count in occurrences.values()):
        yield "contains a statement twice"


# -- symbols -------------------------------------------------------------------------------------------------


def _symbols(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Every symbol used is bound exactly once, with the kind and the bounds that follow from its binding."""
    bound: dict[Symbol, Bounds] = {}
    for symbol, kind, bounds in _bindings(kernel):
        if symbol in bound:
            yield f"binds `{symbol.name}` twice"
        if symbol.kind != kind:
            yield f"has `{symbol.name}` as a {symbol.kind}, although it is bound as a {kind}"
        if not _encloses((symbol.low, symbol.high), bounds):
            yield f"declares `{symbol.name}` in {_text(symbol.low, symbol.high)}, found {_text(*bounds)}"
        bound[symbol] = bounds
    names = Counter(symbol.name for symbol in bound)
    used = {each for each in things if isinstance(each, Symbol)} | bound.keys()
    claimed = set(_claimed(kernel))
    for symbol in used:
        if symbol in bound:
            if names[symbol.name] > 1 or not symbol.name.isidentifier():
                yield f"has two symbols `{symbol.name}`, or one whose name is no identifier"
        elif symbol not in claimed:
            yield f"uses `{symbol.name}`, which is not bound"
    for symbol in claimed:
        if symbol in bound or (symbol.kind, symbol.low, symbol.high) != ("fresh", None, None):
            yield f"uses `{symbol.name}` as a variable of a claim, although it is bound or bounded"
        if symbol.name in names or not _NAME.fullmatch(symbol.name):
            yield "has a claim that gives a variable the name of another symbol, or an invalid name"


def _text(low: int | None, high: int | None) -> str:
    return f"[{'-inf' if low is None else low}, {'inf' if high is None else high}]"


def _encloses(stated: Bounds, known: Bounds) -> bool:
    low = stated[0] is None or (known[0] is not None and stated[0] <= known[0])
    return low and (stated[1] is None or (known[1] is not None and known[1] <= stated[1]))


def _bindings(kernel: Kernel) -> Iterator[tuple[Symbol, str, Bounds]]:
    """Every bound symbol with the kind and the bounds that follow from its binding."""
    for size in kernel.sizes:
        yield size, "size", (0, LARGEST_SIZE)
    for block, count in zip(kernel.blocks, kernel.grid, strict=True):
        yield block, "block", (0, _before(count))
    yield kernel.thread, "thread", (0, kernel.threads - 1)
    for stmt in walk(kernel.body):
        match stmt:
            case For():
                yield stmt.symbol, "loop", _of_loop(stmt)
            case Let(symbol=symbol, value=value):
                yield symbol, "fresh", (None, None) if isinstance(value, Atomic) else (0, None)
            case Roles(roles=roles):
                for role in roles:
                    yield role.number, "agent", (0, role.agents - 1)
                    yield role.thread, "thread", (0, role.agent - 1)
            case Assert(claim=Products(over=over)):
                for symbol, extent in over:
                    yield symbol, "fresh", (0, _before(extent))
            case _:
                pass


def _before(count: Index) -> int | None:
    return None if count.range[1] is None else count.range[1] - 1


def _of_loop(stmt: For) -> Bounds:
    """The range of a loop variable, for steps of either sign."""
    if stmt.step > 0:
        return stmt.start.range[0], _before(stmt.stop)
    low = stmt.stop.range[0]
    return None if low is None else low + 1, stmt.start.range[1]


def _claimed(kernel: Kernel) -> Iterator[Symbol]:
    """Symbols that stand for components of tags within one claim, and variables of formulas."""
    for stmt in walk(kernel.body):
        if isinstance(stmt, Assert) and isinstance(stmt.claim, Equals):
            yield from bound_variables(stmt.claim.formula)
        if isinstance(stmt, Assert) and isinstance(stmt.claim, Relation):
            for symbol, _ in stmt.claim.names:
                yield symbol


# -- programs ------------------------------------------------------------------------------------------------


def _of_program(program: Program) -> Iterator[str]:
    if not program.name.isidentifier():
        yield "has a name that is no identifier"
    buffers = (*program.parameters, *program.workspaces)
    names = [buffer.name for buffer in buffers]
    if len(set(names)) != len(names) or len({launch.kernel.name for launch in program.launches}) != len(
        program.launches
    ):
        yield "has two tensors, or two kernels, of the same name"
    if any((size.kind, size.low, size.high) != ("size", 0, LARGEST_SIZE) for size in program.sizes):
        yield "has a size of another kind, or with other bounds, than a size has"
    for launch in program.launches:
        yield from (f"launches `{launch.kernel.name[:60]}`, which {why}" for why in _of_kernel(launch.kernel))
        yield from _of_launch(program, launch)
    for _, claim in program_claims(program):
        yield from _of_claim(program, claim)
    if isinstance(program, ClaimedProgram) and len(program.claims) != len(program_claims(program)):
        yield "claims something else than a formula"


def _of_claim(program: Program, claim: Equals) -> Iterator[str]:
    """A claim about a whole parameter, over the program's sizes."""
    view, formula = claim.view, claim.formula
    if not any(view.buffer is each for each in program.parameters) or not _is_whole(view):
        yield "claims a formula of something else than a tensor of it"
    why = formula_violation(formula, len(view.shape), claim.where)
    if why or not free_symbols(formula) | symbols(claim.where) <= set(program.sizes):
        yield why or "claims a formula over sizes that it does not have"
    if claim.before:
        yield "claims a formula of what a tensor held before it"
    names = {size.name for size in program.sizes}
    for symbol in bound_variables(formula):
        plain = (symbol.kind, symbol.low, symbol.high) == ("fresh", None, None) and symbol.name not in names
        if not plain or not _NAME.fullmatch(symbol.name):
            yield f"uses `{symbol.name[:60]}` as a variable of a claim, although it is bound or bounded"


def _is_whole(view: View) -> bool:
    own = tuple(coord(axis) for axis in range(len(view.shape)))
    return view.shape == view.buffer.shape and view.at == own and view.where is TRUE and view.peer is None


def _of_launch(program: Program, launch: Launch) -> Iterator[str]:
    """Each parameter gets a tensor of its element type and of its shape at the launch's sizes."""
    known = {id(buffer) for buffer in (*program.parameters, *program.workspaces)}
    sizes = dict(launch.sizes)
    wanted = {buffer.name: buffer for buffer in launch.kernel.parameters}
    if wanted.keys() != launch.arguments.keys() or set(launch.kernel.sizes) != sizes.keys():
        yield "launches a kernel with other tensors or sizes than its parameters"
        return
    for name, buffer in launch.arguments.items():
        expected = tuple(substitute(extent, sizes) for extent in wanted[name].shape)
        if id(buffer) not in known or buffer.dtype != wanted[name].dtype or buffer.shape != expected:
            shape = ", ".join(show(extent) for extent in expected)
            yield f"passes `{buffer.name[:60]}` for a tensor of shape ({shape})"
    mentioned = {node.symbol for value in sizes.values() for node in topological((value,)) if isinstance(node, Sym)}
    if not mentioned <= set(program.sizes):
        yield "launches a kernel with sizes that are not sizes of the program"
