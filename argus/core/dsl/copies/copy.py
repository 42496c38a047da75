"""The copy statements: `copy` between tensors and register tiles, `load` into a new register tile."""

from __future__ import annotations

from math import prod

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.dsl.clusters import Multicast, rank_mask
from argus.core.dsl.copies.boxes import split_into_boxes
from argus.core.dsl.copies.choose_atom import choose_atom
from argus.core.dsl.copies.thread_layouts import AllToEach, ElectedLane
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.sync.barriers import Barrier
from argus.core.dsl.sync.copy_waits import emit_copy
from argus.core.dsl.sync.queues import GroupQueue
from argus.core.dsl.tensor_maps import TensorMap
from argus.core.dsl.tiles.fragments import Fragment, add, fresh
from argus.core.dsl.tiles.reductions import operation
from argus.core.dsl.tiles.values import check_layout
from argus.core.dsl.tracer import Tracer, current
from argus.core.dsl.views import Tensor
from argus.core.index import Const, Coord, Index
from argus.core.index_text import show
from argus.core.ir import Buffer, Copy, View
from argus.core.layout import TV, Layout
from argus.core.walk import topological

Operand = Tensor | Fragment
Via = Atom | tuple[Atom, ...] | GroupQueue | Multicast


def copy(
    source: Operand,
    target: Operand,
    *,
    via: Via | None = None,
    by: TV | ElectedLane | None = None,
    edge: float | None = None,
    signal: Barrier | None = None,
    combine: object = None,
    through: TensorMap | None = None,
    wait: bool | None = None,
) -> None:
    """Copy a tile between registers and memory, or between memories.

    via: an instruction, or several, of which the widest that fits is chosen. by: the thread-value layout of the copy,
    needed if neither side is a register tile and the instruction is not a single-thread one; or the elected lane that
    writes a register tile replicated over a warp. edge: the value of out-of-bounds reads, while out-of-bounds writes
    are dropped; without it the copy must be in bounds. signal: the barrier that a TMA load completes on, unless it
    fills a slot. combine: `add` adds each element atomically to the target. through: the tensor map in memory that a
    TMA store uses. wait: True waits for the copy right after it, where its instruction completes on a queue; False
    leaves it out of `@kernel(waits="automatic")`.
    """
    tracer = current("copy")
    for side in (source, target):
        check_operand(side)
    _check_target(target)
    if isinstance(by, ElectedLane):
        target, by, edge = _restrict_to_lane(source, target, by, edge)
    named = _named_atoms(via)
    parts = split_into_boxes(source.view, target.view, named)
    if parts != ((source.view, target.view),):
        for one, other in parts:
            copy(Tensor(one), Tensor(other), via=via, edge=edge, signal=signal, through=through, wait=wait)
        return
    tv = _copy_layout(source, target, _single_thread_layout(named, source.view, by))
    _check_shapes(source.view, target.view, tv)
    joined = None if combine is None else operation(combine, {add: "add"})
    atom = choose_atom(tracer.target, source.view, target.view, tv, named, joined)
    event = _completion_barrier(tracer, atom, target.view, signal)
    edge = _check_fill(source, target, _check_edge(edge, atom))
    peers = _receiver_mask(tracer, atom, via) if isinstance(via, Multicast) else None
    made = Copy(
        atom,
        source.view,
        target.view,
        tv,
        edge,
        event,
        peers,
        joined,
        through=_tensor_map_buffer(through, atom, target.view),
        span=tracer.span(),
    )
    emit_copy(tracer, made, wait)


def _receiver_mask(tracer: Tracer, atom: Atom, via: Multicast) -> Index:
    """The receiver mask of a multicast. Raises E106 for a store."""
    if not atom.completion.signal:
        fault("E106", f"`{atom}` has a single target", help="multicast a TMA load: `via=tma.multicast((0, 1))`")
    return rank_mask(tracer, via.ranks)


def _tensor_map_buffer(through: TensorMap | None, atom: Atom, target: View) -> Buffer | None:
    if through is None:
        return None
    if not isinstance(through, TensorMap):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"a copy goes through a tensor map, found {describe_value(through)}", help="write `tensor_map()`")
    if atom.box is None or atom.box.axes < 2 or target.buffer.space != "global":
        fault("E501", f"`{atom}` through a tensor map in memory is not built yet", help="store boxes `via=tma`")
    return through.buffer


def _restrict_to_lane(
    source: Operand, target: Operand, lane: ElectedLane, edge: float | None
) -> tuple[Tensor, None, float]:
    """Target, layout and edge of a copy in which one lane of each warp writes.

    Writes of the other lanes are out of bounds and dropped; E106 if real out-of-bounds writes would be dropped too.
    """
    if not isinstance(source, Fragment) or not isinstance(target, Tensor):
        fault("E106", "one lane writes registers to memory", help="leave `by` out")
    if edge is None and target.view.shape != target.view.buffer.shape:
        name = target.view.buffer.name
        fault("E106", f"one lane writes a part of `{name}`", help="give `edge=0`, or write all of it")
    return Tensor(lane.mask(target.view)), None, 0.0 if edge is None else edge


def _check_fill(source: Operand, target: Operand, edge: float | None) -> float | None:
    """The value read out of bounds. Raises E106 if a computed view has another value there."""
    for side in (source, target):
        fill = side.outside if isinstance(side, Tensor) else None
        if fill is not None and edge != fill:
            fault(
                "E106",
                f"outside `{side.view.buffer.name}` the view reads {fill:g}, the copy another value",
                help=f"write `edge={fill:g}`: a copy reads the same value beyond the tile and beyond the tensor",
            )
    return edge


def _single_thread_layout(named: tuple[Atom, ...] | None, source: View, by: TV | None) -> TV | None:
    """The layout of a copy of the whole tile by one thread for single-thread instructions, else `by`."""
    if not named or by is not None or any(atom.unit != 1 for atom in named):
        return by
    sizes = tuple(size.value for size in source.shape if isinstance(size, Const))
    return by if len(sizes) != len(source.shape) else TV(Layout(1, 0), Layout(prod(sizes), 1), sizes)


def _completion_barrier(tracer: Tracer, atom: Atom, target: View, signal: Barrier | None) -> View | None:
    """The barrier that the copy completes on; None if the instruction has none. Raises E208 if it is not named."""
    filling = [fill for fill in tracer.fills if fill.holds(target)]
    if not atom.completion.signal:
        if signal is not None:
            fault("E208", f"`{atom}` completes on no barrier", help="leave `signal` out")
        if filling:
            fault("E501", f"a slot filled by `{atom}` is not built yet", help="fill it `via=tma` or `via=bulk_copy`")
        return None
    if signal is not None and signal.view.peer is not None:
        fault("E106", "a copy completes on the barriers of the blocks that receive it", help="leave `.of(rank)` out")
    if signal is not None:
        return signal.view
    if filling:
        return filling[-1].event
    fault(
        "E208",
        f"`{atom}` completes on a barrier, and none is named",
        help="copy inside `with ring.fill() as slot:`, or give `signal=barrier(...)`",
    )


def check_operand(side: Operand) -> None:
    """Raises E106 for anything but a tensor or fragment, E201 for a view indexed by coordinates of another tensor."""
    if not isinstance(side, Tensor | Fragment):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"expected a tensor or a register tile, found {describe_value(side)}")
    used = [node.axis for node in topological(side.view.at) if isinstance(node, Coord)]
    if any(axis >= len(side.view.shape) for axis in used):
        fault(
            "E201",
            f"a view of `{side.view.buffer.name}` is indexed by the coordinate of another tensor's element",
            help="use an element's coordinates in tags and masks only",
        )


def _check_target(target: Operand) -> None:
    if isinstance(target, Fragment) and not target.mutable:
        fault("E106", f"`{target.view.buffer.name}` is an immutable value", help="copy into `registers(...)`")


def _named_atoms(via: Via | None) -> tuple[Atom, ...] | None:
    if via is None:
        return None
    named = via.atoms if isinstance(via, GroupQueue | Multicast) else via if isinstance(via, tuple) else (via,)
    for atom in named:
        if not isinstance(atom, Atom):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
            fault("E106", f"`via` names instructions, found {describe_value(atom)}", help="write `via=global_load`")
    return named


def _check_edge(edge: float | None, atom: Atom) -> float | None:
    if edge is not None and not isinstance(edge, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106", f"`edge` is the number read outside the tensor, found {describe_value(edge)}", help="write `edge=0`"
        )
    if edge is not None and atom.unit == 1 and (edge != 0 or atom.edge != "box_zero"):
        fault("E106", f"`{atom}` does not read {edge:g} outside the tensor", help="the TMA reads 0: write `edge=0`")
    return edge


def _copy_layout(source: Operand, target: Operand, by: TV | None) -> TV:
    held = [side.layout for side in (source, target) if isinstance(side, Fragment)]
    if by is not None:
        check_layout(by)
        held.append(by)
    if not held:
        fault(
            "E106",
            "a copy between memories does not say which thread moves what",
            help="give `by=spread(...)`",
        )
    for layout in held[1:]:
        if layout != held[0]:
            fault(
                "E205",
                f"the copy's sides are held by different threads: {held[0]} and {layout}",
                help="give both sides one thread-value layout, or go through shared memory",
            )
    return held[0]


def _check_shapes(source: View, target: View, by: TV) -> None:
    shapes = [f"({', '.join(show(size) for size in view.shape)})" for view in (source, target)]
    if source.shape != target.shape:
        fault(
            "E203",
            f"a copy of shape {shapes[0]} into shape {shapes[1]}",
            here=f"`{source.buffer.name}` is {shapes[0]}, `{target.buffer.name}` is {shapes[1]}",
            help="take tiles of one shape on both sides",
        )
    symbolic = next((size for size in source.shape if not isinstance(size, Const)), None)
    if symbolic is not None:
        fault(
            "E209",
            f"a copy of the symbolic extent {show(symbolic)}",
            help="copy tiles of static shape: `.tile((rows, columns), ...)`",
        )
    if source.shape != tuple(algebra.const(size) for size in by.tile):
        fault(
            "E203",
            f"a copy of shape {shapes[0]} by a layout of the tile {by.tile}",
            help="give the views and the layout one shape",
        )


def load(
    view: Tensor,
    layout: TV | AllToEach,
    *,
    via: Via | None = None,
    edge: float | None = None,
    wait: bool | None = None,
) -> Fragment:
    """A new register tile with the view's elements under a thread-value layout. via, edge, wait: as for `copy`."""
    tracer = current("load")
    check_operand(view)
    by = layout.layout_for(view.view) if isinstance(layout, AllToEach) else layout
    value = fresh(view.dtype, by, "load")
    _check_shapes(view.view, value.view, by)
    atom = choose_atom(tracer.target, view.view, value.view, by, _named_atoms(via))
    edge = _check_fill(view, value, _check_edge(edge, atom))
    emit_copy(tracer, Copy(atom, view.view, value.view, by, edge, span=tracer.span()), wait)
    return value
