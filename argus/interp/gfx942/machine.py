"""Executes workgroups of a kernel: waves take turns in a seeded order until all have ended."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from argus.interp.gfx942.code_object import CodeObject, damaged
from argus.interp.gfx942.definedness import passes_on, run_undefined, run_with_fills, undefined, undefined_scalars
from argus.interp.gfx942.findings import Findings
from argus.interp.gfx942.flow import DivergedError
from argus.interp.gfx942.instruction import ACC, VCC
from argus.interp.gfx942.scoreboard import Issued
from argus.interp.gfx942.state import Group, Mask, Wave
from argus.interp.gfx942.step import Step, step_at
from argus.interp.gfx942.wait_states import Needs, too_early

_LONGEST_TURN = 64
"""Instructions that a wave executes at most before another may."""


@define
class Machine:
    """code: what is executed. findings: what it does wrong. executed: instructions, counted once for each wave of each
    workgroup. limit: of instructions that one wave may execute.
    """

    code: CodeObject
    findings: Findings
    random: np.random.Generator
    limit: int
    executed: int = 0
    _steps: dict[int, Step] = field(factory=dict[int, Step])
    _needs: Needs = field(factory=Needs)
    _near: dict[tuple[int, ...], set[int]] = field(factory=dict[tuple[int, ...], set[int]])
    """By the last jumps, the addresses after them at which wait states have been counted."""

    def run(self, group: Group) -> None:
        """Execute workgroups to their end. Raises ArgusError (E420, E502) as `step_at` does."""
        waiting = [group]
        with np.errstate(all="ignore"):
            while waiting:
                waiting += self._until_apart(waiting.pop())

    def _until_apart(self, group: Group) -> list[Group]:
        """Execute until all waves have ended, or the workgroups part; returns the parts."""
        budget = self.limit * len(group.waves)
        while True:
            ready = [wave for wave in group.waves if wave.state == "ready"]
            if not ready:
                if all(wave.state == "ended" for wave in group.waves):
                    self._check_races(group)
                    return []
                self._meet(group)
                continue
            wave = ready[int(self.random.integers(len(ready)))]
            try:
                budget -= self._turn(group, wave, int(self.random.integers(1, _LONGEST_TURN)))
            except DivergedError as apart:
                return [group.taken(apart.taken), group.taken(~apart.taken)]
            if budget < 0:
                step = self._steps[wave.at]
                what = f"a wave executes more than {self.limit:,} instructions"
                group.report("no end", wave, step.instruction, what)
                return []

    def _turn(self, group: Group, wave: Wave, turns: int) -> int:
        steps, recent, board, clean, done = self._steps, wave.recent, wave.scoreboard, wave.clean, 0
        while done < turns and wave.state == "ready":
            at = wave.at
            step = steps.get(at)
            if step is None:
                step = steps[at] = step_at(self.code, at)
                _check_registers(wave, step)
            if at not in recent.seen:
                self._check_states(group, wave, step)
            if (board.registers and not board.registers.keys().isdisjoint(step.touched)) or (
                board.scalars and not board.scalars.keys().isdisjoint(step.scalars_touched)
            ):
                self._check_waits(group, wave, step)
            wave.at = step.after
            try:
                if at in clean and wave.known_scc:
                    step.run(group, wave)
                else:
                    self._execute(group, wave, step)
            except DivergedError:
                wave.at = at
                raise
            recent.steps.append(step)
            if wave.at != step.after:
                recent.jumped(at)
                recent.seen = self._near.setdefault(recent.jumps, set())
            done += 1
        self.executed += done * group.count
        return done

    def _execute(self, group: Group, wave: Wave, step: Step) -> None:
        """Execute an instruction that may read registers that nothing has written."""
        scalars = undefined_scalars(wave, step)
        registers = [] if all(wave.whole[register] for register in step.reads) else undefined(wave, step)
        self._check_scc(group, wave, step)
        if not scalars and not registers:
            if wave.known_scc and all(wave.whole[register] for register in step.reads):
                wave.clean.add(step.instruction.address)
            step.run(group, wave)
            return
        if passes_on(step):
            if run_with_fills(group, wave, step, registers, scalars):
                self._uninitialised(
                    group, wave, step, "decides by bits that nothing has written which lanes are active"
                )
            return
        for register in scalars:
            self._uninitialised(group, wave, step, f"reads {_scalar_name(register)}, which nothing has written")
            wave.known[register] = True
        if (lanes := run_undefined(group, wave, step, registers)) is not None:
            names = ", ".join(map(_name, registers))
            what = f"uses {names}, of which nothing has written all that it uses"
            self._uninitialised(group, wave, step, what, lanes)

    def _check_scc(self, group: Group, wave: Wave, step: Step) -> None:
        """SCC that depends on bits that nothing has written."""
        if wave.known_scc:
            return
        if "scc" in step.instruction.row.sources:
            self._uninitialised(group, wave, step, "reads SCC, which depends on bits that nothing has written")
        if "scc" in (*step.instruction.row.sources, *step.instruction.row.results):
            wave.known_scc = True

    def _uninitialised(self, group: Group, wave: Wave, step: Step, what: str, lanes: Mask | None = None) -> None:
        group.report("uninitialised register", wave, step.instruction, what, lanes)

    def _check_waits(self, group: Group, wave: Wave, step: Step) -> None:
        """Registers that an operation writes that is not waited for."""
        board = wave.scoreboard
        for register in (*step.reads, *step.writes):
            issued = board.registers.get(register)
            if issued is not None and (register in step.reads or not _in_order(issued, step)):
                what = f"uses {_name(register)}, which `{issued.text}` writes, without a wait for it"
                group.report("used before its wait", wave, step.instruction, what, other=issued.address)
        for register in (*step.scalars_read, *step.scalars_written):
            if (issued := board.scalars.get(register)) is not None:
                what = f"uses {_scalar_name(register)}, which `{issued.text}` writes, without a wait for it"
                group.report("used before its wait", wave, step.instruction, what, other=issued.address)

    def _check_states(self, group: Group, wave: Wave, step: Step) -> None:
        wave.recent.seen.add(step.instruction.address)
        for producer, need, left, why in too_early(tuple(wave.recent.steps), step, self._needs):
            what = f"{why}: {need} wait states are needed after `{producer.instruction}`, there are {left}"
            group.report("missing wait states", wave, step.instruction, what, other=producer.instruction.address)

    def _meet(self, group: Group) -> None:
        """All waves that have not ended are at the barrier."""
        self._check_races(group)
        unfinished = [
            touch
            for wave in group.waves
            for issued in (*wave.scoreboard.vector, *wave.scoreboard.local)
            for touch in issued.late
        ]
        group.races.next_epoch(unfinished)
        for wave in group.waves:
            if wave.state == "at barrier":
                wave.state = "ready"

    def _check_races(self, group: Group) -> None:
        found = group.races.conflict()
        if found is None:
            return
        first, second, place = found
        workgroup, byte = divmod(place, group.races.stride)
        verb = "writes" if second.writes else "reads"
        what = (
            f"writes byte {byte} of LDS, which wave {second.wave} {verb} by `{second.instruction}` "
            "without a barrier between them, or with one that does not wait for the first"
        )
        lanes = np.zeros((group.count, 1), np.bool_)
        lanes[workgroup] = True
        group.report(
            "LDS race", group.waves[first.wave], first.instruction, what, lanes, other=second.instruction.address
        )


def _check_registers(wave: Wave, step: Step) -> None:
    """Raises ArgusError (E420) for registers that the kernel's descriptor does not ask for."""
    beyond = [register for register in (*step.reads, *step.writes) if register >= len(wave.whole)]
    if beyond:
        raise damaged(f"`{step.instruction}` uses {_name(beyond[0])}, which its descriptor does not ask for")


def _in_order(issued: Issued, step: Step) -> bool:
    """Whether two loads write their registers in the order in which they are issued."""
    return (issued.unit, step.unit) in {("vector", "vector memory"), ("lds", "lds")}


def _name(register: int) -> str:
    return f"a{register - ACC}" if register >= ACC else f"v{register}"


def _scalar_name(register: int) -> str:
    return {VCC: "vcc_lo", VCC + 1: "vcc_hi"}.get(register, f"s{register}")
