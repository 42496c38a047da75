"""Emit direct-to-LDS loads: the lanes of a wave write one contiguous run of LDS.

The hardware fixes each lane's LDS address [MI300 ISA, buffer loads to LDS: base + 4 x lane]. With a swizzle, a lane
thus loads the element that belongs at its address, not the one that the copy's TV layout assigns it. Within a wave's
run the two are permutations of each other, which the copy's construction checks.
"""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.ir import Copy, Kernel, Staged, View, static, walk
from argus.core.layout import row_major
from argus.core.walk import substitute
from argus.emit.address import element_addresses, linear_offset
from argus.emit.copies import vector_starts
from argus.emit.faults import not_built
from argus.emit.scope import Scope

DIRECT = """\
// Lane l writes dword l of the run at the wave-uniform address `to`; zero out of range.
HELPER void buffer_load_lds_b32(void* to, __amdgpu_buffer_rsrc_t from, unsigned offset) {
    __builtin_amdgcn_raw_ptr_buffer_load_lds(from, (__attribute__((address_space(3))) void*)to, 4, offset, 0, 0, 0);
}
"""


def uses_direct_loads(kernel: Kernel) -> bool:
    return any(isinstance(stmt, Copy) and stmt.atom.direct for stmt in walk(kernel.body))


def direct_lines(copy: Copy, scope: Scope) -> list[str]:
    """A block of C statements. Raises ArgusError (E501) unless the target is all of a buffer's rows."""
    layout, unit = copy.target.buffer.layout, copy.atom.unit
    assert isinstance(layout, Staged)
    if copy.by.threads.size() != scope.threads:
        raise not_built(f"{copy.atom} by some waves of the block", copy.span)
    columns = _columns(copy, layout)
    thread = algebra.sym(scope.thread)
    leader = algebra.mul(algebra.floordiv(thread, unit), unit)
    own: list[tuple[Index, ...]] = []
    runs: list[str] = []
    for value in vector_starts(copy):
        row, column = copy.by.coordinates_at(thread, value)
        written = algebra.add(algebra.mul(row, columns), column)
        loaded = written if layout.swizzle is None else layout.swizzle.at(written)
        own.append((algebra.floordiv(loaded, columns), algebra.mod(loaded, columns)))
        begins = tuple(substitute(at, {}, copy.by.coordinates_at(leader, value)) for at in copy.target.at)
        runs.append(scope.text.index(linear_offset(layout.layout, begins)))
    edge = copy.edge is not None
    declared, found = element_addresses(copy.source, own, scope, edge=edge, width="(unsigned)")
    to, source = (scope.names.buffers[view.buffer] for view in (copy.target, copy.source))
    size = copy.source.buffer.dtype.bits // 8
    body: list[str] = []
    for run, place in zip(runs, found, strict=True):
        offset = f"{size}u * ({place.offset})"
        guarded = f"guard({place.inside}, {offset})" if place.inside else offset
        body.append(f"buffer_load_lds_b32(&{to}[{run}], {source}_buffer, {guarded});")
    return ["{", *(f"    {line}" for line in (*declared, *body)), "}"]


def _columns(copy: Copy, layout: Staged) -> int:
    """Row length of the target, which must be whole rows that start at a multiple of the swizzle's period."""
    target = copy.target
    shape = tuple(static(extent) for extent in target.buffer.shape)
    rows, columns = shape[-2:] if len(shape) > 1 else (0, 0)
    plain = layout.layout == row_major(shape) and _covers_last_axes(target)
    size = rows * columns
    if not plain or not size or (layout.swizzle is not None and size % layout.swizzle.period):
        raise not_built(f"{copy.atom} to a part of `{target.buffer.name}`", copy.span)
    if copy.edge not in (None, 0):
        raise not_built(f"{copy.atom} that reads {copy.edge:g} outside the tensor", copy.span)
    return columns


def _covers_last_axes(view: View) -> bool:
    """Whether a view covers its buffer's last two axes."""
    if view.where is not algebra.TRUE or view.peer is not None or len(view.shape) != 2:
        return False
    extents = tuple(static(each) for each in view.buffer.shape[-2:])
    ours = tuple(each.value if isinstance(each, Const) else None for each in view.shape)
    return ours == extents and view.at[-2:] == (algebra.coord(0), algebra.coord(1))
