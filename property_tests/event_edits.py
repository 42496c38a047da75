"""Random edits of synchronisation between agents: barriers, phases, waits, fences, counters."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import cast

from attrs import evolve

from argus.core.algebra import add, const, mod, sym
from argus.core.index import Const, Index, Node, Sym, Symbol
from argus.core.ir import Advance, Alloc, Arrive, Await, Copy, Fence, For, Kernel, Let, Stmt, Sync, View, Wait, walk
from argus.core.walk import fold, rebuild
from property_tests.edits import Edit
from property_tests.programs import Mutant, exchanged, one_of, with_edit


def enclosing(kernel: Kernel, stmt: Stmt) -> list[Symbol]:
    """The loop variables, agent numbers and counter values in scope at a statement."""
    roles = () if kernel.roles is None else kernel.roles.roles
    found: list[Symbol] = []
    for role in roles:
        every = list(walk(role.body))
        if stmt in every:
            found += [role.number] if role.agents > 1 else []
            found += [s.symbol for s in every if isinstance(s, For) and stmt in set(walk(s.body))]
            found += [s.symbol for s in every[: every.index(stmt)] if isinstance(s, Let)]
    return found


def tweaked(expression: Index, pool: list[Symbol], random: Random) -> Index:
    """The expression with one of its constants or symbols changed."""
    leaves: list[Node] = []

    def note(node: Node, parts: Sequence[Node]) -> Node:
        if isinstance(node, Const | Sym):
            leaves.append(node)
        return rebuild(node, parts)

    fold(expression, note)
    if not leaves or random.random() < 0.3:
        return add(expression, random.choice([-2, -1, 1, 2]))
    chosen = random.choice(leaves)
    assert isinstance(chosen, Const | Sym)
    other = add(chosen, random.choice([-1, 1, 2]))
    if pool and random.random() < 0.5:
        other = sym(random.choice(pool))
    try:
        return cast("Index", fold(expression, lambda node, parts: other if node is chosen else rebuild(node, parts)))
    except ZeroDivisionError:
        return add(expression, 1)


def change_phase(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Await)
    if stmt is None:
        return None
    other = tweaked(stmt.phase, enclosing(kernel, stmt), random)
    return with_edit(kernel, stmt, (evolve(stmt, phase=other),), "other phase")


def change_event(kernel: Kernel, random: Random) -> Mutant | None:
    """Use a barrier of another slot, or another barrier."""
    stmt = one_of(kernel, random, Await, Arrive, Copy)
    name = "signal" if isinstance(stmt, Copy) else "event"
    if stmt is None or getattr(stmt, name) is None:
        return None
    event: View = getattr(stmt, name)
    others = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "barrier"]
    if random.random() < 0.3:
        changed = evolve(event, buffer=random.choice(others))
    else:
        extent = event.buffer.shape[0]
        moved = tweaked(event.at[0], enclosing(kernel, stmt), random)
        changed = evolve(event, at=(random.choice([moved, mod(add(event.at[0], 1), extent), mod(moved, extent)]),))
    return with_edit(kernel, stmt, (evolve(stmt, **{name: changed}),), f"other {name}")


def change_count(kernel: Kernel, random: Random) -> Mutant | None:
    """Change the number of arrivals, of an arrival or of a barrier."""
    stmt = one_of(kernel, random, Arrive, Alloc)
    if stmt is None or stmt.count is None:
        return None
    count = max(1, stmt.count + random.choice([-1, 1, 2, 127]))
    if count == stmt.count:
        return None
    return with_edit(kernel, stmt, (evolve(stmt, count=count),), f"{count} arrivals")


def change_bytes(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Arrive)
    if stmt is None:
        return None
    by = random.choice([-16, 16, 512, -512, 2048, -2048, 4096])
    other = random.choice([add(stmt.bytes, by), const(0)])
    return with_edit(kernel, stmt, (evolve(stmt, bytes=other),), f"bytes + {by}")


def change_wait(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Wait)
    if stmt is None:
        return None
    choices = [evolve(stmt, pending=max(0, stmt.pending + by)) for by in (-1, 1, 2)]
    choices.append(evolve(stmt, queue="bulk" if stmt.queue == "wgmma" else "wgmma", of="all"))
    if stmt.queue == "bulk":
        choices.append(evolve(stmt, of="all" if stmt.of == "reads" else "reads"))
    return with_edit(kernel, stmt, (random.choice(choices),), "other wait")


def change_meeting(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Sync)
    if stmt is None:
        return None
    choices = [
        evolve(stmt, threads=None),
        evolve(stmt, threads=2 * (stmt.threads or 128)),
        evolve(stmt, barrier="other"),
        evolve(stmt, barrier="cta"),
        evolve(stmt, how="arrive"),
    ]
    return with_edit(kernel, stmt, (random.choice(choices),), "other meeting")


def change_fence(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Fence)
    if stmt is None:
        return None
    kind = random.choice(["async_proxy", "wgmma", "barrier_init"])
    return with_edit(kernel, stmt, (evolve(stmt, kind=kind),), f"a fence of {kind}")


def change_advance(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Advance)
    if stmt is None:
        return None
    by = tweaked(stmt.by, enclosing(kernel, stmt), random)
    return with_edit(kernel, stmt, (evolve(stmt, by=by),), "advanced by another number")


def change_stages(kernel: Kernel, random: Random) -> Mutant | None:
    """Give a barrier or a buffer more slots than its uses select from."""
    found = [
        s.buffer
        for s in walk(kernel.body)
        if isinstance(s, Alloc) and s.buffer.space == "barrier" and isinstance(s.buffer.shape[0], Const)
    ]
    buffer = random.choice(found)
    first = buffer.shape[0]
    assert isinstance(first, Const)
    other = evolve(buffer, shape=(const(max(1, first.value + random.choice([-1, 1]))),))
    return exchanged(kernel, {id(buffer): other}, f"{buffer.name} of other stages")


EVENT_EDITS: tuple[Edit, ...] = (
    change_phase,
    change_event,
    change_count,
    change_bytes,
    change_wait,
    change_wait,
    change_meeting,
    change_fence,
    change_advance,
    change_stages,
)
