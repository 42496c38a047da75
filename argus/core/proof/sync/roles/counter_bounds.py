"""How far counters of uses run (I28): they wrap at 2^32, where slots that are no power of two lose their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Advance, Assume, Buffer, For, If, Kernel, Stmt, bodies, trips, walk
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import Ledger
from argus.core.proof.sync.roles.parsed import Parsed, Storage
from argus.core.proof.sync.roles.sequential import Tiles
from argus.core.walk import show

_WRAPS = 1 << 32


def bounded(
    kernel: Kernel, roles: Sequence[Parsed], rings: Sequence[Storage], tiles: Tiles | None, ledger: Ledger
) -> Iterator[Obligation]:
    """Each counter that runs on over all tiles stays below 2^32, where a ring's slots are no power of two."""
    uneven = next((ring for ring in rings if ring.stages & (ring.stages - 1)), None)
    if uneven is None or tiles is None:
        return
    pairs = zip(kernel.blocks, kernel.grid, strict=True)
    assumed = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    known = (*assumed, *(algebra.lt(algebra.sym(block), count) for block, count in pairs))
    for role in roles:
        body = role.role.body
        for counter, stmt in _counters(body).items():
            most = _most(body, counter, role, tiles, ledger, known)
            good = ledger.holds(known, algebra.lt(most, _WRAPS))
            what = f"`{counter.name}` counts below 2^32: where it wraps, {uneven.stages} slots lose their order"
            reason = (
                "a counter of uses may pass 32 bits, and its slots are no power of two: "
                f"`assume` that {show(most)} is below 2^32"
            )
            goal = algebra.TRUE if good else algebra.FALSE
            yield Obligation("I28", what, stmt, goal, known, unknown="" if good else reason)


def _counters(body: tuple[Stmt, ...]) -> dict[Buffer, Stmt]:
    """Each counter that the body advances, and where it does so first."""
    found: dict[Buffer, Stmt] = {}
    for stmt in walk(body):
        if isinstance(stmt, Advance):
            found.setdefault(stmt.counter, stmt)
    return found


def _most(
    body: tuple[Stmt, ...], counter: Buffer, role: Parsed, tiles: Tiles, ledger: Ledger, known: tuple[Cond, ...]
) -> Index:
    """What the body adds to a counter at most; where a loop's bounds speak of another's number, for any such number."""
    total = algebra.const(0)
    for stmt in body:
        match stmt:
            case Advance(counter=own, by=by) if own is counter:
                total = algebra.add(total, algebra.maximum(0, by))
            case If(then=then, otherwise=otherwise):
                one, other = (_most(part, counter, role, tiles, ledger, known) for part in (then, otherwise))
                total = algebra.add(total, one, other)
            case For(body=inner):
                each = _most(inner, counter, role, tiles, ledger, known)
                total = algebra.add(total, algebra.mul(_trips(stmt, role, tiles, ledger, known), each))
            case _:
                inside = (_most(part, counter, role, tiles, ledger, known) for part in bodies(stmt))
                total = algebra.add(total, *inside)
    return total


def _trips(loop: For, role: Parsed, tiles: Tiles, ledger: Ledger, known: tuple[Cond, ...]) -> Index:
    """How often a loop runs; of a loop over tiles, no more often than there are tiles in all."""
    times = trips(loop)
    over = role.laps.tiles is not None and loop.symbol == role.laps.tiles.symbol
    most = algebra.maximum(0, tiles.total)
    return most if over and ledger.holds(known, algebra.le(times, most)) else times
