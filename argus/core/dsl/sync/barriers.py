"""mbarriers, which count arrivals and bytes; `Ring` and `Turns` are built from them."""

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
    """Declare barriers `name[0]` to `name[stages - 1]`, each of whose phases completes after `count` arrivals.

    Raises E208 inside a role, loop or branch: the initialisation must be visible to all threads before any use.
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
    """The view of one barrier of a buffer of barriers."""
    return View(buffer, (), (at,))


class Barrier:
    """An mbarrier, or an array of them: `b[i]`."""

    def __init__(self, buffer: Buffer, at: Index) -> None:
        self.view = event(buffer, at)

    def __getitem__(self, index: IntLike) -> Barrier:
        return Barrier(self.view.buffer, uniform_index(index))

    def of(self, rank: IntLike) -> Barrier:
        """The same barrier in the block with this rank in the cluster; only `arrive` may be called on it."""
        made = Barrier(self.view.buffer, self.view.at[0])
        made.view = evolve(self.view, peer=ranked_peer(current("of"), rank))
        return made

    def arrive(self, count: int = 1, *, bytes: IntLike = 0) -> None:  # noqa: A002 reason: what the barrier counts
        """Arrive `count` times from each executing thread, and add `bytes` to the expected transaction bytes."""
        tracer = current("arrive")
        times = extent(count, "a count of arrivals")
        tracer.emit(Arrive(self.view, times, uniform_index(bytes), span=tracer.span()))

    def wait(self, phase: IntLike) -> None:
        """Wait until phase number `phase`, counted from 0, is complete; the hardware compares parities only."""
        tracer = current("wait")
        tracer.emit(Await(self.view, uniform_index(phase), span=tracer.span()))


def barrier(count: int, *, of: int = 1) -> Barrier:
    """Declare `of` mbarriers whose phases complete after `count` arrivals and the expected bytes."""
    tracer = current("barrier")
    arrivals, stages = extent(count, "a count of arrivals"), extent(of, "the number of barriers")
    if number(count, "a count of arrivals") >= 1 << 20:
        fault("E208", f"a barrier of {arrivals} arrivals", help="give fewer than 2^20 [PTX ISA, mbarrier.init]")
    buffer = declare(tracer, "barrier", tracer.name("barrier"), stages, arrivals, tracer.span())
    return Barrier(buffer, algebra.const(0))
