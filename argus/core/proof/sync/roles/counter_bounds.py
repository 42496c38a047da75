"""Bounds of use counters (I28): at the wrap at 2^32, `use % stages` is continuous only for a power of two of stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.index_text import show
from argus.core.ir import Advance, Assume, Buffer, For, If, Kernel, Stmt, bodies, trips, walk
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import ProofContext
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage
from argus.core.proof.sync.roles.sequential import TileEnumeration

_WRAPS = 1 << 32


def counter_bound_obligations(
    kernel: Kernel,
    roles: Sequence[ParsedRole],
    rings: Sequence[RingStorage],
    tiles: TileEnumeration | None,
    proof: ProofContext,
) -> Iterator[Obligation]:
    """Each counter that runs across tiles stays below 2^32, if some ring's number of stages is not a power of two."""
    uneven = next((ring for ring in rings if ring.stages & (ring.stages - 1)), None)
    if uneven is None or tiles is None:
        return
    pairs = zip(kernel.blocks, kernel.grid, strict=True)
    assumed = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    known = (*assumed, *(algebra.lt(algebra.sym(block), count) for block, count in pairs))
    for role in roles:
        body = role.role.body
        for counter, stmt in _counters(body).items():
            most = _upper_bound(body, counter, role, tiles, proof, known)
            good = proof.holds(known, algebra.lt(most, _WRAPS))
            what = f"`{counter.name}` stays below 2^32, at which {uneven.stages} stages lose their order"
            reason = (
                "a counter of uses may exceed 32 bits, and its number of stages is not a power of two: "
                f"`assume` that {show(most)} is below 2^32"
            )
            goal = algebra.TRUE if good else algebra.FALSE
            yield Obligation("I28", what, stmt, goal, known, unknown="" if good else reason)


def _counters(body: tuple[Stmt, ...]) -> dict[Buffer, Stmt]:
    """Each counter that the body advances, with the first statement that does."""
    found: dict[Buffer, Stmt] = {}
    for stmt in walk(body):
        if isinstance(stmt, Advance):
            found.setdefault(stmt.counter, stmt)
    return found


def _upper_bound(
    body: tuple[Stmt, ...],
    counter: Buffer,
    role: ParsedRole,
    tiles: TileEnumeration,
    proof: ProofContext,
    known: tuple[Cond, ...],
) -> Index:
    """An upper bound on what the body adds to a counter, valid for any value of enclosing loop variables."""
    total = algebra.const(0)
    for stmt in body:
        match stmt:
            case Advance(counter=own, by=by) if own is counter:
                total = algebra.add(total, algebra.maximum(0, by))
            case If(then=then, otherwise=otherwise):
                one, other = (_upper_bound(part, counter, role, tiles, proof, known) for part in (then, otherwise))
                total = algebra.add(total, one, other)
            case For(body=inner):
                each = _upper_bound(inner, counter, role, tiles, proof, known)
                total = algebra.add(total, algebra.mul(_trips(stmt, role, tiles, proof, known), each))
            case _:
                inside = (_upper_bound(part, counter, role, tiles, proof, known) for part in bodies(stmt))
                total = algebra.add(total, *inside)
    return total


def _trips(loop: For, role: ParsedRole, tiles: TileEnumeration, proof: ProofContext, known: tuple[Cond, ...]) -> Index:
    """The trip count of a loop; for the loop over tiles, at most the number of all tiles."""
    times = trips(loop)
    over = role.tile_loop.tiles is not None and loop.symbol == role.tile_loop.tiles.symbol
    most = algebra.maximum(0, tiles.total)
    return most if over and proof.holds(known, algebra.le(times, most)) else times
