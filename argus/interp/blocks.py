"""One block of agents from start to end, under an adversary."""

from __future__ import annotations

from argus.interp import hang
from argus.interp.agents import Machine, Unit
from argus.interp.assembly import assemble
from argus.interp.events import step
from argus.interp.schedule import Actor
from argus.interp.state import Launch
from argus.interp.violation import HaltError


def run_agents(launch: Launch, index: tuple[int, ...]) -> None:
    """Run one block and judge what can be judged only at its end."""
    machine = assemble(launch, index)
    try:
        _run(machine)
    except HaltError:
        launch.halted = True
        return
    _judge_end(machine)
    machine.engine.drain()


def _judge_end(machine: Machine) -> None:
    """Shared memory ends with the block: whoever issued a bulk store has waited for its reads."""
    for (queue, strand), groups in machine.groups.items():
        known = machine.strands.clocks[strand].done
        late = [flight for flight in groups if not known >> flight.read & 1]
        if queue == "bulk" and late:
            message = "the thread that issued a bulk store ends without a wait for its reads"
            thread = machine.strands.bounds[strand][0]
            machine.launch.reporter.report("I13", message, late[0].event, thread=thread)


def _run(machine: Machine) -> None:
    adversary = machine.launch.adversary
    live = _live(machine)
    while live:
        ready: list[tuple[int, Actor]] = [(number, unit.agent.actor) for number, unit in live if unit.ready]
        chosen = adversary.next_actor(ready, engine=bool(machine.engine.lanes))
        if chosen is not None:
            unit = machine.units[chosen]
            step(unit)
            if unit.finished:
                live = _live(machine)
            if adversary.schedule.style == "mixed":
                _let_time_pass(machine)
        elif machine.engine.lanes:
            machine.engine.advance(adversary.next_operation(machine.engine.heads()))
        else:
            hang.report(machine)
            raise HaltError


def _live(machine: Machine) -> list[tuple[int, Unit]]:
    """Units that have not ended, and whose turn has come."""
    return [
        (number, unit)
        for number, unit in enumerate(machine.units)
        if not unit.finished and all(before.finished for before in unit.after)
    ]


def _let_time_pass(machine: Machine) -> None:
    for lane in list(machine.engine.lanes):
        while lane in machine.engine.lanes and machine.launch.adversary.advances(_queue(lane)):
            machine.engine.advance(machine.engine.lanes[lane][0])


def _queue(lane: tuple[object, ...]) -> str:
    """What a completion rate is drawn for: a warpgroup's products, a thread's groups, all loads of boxes."""
    return "tma" if lane[0] == "tma" else " ".join(map(str, lane))
