"""Barriers that count arrivals and bytes, by hand; `Ring` and `Turns` are made of them."""

from __future__ import annotations

from attrs import evolve

from argus.core import algebra
from argus.core.dsl.clusters import ranked_peer
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import IntLike, extent, number, uniform_index
from argus.core.dsl.tracer import Tracer, current
from argus.core.dtype import i32
from argus.core.index import Index
from argus.core.ir import Alloc, Arrive, Await, Buffer, Staged, View
from argus.core.layout import row_major
from argus.core.span import Span


def declare(tracer: Tracer, what: str, name: str, stages: int, count: int, span: Span) -> Buffer:
    """Barriers `name[0]` to `name[stages - 1]`, each complete after `count` arrivals.

    Raises E208 inside a body: all threads must know the barriers before any uses one.
    """
    if len(tracer.scopes) != 1:
        fault(
            "E208",
            f"`{what}` is made inside a role, loop or branch",
            help="make it at the kernel's top level, before the roles",
        )
    if "wgmma" not in tracer.target.queues:
        fault("E501", f"barriers of {tracer.target} are not built yet", help="use `sync()`")
    buffer = Buffer(name, "barrier", i32, (algebra.const(stages),), Staged(row_major((stages,))), align=8, span=span)
    tracer.emit(Alloc(buffer, count=count, span=span))
    return buffer


def event(buffer: Buffer, at: Index) -> View:
    """One barrier of several."""
    return View(buffer, (), (at,))


class Barrier:
    """One barrier, or several of which `b[i]` is one."""

    def __init__(self, buffer: Buffer, at: Index) -> None:
        self.view = event(buffer, at)

    def __getitem__(self, index: IntLike) -> Barrier:
        return Barrier(self.view.buffer, uniform_index(index))

    def of(self, rank: IntLike) -> Barrier:
        """The same barrier of the block of this cluster that has this rank; what is done with it is `arrive`."""
        made = Barrier(self.view.buffer, self.view.at[0])
        made.view = evolve(self.view, peer=ranked_peer(current("of"), rank))
        return made

    def arrive(self, count: int = 1, *, bytes: IntLike = 0) -> None:  # noqa: A002 reason: what the barrier counts
        """Each thread that runs this arrives `count` times and announces `bytes` that copies will land."""
        tracer = current("arrive")
        times = extent(count, "a count of arrivals")
        tracer.emit(Arrive(self.view, times, uniform_index(bytes), span=tracer.span()))

    def wait(self, phase: IntLike) -> None:
        """Until phase number `phase` is complete, counted from 0; parities are compared, as the hardware does."""
        tracer = current("wait")
        tracer.emit(Await(self.view, uniform_index(phase), span=tracer.span()))


def barrier(count: int, *, of: int = 1) -> Barrier:
    """`of` barriers, each complete after `count` arrivals and the bytes announced."""
    tracer = current("barrier")
    arrivals, stages = extent(count, "a count of arrivals"), extent(of, "the number of barriers")
    if number(count, "a count of arrivals") >= 1 << 20:
        fault("E208", f"a barrier of {arrivals} arrivals", help="give fewer than 2^20 [PTX ISA, mbarrier.init]")
    buffer = declare(tracer, "barrier", tracer.name("barrier"), stages, arrivals, tracer.span())
    return Barrier(buffer, algebra.const(0))
