"""Edits of a traced kernel that may or may not break it: each draws where it applies and what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from attrs import evolve

from argus.core import algebra
from argus.core.algebra import TRUE, add, const, coord, floordiv, mod, mul, sub, sym
from argus.core.atoms import gfx942 as isa
from argus.core.index import Index, Symbol
from argus.core.ir import (
    Alloc,
    Assert,
    Assume,
    Buffer,
    Copy,
    Covers,
    Fence,
    For,
    If,
    Kernel,
    Map,
    Mma,
    Staged,
    Sync,
    Tag,
    View,
    Wait,
    WrittenOnce,
    bodies,
    walk,
)
from argus.core.ir.rewrite import in_stmt
from argus.core.ir.surgery import fresh_copies, replace_objects, replace_stmt
from argus.core.layout import TV, Layout, Swizzle
from argus.core.tiling import spread
from argus.core.walk import substitute, symbols
from property_tests.programs import Mutant, exchanged, one_of, with_edit

Edit = Callable[[Kernel, Random], Mutant | None]


def mutate(kernel: Kernel, random: Random, edits: int = 1, choices: Sequence[Edit] = ()) -> Mutant | None:
    """A kernel after some edits; None if those drawn do not apply. choices: of edits, by default those of this file."""
    mutant = Mutant(kernel, ())
    for _ in range(edits):
        found = random.choice(choices or EDITS)(mutant.kernel, random)
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
    """A statement changes places with one a few lines on in the same body."""
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
    """A statement in a loop runs in some iterations only."""
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


def _side(stmt: Copy, random: Random) -> tuple[str, View]:
    sides = [name for name in ("source", "target") if getattr(stmt, name).buffer.space != "register"]
    name = random.choice(sides or ["source"])
    return name, getattr(stmt, name)


def shift_view(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Copy)
    if stmt is None:
        return None
    name, view = _side(stmt, random)
    axis, by = random.randrange(len(view.at)), random.choice([-1, 1, 8, 16, 32, 64])
    at = (*view.at[:axis], add(view.at[axis], by), *view.at[axis + 1 :])
    return with_edit(kernel, stmt, (evolve(stmt, **{name: evolve(view, at=at)}),), f"{name} axis {axis} + {by}")


def reorder_view(kernel: Kernel, random: Random) -> Mutant | None:
    """The view's own coordinates take other places: swapped, rotated, xored or reversed."""
    stmt = one_of(kernel, random, Copy)
    if stmt is None or len(stmt.by.tile) != 2:
        return None
    name, view = _side(stmt, random)
    rows, columns = stmt.by.tile
    r, c = coord(0), coord(1)
    other = random.choice(
        [
            (c, r) if rows == columns else (sub(rows - 1, r), c),
            (r, sub(columns - 1, c)),
            (mod(add(r, 1), rows), c),
            (r, mod(add(c, 8), columns)),
            (r, algebra.bit_xor(c, mul(mod(r, 2), 8))),
            (algebra.bit_xor(r, 1), c),
            (mul(floordiv(r, 2), 2), c),
        ]
    )
    at = tuple(substitute(expression, {}, other) for expression in view.at)
    return with_edit(kernel, stmt, (evolve(stmt, **{name: evolve(view, at=at)}),), f"{name} reordered")


def change_symbol(kernel: Kernel, random: Random) -> Mutant | None:
    """A loop variable or block coordinate of one view is another number."""
    stmt = one_of(kernel, random, Copy)
    if stmt is None:
        return None
    name, view = _side(stmt, random)
    known = sorted({s for at in view.at for s in symbols(at)}, key=lambda s: s.name)
    if not known:
        return None
    symbol = random.choice(known)
    x = sym(symbol)
    others = [s for s in known if s != symbol]
    choices: list[Index] = [add(x, 1), add(x, -1), const(0), floordiv(x, 2), mul(x, 2), *(sym(s) for s in others)]
    other = random.choice(choices)
    at = tuple(substitute(expression, {symbol: other}) for expression in view.at)
    edit = f"{name} with {symbol.name} = {algebra.sub(other, 0)!r:.60}"
    return with_edit(kernel, stmt, (evolve(stmt, **{name: evolve(view, at=at)}),), edit)


def change_slot(kernel: Kernel, random: Random) -> Mutant | None:
    """The stage of a shared buffer is chosen by another function, on one side or on all."""
    found = [
        (s, name)
        for s in walk(kernel.body)
        if isinstance(s, Copy)
        for name in ("source", "target")
        if getattr(s, name).buffer.space == "shared" and len(getattr(s, name).buffer.shape) == 3
    ]
    if not found:
        return None
    stmt, name = random.choice(found)
    view: View = getattr(stmt, name)
    slot = view.at[0]
    other = random.choice([const(0), const(1), sub(1, slot), mod(add(slot, 1), 2), add(slot, 1), mod(slot, 2)])
    if random.random() < 0.5:
        changed = evolve(stmt, **{name: evolve(view, at=(other, *view.at[1:]))})
        return with_edit(kernel, stmt, (changed,), f"{name} slot")
    exchange: dict[int, Any] = {}
    for each, side in found:
        seen: View = getattr(each, side)
        if seen.buffer is view.buffer:
            exchange[id(seen)] = evolve(seen, at=(other, *seen.at[1:]) if other is const(0) else seen.at)
    return exchanged(kernel, exchange, f"every slot of {view.buffer.name} is 0") if other is const(0) else None


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
    body = tuple(in_stmt(inner, {stmt.symbol: sym(fresh)}) for inner in stmt.body)
    changed = evolve(stmt, symbol=fresh, start=start, stop=stop, body=body)
    return with_edit(kernel, stmt, (changed,), f"{which} + {by}")


def change_edge(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Copy)
    if stmt is None or "global" not in (stmt.source.buffer.space, stmt.target.buffer.space):
        return None
    edge = random.choice([None, 0.0, 1.0])
    return None if edge == stmt.edge else with_edit(kernel, stmt, (evolve(stmt, edge=edge),), f"edge {edge}")


def change_atom(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, Copy)
    if stmt is None:
        return None
    spaces = (stmt.source.buffer.space, stmt.target.buffer.space)
    same = [
        atom
        for atom in isa.ATOMS
        if atom.mnk is None and (atom.operands["source"].space, atom.operands["target"].space) == spaces
    ]
    atom = random.choice(same)
    return None if atom is stmt.atom else with_edit(kernel, stmt, (evolve(stmt, atom=atom),), f"{stmt.atom} -> {atom}")


def swap_buffers(kernel: Kernel, random: Random) -> Mutant | None:
    """One statement uses another buffer of the same kind."""
    stmt = one_of(kernel, random, Copy, Mma)
    if stmt is None:
        return None
    if isinstance(stmt, Mma):
        return with_edit(kernel, stmt, (evolve(stmt, a=stmt.b, b=stmt.a),), "operands swapped")
    name = random.choice(["source", "target"])
    view: View = getattr(stmt, name)
    alike = [
        b
        for b in (*kernel.parameters, *(s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)))
        if b is not view.buffer and b.space == view.buffer.space and b.dtype == view.buffer.dtype
        if len(b.shape) == len(view.buffer.shape)
        if b.space != "register" or b.layout == view.buffer.layout
        if b.space == "global" or b.shape == view.buffer.shape
    ]
    if not alike:
        return None
    buffer = random.choice(alike)
    text = f"{name} {view.buffer.name} -> {buffer.name}"
    return with_edit(kernel, stmt, (evolve(stmt, **{name: evolve(view, buffer=buffer)}),), text)


def change_swizzle(kernel: Kernel, random: Random) -> Mutant | None:
    shared = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "shared"]
    if not shared:
        return None
    buffer = random.choice(shared)
    assert isinstance(buffer.layout, Staged)
    swizzles = [None, *(Swizzle(bits, base, shift) for bits in (1, 2, 3) for base in (2, 3, 4) for shift in (3, 4))]
    size = buffer.layout.layout.size()
    swizzle = random.choice([s for s in swizzles if s is None or size % s.period == 0])
    other = evolve(buffer, layout=Staged(buffer.layout.layout, swizzle), banks=None)
    return exchanged(kernel, {id(buffer): other}, f"{buffer.name} under {swizzle}")


def change_layout(kernel: Kernel, random: Random) -> Mutant | None:
    """A register tile that only copies touch is held by other threads."""
    fixed = {id(v.buffer) for s in walk(kernel.body) if isinstance(s, Mma) for v in (s.target, s.a, s.b)}
    fixed |= {id(s.target.buffer) for s in walk(kernel.body) if isinstance(s, Map)}
    held = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "register"]
    free = [buffer for buffer in held if id(buffer) not in fixed]
    if not free:
        return None
    buffer = random.choice(free)
    layout = buffer.layout
    assert isinstance(layout, TV)
    try:
        other = spread((layout.tile[0], layout.tile[1]), layout.threads.size(), random.choice([2, 4, 8, 16]))
    except ValueError:
        return None
    exchange: dict[int, Any] = {id(buffer): evolve(buffer, layout=other)}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy) and buffer in (stmt.source.buffer, stmt.target.buffer):
            exchange[id(stmt.by)] = other
    kept = {id(s.by) for s in walk(kernel.body) if isinstance(s, Copy)}
    kept -= {id(s.by) for s in walk(kernel.body) if isinstance(s, Copy) and buffer in _buffers(s)}
    if kept & exchange.keys():
        return _detached(kernel, buffer, other)
    return exchanged(kernel, exchange, f"{buffer.name} held as {other.threads} ; {other.values}")


def _buffers(stmt: Copy) -> tuple[Buffer, Buffer]:
    return stmt.source.buffer, stmt.target.buffer


def _detached(kernel: Kernel, buffer: Buffer, layout: TV) -> Mutant:
    """As `change_layout`, where other copies share the old layout object."""
    made = evolve(buffer, layout=layout)
    exchange: dict[int, Any] = {id(buffer): made}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy) and buffer in _buffers(stmt):
            exchange[id(stmt)] = evolve(replace_objects(stmt, {id(buffer): made}), by=layout)
    return exchanged(kernel, exchange, f"{buffer.name} held as {layout.threads} ; {layout.values}")


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
