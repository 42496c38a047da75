"""Scope checks: buffers and symbols are used only inside the body that declares them."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.executor import error_at
from argus.core.check.parts import expressions, views
from argus.core.diagnostic import Diagnostic, Label
from argus.core.index import Coord, Symbol
from argus.core.ir import Alloc, Buffer, For, Kernel, Let, Roles, Stmt, View, bodies
from argus.core.walk import symbols, topological


def check_scopes(kernel: Kernel) -> Iterator[Diagnostic]:
    """Buffers and symbols are used only inside the body that declares them; the grid depends on sizes only."""
    sizes = frozenset(kernel.sizes)
    for extent in kernel.grid:
        for symbol in _sorted(symbols(extent) - sizes):
            message = f"the grid depends on `{symbol.name}`, which is not a size"
            yield Diagnostic("E201", "error", message, Label(kernel.span, "declared here"), kernel=kernel.name)
    yield from _check_body(kernel, kernel.body, frozenset(kernel.parameters), sizes | {*kernel.blocks, kernel.thread})


def _check_body(
    kernel: Kernel, body: tuple[Stmt, ...], outer: frozenset[Buffer], known: frozenset[Symbol]
) -> Iterator[Diagnostic]:
    buffers = set(outer)
    for stmt in body:
        if isinstance(stmt, Alloc):
            buffers.add(stmt.buffer)
        for buffer in dict.fromkeys(view.buffer for view in views(stmt)):
            if buffer not in buffers:
                yield _out_of_scope(kernel, stmt, buffer)
        for symbol in _sorted(symbols(*expressions(stmt)) - known):
            yield _unbound_symbol(kernel, stmt, symbol)
        for view in views(stmt):
            yield from _foreign_coordinates(kernel, stmt, view)
        for part, own in zip(bodies(stmt), _bound_symbols(stmt), strict=True):
            yield from _check_body(kernel, part, frozenset(buffers), known | own)
        if isinstance(stmt, Let):
            known |= {stmt.symbol}


def _foreign_coordinates(kernel: Kernel, stmt: Stmt, view: View) -> Iterator[Diagnostic]:
    """A view's index expressions use symbols and the coordinates of its own axes only."""
    used = {node.axis for node in topological((*view.at, view.where)) if isinstance(node, Coord)}
    if any(axis >= len(view.shape) for axis in used):
        message = f"a view of `{view.buffer.name}` is indexed by the coordinate of another tensor's element"
        help_ = "use an element's coordinates in tags and masks only"
        yield error_at(kernel, stmt, "E201", message, help_, "used here")


def _bound_symbols(stmt: Stmt) -> Iterator[frozenset[Symbol]]:
    """For each body of a statement, the symbols that it binds."""
    for position, _ in enumerate(bodies(stmt)):
        match stmt:
            case For(symbol=symbol):
                yield frozenset((symbol,))
            case Roles(roles=roles):
                yield frozenset((roles[position].number, roles[position].thread))
            case _:
                yield frozenset()


def _sorted(found: frozenset[Symbol]) -> list[Symbol]:
    return sorted(found, key=lambda symbol: symbol.name)


def _out_of_scope(kernel: Kernel, stmt: Stmt, buffer: Buffer) -> Diagnostic:
    return Diagnostic(
        "E201",
        "error",
        f"`{buffer.name}` is used outside the body that declares it",
        Label(stmt.span, "used here"),
        (Label(buffer.span, "made here"),),
        help="make it with `registers(...)` before the loop or branch, and assign it inside",
        kernel=kernel.name,
    )


def _unbound_symbol(kernel: Kernel, stmt: Stmt, symbol: Symbol) -> Diagnostic:
    if symbol.kind in ("agent", "thread"):
        message, help_ = (
            f"`{symbol.name}` is used outside its role",
            "use it inside its `with role(...)`",
        )
    else:
        message = f"`{symbol.name}` is used outside the loop that defines it"
        help_ = "after the loop, use the loop's bounds instead"
    return error_at(kernel, stmt, "E201", message, help_, "used here")
