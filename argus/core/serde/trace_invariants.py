"""What tracing establishes and no reading checks again: looked at where a kernel comes as data.

A symbol's bounds are taken for granted by every question about it, a tensor's strides by every proof of what is stored,
a construct's name by what reads it. A kernel that states such facts falsely could be "proved", so each is derived here
from where the thing is bound, and compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from argus.core.index import Coord, Held, Index, Read, Sym, Symbol
from argus.core.ir import Assert, Atomic, For, Kernel, Launch, Let, Products, Program, Relation, Roles, walk
from argus.core.serde.operations import refused_operations
from argus.core.serde.storage import refused_storage
from argus.core.serde.texts import refused_texts
from argus.core.serde.writing import parts
from argus.core.walk import show, substitute, topological

LARGEST_SIZE = 1 << 30
"""As of every tensor that is declared."""
_NAME = re.compile(r"[\w.]+( [\w.]+)*")

Bounds = tuple[int | None, int | None]


def refused_by(found: Kernel | Program) -> str:
    """Why tracing could not have given it; empty if it may have. Not what `check` says, which comes afterwards."""
    if isinstance(found, Kernel):
        return next(_of_kernel(found), "")
    return next(_of_program(found), "")


def reached(root: object) -> list[object]:
    """Everything that an object is made of, itself included, each once."""
    seen: dict[int, object] = {id(root): root}
    stack = [root]
    while stack:
        for part in parts(stack.pop()):
            if id(part) not in seen:
                seen[id(part)] = part
                stack.append(part)
    return list(seen.values())


def _of_kernel(kernel: Kernel) -> Iterator[str]:
    things = reached(kernel)
    if any(isinstance(each, Kernel) for each in things if each is not kernel):
        yield "holds another kernel"
    if not kernel.name.isidentifier():
        yield "has a name that is no identifier"
    if len(kernel.grid) != len(kernel.blocks):
        yield "has other blocks than its grid"
    if any(mentions_memory(extent) for extent in kernel.grid):
        yield "has a grid that depends on what memory holds"
    yield from _repeated(kernel)
    yield from _symbols(kernel, things)
    yield from refused_storage(kernel, things)
    yield from refused_texts(kernel, things)
    yield from refused_operations(kernel, things)


def mentions_memory(*nodes: Index) -> bool:
    return any(isinstance(node, Read | Held | Coord) for node in topological(nodes))


def _repeated(kernel: Kernel) -> Iterator[str]:
    """Statements are told apart by identity, so each stands once."""
    if len(kernel.body) != len({id(stmt) for stmt in kernel.body}):
        yield "holds a statement twice"
    often = Counter(id(stmt) for stmt in walk(kernel.body))
    if any(count > 1 for count in often.values()):
        yield "holds a statement twice"


# -- symbols -------------------------------------------------------------------------------------------------


def _symbols(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Each is bound once, of its kind, within the bounds that follow from where it is; none is there unbound."""
    bound: dict[Symbol, Bounds] = {}
    for symbol, kind, bounds in _bindings(kernel):
        if symbol in bound:
            yield f"binds `{symbol.name}` twice"
        if symbol.kind != kind:
            yield f"has `{symbol.name}` as a {symbol.kind}, which is a {kind}"
        if not _encloses((symbol.low, symbol.high), bounds):
            yield f"says that `{symbol.name}` lies in {_text(symbol.low, symbol.high)}, found {_text(*bounds)}"
        bound[symbol] = bounds
    names = Counter(symbol.name for symbol in bound)
    used = {each for each in things if isinstance(each, Symbol)} | bound.keys()
    claimed = set(_claimed(kernel))
    for symbol in used:
        if symbol in bound:
            if names[symbol.name] > 1 or not symbol.name.isidentifier():
                yield f"has two symbols `{symbol.name}`, or one that is no identifier"
        elif symbol not in claimed:
            yield f"uses `{symbol.name}`, which nothing binds"
    for symbol in claimed:
        if symbol in bound or (symbol.kind, symbol.low, symbol.high) != ("fresh", None, None):
            yield f"claims `{symbol.name}` to be more than a component of a tag"
        if symbol.name in names or not _NAME.fullmatch(symbol.name):
            yield "has a claim about a component under the name of something else"


def _text(low: int | None, high: int | None) -> str:
    return f"[{'-inf' if low is None else low}, {'inf' if high is None else high}]"


def _encloses(stated: Bounds, known: Bounds) -> bool:
    low = stated[0] is None or (known[0] is not None and stated[0] <= known[0])
    return low and (stated[1] is None or (known[1] is not None and known[1] <= stated[1]))


def _bindings(kernel: Kernel) -> Iterator[tuple[Symbol, str, Bounds]]:
    """Every symbol that has a value, its kind, and bounds that hold whenever it has one."""
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
    """Between the first value and the one before the end, whichever way it goes."""
    if stmt.step > 0:
        return stmt.start.range[0], _before(stmt.stop)
    low = stmt.stop.range[0]
    return None if low is None else low + 1, stmt.start.range[1]


def _claimed(kernel: Kernel) -> Iterator[Symbol]:
    """Symbols that stand for components of tags, each within its claim alone."""
    for stmt in walk(kernel.body):
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
        yield "has two tensors, or two kernels, of one name"
    if any((size.kind, size.low, size.high) != ("size", 0, LARGEST_SIZE) for size in program.sizes):
        yield "has sizes that are none"
    for launch in program.launches:
        yield from (f"launches `{launch.kernel.name[:60]}`, which {why}" for why in _of_kernel(launch.kernel))
        yield from _of_launch(program, launch)


def _of_launch(program: Program, launch: Launch) -> Iterator[str]:
    """Each parameter gets a tensor of its type and shape, with the sizes that the launch says."""
    known = {id(buffer) for buffer in (*program.parameters, *program.workspaces)}
    sizes = dict(launch.sizes)
    wanted = {buffer.name: buffer for buffer in launch.kernel.parameters}
    if wanted.keys() != launch.arguments.keys() or set(launch.kernel.sizes) != sizes.keys():
        yield "launches a kernel on other tensors or sizes than it has"
        return
    for name, buffer in launch.arguments.items():
        meant = tuple(substitute(extent, sizes) for extent in wanted[name].shape)
        if id(buffer) not in known or buffer.dtype != wanted[name].dtype or buffer.shape != meant:
            shape = ", ".join(show(extent) for extent in meant)
            yield f"passes `{buffer.name[:60]}` for a tensor of shape ({shape})"
    spoken = {node.symbol for value in sizes.values() for node in topological((value,)) if isinstance(node, Sym)}
    if not spoken <= set(program.sizes):
        yield "launches a kernel with sizes that are not the program's"
