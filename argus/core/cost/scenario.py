"""What is played: the cast of a block, what its statements ask for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from argus.core.cost.costs import Cost
from argus.core.cost.groups import BlockGroups
from argus.core.cost.machine import Machine
from argus.core.cost.traffic import Traffic
from argus.core.ir import Kernel, Stmt


@frozen(eq=False)
class Scenario:
    """What is played. cast: of one block; blocks: how many alike on the processor.

    costs: of each statement by who runs it. heat: cycles of the matrix units for one of theirs. tiles: trips of
    outermost loops around others that are played, None: all. patience: statements after which playing ends. beside:
    instructions that a wave issues with each of its matrix instructions, for registers to be where that wants them.
    """

    kernel: Kernel
    machine: Machine
    cast: BlockGroups
    blocks: int
    costs: Mapping[tuple[Stmt, str], Cost]
    traffic: Traffic
    heat: float
    serialised: bool = False
    tiles: int | None = None
    patience: int = 1 << 40
    beside: float = 0.0


@frozen(eq=False)
class SimulationResult:
    """cycles: until the last byte has left. busy: cycles of each unit. waits: cycles that groups stood still, by
    statement and by group's name, of one block. notes: what was not played as it is written. stuck: where nobody goes
    on, None: all came to an end, or patience did. statements: that were played.
    """

    cycles: float
    busy: Mapping[str, float]
    waits: Mapping[tuple[str, Stmt], float]
    notes: tuple[str, ...]
    stuck: Stmt | None
    statements: int
