"""Runs the blocks of a cluster from start to end, interleaving agents as the adversary decides."""

from __future__ import annotations

from collections.abc import Sequence

from argus.interp.machine import clusters, deadlock
from argus.interp.machine.agents import Cluster, Machine, Unit
from argus.interp.machine.assembly import assemble
from argus.interp.machine.events import step
from argus.interp.search.schedule import Actor
from argus.interp.state import Launch
from argus.interp.violation import HaltError

Live = tuple[int, Unit, Actor]


def run_agents(launch: Launch, indices: Sequence[tuple[int, ...]]) -> None:
    """Run the blocks of one cluster, given by rank, then check that every bulk store has read its source (I13)."""
    cluster = assemble(launch, indices)
    try:
        _run(cluster)
    except HaltError:
        launch.halted = True
        return
    for machine in cluster.machines:
        _check_end(machine)
    cluster.engine.drain()


def _check_end(machine: Machine) -> None:
    """Shared memory ends with the block, so a thread that issued a bulk store must have waited for its reads (I13)."""
    for (queue, strand), groups in machine.groups.items():
        known = machine.strands.clocks[strand].done
        late = [op for op in groups if not known >> op.read & 1]
        if queue == "bulk" and late:
            message = "the thread that issued a bulk store ends without a wait for its reads"
            thread = machine.strands.bounds[strand][0] - machine.first
            machine.launch.reporter.report("I13", message, late[0].event, thread=thread)


def _run(cluster: Cluster) -> None:
    adversary, engine, units = cluster.launch.adversary, cluster.engine, cluster.units
    live = _live(units)
    while live:
        ready = _lowest(live) if adversary.only_lowest_matters else _ready(live)
        chosen = adversary.next_actor(ready, engine=bool(engine.lanes))
        if chosen is not None:
            unit = units[chosen]
            step(unit)
            if unit.finished:
                live = _live(units)
                _end_if_finished(unit.agent.machine)
            if adversary.schedule.style == "mixed":
                _let_time_pass(cluster)
        elif engine.lanes:
            engine.advance(adversary.next_operation(engine.heads()))
        else:
            deadlock.report(cluster)
            raise HaltError


def _end_if_finished(machine: Machine) -> None:
    if all(unit.finished for unit in machine.units):
        clusters.end_block(machine)


def _ready(live: Sequence[Live]) -> list[tuple[int, Actor]]:
    return [(number, actor) for number, unit, actor in live if unit.waiting is None or unit.waiting.over()]


def _lowest(live: Sequence[Live]) -> list[tuple[int, Actor]]:
    """The first unit of each actor that can execute."""
    found: dict[Actor, int] = {}
    for number, unit, actor in live:
        if actor not in found and (unit.waiting is None or unit.waiting.over()):
            found[actor] = number
    return [(number, actor) for actor, number in found.items()]


def _live(units: Sequence[Unit]) -> list[Live]:
    """Units that have not ended and may begin, since all units before them have ended."""
    return [
        (number, unit, unit.agent.actor)
        for number, unit in enumerate(units)
        if not unit.finished and all(before.finished for before in unit.after)
    ]


def _let_time_pass(cluster: Cluster) -> None:
    engine = cluster.engine
    for lane in list(engine.lanes):
        while lane in engine.lanes and cluster.launch.adversary.advances(_queue(lane)):
            engine.advance(engine.lanes[lane][0])


def _queue(lane: tuple[object, ...]) -> str:
    """The queue that shares a completion rate: a warpgroup's wgmma, a thread's groups, or all TMA loads."""
    return "tma" if lane[0] == "tma" else " ".join(map(str, lane))
