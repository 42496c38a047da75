"""Statements of the language: shared memory, block and named barriers, fences, scheduling advice."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Literal

from argus.core import algebra
from argus.core.atoms.sm_90a.tma import SWIZZLES as SWIZZLE_SPANS
from argus.core.dsl.copies.copy import Operand, check_operand
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import extent, extents, number
from argus.core.dsl.roles import BARRIER_OF_A_ROLE
from argus.core.dsl.source_location import leaves_early, user_frame
from argus.core.dsl.tiles.values import check_dtype
from argus.core.dsl.tracer import Tracer, current, early_exit_fault
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.ir import SCHEDULED, Alloc, Buffer, Fence, Policy, Reset, Staged, Sync, whole
from argus.core.layout import Layout, Swizzle, row_major
from argus.core.memory.swizzle_tiles import CHUNK, swizzle_tiled


def shared(
    dtype: DType, shape: tuple[int, ...], *, swizzle: Swizzle | int | None = None, banks: int | None = None
) -> Tensor:
    """Declare uninitialised, row-major shared memory of the block.

    swizzle: a permutation of element offsets, or the span in bytes (128, 64 or 32) of the TMA swizzle. Rows longer than
    the span are split into swizzle tiles, column blocks one span wide and contiguous in memory, as TMA boxes and wgmma
    descriptors require. 16 splits rows into column blocks of 16 bytes without a permutation. banks: the largest
    bank-conflict degree allowed (1: no conflicts); None: not checked.
    """
    tracer = current("shared")
    check_dtype(dtype)
    sizes = extents(shape, "`shared`")
    span_bytes = swizzle if isinstance(swizzle, int) else 0
    if isinstance(swizzle, int):
        swizzle = None if span_bytes == CHUNK else _tma_swizzle(swizzle, dtype)
    layout = _tiled_layout(sizes, span_bytes * 8 // dtype.bits)
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


def _tiled_layout(sizes: tuple[int, ...], width: int) -> Layout:
    if len(sizes) < 2 or width < 1:
        return row_major(sizes)
    try:
        return swizzle_tiled(sizes, width)
    except ValueError as problem:
        fault("E211", str(problem), help="make rows a multiple of the swizzle's span")


def _tma_swizzle(span: int, dtype: DType) -> Swizzle:
    """The TMA swizzle in elements: 16-byte chunk index ^= row modulo chunks per span [PTX ISA, swizzling modes]."""
    if span == 0 or span not in SWIZZLE_SPANS:
        fault("E211", f"a swizzle over {span} bytes", help="give 128, 64, 32 or 16, or a `Swizzle` of elements")
    return Swizzle((span // 16).bit_length() - 1, (128 // dtype.bits).bit_length() - 1, 3)


def sync(barrier: str | None = None, *, threads: int | None = None) -> None:
    """A barrier of all threads of the block, or inside a role of all threads of this agent.

    barrier, threads: a named barrier of `threads` threads, possibly of several agents.
    """
    tracer = current("sync")
    agent = tracer.agent
    if barrier is not None:
        tracer.emit(_named_barrier("meet", barrier, threads, tracer))
    elif agent is tracer.block:
        tracer.emit(Sync(span=tracer.span()))
    elif agent.threads == 1:
        fault(
            "E106",
            f"role `{agent.name}` is a single thread, which cannot synchronise with itself",
            help="use a barrier or a ring",
        )
    else:
        tracer.emit(Sync(agent.name, "meet", agent.threads, span=tracer.span()))


def arrive(barrier: str, *, threads: int) -> None:
    """Arrive at a named barrier of `threads` threads without waiting."""
    tracer = current("arrive")
    tracer.emit(_named_barrier("arrive", barrier, threads, tracer))


def _named_barrier(how: Literal["meet", "arrive"], barrier: str, threads: int | None, tracer: Tracer) -> Sync:
    known = isinstance(barrier, str) and barrier.isidentifier()  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
    if not known or barrier in ("cta", "cluster"):
        fault(
            "E106",
            f"the name of a barrier is an identifier, found {describe_value(barrier)}",
            help='write `sync("pair", ...)`',
        )
    if barrier in tracer.warps.values():
        fault("E202", f"barrier `{barrier}` has the name of a role", help=BARRIER_OF_A_ROLE)
    tracer.barriers.add(barrier)
    if threads is None:
        fault("E106", f"barrier `{barrier}` has no thread count", help="give `threads=256`")
    count = extent(threads, "the threads of a barrier")
    if count % tracer.target.unit != 0:
        fault("E213", f"a barrier of {count} threads", help=f"give a multiple of {tracer.target.unit}")
    return Sync(barrier, how, count, span=tracer.span())


_FENCES: Mapping[tuple[str, str], Literal["device", "async_proxy", "barrier_init"]] = {
    ("gfx942", "device"): "device",
    ("sm_90a", "device"): "device",
    ("sm_90a", "async proxy"): "async_proxy",
    ("sm_90a", "barrier init"): "barrier_init",
}


def fence(kind: str) -> None:
    """A memory fence: "device", "async proxy" or "barrier init".

    "async proxy" makes this thread's writes to shared memory visible to the TMA and wgmma. "barrier init" makes the
    initialisation of all barriers visible to the TMA and the cluster; the author then writes the `sync` that must
    follow it. Without it, the fence and the barrier are inserted before the roles.
    """
    tracer = current("fence")
    found = _FENCES.get((tracer.target.name, kind)) if isinstance(kind, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
    if found is None:
        known = " or ".join(f'`fence("{name}")`' for target, name in _FENCES if target == tracer.target.name)
        fault("E106", f"{tracer.target} has no fence {kind!r}", help=f"write {known}")
    tracer.emit(Fence(found, span=tracer.span()))


def reset(tensor: Operand) -> None:
    """Make the storage uninitialised again, for the proof; emits no code."""
    tracer = current("reset")
    check_operand(tensor)
    tracer.emit(Reset(tensor.view.buffer, span=tracer.span()))


@contextmanager
def priority(level: int) -> Generator[None]:
    """Set the issue priority (0 to 3) of waves in the body, and 0 after it."""
    tracer = current("priority")
    chosen = number(level, "a priority")
    if not 0 <= chosen <= 3:
        fault("E106", f"a priority of {chosen}", help="priorities are 0 to 3")
    span = tracer.span()
    tracer.emit(Policy("priority", (chosen,), span=span))
    yield
    frame = user_frame()
    if frame is not None and leaves_early(frame):
        early_exit_fault("priority", span)
    tracer.emit(Policy("priority", (0,), span=tracer.span()))


def sched_barrier() -> None:
    """Forbid the compiler to move instructions across this point."""
    tracer = current("sched_barrier")
    tracer.emit(Policy("sched_barrier", (0,), span=tracer.span()))


def interleave(times: int, **counts: int) -> None:
    """Have the compiler order the instructions since the last `sched_barrier` in this pattern, `times` over.

    counts: how many of each kind come one after the other, such as `interleave(8, lds_read=1, mfma=4)`; kinds are
    `mfma`, `global_read`, `global_write`, `lds_read` and `lds_write`. What the pattern does not name goes anywhere.
    Raises E106 for another kind, or a count below 1.
    """
    tracer = current("interleave")
    repeated = number(times, "a number of repetitions")
    for kind, count in counts.items():
        if kind not in SCHEDULED:
            fault("E106", f"no instructions are of the kind `{kind}`", help=f"use {', '.join(SCHEDULED)}")
        if min(number(count, "a number of instructions"), repeated) < 1:
            fault("E106", f"a pattern of {count} instructions, {repeated} times", help="give at least 1")
    span = tracer.span()
    for _ in range(repeated):
        for kind, count in counts.items():
            tracer.emit(Policy("sched_group_barrier", (SCHEDULED[kind], count), span=span))


def free_order() -> None:
    """Prefer code in which the compiler may order instructions across waits and barriers.

    A build takes it only if it finds everything between the waits and barriers that the program has it between.
    Raises E106 on a target other than gfx942.
    """
    tracer = current("free_order")
    if tracer.target.name != "gfx942":
        fault("E106", f"code for {tracer.target} is not held between waits", help="leave `free_order()` out")
    tracer.emit(Policy("free_order", (), span=tracer.span()))


def no_pdl() -> None:
    """Disable programmatic dependent launch: this launch starts only after the previous one in its stream has ended.

    Raises E106 on a target without programmatic dependent launch.
    """
    tracer = current("no_pdl")
    if "wgmma" not in tracer.target.queues:
        fault("E106", f"launches on {tracer.target} never overlap", help="leave `no_pdl()` out")
    tracer.emit(Policy("no_pdl", (), span=tracer.span()))


def own_checks() -> None:
    """Where promises are checked on the GPU, do it in each block, in place of a launch of a guard ahead of the kernel.

    A block checks all elements of all promises before it accesses anything else: for few integers. Raises E106 on a
    target other than sm_90a.
    """
    tracer = current("own_checks")
    if "wgmma" not in tracer.target.queues:
        fault("E106", f"no kernels on {tracer.target} check promises", help="leave `own_checks()` out")
    tracer.emit(Policy("own_checks", (), span=tracer.span()))


def early_reads() -> None:
    """In a program, copy from tensors that no launch before writes to registers ahead of the wait for that launch.

    So do copies up to the first statement that accesses another tensor. It changes no result: the launch before has
    waited for all that was launched before the program.
    Raises E106 on a target without programmatic dependent launch.
    """
    tracer = current("early_reads")
    if "wgmma" not in tracer.target.queues:
        fault("E106", f"launches on {tracer.target} never overlap", help="leave `early_reads()` out")
    tracer.emit(Policy("early_reads", (), span=tracer.span()))
