"""Well-formedness: what must hold of a kernel before any reading of it makes sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from argus.core.diagnostic import Diagnostic, Label
from argus.core.elements import gets, indices
from argus.core.index import Cond, Const, Coord, Index, Node, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Atomic,
    Await,
    Buffer,
    Claim,
    Copy,
    Covers,
    Distinct,
    Equal,
    Fold,
    For,
    If,
    Kernel,
    Let,
    Map,
    Mma,
    Order,
    Peek,
    Products,
    Relation,
    Reset,
    Stmt,
    Tag,
    View,
    WrittenOnce,
    bodies,
    walk,
    whole,
)
from argus.core.layout import TV, Layout
from argus.core.span import Span
from argus.core.target import Target
from argus.core.walk import mentions, show, symbols


def check(kernel: Kernel) -> tuple[Diagnostic, ...]:
    """Every fault found, in program order; empty for a well-formed kernel."""
    return tuple(_checks(kernel))


def _checks(kernel: Kernel) -> Iterator[Diagnostic]:
    yield from thread_count(kernel.name, kernel.target, kernel.threads, kernel.span)
    yield from _scopes(kernel)
    for stmt in walk(kernel.body):
        match stmt:
            case Copy():
                yield from _copy(kernel, stmt)
            case Map():
                yield from _map(kernel, stmt)
            case Mma(init=init):
                yield from _mma(kernel, stmt)
                yield from _uniform(kernel, stmt, init)
            case If(cond=cond):
                yield from _uniform(kernel, stmt, cond)
            case For(start=start, stop=stop):
                yield from _loop(kernel, stmt, start, stop)
            case _:
                continue


def _fault(kernel: Kernel, stmt: Stmt, code: str, message: str, help: str = "", here: str = "") -> Diagnostic:
    return Diagnostic(code, "error", message, Label(stmt.span, here), help=help, kernel=kernel.name)


def thread_count(name: str, target: Target, threads: int, span: Span) -> tuple[Diagnostic, ...]:
    """A fault unless the threads are whole waves that the target can run."""
    unit, most = target.unit, target.max_threads
    if 0 < threads <= most and threads % unit == 0:
        return ()
    message = f"kernel `{name}` has {threads} threads; {target} runs whole waves of {unit}, at most {most}"
    label = Label(span, "declared here")
    return (Diagnostic("E213", "error", message, label, help=f"choose a multiple of {unit} up to {most}", kernel=name),)


def _scopes(kernel: Kernel) -> Iterator[Diagnostic]:
    """Registers and loop variables are used only inside the body they were made in; the grid depends on sizes."""
    sizes = frozenset(kernel.sizes)
    for extent in kernel.grid:
        for symbol in _sorted(symbols(extent) - sizes):
            message = f"the grid depends on `{symbol.name}`, which is no size"
            yield Diagnostic("E201", "error", message, Label(kernel.span, "declared here"), kernel=kernel.name)
    yield from _scope(kernel, kernel.body, frozenset(kernel.parameters), sizes | {*kernel.blocks, kernel.thread})


def _scope(
    kernel: Kernel, body: tuple[Stmt, ...], outer: frozenset[Buffer], known: frozenset[Symbol]
) -> Iterator[Diagnostic]:
    buffers = set(outer)
    for stmt in body:
        if isinstance(stmt, Alloc):
            buffers.add(stmt.buffer)
        for buffer in dict.fromkeys(view.buffer for view in views(stmt)):
            if buffer not in buffers:
                yield _outside(kernel, stmt, buffer)
        for symbol in _sorted(symbols(*expressions(stmt)) - known):
            yield _undefined(kernel, stmt, symbol)
        inner = known | {stmt.symbol} if isinstance(stmt, For) else known
        for part in bodies(stmt):
            yield from _scope(kernel, part, frozenset(buffers), inner)
        if isinstance(stmt, Let):
            known |= {stmt.symbol}


def _sorted(found: frozenset[Symbol]) -> list[Symbol]:
    return sorted(found, key=lambda symbol: symbol.name)


def _outside(kernel: Kernel, stmt: Stmt, buffer: Buffer) -> Diagnostic:
    return Diagnostic(
        "E201",
        "error",
        f"`{buffer.name}` is used outside the body it was made in",
        Label(stmt.span, "used here"),
        (Label(buffer.span, "made here"),),
        help="make it with `registers(...)` before the loop or branch, and assign it inside",
        kernel=kernel.name,
    )


def _undefined(kernel: Kernel, stmt: Stmt, symbol: Symbol) -> Diagnostic:
    return _fault(
        kernel,
        stmt,
        "E201",
        f"`{symbol.name}` is used outside the loop that defines it",
        "compute what is needed after the loop from its bounds",
        "used here",
    )


def views(stmt: Stmt) -> tuple[View, ...]:
    """The views that a statement touches or speaks of, not those of the statements inside it."""
    match stmt:
        case Copy(source=source, target=target, signal=signal):
            return (source, target) if signal is None else (source, target, signal)
        case Map(target=target, elem=elem):
            return target, *(get.view for get in gets(elem))
        case Fold(target=target, source=source):
            return target, source
        case Mma(target=target, a=a, b=b):
            return target, a, b
        case Arrive(event=event) | Await(event=event):
            return (event,)
        case Let(value=Peek(view=view) | Atomic(view=view)) | Tag(view=view):
            return (view,)
        case Advance(counter=buffer) | Reset(buffer=buffer):
            return (whole(buffer),)
        case Assert(claim=claim):
            return claim_views(claim)
        case _:
            return ()


def claim_views(claim: Claim) -> tuple[View, ...]:
    match claim:
        case Equal(left=left, right=right):
            return left.view, right.view
        case Distinct(components=components):
            return tuple(of.view for of in components)
        case Relation(names=names):
            return tuple(of.view for _, of in names)
        case Covers(of=of) | Order(of=of):
            return (of.view,)
        case WrittenOnce(view=view) | Products(view=view):
            return (view,)
        case _:
            assert_never(claim)


def expressions(stmt: Stmt) -> tuple[Node, ...]:
    """The expressions and conditions of a statement, its views included, not those of the statements inside it."""
    placed = tuple(
        part for view in views(stmt) for part in (*view.at, view.where, *(() if view.peer is None else (view.peer,)))
    )
    return (*placed, *_own_expressions(stmt))


def _own_expressions(stmt: Stmt) -> tuple[Node, ...]:
    match stmt:
        case Map(elem=elem):
            return indices(elem)
        case Mma(init=cond) | If(cond=cond) | Assume(cond=cond):
            return (cond,)
        case Arrive(bytes=value) | Await(phase=value) | Advance(by=value) | Let(value=Atomic(value=value)):
            return (value,)
        case Copy(peers=peers):
            return () if peers is None else (peers,)
        case For(start=start, stop=stop):
            return start, stop
        case Tag(names=record) | Assert(claim=WrittenOnce(record=record)):
            return tuple(value for _, value in record)
        case Assert(claim=Covers(low=low, high=high, where=where)):
            return low, high, where
        case _:
            return ()


def _copy(kernel: Kernel, stmt: Copy) -> Iterator[Diagnostic]:
    for extent in stmt.source.shape:
        if not isinstance(extent, Const):
            yield _fault(
                kernel,
                stmt,
                "E209",
                f"a copy of the symbolic extent {show(extent)}",
                "copy tiles of static shape: `.tile((rows, columns), ...)`",
            )
            return
    shape = tuple(extent.value for extent in stmt.source.shape if isinstance(extent, Const))
    if shape != stmt.by.tile:
        yield _fault(
            kernel,
            stmt,
            "E203",
            f"a copy of shape {shape} by a layout of the tile {stmt.by.tile}",
            "give the views and the layout one shape",
        )


def _map(kernel: Kernel, stmt: Map) -> Iterator[Diagnostic]:
    for get in gets(stmt.elem):
        if get.view.buffer.layout != stmt.target.buffer.layout:
            yield _fault(
                kernel,
                stmt,
                "E205",
                f"`{get.view.buffer.name}` is held by other threads than `{stmt.target.buffer.name}`",
                "give both tiles one thread-value layout, or go through shared memory",
            )


def _mma(kernel: Kernel, stmt: Mma) -> Iterator[Diagnostic]:
    needed = stmt.tiling.threads * stmt.atom.unit
    if needed != kernel.threads:
        yield _fault(
            kernel,
            stmt,
            "E213",
            f"`{stmt.atom}` over {stmt.tiling.waves[0]} x {stmt.tiling.waves[1]} waves needs {needed} threads, "
            f"the kernel has {kernel.threads}",
            "make waves times the wave's lanes the number of threads",
        )
    if kernel.target.name not in stmt.atom.targets:
        yield _fault(kernel, stmt, "E108", f"`{stmt.atom}` is not an instruction of {kernel.target}")
    for role, view, first in (
        ("a", stmt.a, stmt.tiling.a),
        ("b", stmt.b, stmt.tiling.b),
        ("c", stmt.target, stmt.tiling.c),
    ):
        yield from _operand(kernel, stmt, role, view, first)


def _operand(kernel: Kernel, stmt: Mma, role: str, view: View, first: Layout) -> Iterator[Diagnostic]:
    """An operand has just the registers that the executions of the instruction read."""
    held, atom = view.buffer.layout, stmt.atom.operands[role]
    if not isinstance(held, TV) or atom.tv is None:
        return
    needed = int(first.table().max()) + atom.tv.values.size()
    if held.values.size() != needed or view.buffer.dtype != atom.dtype:
        yield _fault(
            kernel,
            stmt,
            "E206",
            f"operand {role} of `{stmt.atom}` wants {needed} registers of {atom.dtype} a thread, "
            f"`{view.buffer.name}` has {held.values.size()} of {view.buffer.dtype}",
            f"make `{view.buffer.name}` with the fragment layout of that operand",
        )


def _differs(kernel: Kernel, node: Node) -> bool:
    """Whether an expression has another value in another thread, or for another element."""
    return kernel.thread in symbols(node) or mentions(node, (Coord,))


def _uniform(kernel: Kernel, stmt: Stmt, cond: Cond) -> Iterator[Diagnostic]:
    if _differs(kernel, cond):
        yield _fault(
            kernel,
            stmt,
            "E207",
            f"the {'start of the sum' if isinstance(stmt, Mma) else 'branch'} `{show(cond)}` differs between threads",
            "branch on sizes, blocks and loop variables; mask elements with `where(...)`",
            "must be uniform",
        )


def _loop(kernel: Kernel, stmt: For, start: Index, stop: Index) -> Iterator[Diagnostic]:
    for bound in (start, stop):
        if _differs(kernel, bound):
            yield _fault(
                kernel, stmt, "E207", f"the loop bound `{show(bound)}` differs between threads", "make it uniform"
            )
