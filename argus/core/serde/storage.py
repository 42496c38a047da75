"""Checks buffers and views of a deserialised kernel against the rules that the language enforces while tracing."""

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


def storage_violations(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Reasons why tracing cannot have produced the buffers and views of a kernel; `things`: all its objects."""
    found = [each for each in things if isinstance(each, Buffer)]
    names = [buffer.name for buffer in found]
    if len(set(names)) != len(names):
        yield "has two buffers of the same name"
    agents = _agents(kernel)
    allocated = [id(stmt.buffer) for stmt in walk(kernel.body) if isinstance(stmt, Alloc)]
    for buffer in found:
        own = any(buffer is each for each in kernel.parameters)
        if allocated.count(id(buffer)) != (0 if own else 1):
            yield f"does not allocate `{buffer.name}` exactly once"
        if own != (buffer.space == "global"):
            yield f"has `{buffer.name}` in {buffer.space} memory, but parameters, and only they, are in global memory"
        why = _violation(kernel, buffer, agents)
        if why:
            yield f"has `{buffer.name}`, {why}"
    for thing in things:
        match thing:
            case View():
                yield from _view(thing)
            case Get(view=view, at=at) if len(at) != len(view.shape):
                yield f"reads an element of `{view.buffer.name}` at {len(at)} coordinates"
            case Advance(counter=counter, by=by) if counter.space != "counter" or (by.range[0] or -1) < 0:
                yield from _advance(by)
            case _:
                pass


def _advance(by: Index) -> Iterator[str]:
    if by.range[0] is None or by.range[0] < 0:
        yield "may decrement a counter"


def _agents(kernel: Kernel) -> dict[str, int]:
    """Threads of one agent by role name; the empty name stands for the block."""
    roles: tuple[Role, ...] = () if kernel.roles is None else kernel.roles.roles
    return {"": kernel.threads} | {role.name: role.agent for role in roles}


def _violation(kernel: Kernel, buffer: Buffer, agents: dict[str, int]) -> str:
    """Why tracing cannot have produced a buffer; empty if it can."""
    if buffer.promise is not TRUE and not _promise_is_valid(kernel, buffer):
        return "whose promise is not about integers of its own and of parameters before it"
    if buffer.space not in ("register", "counter") and buffer.owner:
        return "which belongs to a role"
    if buffer.file == "accumulation" and not _may_accumulate(kernel, buffer):
        return "which cannot be in accumulation registers"
    match buffer.space:
        case "global":
            return _global(kernel, buffer)
        case "shared":
            return _staged(buffer, 1024, buffer.dtype.bits)
        case "register":
            return _registers(buffer, agents)
        case "counter":
            plain = buffer.shape == () and buffer.dtype == i32 and buffer.owner in agents
            return "" if plain and _sizes(buffer) == 1 else "which is not a counter"
        case "barrier":
            return _staged(buffer, 8, i32.bits) or ("" if buffer.dtype == i32 else "which is not an array of barriers")
        case "map":
            return _staged(buffer, 128, i32.bits) or ("" if buffer.dtype == i32 else "which is not a tensor map")


def _may_accumulate(kernel: Kernel, buffer: Buffer) -> bool:
    return buffer.space == "register" and kernel.target.accumulation > 0 and buffer.dtype.bits == i32.bits


def _promise_is_valid(kernel: Kernel, buffer: Buffer) -> bool:
    """Whether it is about a parameter of integers, and reads none but that and those before it."""
    if buffer not in kernel.parameters:
        return False
    known = kernel.parameters[: kernel.parameters.index(buffer) + 1]
    ranks = {each.name: len(each.shape) for each in known if each.space == "global" and each.dtype.family == "int"}
    reads = [node for node in topological((buffer.promise,)) if isinstance(node, Read)]
    return buffer.name in ranks and all(ranks.get(node.array) == len(node.at) for node in reads)


def _global(kernel: Kernel, buffer: Buffer) -> str:
    """A dense row-major tensor whose extents are sizes or constants, aligned to 16 bytes."""
    if not buffer.name.isidentifier():
        return "which is not a valid parameter name"
    for extent in buffer.shape:
        size = isinstance(extent, Sym) and extent.symbol in kernel.sizes
        if not size and not (isinstance(extent, Const) and extent.value >= 0):
            return "whose extents are neither sizes nor constants"
    strides: list[Index] = []
    stride: Index = algebra.const(1)
    for extent in reversed(buffer.shape):
        strides.append(stride)
        stride = algebra.mul(stride, extent)
    dense = isinstance(buffer.layout, Strided) and buffer.layout.strides == tuple(reversed(strides))
    return "" if dense and buffer.align == 16 else "which is not a dense tensor aligned to 16 bytes"


def _sizes(buffer: Buffer) -> int:
    """The number of elements of a layout in shared memory; 0 for another layout."""
    return buffer.layout.layout.size() if isinstance(buffer.layout, Staged) else 0


def _staged(buffer: Buffer, align: int, bits: int) -> str:
    """Constant extents and a compact layout, one to one onto consecutive cells."""
    extents = [extent.value for extent in buffer.shape if isinstance(extent, Const)]
    layout = buffer.layout
    if len(extents) != len(buffer.shape) or not isinstance(layout, Staged) or buffer.align != align:
        return "which is not shared memory of constant extents and the required alignment"
    if min(extents, default=1) < 1 or prod(extents) * bits > _MOST_BITS or prod(extents) != layout.layout.size():
        return "whose layout has a different size than its shape"
    if not _modes_match(layout.layout, extents) or not _compact(layout.layout):
        return "whose layout is not a bijection onto consecutive cells"
    if layout.swizzle is not None and layout.layout.size() % layout.swizzle.period:
        return "whose size is not a multiple of its swizzle's period"
    return ""


_MOST_BITS = 8 * 232_448 * 16
"""Far above the shared memory of any target, so that tables stay small; the proof checks the real budget."""


def _modes_match(layout: Layout, extents: list[int]) -> bool:
    """Whether the layout has one mode per axis, of the axis's extent."""
    modes = list(layout)
    return [mode.size() for mode in modes] == extents or (not extents and layout.size() == 1)


def _compact(layout: Layout) -> bool:
    return sorted(layout.table().tolist()) == list(range(layout.size()))


def _registers(buffer: Buffer, agents: dict[str, int]) -> str:
    layout = buffer.layout
    if not isinstance(layout, TV) or buffer.owner not in agents:
        return "whose registers belong to no agent"
    if layout.threads.size() != agents[buffer.owner]:
        return "whose layout has a different number of threads than its agent"
    return "" if buffer.shape == tuple(map(algebra.const, layout.tile)) else "whose shape is not its layout's tile"


def _view(view: View) -> Iterator[str]:
    name = view.buffer.name
    if len(view.at) != len(view.buffer.shape):
        yield f"has a view of `{name}` with {len(view.at)} coordinates"
    used = {node.axis for node in topological((*view.at, view.where)) if isinstance(node, Coord)}
    if any(not 0 <= axis < len(view.shape) for axis in used):
        yield f"has a view of `{name}` that uses a coordinate it does not have"
    if any(isinstance(extent, Const) and extent.value < 0 for extent in view.shape):
        yield f"has a view of `{name}` with a negative extent"
