"""Mutation operators on waits for queues, barriers and fences: drop, weaken, or replace one."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.algebra import eq, floordiv, mod, sym
from argus.core.ir import Commit, Fence, If, Kernel, Mma, Sync, Wait
from argus.core.ir.surgery import fresh_copies
from argus.testing.mutation.operator import Change, Operator, around, each, loops_around, other

_OTHER_QUEUE = {"lds": "vmem", "vmem": "lds", "wgmma": "bulk", "bulk": "wgmma", "cp_async": "bulk"}
_FENCES = ("async_proxy", "wgmma", "barrier_init", "device")


def _drop(_: Kernel, stmt: Wait | Sync | Fence | Commit) -> Iterator[Change]:
    yield (), f"{type(stmt).__name__} dropped"


def _twice(_: Kernel, stmt: Sync | Commit) -> Iterator[Change]:
    yield (stmt, *fresh_copies((stmt,))), f"{type(stmt).__name__} twice"


def _weaker(_: Kernel, stmt: Wait) -> Iterator[Change]:
    yield from other(stmt, f"{stmt.pending + 1} may be left", pending=stmt.pending + 1)


def _much_weaker(_: Kernel, stmt: Wait) -> Iterator[Change]:
    yield from other(stmt, f"{stmt.pending + 2} may be left", pending=stmt.pending + 2)


def _stronger(_: Kernel, stmt: Wait) -> Iterator[Change]:
    if stmt.pending:
        yield from other(stmt, f"{stmt.pending - 1} may be left", pending=stmt.pending - 1)


def _of_another_queue(_: Kernel, stmt: Wait) -> Iterator[Change]:
    queue = _OTHER_QUEUE[stmt.queue]
    yield from other(stmt, f"waits for {queue}", queue=queue, of="all")


def _of_reads(_: Kernel, stmt: Wait) -> Iterator[Change]:
    if stmt.queue == "bulk":
        of = "all" if stmt.of == "reads" else "reads"
        yield from other(stmt, f"waits for {of}", of=of)


def _grouped(_: Kernel, stmt: Mma) -> Iterator[Change]:
    if stmt.atom.completion.queue is not None:
        yield from other(stmt, "joins the next group", grouped=not stmt.grouped)


def _of_fewer(_: Kernel, stmt: Sync) -> Iterator[Change]:
    if stmt.threads is None:
        return
    for threads in (stmt.threads // 2, stmt.threads - 32, stmt.threads * 2):
        if threads > 0:
            yield from other(stmt, f"{threads} threads meet", threads=threads)


def _without_waiting(_: Kernel, stmt: Sync) -> Iterator[Change]:
    yield from other(stmt, "arrives and goes on", how="arrive")


def _elsewhere(_: Kernel, stmt: Sync) -> Iterator[Change]:
    barrier = "another" if stmt.barrier == "cta" else "cta"
    yield from other(stmt, f"meets at `{barrier}`", barrier=barrier)


def _of_some_waves(kernel: Kernel, stmt: Sync) -> Iterator[Change]:
    wave = floordiv(sym(kernel.thread), kernel.target.unit)
    if not around(kernel, stmt) or kernel.roles is None:
        yield (If(eq(mod(wave, 2), 0), (stmt,), span=stmt.span),), "of even waves alone"
    for symbol in loops_around(kernel, stmt)[-1:]:
        yield (If(eq(mod(sym(symbol), 2), 0), (stmt,), span=stmt.span),), f"where {symbol.name} is even"


def _of_another_kind(_: Kernel, stmt: Fence) -> Iterator[Change]:
    for kind in _FENCES:
        yield from other(stmt, f"a fence of {kind}", kind=kind)


OPERATORS: tuple[Operator, ...] = (
    Operator("drop_wait", "a wait is left out", each(Wait, _drop)),
    Operator("weaken_wait", "a wait leaves one more", each(Wait, _weaker)),
    Operator("weaken_wait_by_two", "a wait leaves two more", each(Wait, _much_weaker)),
    Operator("strengthen_wait", "a wait leaves one fewer", each(Wait, _stronger)),
    Operator("wait_for_another_queue", "a wait is for another queue", each(Wait, _of_another_queue)),
    Operator("wait_for_reads", "a wait for stores is one for their reads, or the reverse", each(Wait, _of_reads)),
    Operator("group_products", "a product joins the group of the next commit", each(Mma, _grouped)),
    Operator("drop_commit", "a commit is left out", each(Commit, _drop)),
    Operator("repeat_commit", "a commit is repeated, which adds an empty group", each(Commit, _twice)),
    Operator("drop_meeting", "a barrier is left out", each(Sync, _drop)),
    Operator("repeat_meeting", "a barrier is executed twice", each(Sync, _twice)),
    Operator("meeting_of_others", "a barrier is for another number of threads", each(Sync, _of_fewer)),
    Operator("meeting_without_waiting", "a barrier is an arrival only", each(Sync, _without_waiting)),
    Operator("meeting_elsewhere", "a barrier is another one", each(Sync, _elsewhere)),
    Operator("partial_meeting", "some waves, or some iterations, skip a barrier", each(Sync, _of_some_waves)),
    Operator("drop_fence", "a fence is left out", each(Fence, _drop)),
    Operator("fence_of_another_kind", "a fence orders something else", each(Fence, _of_another_kind)),
)
