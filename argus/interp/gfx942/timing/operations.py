"""Instructions as the simulator sees them: which unit executes them, for how long, and what they wait for."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.core.cost.dies import DieMachine
from argus.interp.gfx942.state import LANES
from argus.interp.gfx942.step import Step
from argus.interp.gfx942.timing.accesses import LINE, global_access
from argus.interp.gfx942.timing.trace import Access
from argus.interp.gfx942.wait_states import passes

Kind = Literal["vector", "matrix", "scalar", "scalar memory", "lds", "memory", "wait", "barrier", "priority", "end"]
MOST_VECTOR, MOST_LOCAL = 63, 15


@frozen
class Operation:
    """One instruction of one wave. cycles: of its unit. lines: cycles of the vector cache. near, far, memory: bytes
    that it takes from the L2 cache, the last-level cache and device memory. vector, local: counts of a wait. priority:
    that it sets. jump: cycles of the wave if it branches.
    """

    kind: Kind
    at: int
    cycles: float = 0.0
    lines: float = 0.0
    near: float = 0.0
    far: float = 0.0
    memory: float = 0.0
    stores: bool = False
    local: int = MOST_LOCAL
    vector: int = MOST_VECTOR
    priority: int = 0
    jump: float = 0.0


@frozen
class Shares:
    """Of the lines that a load requests from the L2 cache, the parts from the last-level cache and from memory."""

    far: float
    memory: float


def operation(step: Step, access: Access | None, own: float, shares: Shares, model: DieMachine) -> Operation:
    """An instruction with the costs of its first execution. own: the share of its lines that no other wave of the
    workgroup requests.
    """
    name, at = step.instruction.row.name, step.instruction.address
    machine = model.machine
    match step.unit:
        case "matrix":
            return Operation("matrix", at, passes(name) * model.pass_cycles)
        case "vector":
            return Operation("vector", at, machine.simple)
        case "transcendental":
            return Operation("vector", at, machine.special)
        case "scalar":
            return Operation("scalar", at)
        case "scalar memory":
            return Operation("scalar memory", at)
        case "lds":
            exchange = LANES * 4 / machine.bank_bytes
            return Operation("lds", at, float(access.local) if access else exchange)
        case "vector memory":
            outer = global_access(name)
            if outer is None or access is None:
                return Operation("scalar", at)
            requested = len(access.lines) * LINE
            near = requested * own
            # The cache looks up 16 lanes a cycle, and delivers `line` bytes of the lines found.
            lines = max(4.0, requested / machine.line, LANES * outer.size / machine.line)
            far, memory = (near, near) if outer.stores else (near * shares.far, near * shares.memory)
            return Operation("memory", at, float(access.local), lines, near, far, memory, outer.stores)
        case "flow":
            return _flow(step, model)


def _flow(step: Step, model: DieMachine) -> Operation:
    name, at, immediate = step.instruction.row.name, step.instruction.address, step.instruction.immediate
    match name:
        case "s_waitcnt":
            return Operation("wait", at, vector=immediate & 15 | (immediate >> 14 & 3) << 4, local=immediate >> 8 & 15)
        case "s_barrier":
            return Operation("barrier", at)
        case "s_setprio":
            return Operation("priority", at, priority=immediate & 3)
        case "s_endpgm":
            return Operation("end", at)
        case "s_nop":
            return Operation("scalar", at, jump=immediate * model.issue)
        case _:
            return Operation("scalar", at, jump=model.branch if "branch" in name else 0.0)
