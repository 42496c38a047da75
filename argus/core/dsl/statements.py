"""Statements of the language: shared memory, barriers, fences, scheduling policies."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Literal

from argus.core import algebra
from argus.core.atoms.sm_90a.tma import SWIZZLES as SPANS
from argus.core.dsl.copies.copy import Place, check_place
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import extent, extents, number
from argus.core.dsl.source_location import leaves_early, user_frame
from argus.core.dsl.tiles.values import check_dtype
from argus.core.dsl.tracer import Tracer, current, left_early
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.ir import Alloc, Buffer, Fence, Policy, Reset, Staged, Sync, whole
from argus.core.layout import Layout, Swizzle, row_major
from argus.core.memory.swizzle_tiles import CHUNK, swizzle_tiled


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
    check_place(tensor)
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
