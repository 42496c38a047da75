"""Buffers and views of a kernel that came as data: what its constructors see to when it is traced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from argus.core import algebra
from argus.core.algebra import TRUE
from argus.core.dtype import i32
from argus.core.index import Const, Coord, Index, Read, Sym
from argus.core.ir import Advance, Alloc, Buffer, Get, Kernel, Role, Staged, Strided, View, walk
from argus.core.layout import TV, Layout
from argus.core.walk import topological


def refused_storage(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Why tracing could not have made these buffers and views of a kernel."""
    found = [each for each in things if isinstance(each, Buffer)]
    names = [buffer.name for buffer in found]
    if len(set(names)) != len(names):
        yield "has two buffers of one name"
    agents = _agents(kernel)
    made = [id(stmt.buffer) for stmt in walk(kernel.body) if isinstance(stmt, Alloc)]
    for buffer in found:
        own = any(buffer is each for each in kernel.parameters)
        if made.count(id(buffer)) != (0 if own else 1):
            yield f"does not make `{buffer.name}` just once"
        if own != (buffer.space == "global"):
            yield f"has `{buffer.name}` in {buffer.space} memory, which only parameters and no others are in"
        why = _refused(kernel, buffer, agents)
        if why:
            yield f"has `{buffer.name}`, {why}"
    for thing in things:
        match thing:
            case View():
                yield from _view(thing)
            case Get(view=view, at=at) if len(at) != len(view.shape):
                yield f"takes an element of `{view.buffer.name}` by {len(at)} coordinates"
            case Advance(counter=counter, by=by) if counter.space != "counter" or (by.range[0] or -1) < 0:
                yield from _advanced(by)
            case _:
                pass


def _advanced(by: Index) -> Iterator[str]:
    if by.range[0] is None or by.range[0] < 0:
        yield "turns a counter back"


def _agents(kernel: Kernel) -> dict[str, int]:
    """Threads of one agent of each role; of the block under the empty name."""
    roles: tuple[Role, ...] = () if kernel.roles is None else kernel.roles.roles
    return {"": kernel.threads} | {role.name: role.agent for role in roles}


def _refused(kernel: Kernel, buffer: Buffer, agents: dict[str, int]) -> str:
    if buffer.promise is not TRUE and not _promised(buffer):
        return "which promises something of other than its own integers"
    if buffer.space not in ("register", "counter") and buffer.owner:
        return "which belongs to a role"
    if buffer.file == "accumulation" and not _accumulates(kernel, buffer):
        return "which is in accumulation registers that there are not"
    match buffer.space:
        case "global":
            return _global(kernel, buffer)
        case "shared":
            return _staged(buffer, 1024, buffer.dtype.bits)
        case "register":
            return _registers(buffer, agents)
        case "counter":
            plain = buffer.shape == () and buffer.dtype == i32 and buffer.owner in agents
            return "" if plain and _sizes(buffer) == 1 else "which is no counter"
        case "barrier":
            return _staged(buffer, 8, i32.bits) or ("" if buffer.dtype == i32 else "which is no row of barriers")
        case "map":
            return _staged(buffer, 128, i32.bits) or ("" if buffer.dtype == i32 else "which is no tensor map")


def _accumulates(kernel: Kernel, buffer: Buffer) -> bool:
    return buffer.space == "register" and kernel.target.accumulation > 0 and buffer.dtype.bits == i32.bits


def _promised(buffer: Buffer) -> bool:
    reads = [node for node in topological((buffer.promise,)) if isinstance(node, Read)]
    own = all(node.array == buffer.name and len(node.at) == len(buffer.shape) for node in reads)
    return own and buffer.space == "global" and buffer.dtype.family == "int"


def _global(kernel: Kernel, buffer: Buffer) -> str:
    """A dense tensor, last axis fastest, whose extents are sizes or numbers; addresses are multiples of 16 bytes."""
    if not buffer.name.isidentifier():
        return "which is no name of a parameter"
    for extent in buffer.shape:
        size = isinstance(extent, Sym) and extent.symbol in kernel.sizes
        if not size and not (isinstance(extent, Const) and extent.value >= 0):
            return "whose extents are neither sizes nor numbers"
    strides: list[Index] = []
    stride: Index = algebra.const(1)
    for extent in reversed(buffer.shape):
        strides.append(stride)
        stride = algebra.mul(stride, extent)
    dense = isinstance(buffer.layout, Strided) and buffer.layout.strides == tuple(reversed(strides))
    return "" if dense and buffer.align == 16 else "which is no dense tensor aligned to 16 bytes"


def _sizes(buffer: Buffer) -> int:
    """Elements of a layout in memory; 0 for another layout."""
    return buffer.layout.layout.size() if isinstance(buffer.layout, Staged) else 0


def _staged(buffer: Buffer, align: int, bits: int) -> str:
    """Fixed extents, each element at a place of its own, all of them side by side."""
    extents = [extent.value for extent in buffer.shape if isinstance(extent, Const)]
    layout = buffer.layout
    if len(extents) != len(buffer.shape) or not isinstance(layout, Staged) or buffer.align != align:
        return "which is no shared memory of fixed extents"
    if min(extents, default=1) < 1 or prod(extents) * bits > _MOST_BITS or prod(extents) != layout.layout.size():
        return "whose layout has another size than its shape"
    if not _along(layout.layout, extents) or not _compact(layout.layout):
        return "whose elements do not lie each at a place of its own"
    if layout.swizzle is not None and layout.layout.size() % layout.swizzle.period:
        return "whose swizzle permutes more than it holds"
    return ""


_MOST_BITS = 8 * 232_448 * 16
"""Above what any target holds by far: tables of it fit memory, and the budget is a proof's to check."""


def _along(layout: Layout, extents: list[int]) -> bool:
    """Whether the layout has a mode for each axis, of its extent."""
    modes = list(layout)
    return [mode.size() for mode in modes] == extents or (not extents and layout.size() == 1)


def _compact(layout: Layout) -> bool:
    return sorted(layout.table().tolist()) == list(range(layout.size()))


def _registers(buffer: Buffer, agents: dict[str, int]) -> str:
    layout = buffer.layout
    if not isinstance(layout, TV) or buffer.owner not in agents:
        return "which are no registers of an agent"
    if layout.threads.size() != agents[buffer.owner]:
        return "which are registers of another number of threads"
    return "" if buffer.shape == tuple(map(algebra.const, layout.tile)) else "whose shape is not its tile"


def _view(view: View) -> Iterator[str]:
    name = view.buffer.name
    if len(view.at) != len(view.buffer.shape):
        yield f"views `{name}` by {len(view.at)} coordinates"
    used = {node.axis for node in topological((*view.at, view.where)) if isinstance(node, Coord)}
    if any(not 0 <= axis < len(view.shape) for axis in used):
        yield f"views `{name}` by a coordinate that the view has not"
    if any(isinstance(extent, Const) and extent.value < 0 for extent in view.shape):
        yield f"views less than nothing of `{name}`"
