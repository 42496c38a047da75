"""Random edits of copies and buffers: views, atoms, swizzles and register layouts; some leave the kernel correct."""

from __future__ import annotations

from random import Random
from typing import Any

from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, const, coord, floordiv, mod, mul, sub, sym
from argus.core.atoms import gfx942 as isa
from argus.core.index import Index
from argus.core.ir import (
    Alloc,
    Buffer,
    Copy,
    Kernel,
    Map,
    Mma,
    Staged,
    View,
    walk,
)
from argus.core.ir.surgery import replace_objects
from argus.core.layout import TV, Swizzle
from argus.core.tiling import spread
from argus.core.walk import substitute, symbols
from property_tests.programs import Mutant, exchanged, one_of, with_edit


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
    """Permute the coordinates of a view: swapped, rotated, xored or reversed."""
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
    """Replace a loop variable or block coordinate in one view."""
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
    """Select the stage of a shared buffer by another expression, in one copy or in all."""
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
    """Let one statement use another buffer of the same kind."""
    stmt = one_of(kernel, random, Copy, Mma)
    if stmt is None:
        return None
    if isinstance(stmt, Mma):
        return with_edit(kernel, stmt, (evolve(stmt, a=stmt.b, b=stmt.a),), "operands swapped")
    name = random.choice(["source", "target"])
    view: View = getattr(stmt, name)
    candidates = [
        b
        for b in (*kernel.parameters, *(s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)))
        if b is not view.buffer and b.space == view.buffer.space and b.dtype == view.buffer.dtype
        if len(b.shape) == len(view.buffer.shape)
        if b.space != "register" or b.layout == view.buffer.layout
        if b.space == "global" or b.shape == view.buffer.shape
    ]
    if not candidates:
        return None
    buffer = random.choice(candidates)
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
    """Change the thread-value layout of a register tile that only copies access."""
    fixed = {id(v.buffer) for s in walk(kernel.body) if isinstance(s, Mma) for v in (s.target, s.a, s.b)}
    fixed |= {id(s.target.buffer) for s in walk(kernel.body) if isinstance(s, Map)}
    held = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "register"]
    free = [buffer for buffer in held if id(buffer) not in fixed]
    if not free:
        return None
    buffer = random.choice(free)
    layout = buffer.layout
    assert isinstance(layout, TV)
    if len(layout.tile) != 2:
        return None
    try:
        other = spread((layout.tile[0], layout.tile[1]), layout.threads.size(), random.choice([2, 4, 8, 16]))
    except ValueError:
        return None
    exchange: dict[int, Any] = {id(buffer): evolve(buffer, layout=other)}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy) and buffer in (stmt.source.buffer, stmt.target.buffer):
            exchange[id(stmt.by)] = other
    shared_layouts = {id(s.by) for s in walk(kernel.body) if isinstance(s, Copy)}
    shared_layouts -= {id(s.by) for s in walk(kernel.body) if isinstance(s, Copy) and buffer in _buffers(s)}
    if shared_layouts & exchange.keys():
        return _with_own_layout(kernel, buffer, other)
    return exchanged(kernel, exchange, f"{buffer.name} held as {other.threads} ; {other.values}")


def _buffers(stmt: Copy) -> tuple[Buffer, Buffer]:
    return stmt.source.buffer, stmt.target.buffer


def _with_own_layout(kernel: Kernel, buffer: Buffer, layout: TV) -> Mutant:
    """As `change_layout`, if other copies share the old layout object."""
    made = evolve(buffer, layout=layout)
    exchange: dict[int, Any] = {id(buffer): made}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy) and buffer in _buffers(stmt):
            exchange[id(stmt)] = evolve(replace_objects(stmt, {id(buffer): made}), by=layout)
    return exchanged(kernel, exchange, f"{buffer.name} held as {layout.threads} ; {layout.values}")
