"""Input and output of the simulator: a block's thread groups with their costs, and the predicted cycles."""

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
    """Input of a simulation. groups: of one block; blocks: identical blocks resident on the processor.

    costs: by statement and group. mma_slowdown: slowdown factor of matrix instructions at the power limit. tiles:
    iterations of the outer tile loop to simulate, None: all. statement_limit: the most statements to simulate.
    moves_per_mma: register-move instructions that a wave issues per matrix instruction.
    """

    kernel: Kernel
    machine: Machine
    groups: BlockGroups
    blocks: int
    costs: Mapping[tuple[Stmt, str], Cost]
    traffic: Traffic
    mma_slowdown: float
    serialised: bool = False
    tiles: int | None = None
    statement_limit: int = 1 << 40
    moves_per_mma: float = 0.0


@frozen(eq=False)
class SimulationResult:
    """cycles: until the last byte has left. busy: busy cycles of each unit. waits: stall cycles of one block by group
    name and statement. notes: simplifications. deadlocked_at: a statement at which every group is blocked; None if all
    groups finished or the simulation hit its statement limit. statements: simulated.
    """

    cycles: float
    busy: Mapping[str, float]
    waits: Mapping[tuple[str, Stmt], float]
    notes: tuple[str, ...]
    deadlocked_at: Stmt | None
    statements: int
