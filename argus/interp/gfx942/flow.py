"""Program flow, waits and barriers: SOPP [MI300 ISA, "Program flow control", "Data dependency resolution"]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.interp.gfx942.findings import Finding, Where
from argus.interp.gfx942.instruction import EXEC, VCC, Instruction
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.state import Array, Group, Mask, Wave


class DivergedError(Exception):
    """Workgroups that are executed together go different ways. taken: those that branch."""

    def __init__(self, taken: Mask) -> None:
        super().__init__()
        self.taken = taken


def _branch(when: Callable[[Wave], Array] | None) -> Callable[[Group, Wave, Instruction], None]:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        target = instruction.address + 4 + 4 * instruction.immediate
        if when is None:
            wave.at = target
            return
        taken = np.broadcast_to(when(wave), (group.count,))
        if taken.all():
            wave.at = target
        elif taken.any():
            raise DivergedError(taken)

    return run


def _zero(register: int) -> Callable[[Wave], Array]:
    return lambda wave: (wave.s[register] | wave.s[register + 1]) == 0


def _nonzero(register: int) -> Callable[[Wave], Array]:
    return lambda wave: (wave.s[register] | wave.s[register + 1]) != 0


def _end(_group: Group, wave: Wave, _instruction: Instruction) -> None:
    wave.state = "ended"


def _barrier(_group: Group, wave: Wave, _instruction: Instruction) -> None:
    wave.state = "at barrier"


def _wait(_group: Group, wave: Wave, instruction: Instruction) -> None:
    """vmcnt is bits 15:14 and 3:0 of the immediate, lgkmcnt bits 11:8 [LLVM AMDGPU user guide]."""
    immediate = instruction.immediate
    wave.scoreboard.wait(immediate & 15 | (immediate >> 14 & 3) << 4, immediate >> 8 & 15)


def _trap(group: Group, wave: Wave, instruction: Instruction) -> None:
    """The trap handler ends the queue: here it is told, and the wave ends."""
    for number in range(group.count):
        place = tuple(int(each) for each in group.ids[number])
        where = Where((place[0], place[1], place[2]), wave.number)
        group.findings.add(Finding("trap", instruction.address, str(instruction), "the kernel traps", where))
    wave.state = "ended"


def _nothing(_group: Group, _wave: Wave, _instruction: Instruction) -> None:
    """No effect on what is computed."""


ROWS: tuple[Row, ...] = (
    act("s_nop", "SOPP", 0, "=", _nothing),
    act("s_endpgm", "SOPP", 1, "=", _end),
    act("s_branch", "SOPP", 2, "=", _branch(None)),
    act("s_cbranch_scc0", "SOPP", 4, "= scc", _branch(lambda wave: ~wave.scc)),
    act("s_cbranch_scc1", "SOPP", 5, "= scc", _branch(lambda wave: wave.scc)),
    act("s_cbranch_vccz", "SOPP", 6, "= vcc", _branch(_zero(VCC))),
    act("s_cbranch_vccnz", "SOPP", 7, "= vcc", _branch(_nonzero(VCC))),
    act("s_cbranch_execz", "SOPP", 8, "= exec", _branch(_zero(EXEC))),
    act("s_cbranch_execnz", "SOPP", 9, "= exec", _branch(_nonzero(EXEC))),
    act("s_barrier", "SOPP", 10, "=", _barrier),
    act("s_waitcnt", "SOPP", 12, "=", _wait),
    act("s_sleep", "SOPP", 14, "=", _nothing),
    act("s_setprio", "SOPP", 15, "=", _nothing),
    act("s_trap", "SOPP", 18, "=", _trap),
    act("s_icache_inv", "SOPP", 19, "=", _nothing),
)
