"""Resource plan of a CUDA kernel: shared-memory offsets, tensor maps, named barriers, and register reallocation.

A tensor map in memory has no storage: it describes a tensor of the launch, some of whose axes are fixed (I29 proves
that copies through it stay in that tensor). A box of it is the box of the whole tensor at those coordinates, and the
launcher encodes a map of the whole tensor. So edits emit nothing, and copies use the launcher's map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.ir import Buffer, Copy, Kernel, Policy, Role, Staged, Sync, View, static, walk
from argus.core.ir.view_ends import ENDED_AXES, BoxEnd, box_end
from argus.core.layout import Swizzle
from argus.core.memory.placement import BASE_ALIGNMENT, shared_memory_plan
from argus.core.span import Span
from argus.core.walk import substitute
from argus.emit.faults import not_built
from argus.emit.integers import tensors_read

MapKey = tuple[Buffer, tuple[int, ...], int, bool]
"""The tensor, box, swizzle, and whether boxes end with a view of rows."""
_REGISTERS = 65_536
_MOST_BARRIERS = 16


@frozen
class TensorMap:
    """A TMA descriptor, one parameter of the kernel.

    box: extents in elements, rows and columns last. swizzle: span in bytes, 0 for none. ended: boxes end with a view of
    rows, so that the axis of rows is three axes of the map.
    """

    name: str
    buffer: Buffer
    box: tuple[int, ...]
    swizzle: int
    ended: bool = False


@frozen
class Plan:
    """offsets: byte offset of each shared tensor and mbarrier from a base aligned to 1024. bytes: total, with slack to
    align the base. ids: first named barrier of each role or name. registers: per thread at launch. pointers: the
    tensors that the kernel addresses by pointer, in parameter order.
    """

    offsets: Mapping[Buffer, int]
    bytes: int
    maps: Mapping[MapKey, TensorMap]
    ids: Mapping[str, int]
    registers: int
    pointers: tuple[Buffer, ...] = ()

    def map_of(self, copy: Copy) -> TensorMap:
        return self.maps[_map_key(copy)]


def plan_of(kernel: Kernel, names: Mapping[Buffer, str]) -> Plan:
    """Plan a kernel. Raises ArgusError (E501) for tiles that do not fit one TMA box, or too many named barriers."""
    offsets, end = shared_memory_plan(kernel)
    maps: dict[MapKey, TensorMap] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy) and uses_tma(stmt):
            key = _map_key(stmt)
            name = f"{names[key[0]]}_map{len(maps)}"
            maps.setdefault(key, TensorMap(name, *key))
    warps = -(-kernel.threads // 128) * 128
    registers = min(255, _REGISTERS // warps // 8 * 8)
    return Plan(offsets, end + BASE_ALIGNMENT, maps, _barrier_ids(kernel), registers, _pointers(kernel))


def _pointers(kernel: Kernel) -> tuple[Buffer, ...]:
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and not uses_tma(stmt)]
    used = {view.buffer for copy in copies for view in (copy.source, copy.target)} | set(tensors_read(kernel))
    return tuple(buffer for buffer in kernel.parameters if buffer in used)


def staged_layout(buffer: Buffer) -> Staged:
    assert isinstance(buffer.layout, Staged), buffer.name
    return buffer.layout


def _barrier_ids(kernel: Kernel) -> dict[str, int]:
    """Assign named barriers: 0 is the block's; a role has one per agent."""
    ids: dict[str, int] = {}
    used = 1
    agents = {} if kernel.roles is None else {role.name: role.agents for role in kernel.roles.roles}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Sync) and stmt.barrier != "cta" and stmt.barrier not in ids:
            ids[stmt.barrier] = used
            used += agents.get(stmt.barrier, 1)
            if used > _MOST_BARRIERS:
                raise not_built(f"more than {_MOST_BARRIERS} named barriers", stmt.span, kernel.name)
    return ids


# -- boxes ---------------------------------------------------------------------------------------------------


def uses_tma(copy: Copy) -> bool:
    """Whether the copy uses TMA."""
    return copy.atom.name.startswith("tma_")


def end_of(copy: Copy) -> BoxEnd | None:
    """Where the box that a copy loads ends before its last row."""
    return box_end(copy.source) if copy.signal is not None else None


def map_axes(copy: Copy) -> int:
    """The axes of the tensor map of a copy."""
    memory = copy.source if copy.signal is not None else copy.target
    return len(memory.at) + ENDED_AXES * (end_of(copy) is not None)


def _map_key(copy: Copy) -> MapKey:
    memory, shared = (copy.source, copy.target) if copy.signal is not None else (copy.target, copy.source)
    rows, columns = (static(extent) for extent in memory.shape)
    span = swizzle_bytes(staged_layout(shared.buffer).swizzle, shared.buffer.dtype.bits // 8, copy.span)
    if span and columns * shared.buffer.dtype.bits // 8 != span:
        raise not_built(f"a box of {columns} columns under a swizzle of {span} bytes", copy.span)
    if rows > 256 or columns > 256:
        raise not_built(f"a box of {rows} x {columns}: TMA boxes have at most 256 x 256 elements", copy.span)
    return memory.buffer, (*(1 for _ in range(map_axes(copy) - 2)), rows, columns), span, end_of(copy) is not None


def swizzle_bytes(swizzle: Swizzle | None, size: int, span: Span) -> int:
    """Span in bytes (128, 64, 32; 0 for none) of the TMA swizzle mode that equals a layout's swizzle."""
    if swizzle is None or swizzle.bits == 0:
        return 0
    if swizzle.shift != 3 or size << swizzle.base != 16 or swizzle.bits > 3:
        raise not_built(f"{swizzle} of elements of {size} bytes, which is not a TMA swizzle mode", span)
    return 16 << swizzle.bits


def box_start(view: View, span: Span) -> tuple[Index, ...]:
    """Buffer coordinates of a box's first element. Raises ArgusError (E501) if the view is not a contiguous box."""
    rank = len(view.shape)
    zero = coordinates_at(view, (0,) * rank)
    fixed = len(view.at) - rank
    for axis in range(rank):
        one = coordinates_at(view, tuple(int(axis == other) for other in range(rank)))
        steps = [algebra.sub(a, b) for a, b in zip(one, zero, strict=True)]
        wanted = [int(place == axis + fixed) for place in range(len(steps))]
        if any(not isinstance(step, Const) or step.value != want for step, want in zip(steps, wanted, strict=True)):
            raise not_built(f"a view of `{view.buffer.name}` that is not a box of adjacent elements", span)
    return zero


def coordinates_at(view: View, at: tuple[int, ...]) -> tuple[Index, ...]:
    coordinates = tuple(algebra.const(value) for value in at)
    return tuple(substitute(expression, {}, coordinates) for expression in view.at)


def register_changes(kernel: Kernel, plan: Plan) -> Iterator[tuple[Role, str]]:
    """The `setmaxnreg` of each role; empty if it keeps the launch's register count."""
    assert kernel.roles is not None
    for role in kernel.roles.roles:
        if role.registers is None or role.registers == plan.registers:
            yield role, ""
        else:
            yield role, f"registers_{'up' if role.registers > plan.registers else 'down'}<{role.registers}>();"


def uses_pdl(kernel: Kernel) -> bool:
    """Whether the launch may use programmatic dependent launch: unless the policy `no_pdl` forbids it."""
    return not any(isinstance(stmt, Policy) and stmt.name == "no_pdl" for stmt in walk(kernel.body))
