"""What a launch fetches into the second-level cache while the launch ahead of it ends: the boxes of its first slots.

A prefetch by the copy engine is a hint: nothing is read that the program could tell, and what the launch ahead stores
later is stored in that cache [PTX ISA, cp.async.bulk.prefetch.tensor]. It stands ahead of the wait for that launch, in
a thread that has nothing else to do there.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.index import Held, Index, Read
from argus.core.ir import Copy, For, Kernel, Role, View, static
from argus.core.walk import mentions, symbols
from argus.emit.cuda.context import Context
from argus.emit.cuda.plan import moves_boxes, start


@frozen
class _Loads:
    """Loads of boxes of one slot. tiles: the loop over tiles around that over slots, if there is one."""

    tiles: For | None
    slots: For
    copies: tuple[Copy, ...]


def lines(kernel: Kernel, context: Context) -> Iterator[str]:
    """A branch of one thread a role that does nothing but load."""
    block = context.names.symbols[kernel.thread]
    for role in () if kernel.roles is None else kernel.roles.roles:
        found = _loads(kernel, role) if role.agent == 1 else None
        if found is None:
            continue
        idle = (role.first_warp + (1 if role.warps > 1 else 0)) * role.unit
        yield f"if ({block} == {idle}) {{  // {role.name}, ahead"
        yield from (f"    {line}" for line in _fetched(found, context))
        yield "}"


def _fetched(found: _Loads, context: Context) -> Iterator[str]:
    slots, inner = found.slots, context.names.symbols[found.slots.symbol]
    if found.tiles is not None:
        own, text = context.names.symbols[found.tiles.symbol], context.text
        yield f"const int {own} = {text(found.tiles.start)};"
        yield f"if ({own} < {text(found.tiles.stop)})"
    first, last = context.text(slots.start), context.text(slots.stop)
    most = min(_slots(copy) for copy in found.copies)
    yield "#pragma unroll 1"
    yield f"for (int {inner} = {first}; {inner} < {last} && {inner} < {first} + {most}; ++{inner}) {{"
    for copy in found.copies:
        at = ", ".join(context.text(each) for each in reversed(start(copy.source, copy.span)))
        yield f"    prefetch_box_{len(copy.source.at)}d(&{context.plan.map_of(copy).name}, {at});"
    yield "}"


def _slots(copy: Copy) -> int:
    assert isinstance(copy.signal, View)
    return static(copy.signal.buffer.shape[0])


def _loads(kernel: Kernel, role: Role) -> _Loads | None:
    """The loads of the role's loop over slots, of its first tile; None where there is more to it."""
    outer = [stmt for stmt in role.body if isinstance(stmt, For)]
    if len(outer) != 1:
        return None
    inner = [stmt for stmt in outer[0].body if isinstance(stmt, For)]
    tiles, slots = (outer[0], inner[0]) if len(inner) == 1 else (None, outer[0])
    copies = tuple(stmt for stmt in slots.body if isinstance(stmt, Copy) and _is_load(stmt))
    loops = (slots,) if tiles is None else (tiles, slots)
    if not copies or any(loop.step != 1 for loop in loops):
        return None
    known = {*kernel.sizes, *kernel.blocks, *(loop.symbol for loop in loops)}
    places: list[Index] = [at for copy in copies for at in copy.source.at]
    places += [end for loop in loops for end in (loop.start, loop.stop)]
    plain = all(symbols(each) <= known and not mentions(each, (Read, Held)) for each in places)
    return _Loads(tiles, slots, copies) if plain else None


def _is_load(copy: Copy) -> bool:
    return moves_boxes(copy) and copy.signal is not None and copy.through is None


def helpers(kernel: Kernel) -> Iterator[str]:
    """The text of one function for each number of axes of the tensors whose boxes are fetched ahead."""
    roles = () if kernel.roles is None else kernel.roles.roles
    found = [each for role in roles if role.agent == 1 and (each := _loads(kernel, role)) is not None]
    for axes in sorted({len(copy.source.at) for each in found for copy in each.copies}):
        names = "xyzuv"[:axes]
        given = ", ".join(f"int {name}" for name in names)
        at = ", ".join(f"%{1 + place}" for place in range(axes))
        operands = ", ".join(f'"r"({name})' for name in names)
        yield f"""HELPER void prefetch_box_{axes}d(const TensorMap* map, {given}) {{
    asm volatile("cp.async.bulk.prefetch.tensor.{axes}d.L2.global.tile [%0, {{{at}}}];" :: "l"((u64)map), {operands});
}}
"""
