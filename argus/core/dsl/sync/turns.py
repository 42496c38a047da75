"""`Turns`: agents execute a section of their bodies in a fixed cyclic order (CUTLASS: OrderedSequenceBarrier)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from argus.core import algebra
from argus.core.dsl.handles import IntLike, extent, uniform_index
from argus.core.dsl.source_location import leaves_early, user_frame
from argus.core.dsl.sync.barriers import declare, event
from argus.core.dsl.sync.use_counters import UseCounters
from argus.core.dsl.tracer import current, early_exit_fault
from argus.core.ir import Arrive, Await, One, Origin


class Turns:
    """`with turns(i):` agent i enters after agent i - 1 has left; agent 0 after the last agent of the previous round.

    Agent i - 1 arrives at barrier `turn[i]` when it leaves. Agent i's u-th entry waits for phase u of that barrier;
    agent 0 goes first, so that its u-th entry waits for phase u - 1, which is complete at once for u = 0.
    """

    def __init__(self, agents: int) -> None:
        tracer = current("Turns")
        self._agents = extent(agents, "the number of agents")
        self._name = tracer.name("turns")
        self._turn = declare(tracer, "Turns", self._name, self._agents, 1, tracer.span())
        self._counters = UseCounters(self._name)
        self._uses = 0

    @contextmanager
    def __call__(self, i: IntLike) -> Generator[None]:
        tracer = current("turns")
        origin = Origin(f"turns {self._name}", self._uses)
        self._uses += 1
        which, span = uniform_index(i), tracer.span()
        _, use = self._counters.read(tracer, "taken", origin)
        first = algebra.sub(algebra.minimum(which, 1), 1)  # -1 for agent 0, else 0
        tracer.emit(Await(event(self._turn, which), algebra.add(use, first), span=span, origin=origin))
        scope = tracer.scopes[-1]
        yield
        frame = user_frame()
        if tracer.scopes[-1] is not scope or (frame is not None and leaves_early(frame)):
            early_exit_fault("turns", span)
        following = algebra.mod(algebra.add(which, 1), self._agents)
        leave = Arrive(event(self._turn, following), 1, algebra.const(0), span=span, origin=origin)
        tracer.emit(One((leave,), span=span, origin=origin))
        self._counters.advance(tracer, "taken", algebra.const(1), origin)
