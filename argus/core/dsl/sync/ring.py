"""`Ring`: a queue of slots in shared memory between the role that fills them and those that drain them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import prod

from attrs import evolve

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import IntLike, extent, uniform_index
from argus.core.dsl.source_location import leaves_early, user_frame
from argus.core.dsl.sync.barriers import declare, event
from argus.core.dsl.sync.use_counters import UseCounters
from argus.core.dsl.tracer import Agent, Tracer, current, early_exit_fault
from argus.core.dsl.views import Tensor
from argus.core.index import Index
from argus.core.ir import (
    Alloc,
    Arrive,
    Await,
    Buffer,
    Copy,
    Let,
    One,
    Origin,
    Staged,
    Stmt,
    Sync,
    View,
    axes_of,
    bodies,
    static,
    walk,
    with_bodies,
)
from argus.core.memory.swizzle_tiles import staged_layout
from argus.core.span import Span


class Slot:
    """One slot: `slot.a` is the tile that the ring calls `a`."""

    def __init__(self, ring: str, tiles: dict[str, Tensor]) -> None:
        self._ring = ring
        self._tiles = tiles

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._tiles:
            return self._tiles[name]
        fault("E106", f"a slot of `{self._ring}` has no tile `{name}`", help=f"it has {', '.join(self._tiles)}")


class _Filling:
    """The slot that copies now go to."""

    def __init__(self, event: View, buffers: frozenset[Buffer]) -> None:
        self.event = event
        self._buffers = buffers

    def holds(self, view: View) -> bool:
        return view.buffer in self._buffers


class Ring:
    """`Ring(stages, a=shared(...), b=shared(...))`: a slot is one of each tile, which may be turned, `shared(...).T`.

    Use u of the ring has slot u % stages. Barrier `full` counts the filler's one arrival and its bytes; `empty` counts
    an arrival for each agent that drains a use, which is known when the kernel has been traced. Cursors count uses, so
    that nobody writes a phase: the filler waits for phase u // stages - 1 of `empty`, a drainer for phase u // stages
    of `full`; `release` gives back the oldest slot still held. Where copies of a slot go to all blocks of a cluster, so
    do arrivals of those who drain it: each filler waits until all have read what it fills.
    """

    def __init__(self, stages: int, /, **tiles: Tensor) -> None:
        tracer = current("Ring")
        self._stages = extent(stages, "the stages of a ring")
        if not tiles:
            fault("E106", "a ring without tiles", help="write `Ring(4, a=shared(...), b=shared(...))`")
        self.name = tracer.name("ring")
        self._span = tracer.span()
        self._buffers = {key: self._staged(tracer, key, tile) for key, tile in tiles.items()}
        self._views = {key: tile.view for key, tile in tiles.items()}
        self._full = declare(tracer, "Ring", tracer.unique(f"{self.name}_full"), self._stages, 1, self._span)
        self._empty = declare(tracer, "Ring", tracer.unique(f"{self.name}_empty"), self._stages, 1, self._span)
        self._cursors = UseCounters(self.name)
        self._uses = 0
        self._shared = False
        self._fillers: set[Agent] = set()
        self._skippers: set[Agent] = set()
        self._releases: dict[Agent, list[Let]] = {}
        tracer.at_end.append(lambda: self._count_drainers(tracer))

    def _staged(self, tracer: Tracer, key: str, tile: Tensor) -> Buffer:
        """The tile's storage, `stages` times: takes the place of the declaration that `shared` made."""
        if not isinstance(tile, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
            fault("E106", f"tile `{key}` of a ring is {describe_value(tile)}", help="make it with `shared(...)`")
        one, body = tile.view.buffer, tracer.scopes[-1].body
        found = next((p for p, stmt in enumerate(body) if isinstance(stmt, Alloc) and stmt.buffer is one), None)
        if found is None or one.space != "shared" or not isinstance(one.layout, Staged):
            fault("E106", f"tile `{key}` of a ring is not `shared(...)` made for it", help="make it in the call")
        if axes_of(tile.view) is None:
            message = f"tile `{key}` of a ring is a part of `{one.name}`"
            fault("E106", message, help="give all of it, or all of it as `.T`")
        layout = staged_layout(one, self._stages)
        made = evolve(
            one,
            name=tracer.unique(f"{self.name}_{key}"),
            shape=(algebra.const(self._stages), *one.shape),
            layout=Staged(layout, one.layout.swizzle),
        )
        body[found] = Alloc(made, span=one.span)
        return made

    def _slot(self, use: Index) -> Slot:
        stage = algebra.mod(use, self._stages)
        views = ((key, self._views[key], buffer) for key, buffer in self._buffers.items())
        tiles = {key: Tensor(evolve(view, buffer=buffer, at=(stage, *view.at))) for key, view, buffer in views}
        return Slot(self.name, tiles)

    def _event(self, buffer: Buffer, use: Index) -> View:
        return event(buffer, algebra.mod(use, self._stages))

    def _round(self, use: Index) -> Index:
        return algebra.floordiv(use, self._stages)

    def _origin(self) -> Origin:
        self._uses += 1
        return Origin(f"ring {self.name}", self._uses - 1)

    @contextmanager
    def fill(self) -> Generator[Slot]:
        """The next slot, once it is empty; copies into it complete on its barrier.

        Raises E208 in a role of several threads, or where the bytes of the copies are not the same for each use.
        """
        tracer = current("Ring.fill")
        if tracer.agent.threads != 1:
            fault(
                "E208",
                f"`{self.name}` is filled by {tracer.agent.threads} threads",
                help="fill it in a role of one thread: `role(name, warpgroup(0).elected)`",
            )
        origin, span = self._origin(), tracer.span()
        self._fillers.add(tracer.agent)
        _, use = self._cursors.read(tracer, "filled", origin)
        free = algebra.sub(self._round(use), 1)
        tracer.emit(Await(self._event(self._empty, use), free, span=span, origin=origin))
        scope = tracer.scopes[-1]
        start = len(scope.body)
        filling = _Filling(self._event(self._full, use), frozenset(self._buffers.values()))
        tracer.fills.append(filling)
        yield self._slot(use)
        frame = user_frame()
        if tracer.scopes[-1] is not scope or (frame is not None and leaves_early(frame)):
            early_exit_fault("fill", span)
        tracer.fills.remove(filling)
        size = self._announced(tuple(scope.body[start:]), filling.event, span)
        scope.body.insert(start, Arrive(filling.event, 1, algebra.const(size), span=span, origin=origin))
        self._cursors.advance(tracer, "filled", algebra.const(1), origin)

    def _announced(self, body: tuple[Stmt, ...], signal: View, span: Span) -> int:
        """Bytes that land in the slot in each use."""
        copies = [stmt for stmt in walk(body) if isinstance(stmt, Copy) and stmt.signal is signal]
        for stmt in copies:
            if not any(stmt is own for own in body):
                fault(
                    "E208",
                    f"a slot of `{self.name}` gets this copy in some uses only",
                    here="inside a branch or a loop",
                    span=stmt.span,
                    help="copy the same tiles in every fill; `edge=0` reads 0 outside the tensor",
                )
        if not copies:
            fault("E208", f"nothing is copied into a slot of `{self.name}`", span=span, help="copy into it `via=tma`")
        return sum(_bytes(stmt) * self._times(stmt) for stmt in copies)

    def _times(self, stmt: Copy) -> int:
        """How often the copy lands in this block's slot: once from each block that sends it here."""
        if stmt.peers is None:
            return 1
        blocks = prod(current("Ring.fill").cluster)
        if stmt.peers is not algebra.const((1 << blocks) - 1):
            what = f"a slot of `{self.name}` filled by a multicast to a part of the cluster is not built yet"
            fault("E501", what, span=stmt.span, help="send it to all blocks, or use barriers by hand")
        self._shared = True
        return blocks

    def wait(self) -> Slot:
        """The next slot to be drained, once it is full."""
        tracer = current("Ring.wait")
        origin = self._origin()
        _, use = self._cursors.read(tracer, "waited", origin)
        full = self._event(self._full, use)
        tracer.emit(Await(full, self._round(use), span=tracer.span(), origin=origin))
        self._cursors.advance(tracer, "waited", algebra.const(1), origin)
        return self._slot(use)

    def release(self) -> None:
        """Give back the oldest slot still held. Where its ordinary readers are several, they meet first."""
        tracer = current("Ring.release")
        origin, span, agent = self._origin(), tracer.span(), tracer.agent
        found, use = self._cursors.read(tracer, "released", origin)
        if agent not in self._releases:
            self._releases[agent] = []
            agent.at_end.append(lambda body: self._met(agent, body))
        self._releases[agent].append(found)
        done = Arrive(self._event(self._empty, use), 1, algebra.const(0), span=span, origin=origin)
        tracer.emit(One((done,), span=span, origin=origin))
        self._cursors.advance(tracer, "released", algebra.const(1), origin)

    def skip(self, count: IntLike) -> None:
        """The next `count` uses are drained by others."""
        tracer = current("Ring.skip")
        origin, by = self._origin(), uniform_index(count)
        self._skippers.add(tracer.agent)
        self._cursors.advance(tracer, "waited", by, origin)
        self._cursors.advance(tracer, "released", by, origin)

    def finish(self) -> None:
        """Until every slot that was filled has been given back."""
        tracer = current("Ring.finish")
        origin, span = self._origin(), tracer.span()
        _, use = self._cursors.read(tracer, "filled", origin)
        for stage in range(self._stages):
            ahead = algebra.add(use, stage)
            phase = algebra.sub(self._round(ahead), 1)
            tracer.emit(Await(self._event(self._empty, ahead), phase, span=span, origin=origin))

    def _met(self, agent: Agent, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """One thread's arrival orders its own reads only: those of the others come before a meeting."""
        read = any(
            isinstance(stmt, Copy) and stmt.atom.proxy == "generic" and stmt.source.buffer in self._buffers.values()
            for stmt in walk(body)
        )
        if agent.threads == 1 or not read:
            return body
        return _before(body, frozenset(self._releases[agent]), agent)

    def _count_drainers(self, tracer: Tracer) -> None:
        """Agents that drain one use: all of a role that does not skip, one at a time of a role that does."""
        count = sum(1 if agent in self._skippers else agent.agents for agent in self._releases)
        if bool(self._fillers) != bool(count):
            missing, done = ("released", "filled") if self._fillers else ("filled", "released")
            fault(
                "E208",
                f"slots of `{self.name}` are {done}, none is {missing}",
                span=self._span,
                help="fill in one role, wait and release in the others",
            )
        if len(self._fillers) > 1:
            fault("E208", f"`{self.name}` is filled by two roles", span=self._span, help="give each a ring of its own")
        body, blocks = tracer.scopes[0].body, prod(tracer.cluster) if self._shared else 1
        for position, stmt in enumerate(body):
            if isinstance(stmt, Alloc) and stmt.buffer is self._empty:
                body[position] = evolve(stmt, count=max(1, count) * blocks)
        if self._shared:
            body[:] = _to_all(tuple(body), self._empty, blocks)


def _to_all(body: tuple[Stmt, ...], barrier: Buffer, blocks: int) -> tuple[Stmt, ...]:
    """The body with arrivals at the barrier made at that of each block of the cluster."""
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Arrive) and stmt.event.buffer is barrier:
            made += [evolve(stmt, event=evolve(stmt.event, peer=algebra.const(rank))) for rank in range(blocks)]
        else:
            made.append(with_bodies(stmt, tuple(_to_all(part, barrier, blocks) for part in bodies(stmt))))
    return tuple(made)


def _before(body: tuple[Stmt, ...], marks: frozenset[Let], agent: Agent) -> tuple[Stmt, ...]:
    """The body with a meeting of the agent before each of these statements."""
    made: list[Stmt] = []
    for stmt in body:
        if stmt in marks:
            made.append(Sync(agent.name or "cta", "meet", agent.threads, span=stmt.span, origin=stmt.origin))
        made.append(with_bodies(stmt, tuple(_before(part, marks, agent) for part in bodies(stmt))))
    return tuple(made)


def _bytes(stmt: Copy) -> int:
    elements = 1
    for size in stmt.target.shape:
        elements *= static(size)
    return elements * stmt.target.buffer.dtype.bits // 8
