"""`Ring`: a circular multi-stage buffer in shared memory between a producer role and its consumer roles."""

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
    """One slot of a ring: `slot.a` is its tile named `a`."""

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
    """A slot being filled (`tracer.Fill`). event: its full barrier."""

    def __init__(self, event: View, buffers: frozenset[Buffer]) -> None:
        self.event = event
        self._buffers = buffers

    def holds(self, view: View) -> bool:
        return view.buffer in self._buffers


class Ring:
    """`Ring(stages, a=shared(...), b=shared(...))`: a slot has one of each tile; tiles may be transposed (`.T`).

    Use u of the ring takes slot u % stages. Barrier `full` counts the producer's arrival and the bytes; `empty` counts
    one arrival per agent that consumes a use, a number that is known only at the end of the trace. Counters of uses
    replace explicit phases: the producer waits for phase u // stages - 1 of `empty`, a consumer for phase u // stages
    of `full`, and `release` frees the oldest acquired slot. If copies into a slot are multicast to all blocks of a
    cluster, consumers arrive at `empty` of all these blocks: each producer waits until all of them have read the slot.
    """

    def __init__(self, stages: int, /, **tiles: Tensor) -> None:
        tracer = current("Ring")
        self._stages = extent(stages, "the stages of a ring")
        if not tiles:
            fault("E106", "a ring without tiles", help="write `Ring(4, a=shared(...), b=shared(...))`")
        self.name = tracer.name("ring")
        self._span = tracer.span()
        self._buffers = {key: self._stage_tile(tracer, key, tile) for key, tile in tiles.items()}
        self._views = {key: tile.view for key, tile in tiles.items()}
        self._full = declare(tracer, "Ring", tracer.unique(f"{self.name}_full"), self._stages, 1, self._span)
        self._empty = declare(tracer, "Ring", tracer.unique(f"{self.name}_empty"), self._stages, 1, self._span)
        self._counters = UseCounters(self.name)
        self._uses = 0
        self._multicast = False
        self._producers: set[Agent] = set()
        self._skippers: set[Agent] = set()
        self._releases: dict[Agent, list[Let]] = {}
        tracer.at_end.append(lambda: self._set_empty_count(tracer))

    def _stage_tile(self, tracer: Tracer, key: str, tile: Tensor) -> Buffer:
        """Replace the declaration that `shared` made by one of a buffer with a leading axis of `stages`."""
        if not isinstance(tile, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
            fault("E106", f"tile `{key}` of a ring is {describe_value(tile)}", help="make it with `shared(...)`")
        one, body = tile.view.buffer, tracer.scopes[-1].body
        found = next((p for p, stmt in enumerate(body) if isinstance(stmt, Alloc) and stmt.buffer is one), None)
        if found is None or one.space != "shared" or not isinstance(one.layout, Staged):
            fault("E106", f"tile `{key}` of a ring is not `shared(...)` made for it", help="make it in the call")
        if axes_of(tile.view) is None:
            message = f"tile `{key}` of a ring is a part of `{one.name}`"
            fault("E106", message, help="give the whole tile, or the whole tile as `.T`")
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

    def _phase(self, use: Index) -> Index:
        return algebra.floordiv(use, self._stages)

    def _origin(self) -> Origin:
        self._uses += 1
        return Origin(f"ring {self.name}", self._uses - 1)

    @contextmanager
    def fill(self) -> Generator[Slot]:
        """Wait until the next slot is empty; copies into it in the body complete on its barrier.

        Raises E208 in a role of several threads, or if the bytes copied may differ between uses.
        """
        tracer = current("Ring.fill")
        if tracer.agent.threads != 1:
            fault(
                "E208",
                f"`{self.name}` is filled by {tracer.agent.threads} threads",
                help="fill it in a role of one thread: `role(name, warpgroup(0).elected)`",
            )
        origin, span = self._origin(), tracer.span()
        self._producers.add(tracer.agent)
        _, use = self._counters.read(tracer, "filled", origin)
        free = algebra.sub(self._phase(use), 1)
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
        size = self._transaction_bytes(tuple(scope.body[start:]), filling.event, span)
        scope.body.insert(start, Arrive(filling.event, 1, algebra.const(size), span=span, origin=origin))
        self._counters.advance(tracer, "filled", algebra.const(1), origin)

    def _transaction_bytes(self, body: tuple[Stmt, ...], signal: View, span: Span) -> int:
        """The bytes that arrive in the slot in each use."""
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
        return sum(_copy_bytes(stmt) * self._deliveries(stmt) for stmt in copies)

    def _deliveries(self, stmt: Copy) -> int:
        """How many blocks' copies arrive in this block's slot: 1, or with a multicast all blocks of the cluster."""
        if stmt.peers is None:
            return 1
        blocks = prod(current("Ring.fill").cluster)
        if stmt.peers is not algebra.const((1 << blocks) - 1):
            what = f"a slot of `{self.name}` filled by a multicast to a part of the cluster is not built yet"
            fault("E501", what, span=stmt.span, help="send it to all blocks, or use barriers by hand")
        self._multicast = True
        return blocks

    def wait(self) -> Slot:
        """Wait until the next slot is full, and acquire it for reading."""
        tracer = current("Ring.wait")
        origin = self._origin()
        _, use = self._counters.read(tracer, "waited", origin)
        full = self._event(self._full, use)
        tracer.emit(Await(full, self._phase(use), span=tracer.span(), origin=origin))
        self._counters.advance(tracer, "waited", algebra.const(1), origin)
        return self._slot(use)

    def release(self, *, sync: bool = True) -> None:
        """Release the oldest acquired slot; a barrier of the agent comes first if several threads read it directly.

        sync: False leaves that barrier out, where another one comes between these reads and the release.
        """
        tracer = current("Ring.release")
        origin, span, agent = self._origin(), tracer.span(), tracer.agent
        found, use = self._counters.read(tracer, "released", origin)
        if agent not in self._releases:
            self._releases[agent] = []
            agent.at_end.append(lambda body: self._sync_before_releases(agent, body))
        if sync:
            self._releases[agent].append(found)
        done = Arrive(self._event(self._empty, use), 1, algebra.const(0), span=span, origin=origin)
        tracer.emit(One((done,), span=span, origin=origin))
        self._counters.advance(tracer, "released", algebra.const(1), origin)

    def skip(self, count: IntLike) -> None:
        """Skip the next `count` uses, which other agents consume."""
        tracer = current("Ring.skip")
        origin, by = self._origin(), uniform_index(count)
        self._skippers.add(tracer.agent)
        self._counters.advance(tracer, "waited", by, origin)
        self._counters.advance(tracer, "released", by, origin)

    def finish(self) -> None:
        """Wait until every filled slot has been released."""
        tracer = current("Ring.finish")
        origin, span = self._origin(), tracer.span()
        _, use = self._counters.read(tracer, "filled", origin)
        for stage in range(self._stages):
            ahead = algebra.add(use, stage)
            phase = algebra.sub(self._phase(ahead), 1)
            tracer.emit(Await(self._event(self._empty, ahead), phase, span=span, origin=origin))

    def _sync_before_releases(self, agent: Agent, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The body with a barrier of the agent before each release, if several threads read slots by ordinary loads.

        The arrival of one thread orders only its own reads before the release.
        """
        read = any(
            isinstance(stmt, Copy) and stmt.atom.proxy == "generic" and stmt.source.buffer in self._buffers.values()
            for stmt in walk(body)
        )
        if agent.threads == 1 or not read:
            return body
        return _with_sync_before(body, frozenset(self._releases[agent]), agent)

    def _set_empty_count(self, tracer: Tracer) -> None:
        """Set the arrival count of `empty`: every agent of a role without `skip`, one agent of a role with it."""
        count = sum(1 if agent in self._skippers else agent.agents for agent in self._releases)
        if bool(self._producers) != bool(count):
            missing, done = ("released", "filled") if self._producers else ("filled", "released")
            fault(
                "E208",
                f"slots of `{self.name}` are {done}, none is {missing}",
                span=self._span,
                help="fill in one role, wait and release in the others",
            )
        if len(self._producers) > 1:
            fault(
                "E208",
                f"`{self.name}` is filled by two roles",
                span=self._span,
                help="give each role its own ring",
            )
        body, blocks = tracer.scopes[0].body, prod(tracer.cluster) if self._multicast else 1
        for position, stmt in enumerate(body):
            if isinstance(stmt, Alloc) and stmt.buffer is self._empty:
                body[position] = evolve(stmt, count=max(1, count) * blocks)
        if self._multicast:
            body[:] = _arrive_at_all_blocks(tuple(body), self._empty, blocks)


def _arrive_at_all_blocks(body: tuple[Stmt, ...], barrier: Buffer, blocks: int) -> tuple[Stmt, ...]:
    """The body with each arrival at the barrier repeated for every block of the cluster."""
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Arrive) and stmt.event.buffer is barrier:
            made += [evolve(stmt, event=evolve(stmt.event, peer=algebra.const(rank))) for rank in range(blocks)]
        else:
            made.append(with_bodies(stmt, tuple(_arrive_at_all_blocks(part, barrier, blocks) for part in bodies(stmt))))
    return tuple(made)


def _with_sync_before(body: tuple[Stmt, ...], releases: frozenset[Let], agent: Agent) -> tuple[Stmt, ...]:
    """The body with a barrier of the agent before each of these statements."""
    made: list[Stmt] = []
    for stmt in body:
        if stmt in releases:
            made.append(Sync(agent.name or "cta", "meet", agent.threads, span=stmt.span, origin=stmt.origin))
        made.append(with_bodies(stmt, tuple(_with_sync_before(part, releases, agent) for part in bodies(stmt))))
    return tuple(made)


def _copy_bytes(stmt: Copy) -> int:
    elements = 1
    for size in stmt.target.shape:
        elements *= static(size)
    return elements * stmt.target.buffer.dtype.bits // 8
