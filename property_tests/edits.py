"""Random edits of a traced kernel at a random place; some leave the kernel correct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from attrs import evolve

from argus.core import algebra
from argus.core.algebra import TRUE, add, mod, sub, sym
from argus.core.index import Symbol
from argus.core.ir import (
    Alloc,
    Assert,
    Assume,
    Copy,
    Covers,
    Fence,
    For,
    If,
    Kernel,
    Map,
    Mma,
    Sync,
    Tag,
    Wait,
    WrittenOnce,
    bodies,
    walk,
)
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.ir.surgery import fresh_copies, replace_stmt
from argus.core.layout import Layout
from argus.core.walk import substitute, symbols
from property_tests.copy_edits import (
    change_atom,
    change_edge,
    change_layout,
    change_slot,
    change_swizzle,
    change_symbol,
    reorder_view,
    shift_view,
    swap_buffers,
)
from property_tests.programs import Mutant, one_of, with_edit

Edit = Callable[[Kernel, Random], Mutant | None]


def mutate(kernel: Kernel, random: Random, edits: int = 1, choices: Sequence[Edit] = ()) -> Mutant | None:
    """A kernel after some edits; None if a drawn edit does not apply. choices: the edits, by default EDITS."""
    mutant = Mutant(kernel, ())
    for _ in range(edits):
        try:
            found = random.choice(choices or EDITS)(mutant.kernel, random)
        except ZeroDivisionError:  # a literal 0 in the place of a divisor is no index
            return None
        if found is None:
            return None
        mutant = Mutant(found.kernel, (*mutant.edits, *found.edits), mutant.claims and found.claims)
    return mutant


def drop(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Sync, Wait, Copy, Mma, Map, If, Fence)
    return None if stmt is None else with_edit(kernel, stmt, (), "dropped")


def drop_synchronisation(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Sync, Wait)
    return None if stmt is None else with_edit(kernel, stmt, (), "dropped")


def drop_assumption(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Assume)
    return None if stmt is None else with_edit(kernel, stmt, (), "dropped")


def duplicate(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Sync, Wait, Copy, Mma, Map, If)
    if stmt is None:
        return None
    return with_edit(kernel, stmt, (stmt, *fresh_copies((stmt,))), "duplicated")


def weaken_wait(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Wait)
    if stmt is None:
        return None
    pending = random.randint(1, 5)
    return with_edit(kernel, stmt, (evolve(stmt, pending=stmt.pending + pending),), f"{pending} more pending")


def wait_elsewhere(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Wait)
    if stmt is None:
        return None
    return with_edit(kernel, stmt, (evolve(stmt, queue="lds" if stmt.queue == "vmem" else "vmem"),), "other queue")


def move(kernel: Kernel, random: Random) -> Mutant | None:
    """Move a statement by up to three places within its body."""
    lists = [list(kernel.prologue)] + [list(part) for stmt in walk(kernel.body) for part in bodies(stmt)]
    body = random.choice([part for part in lists if len(part) > 1] or [[]])
    movable = [i for i, stmt in enumerate(body) if not isinstance(stmt, Alloc | Tag | Assume)]
    if not movable:
        return None
    i = random.choice(movable)
    j = i + random.choice([-3, -2, -1, 1, 2, 3])
    if not 0 <= j < len(body) or isinstance(body[j], Alloc | Tag | Assume):
        return None
    stmt, target = body[i], body[j]
    taken = replace_stmt(kernel.prologue, stmt, ())
    put = (target, stmt) if j > i else (stmt, target)
    text = f"moved by {j - i}: {type(stmt).__name__} at {stmt.span}"
    return Mutant(evolve(kernel, prologue=replace_stmt(taken, target, put)), (text,))


def unguard(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, If)
    return None if stmt is None else with_edit(kernel, stmt, stmt.then, "unguarded")


def change_guard(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, If)
    if stmt is None:
        return None
    moving = sorted((s for s in symbols(stmt.cond) if s.kind in ("loop", "size")), key=lambda s: s.name)
    if not moving or random.random() < 0.2:
        return with_edit(kernel, stmt, (evolve(stmt, cond=algebra.negate(stmt.cond)),), "negated guard")
    symbol, by = random.choice(moving), random.choice([-2, -1, 1, 2, 8, 32])
    cond = substitute(stmt.cond, {symbol: add(sym(symbol), by)})
    return with_edit(kernel, stmt, (evolve(stmt, cond=cond),), f"guard with {symbol.name} + {by}")


def guard(kernel: Kernel, random: Random) -> Mutant | None:
    """Execute a statement of a loop in some iterations only."""
    loops = [stmt for stmt in walk(kernel.body) if isinstance(stmt, For)]
    if not loops:
        return None
    loop = random.choice(loops)
    stmt = random.choice(loop.body)
    k = sym(loop.symbol)
    cond = random.choice(
        [algebra.lt(0, k), algebra.lt(add(k, 1), loop.stop), algebra.eq(mod(k, 2), 0), algebra.lt(k, 3)]
    )
    return with_edit(kernel, stmt, (If(cond, (stmt,), span=stmt.span),), "guarded")


def change_init(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Mma)
    loops = [loop for loop in walk(kernel.body) if isinstance(loop, For) and stmt in set(walk(loop.body))]
    if stmt is None:
        return None
    choices = [TRUE, algebra.negate(TRUE)]
    for loop in loops:
        k = sym(loop.symbol)
        choices += [algebra.eq(k, 0), algebra.eq(k, 1), algebra.le(k, 1), algebra.lt(k, sub(loop.stop, 1))]
        choices += [algebra.eq(mod(k, 2), 0), algebra.eq(k, sub(loop.stop, 1))]
    cond = random.choice(choices)
    return None if cond is stmt.init else with_edit(kernel, stmt, (evolve(stmt, init=cond),), "other init")


def change_loop(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, For)
    if stmt is None:
        return None
    by, which = random.choice([-2, -1, 1, 2]), random.choice(["start", "stop"])
    start = add(stmt.start, by) if which == "start" else stmt.start
    stop = add(stmt.stop, by) if which == "stop" else stmt.stop
    ends = (start.range[0], stop.range[1]) if stmt.step > 0 else (stop.range[0], start.range[1])
    inside = (0, -1) if stmt.step > 0 else (1, 0)
    low, high = (None if end is None else end + shift for end, shift in zip(ends, inside, strict=True))
    fresh = Symbol(stmt.symbol.name, "loop", low, high)
    body = tuple(rewrite_stmt(inner, {stmt.symbol: sym(fresh)}) for inner in stmt.body)
    changed = evolve(stmt, symbol=fresh, start=start, stop=stop, body=body)
    return with_edit(kernel, stmt, (changed,), f"{which} + {by}")


def change_grid(kernel: Kernel, random: Random) -> Mutant | None:
    if not kernel.grid:
        return None
    axis, by = random.randrange(len(kernel.grid)), random.choice([-1, 1])
    grid = (*kernel.grid[:axis], add(kernel.grid[axis], by), *kernel.grid[axis + 1 :])
    text = f"grid axis {axis} + {by}"
    if len(grid) == 2 and random.random() < 0.4:
        grid, text = (kernel.grid[1], kernel.grid[0]), "grid swapped"
    if any(symbol.high is not None for symbol in kernel.blocks):
        return None
    return Mutant(evolve(kernel, grid=grid), (text,))


def change_tiling(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Mma)
    if stmt is None:
        return None
    tiling = stmt.tiling
    role = random.choice(["a", "b"])
    layout: Layout = getattr(tiling, role)
    if random.random() < 0.5 and not isinstance(layout.shape, int) and not isinstance(layout.stride, int):
        (rows, inner), (first, steps) = layout.shape, layout.stride
        if isinstance(inner, int) or isinstance(steps, int):
            return None
        other = Layout((rows, inner[::-1]), (first, steps[::-1]))
    else:
        other = Layout(layout.size(), int(layout.table().min()))
    if other.table().tolist() == layout.table().tolist():
        return None
    return with_edit(kernel, stmt, (evolve(stmt, tiling=evolve(tiling, **{role: other})),), f"registers of {role}")


def change_claim(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Assert, Tag)
    if isinstance(stmt, Tag):
        shift = random.choice([1, -1])
        axis = random.randrange(len(stmt.names))
        name, old = stmt.names[axis]
        names = (*stmt.names[:axis], (name, add(old, shift)), *stmt.names[axis + 1 :])
        return with_edit(kernel, stmt, (evolve(stmt, names=names),), f"tag {name} + {shift}", claims=False)
    if stmt is None:
        return None
    match stmt.claim:
        case Covers(of=of, low=low, high=high):
            by = random.choice([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1)])
            claim = Covers(of, add(low, by[0]), add(high, by[1]))
        case WrittenOnce(view=view, record=record):
            claim = WrittenOnce(view, tuple((name, add(old, 1)) for name, old in record[:1]) + record[1:])
        case _:
            return None
    return with_edit(kernel, stmt, (evolve(stmt, claim=claim),), "claim", claims=False)


EDITS: tuple[Edit, ...] = (
    drop,
    drop_synchronisation,
    drop_assumption,
    duplicate,
    weaken_wait,
    wait_elsewhere,
    move,
    move,
    unguard,
    change_guard,
    guard,
    change_init,
    shift_view,
    reorder_view,
    change_symbol,
    change_slot,
    change_loop,
    change_edge,
    change_atom,
    swap_buffers,
    change_swizzle,
    change_layout,
    change_grid,
    change_tiling,
    change_claim,
)
