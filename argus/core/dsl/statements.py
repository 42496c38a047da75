"""Statements of the language: storage, copies, matrix instructions, waits, barriers, policies."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Literal

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.atoms.sm_90a.tma import SWIZZLES as SPANS
from argus.core.dsl.clusters import Multicast, rank_mask
from argus.core.dsl.copies.boxes import split_into_boxes
from argus.core.dsl.copies.choose_atom import choose
from argus.core.dsl.copies.thread_layouts import AllToEach, ElectedLane
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import extent, extents, number
from argus.core.dsl.source_location import leaves_early, user_frame
from argus.core.dsl.sync.barriers import Barrier
from argus.core.dsl.sync.queues import GroupQueue
from argus.core.dsl.tensor_maps import TensorMap
from argus.core.dsl.tiles.fragments import Fragment, add, fresh
from argus.core.dsl.tiles.reductions import operation
from argus.core.dsl.tiles.values import check_dtype, check_layout
from argus.core.dsl.tracer import Tracer, current, left_early
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.index import Const, Coord, Index
from argus.core.ir import Alloc, Buffer, Copy, Fence, Policy, Reset, Staged, Sync, View, whole
from argus.core.layout import TV, Layout, Swizzle, row_major
from argus.core.memory.swizzle_tiles import CHUNK, swizzle_tiled
from argus.core.walk import show, topological


def shared(
    dtype: DType, shape: tuple[int, ...], *, swizzle: Swizzle | int | None = None, banks: int | None = None
) -> Tensor:
    """Shared memory of the block, row-major, uninitialised.

    swizzle permutes element offsets; 128, 64 or 32 is the one of the TMA over spans of as many bytes: rows of more lie
    as slabs of one span side by side, as its boxes are. 16 permutes nothing, and lays rows out in slabs of 16 bytes.
    banks declares the largest bank-conflict degree allowed
    (1: none).
    """
    tracer = current("shared")
    check_dtype(dtype)
    sizes = extents(shape, "`shared`")
    span_bytes = swizzle if isinstance(swizzle, int) else 0
    if isinstance(swizzle, int):
        swizzle = None if span_bytes == CHUNK else _over_bytes(swizzle, dtype)
    layout = _in_slabs(sizes, span_bytes * 8 // dtype.bits)
    if swizzle is not None and layout.size() % swizzle.period != 0:
        fault(
            "E211",
            f"{swizzle} permutes blocks of {swizzle.period} elements, which do not divide {layout.size()}",
            help="make the tile a multiple of the swizzle's period or choose a smaller swizzle",
        )
    name, span = tracer.name("shared"), tracer.span()
    shape_ = tuple(algebra.const(size) for size in sizes)
    degree = None if banks is None else extent(banks, "the degree of bank conflicts")
    buffer = Buffer(name, "shared", dtype, shape_, Staged(layout, swizzle), 1024, banks=degree, span=span)
    tracer.emit(Alloc(buffer, span=span))
    return Tensor(whole(buffer))


def _in_slabs(sizes: tuple[int, ...], width: int) -> Layout:
    if len(sizes) < 2 or width < 1:
        return row_major(sizes)
    try:
        return swizzle_tiled(sizes, width)
    except ValueError as problem:
        fault("E211", str(problem), help="make rows a multiple of the swizzle's span")


def _over_bytes(span: int, dtype: DType) -> Swizzle:
    """Chunk of 16 bytes ^= row modulo the chunks of a span, in elements [PTX ISA, swizzling modes]."""
    if span == 0 or span not in SPANS:
        fault("E211", f"a swizzle over {span} bytes", help="give 128, 64, 32 or 16, or a `Swizzle` of elements")
    return Swizzle((span // 16).bit_length() - 1, (128 // dtype.bits).bit_length() - 1, 3)


Place = Tensor | Fragment
Via = Atom | tuple[Atom, ...] | GroupQueue | Multicast


def copy(
    source: Place,
    target: Place,
    *,
    via: Via | None = None,
    by: TV | ElectedLane | None = None,
    edge: float | None = None,
    signal: Barrier | None = None,
    combine: object = None,
    through: TensorMap | None = None,
) -> None:
    """Move a tile between registers and memory.

    via: an instruction, or several of which the widest that fits is taken. by: who moves what, where neither
    side is a register tile and the instruction is not one of a single thread; or, for a register tile of which all
    lanes of a warp hold the same, the one lane that writes. edge: outside the source's tensor
    this value is read, outside the target's nothing is written; without it the copy must be in bounds.
    signal: the barrier that a load by the TMA completes on, where it is not one into a slot being filled.
    combine: `add` adds each element to what the target holds, one by one, whoever else adds there.
    through: the tensor map in memory that a store of a box goes by.
    """
    tracer = current("copy")
    for side in (source, target):
        _check_place(side)
    _check_target(target)
    if isinstance(by, ElectedLane):
        target, by, edge = _of_lane(source, target, by, edge)
    named = _instructions(via)
    parts = split_into_boxes(source.view, target.view, named)
    if parts != ((source.view, target.view),):
        for one, other in parts:
            copy(Tensor(one), Tensor(other), via=via, edge=edge, signal=signal, through=through)
        return
    tv = _movers(source, target, _alone(named, source.view, by))
    _check_shapes(source.view, target.view, tv)
    joined = None if combine is None else operation(combine, {add: "add"})
    atom = choose(tracer.target, source.view, target.view, tv, named, joined)
    event = _completion(tracer, atom, target.view, signal)
    edge = _filled(source, target, _outside(edge, atom))
    peers = _receivers(tracer, atom, via) if isinstance(via, Multicast) else None
    tracer.emit(
        Copy(
            atom,
            source.view,
            target.view,
            tv,
            edge,
            event,
            peers,
            joined,
            through=_mapped(through, atom, target.view),
            span=tracer.span(),
        )
    )


def _receivers(tracer: Tracer, atom: Atom, via: Multicast) -> Index:
    """The mask of a multicast. Raises E106 for what is no load."""
    if not atom.completion.signal:
        fault("E106", f"`{atom}` has one target", help="multicast a load by the TMA: `via=tma.multicast((0, 1))`")
    return rank_mask(tracer, via.ranks)


def _mapped(through: TensorMap | None, atom: Atom, target: View) -> Buffer | None:
    if through is None:
        return None
    if not isinstance(through, TensorMap):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"a copy goes through a tensor map, found {describe_value(through)}", help="write `tensor_map()`")
    if atom.box is None or atom.box.axes < 2 or target.buffer.space != "global":
        fault("E501", f"`{atom}` through a tensor map in memory is not built yet", help="store boxes `via=tma`")
    return through.buffer


def _of_lane(source: Place, target: Place, lane: ElectedLane, edge: float | None) -> tuple[Tensor, None, float]:
    """The target that one lane of each warp writes. The others' part lies outside, so nothing else may."""
    if not isinstance(source, Fragment) or not isinstance(target, Tensor):
        fault("E106", "one lane writes registers to memory", help="leave `by` out")
    if edge is None and target.view.shape != target.view.buffer.shape:
        name = target.view.buffer.name
        fault("E106", f"one lane writes a part of `{name}`", help="give `edge=0`, or write all of it")
    return Tensor(lane.only(target.view)), None, 0.0 if edge is None else edge


def _filled(source: Place, target: Place, edge: float | None) -> float | None:
    """What stands outside the tensors. Raises E106 where a computed view says something else."""
    for side in (source, target):
        fill = side.outside if isinstance(side, Tensor) else None
        if fill is not None and edge != fill:
            fault(
                "E106",
                f"outside `{side.view.buffer.name}` the view reads {fill:g}, the copy says otherwise",
                help=f"write `edge={fill:g}`: a copy reads one number beyond the tile and beyond the tensor",
            )
    return edge


def _alone(named: tuple[Atom, ...] | None, source: View, by: TV | None) -> TV | None:
    """All of the tile by one thread, for instructions that one thread executes."""
    if not named or by is not None or any(atom.unit != 1 for atom in named):
        return by
    sizes = tuple(size.value for size in source.shape if isinstance(size, Const))
    return by if len(sizes) != len(source.shape) else TV(Layout(1, 0), Layout(prod(sizes), 1), sizes)


def _completion(tracer: Tracer, atom: Atom, target: View, signal: Barrier | None) -> View | None:
    """The barrier that the copy completes on. Raises E208 if the instruction has one and none is meant."""
    filling = [fill for fill in tracer.fills if fill.holds(target)]
    if not atom.completion.signal:
        if signal is not None:
            fault("E208", f"`{atom}` completes on no barrier", help="leave `signal` out")
        if filling:
            fault("E501", f"a slot filled by `{atom}` is not built yet", help="fill it `via=tma` or `via=bulk_copy`")
        return None
    if signal is not None and signal.view.peer is not None:
        fault("E106", "a copy completes on the barriers of the blocks it lands in", help="leave `.of(rank)` out")
    if signal is not None:
        return signal.view
    if filling:
        return filling[-1].event
    fault(
        "E208",
        f"`{atom}` completes on a barrier, and none is named",
        help="copy inside `with ring.fill() as slot:`, or give `signal=barrier(...)`",
    )


def _check_place(side: Place) -> None:
    if not isinstance(side, Tensor | Fragment):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"expected a tensor or a register tile, found {describe_value(side)}")
    used = [node.axis for node in topological(side.view.at) if isinstance(node, Coord)]
    if any(axis >= len(side.view.shape) for axis in used):
        fault(
            "E201",
            f"a view of `{side.view.buffer.name}` is placed by the coordinate of another tensor's element",
            help="an element's coordinate has a meaning in tags and masks only",
        )


def _check_target(target: Place) -> None:
    if isinstance(target, Fragment) and not target.mutable:
        fault("E106", f"`{target.view.buffer.name}` is an immutable value", help="copy into `registers(...)`")


def _instructions(via: Via | None) -> tuple[Atom, ...] | None:
    if via is None:
        return None
    named = via.atoms if isinstance(via, GroupQueue | Multicast) else via if isinstance(via, tuple) else (via,)
    for atom in named:
        if not isinstance(atom, Atom):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
            fault("E106", f"`via` names instructions, found {describe_value(atom)}", help="write `via=global_load`")
    return named


def _outside(edge: float | None, atom: Atom) -> float | None:
    if edge is not None and not isinstance(edge, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106", f"`edge` is the number read outside the tensor, found {describe_value(edge)}", help="write `edge=0`"
        )
    if edge is not None and atom.unit == 1 and (edge != 0 or atom.edge != "box_zero"):
        fault("E106", f"`{atom}` does not read {edge:g} outside the tensor", help="the TMA reads 0: write `edge=0`")
    return edge


def _movers(source: Place, target: Place, by: TV | None) -> TV:
    held = [side.layout for side in (source, target) if isinstance(side, Fragment)]
    if by is not None:
        check_layout(by)
        held.append(by)
    if not held:
        fault("E106", "a copy between memories says nowhere who moves what", help="give `by=spread(...)`")
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


def load(view: Tensor, layout: TV | AllToEach, *, via: Via | None = None, edge: float | None = None) -> Fragment:
    """A new register value: the view's elements under a thread-value layout."""
    tracer = current("load")
    _check_place(view)
    by = layout.over(view.view) if isinstance(layout, AllToEach) else layout
    value = fresh(view.dtype, by, "load")
    _check_shapes(view.view, value.view, by)
    atom = choose(tracer.target, view.view, value.view, by, _instructions(via))
    edge = _filled(view, value, _outside(edge, atom))
    tracer.emit(Copy(atom, view.view, value.view, by, edge, span=tracer.span()))
    return value


def sync(barrier: str | None = None, *, threads: int | None = None) -> None:
    """The n-th meeting of every thread of the block, or of every thread of this agent inside a role.

    barrier, threads: a meeting of so many threads of several agents, by name.
    """
    tracer = current("sync")
    agent = tracer.agent
    if barrier is not None:
        tracer.emit(_named("meet", barrier, threads, tracer))
    elif agent is tracer.block:
        tracer.emit(Sync(span=tracer.span()))
    elif agent.threads == 1:
        fault("E106", f"role `{agent.name}` is one thread, which has nobody to meet", help="use a barrier or a ring")
    else:
        tracer.emit(Sync(agent.name, "meet", agent.threads, span=tracer.span()))


def arrive(barrier: str, *, threads: int) -> None:
    """Arrive at a named meeting of `threads` threads without waiting for the others."""
    tracer = current("arrive")
    tracer.emit(_named("arrive", barrier, threads, tracer))


def _named(how: Literal["meet", "arrive"], barrier: str, threads: int | None, tracer: Tracer) -> Sync:
    known = isinstance(barrier, str) and barrier.isidentifier()  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
    if not known or barrier in ("cta", "cluster"):
        fault(
            "E106",
            f"a meeting is named by an identifier, found {describe_value(barrier)}",
            help='write `sync("pair", ...)`',
        )
    if threads is None:
        fault("E106", f"meeting `{barrier}` does not say of how many threads", help="give `threads=256`")
    count = extent(threads, "the threads of a meeting")
    if count % tracer.target.unit != 0:
        fault("E213", f"a meeting of {count} threads", help=f"whole units of {tracer.target.unit} meet")
    return Sync(barrier, how, count, span=tracer.span())


_FENCES: Mapping[tuple[str, str], Literal["device", "async_proxy", "barrier_init"]] = {
    ("gfx942", "device"): "device",
    ("sm_90a", "device"): "device",
    ("sm_90a", "async proxy"): "async_proxy",
    ("sm_90a", "barrier init"): "barrier_init",
}


def fence(kind: str) -> None:
    """A memory fence: "device", or "async proxy", which shows this thread's writes to shared memory to the TMA.

    "barrier init", after all barriers are made, shows them to the TMA and to the cluster: the meeting that tells the
    other threads of it follows. Without it, both are put before the roles.
    """
    tracer = current("fence")
    found = _FENCES.get((tracer.target.name, kind)) if isinstance(kind, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
    if found is None:
        known = " or ".join(f'`fence("{name}")`' for target, name in _FENCES if target == tracer.target.name)
        fault("E106", f"{tracer.target} has no fence {kind!r}", help=f"write {known}")
    tracer.emit(Fence(found, span=tracer.span()))


def reset(tensor: Place) -> None:
    """The storage is uninitialised again, as far as tags go."""
    tracer = current("reset")
    _check_place(tensor)
    tracer.emit(Reset(tensor.view.buffer, span=tracer.span()))


@contextmanager
def priority(level: int) -> Generator[None]:
    """Waves in the body issue with this priority (0 to 3)."""
    tracer = current("priority")
    chosen = number(level, "a priority")
    if not 0 <= chosen <= 3:
        fault("E106", f"a priority of {chosen}", help="priorities are 0 to 3")
    span = tracer.span()
    tracer.emit(Policy("priority", (chosen,), span=span))
    yield
    frame = user_frame()
    if frame is not None and leaves_early(frame):
        left_early("priority", span)
    tracer.emit(Policy("priority", (0,), span=tracer.span()))


def sched_barrier() -> None:
    """The compiler moves nothing across."""
    tracer = current("sched_barrier")
    tracer.emit(Policy("sched_barrier", (0,), span=tracer.span()))


def no_pdl() -> None:
    """The launch begins when the one ahead of it in its stream has ended; else the two overlap where they may.

    Raises E106 on a target whose launches never overlap.
    """
    tracer = current("no_pdl")
    if "wgmma" not in tracer.target.queues:
        fault("E106", f"launches on {tracer.target} never overlap", help="leave `no_pdl()` out")
    tracer.emit(Policy("no_pdl", (), span=tracer.span()))
