"""Emit `Copy` on sm_90a: dispatch by instruction, and the bulk copies that one thread issues (TMA boxes, 1D bulk)."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.index import Index
from argus.core.ir import Copy, Kernel, Strided, View, static, walk
from argus.core.ir.view_ends import ended_coordinates
from argus.emit.cuda.context import Context
from argus.emit.cuda.matrices import matrix_lines
from argus.emit.cuda.moves import agent_scope, cp_async_lines, load_store_lines
from argus.emit.cuda.plan import box_start, end_of, map_axes, uses_tma
from argus.emit.faults import not_built
from argus.emit.shuffles import is_shuffle, shuffle_lines


def copy_lines(copy: Copy, context: Context) -> list[str]:
    """Emit one copy. Raises ArgusError (E501) for a copy without an emitted form."""
    name = copy.atom.name
    if is_shuffle(copy):
        return shuffle_lines(copy, agent_scope(context), copy.atom.unit)
    for unsupported, what in (
        (copy.peers is not None and copy.signal is None, "a multicast store"),
        (copy.cache, f"the cache policy `{copy.cache}`"),
        (copy.source.peer or (copy.target.peer and not name.startswith("st_")), "a copy between blocks"),
        (_has_element_mask(copy), "a predicated copy by this instruction"),
    ):
        if unsupported:
            raise not_built(what, copy.span)
    if name.startswith("tma_"):
        return [_tma(copy, context)]
    if name.startswith("bulk_"):
        return [_bulk(copy, context)]
    if name.startswith(("ldmatrix", "stmatrix")):
        return matrix_lines(copy, context)
    if name.startswith("cp_async"):
        return cp_async_lines(copy, context)
    if name.startswith(("ld_", "st_")) or copy.combine is not None:
        return load_store_lines(copy, context)
    raise not_built(f"the copy `{name}`", copy.span)


def _has_element_mask(copy: Copy) -> bool:
    """Whether a view masks elements although the instruction has no predicate."""
    name = copy.atom.name
    if name.startswith(("ld_", "st_", "cp_async")) or copy.combine is not None:
        return False
    ended = name.startswith("tma_") and end_of(copy) is not None
    views = (copy.target,) if ended else (copy.source, copy.target)
    return any(view.where is not algebra.TRUE for view in views)


def _tma(copy: Copy, context: Context) -> str:
    axes, end = map_axes(copy), end_of(copy)
    made = f"&{context.plan.map_of(copy).name}"
    if copy.signal is None:
        at = _coordinates(box_start(copy.target, copy.span), context)
        return f"tma_store_{axes}d({made}, {_shared(copy, copy.source, context)}, {at});"
    operands = [_shared(copy, copy.target, context), made, _event(copy, context)]
    first = box_start(copy.source, copy.span)
    at = first if end is None else ended_coordinates(end, first)
    operands.append(_coordinates(at, context))
    if copy.peers is None:
        return f"tma_load_{axes}d({', '.join(operands)});"
    return f"tma_load_{axes}d_to({', '.join([context.text(copy.peers), *operands])});"


def _coordinates(at: tuple[Index, ...], context: Context) -> str:
    """TMA coordinates: innermost axis first."""
    return ", ".join(context.text(coordinate) for coordinate in reversed(at))


def _bulk(copy: Copy, context: Context) -> str:
    if copy.edge is not None or len(copy.source.shape) != 1:
        raise not_built(f"`{copy.atom}` out of bounds, or of several rows", copy.span)
    size = static(copy.source.shape[0]) * copy.source.buffer.dtype.bits // 8
    assert copy.atom.box is not None
    if size % copy.atom.box.multiple:
        raise not_built(f"`{copy.atom}` of {size} bytes", copy.span)
    if copy.signal is None:
        return f"bulk_store({_global(copy, copy.target, context)}, {_shared(copy, copy.source, context)}, {size});"
    to, source = _shared(copy, copy.target, context), _global(copy, copy.source, context)
    return f"bulk_load({to}, {source}, {size}, {_event(copy, context)});"


def _event(copy: Copy, context: Context) -> str:
    assert copy.signal is not None
    return context.barrier_address(copy.signal, copy.span)


def _shared(copy: Copy, view: View, context: Context) -> str:
    align = max(operand.align for operand in copy.atom.operands.values() if operand.space == "shared")
    return context.box_address(view, copy.span, align)


def _global(copy: Copy, view: View, context: Context) -> str:
    """Address of the first element of a contiguous run of a global tensor."""
    layout = view.buffer.layout
    assert isinstance(layout, Strided)
    if layout.strides[-1] is not algebra.const(1):
        raise not_built(f"a run of `{view.buffer.name}` whose elements are not contiguous", copy.span)
    terms = [algebra.mul(at, stride) for at, stride in zip(box_start(view, copy.span), layout.strides, strict=True)]
    return f"&{context.name_of(view.buffer)}[{context.scope.text.index(algebra.add(*terms), '(long)')}]"


_IN_SHARED_OF = """HELPER void* in_shared_of(u32 at, u32 rank) {
    void* there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(in_shared(at)), "r"(rank));
    return there;
}
"""


# -- helpers -------------------------------------------------------------------------------------------------


def helpers(kernel: Kernel) -> Iterator[str]:
    """Device functions that the kernel's bulk copies call: TMA loads and stores by rank, and `mapa`."""
    if any(isinstance(stmt, Copy) and stmt.target.peer is not None for stmt in walk(kernel.body)):
        yield _IN_SHARED_OF
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and uses_tma(stmt)]
    for axes in sorted({map_axes(copy) for copy in copies if copy.signal is not None and copy.peers is not None}):
        given, operands = _numbers(axes)
        at = ", ".join(f"%{4 + place}" for place in range(axes))
        yield f"""HELPER void tma_load_{axes}d_to(u32 blocks, u32 to, const TensorMap* map, u32 barrier, {given}) {{
    asm volatile(
        "cp.async.bulk.tensor.{axes}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {{{at}}}], [%2], %3;" ::"r"(to), "l"((u64)map), "r"(barrier), "h"((unsigned short)blocks),
            {operands} : "memory");
}}
"""
    for axes in sorted({map_axes(copy) for copy in copies if copy.signal is not None and copy.peers is None}):
        given, operands = _numbers(axes)
        at = ", ".join(f"%{3 + place}" for place in range(axes))
        yield f"""HELPER void tma_load_{axes}d(u32 to, const TensorMap* map, u32 barrier, {given}) {{
    asm volatile(
        "cp.async.bulk.tensor.{axes}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {{{at}}}], [%2];" ::"r"(to), "l"((u64)map), "r"(barrier), {operands} : "memory");
}}
"""
    for axes in sorted({map_axes(copy) for copy in copies if copy.signal is None}):
        given, operands = _numbers(axes)
        at = ", ".join(f"%{2 + place}" for place in range(axes))
        yield f"""HELPER void tma_store_{axes}d(const TensorMap* map, u32 from, {given}) {{
    asm volatile("cp.async.bulk.tensor.{axes}d.global.shared::cta.tile.bulk_group [%0, {{{at}}}], [%1];" ::
            "l"((u64)map), "r"(from), {operands} : "memory");
}}
"""


def _numbers(axes: int) -> tuple[str, str]:
    """Parameters and asm operands of a box's coordinates, innermost axis first."""
    names = "xyzuv"[:axes]
    return ", ".join(f"int {name}" for name in names), ", ".join(f'"r"({name})' for name in names)
