"""Which memory operations a wave has issued and not waited for.

`s_waitcnt` waits until at most so many operations of a counter are outstanding. Vector memory operations complete in
order, and so do LDS operations among each other; scalar loads complete in any order, also among LDS operations, which
count in the same counter. A flat operation counts in both counters, and completes in any order among the operations of
either [MI300 ISA 4.4, "Manually inserted wait states"; LLVM SIInsertWaitcnts].
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from attrs import define, evolve, field

from argus.interp.gfx942.instruction import Instruction
from argus.interp.gfx942.races import Touch

Unit = Literal["vector", "lds", "scalar", "flat"]


@define
class Issued:
    """An operation. registers: vector registers that it will write; scalars: scalar ones. late: the accesses to LDS
    that it makes before it is complete.
    """

    unit: Unit
    instruction: Instruction
    registers: frozenset[int]
    scalars: frozenset[int]
    late: tuple[Touch, ...] = ()

    @property
    def address(self) -> int:
        return self.instruction.address

    @property
    def text(self) -> str:
        return str(self.instruction)

    def taken(self, chosen: npt.NDArray[np.bool_], stride: int) -> Issued:
        """For some of the workgroups."""
        return evolve(self, late=tuple(each.taken(chosen, stride) for each in self.late))


def _incomplete(issued: list[Issued], most: int) -> list[Issued]:
    """Those that may be outstanding after a wait for at most so many, of which all but scalar and flat ones complete in
    order.
    """
    left: list[Issued] = []
    younger = 0
    for each in reversed(issued):
        younger += each.unit not in _ANY_ORDER
        if (1 if each.unit in _ANY_ORDER else younger) <= most:
            left.append(each)
    return left[::-1]


_ANY_ORDER = frozenset({"scalar", "flat"})


@define
class Scoreboard:
    """The operations of each counter, the oldest first."""

    vector: list[Issued] = field(factory=list[Issued])
    local: list[Issued] = field(factory=list[Issued])
    registers: dict[int, Issued] = field(factory=dict[int, Issued])
    scalars: dict[int, Issued] = field(factory=dict[int, Issued])

    def issue(self, issued: Issued) -> None:
        if issued.unit in {"vector", "flat"}:
            self.vector.append(issued)
        if issued.unit != "vector":
            self.local.append(issued)
        for register in issued.registers:
            self.registers[register] = issued
        for register in issued.scalars:
            self.scalars[register] = issued

    def wait(self, vector: int, local: int) -> list[Issued]:
        """The operations that are complete after a wait for both counters."""
        before = (*self.vector, *self.local)
        self.vector = _incomplete(self.vector, vector)
        self.local = _incomplete(self.local, local)
        kept = {id(each) for each in (*self.vector, *self.local)}
        done = [each for each in before if id(each) not in kept]
        for issued in done:
            for register in issued.registers:
                if self.registers.get(register) is issued:
                    del self.registers[register]
            for register in issued.scalars:
                if self.scalars.get(register) is issued:
                    del self.scalars[register]
        return done

    def taken(self, chosen: npt.NDArray[np.bool_], stride: int) -> Scoreboard:
        """For some of the workgroups. stride: LDS bytes of one."""
        made = {id(each): each.taken(chosen, stride) for each in (*self.vector, *self.local)}
        return Scoreboard(
            [made[id(each)] for each in self.vector],
            [made[id(each)] for each in self.local],
            {register: made[id(each)] for register, each in self.registers.items()},
            {register: made[id(each)] for register, each in self.scalars.items()},
        )
