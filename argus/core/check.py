"""Well-formedness: what must hold of a kernel before any reading of it makes sense."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.diagnostic import Diagnostic, Label
from argus.core.elements import gets
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.ir import (
    Alloc,
    Buffer,
    Copy,
    For,
    Get,
    If,
    Kernel,
    Map,
    Mma,
    Stmt,
    View,
    bodies,
    walk,
)
from argus.core.walk import show, symbols


def check(kernel: Kernel) -> tuple[Diagnostic, ...]:
    """Every fault found, in program order; empty for a well-formed kernel."""
    return tuple(_checks(kernel))


def _checks(kernel: Kernel) -> Iterator[Diagnostic]:
    yield from _threads(kernel)
    yield from _scopes(kernel)
    for stmt in walk(kernel.body):
        match stmt:
            case Copy():
                yield from _copy(kernel, stmt)
            case Map():
                yield from _map(kernel, stmt)
            case Mma():
                yield from _mma(kernel, stmt)
            case If(cond=cond):
                yield from _uniform(kernel, stmt, cond)
            case For(start=start, stop=stop):
                yield from _loop(kernel, stmt, start, stop)
            case _:
                continue


def _fault(kernel: Kernel, stmt: Stmt, code: str, message: str, help: str = "", here: str = "") -> Diagnostic:
    return Diagnostic(code, "error", message, Label(stmt.span, here), help=help, kernel=kernel.name)


def _threads(kernel: Kernel) -> Iterator[Diagnostic]:
    unit, most = kernel.target.unit, kernel.target.max_threads
    if kernel.threads <= 0 or kernel.threads % unit != 0 or kernel.threads > most:
        yield Diagnostic(
            "E213",
            "error",
            f"kernel `{kernel.name}` has {kernel.threads} threads; {kernel.target} runs whole waves of {unit}, at most {most}",
            Label(kernel.span, "declared here"),
            help=f"choose a multiple of {unit} up to {most}",
            kernel=kernel.name,
        )


def _scopes(kernel: Kernel) -> Iterator[Diagnostic]:
    """Registers, loop variables: used only inside the body they were made in."""
    known: set[Symbol] = {*kernel.sizes, *kernel.blocks, kernel.thread}
    yield from _scope(kernel, kernel.body, set(kernel.parameters), known)


def _scope(kernel: Kernel, body: tuple[Stmt, ...], outer: set[Buffer], known: set[Symbol]) -> Iterator[Diagnostic]:
    buffers = set(outer)
    for stmt in body:
        if isinstance(stmt, Alloc):
            buffers.add(stmt.buffer)
            continue
        for view in views(stmt):
            if view.buffer not in buffers:
                yield _fault(
                    kernel,
                    stmt,
                    "E201",
                    f"`{view.buffer.name}` is used outside the body it was made in",
                    f"make it before the loop or branch (it was made at {view.buffer.span})",
                    "used here",
                )
            for expression in view.at:
                yield from _known(kernel, stmt, expression, known)
        for condition in _conditions(stmt):
            yield from _known(kernel, stmt, condition, known)
        inner = {*known, stmt.symbol} if isinstance(stmt, For) else known
        for part in bodies(stmt):
            yield from _scope(kernel, part, buffers, inner)


def _conditions(stmt: Stmt) -> tuple[Cond, ...]:
    match stmt:
        case If(cond=cond):
            return (cond,)
        case Mma(init=init):
            return (init,)
        case _:
            return ()


def _known(kernel: Kernel, stmt: Stmt, expression: Index | Cond, known: set[Symbol]) -> Iterator[Diagnostic]:
    for symbol in sorted(symbols(expression) - known, key=lambda s: s.name):
        yield _fault(
            kernel,
            stmt,
            "E201",
            f"`{symbol.name}` is used outside the loop that defines it",
            "compute what is needed after the loop from its bounds",
            "used here",
        )


def views(stmt: Stmt) -> tuple[View, ...]:
    """The views that a statement touches, not those of the statements inside it."""
    match stmt:
        case Copy(source=source, target=target):
            return source, target
        case Map(target=target, elem=elem):
            return target, *(get.view for get in gets(elem))
        case Mma(target=target, a=a, b=b):
            return target, a, b
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
        if not _same_holder(stmt, get):
            yield _fault(
                kernel,
                stmt,
                "E205",
                f"`{get.view.buffer.name}` is held by other threads than `{stmt.target.buffer.name}`",
                "give both tiles one thread-value layout, or go through shared memory",
            )


def _same_holder(stmt: Map, get: Get) -> bool:
    return get.view.buffer.layout == stmt.target.buffer.layout


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
        yield _fault(kernel, stmt, "E204", f"`{stmt.atom}` is not an instruction of {kernel.target}")


def _uniform(kernel: Kernel, stmt: Stmt, cond: Cond) -> Iterator[Diagnostic]:
    if kernel.thread in symbols(cond):
        yield _fault(
            kernel,
            stmt,
            "E207",
            f"the branch `{show(cond)}` differs between threads",
            "branch on sizes, blocks and loop variables; mask elements with `where(...)`",
            "must be uniform",
        )


def _loop(kernel: Kernel, stmt: For, start: Index, stop: Index) -> Iterator[Diagnostic]:
    for bound in (start, stop):
        if kernel.thread in symbols(bound):
            yield _fault(
                kernel, stmt, "E207", f"the loop bound `{show(bound)}` differs between threads", "make it uniform"
            )
