"""How many products matrix instructions add to an element of a register tile before it is assigned again (I40).

Read off the structure of the program: a product that begins a new sum, or an assignment of the whole tile, begins
again; what an iteration adds counts once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Buffer, Copy, Fold, For, If, Kernel, Map, Mma, One, Roles, Stmt, bodies, walk
from argus.core.proof.obligation import Obligation
from argus.core.walk import symbols

Note = Callable[[Mma, Index, Cond], None]
"""Called with a product, the number after it, and a condition under which it is reached."""


class _NotCountedError(Exception):
    """The number is not known; the message says why."""


def added_products_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """For each tile that declares a number: no instruction makes it more."""
    targets = [stmt.target.buffer for stmt in walk(kernel.body) if isinstance(stmt, Mma)]
    for buffer in dict.fromkeys(targets):
        if buffer.products is not None:
            yield from _of_tile(kernel, buffer, buffer.products)


def _of_tile(kernel: Kernel, buffer: Buffer, most: int) -> Iterator[Obligation]:
    what = f"matrix instructions add at most {most} products to an element of `{buffer.name}` before it is assigned"
    found: dict[Mma, list[tuple[Index, Cond]]] = {}

    def note(stmt: Mma, now: Index, given: Cond) -> None:
        found.setdefault(stmt, []).append((now, given))

    try:
        _after(kernel.body, buffer, algebra.const(0), algebra.TRUE, note)
    except _NotCountedError as problem:
        first = next(stmt for stmt in walk(kernel.body) if isinstance(stmt, Mma) and stmt.target.buffer is buffer)
        yield Obligation("I40", what, first, algebra.FALSE, unknown=str(problem))
        return
    for stmt, numbers in found.items():
        goal = algebra.all_of(algebra.any_of((algebra.negate(given), algebra.le(now, most))) for now, given in numbers)
        foreign = sorted(each.name for each in symbols(goal) if each not in kernel.sizes)
        yield Obligation(
            "I40",
            what,
            stmt,
            goal,
            unknown=f"how many are added depends on `{foreign[0]}`" if foreign else "",
            fault=f"matrix instructions add more than {most} products to an element of `{buffer.name}`",
            quantities=(("products", numbers[-1][0]),),
            help="begin a new sum (`init=True`) and add it to other registers, or declare more products",
            premises="assumptions",
        )


def _after(body: tuple[Stmt, ...], buffer: Buffer, before: Index, given: Cond, note: Note) -> Index:
    """The number of products in an element after the statements, which are reached where a condition holds."""
    now = before
    for stmt in body:
        match stmt:
            case Mma(target=target, a=a, init=init) if target.buffer is buffer:
                now = algebra.add(algebra.pick(init, 0, now), a.shape[-1])
                note(stmt, now, given)
            case Map(target=target) | Copy(target=target) | Fold(target=target) if target.buffer is buffer:
                if target.shape != buffer.shape:
                    raise _NotCountedError(f"a part of `{buffer.name}` is assigned")
                now = algebra.const(0)
            case For() if _is_written(stmt, buffer):
                now = _after_loop(stmt, buffer, now, given, note)
            case If(cond=cond, then=then, otherwise=otherwise):
                one = _after(then, buffer, now, algebra.all_of((given, cond)), note)
                two = _after(otherwise, buffer, now, algebra.all_of((given, algebra.negate(cond))), note)
                now = algebra.pick(cond, one, two)
            case One() | Roles():
                for inner in bodies(stmt):
                    now = _after(inner, buffer, now, given, note)
            case _:
                pass
    return now


def _is_written(loop: For, buffer: Buffer) -> bool:
    written = (each.target.buffer for each in walk(loop.body) if isinstance(each, Mma | Map | Copy | Fold))
    return buffer in written


def _unnoted(stmt: Mma, now: Index, given: Cond) -> None:
    del stmt, now, given


def _after_loop(loop: For, buffer: Buffer, before: Index, given: Cond, note: Note) -> Index:
    """After a loop whose iterations either begin again, or each add as many."""
    start = algebra.sym(Symbol(f"products before `{loop.symbol.name}`", "fresh", 0))
    after = _after(loop.body, buffer, start, given, _unnoted)
    trips = algebra.ceil_div(algebra.sub(loop.stop, loop.start), loop.step) if loop.step > 0 else None
    more = algebra.sub(after, start)
    adds = start.symbol in symbols(after)
    if trips is None or {start.symbol, loop.symbol} & symbols(more if adds else after):
        raise _NotCountedError(f"what an iteration over `{loop.symbol.name}` adds is not one number")
    runs = algebra.le(1, trips)
    if adds:
        last = algebra.add(before, algebra.mul(more, algebra.sub(trips, 1)))
        _after(loop.body, buffer, last, algebra.all_of((given, runs)), note)
        return algebra.pick(runs, algebra.add(last, more), before)
    for first, least in ((before, 1), (after, 2)):
        _after(loop.body, buffer, first, algebra.all_of((given, algebra.le(least, trips))), note)
    return algebra.pick(runs, after, before)
