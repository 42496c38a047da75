"""An instruction that is ready to run, with the registers that it reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import frozen

from argus.interp.gfx942.arithmetic import compiled
from argus.interp.gfx942.code_object import CodeObject, damaged
from argus.interp.gfx942.decode import decode
from argus.interp.gfx942.instruction import EXEC, M0, VCC, Instruction, scalars, vectors
from argus.interp.gfx942.state import Group, Wave

Unit = Literal["vector", "transcendental", "matrix", "scalar", "vector memory", "lds", "scalar memory", "flow"]
_TRANSCENDENTAL = frozenset(
    f"v_{name}_{kind}"
    for name in ("exp", "log", "rcp", "rcp_iflag", "rsq", "sqrt", "sin", "cos")
    for kind in ("f16", "f32")
)
_UNITS: dict[str, Unit] = {
    "SMEM": "scalar memory", "DS": "lds", "MUBUF": "vector memory", "GLOBAL": "vector memory", "FLAT": "vector memory",
    "SCRATCH": "vector memory", "MAI": "matrix", "SOPP": "flow",
}  # fmt: skip


@frozen
class Step:
    """reads, writes: vector registers. scalars_read, scalars_written: scalar ones, VCC, M0 and EXEC at their codes.

    after: the address of the next instruction. states: the wait states that it counts for.
    """

    instruction: Instruction
    unit: Unit
    run: Callable[[Group, Wave], None]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scalars_read: tuple[int, ...]
    scalars_written: tuple[int, ...]
    after: int
    states: int = 1
    touched: frozenset[int] = frozenset()
    """Vector registers that it reads or writes."""
    scalars_touched: frozenset[int] = frozenset()


def step_at(code: CodeObject, at: int) -> Step:
    """The instruction at an address.

    Raises ArgusError: E420 for an address outside of the code, E502 for an instruction
    that is not modelled.
    """
    if not 0 <= at - code.address <= len(code.text) - 4:
        raise damaged(f"it goes on to 0x{at:x}, which is outside of its code")
    instruction = decode(code.text, at - code.address, at)
    row, results = instruction.row, instruction.results
    held = _implicit(instruction, row.sources)
    reads, writes = vectors(instruction.sources), vectors(results)
    keeps = instruction.sdwa is not None and instruction.sdwa.unused == 2
    old = vectors(results) if "old" in row.sources or keeps else ()
    scalars_read = scalars(instruction.sources) + held + (scalars(results) if "old" in row.sources else ())
    scalars_written = scalars(results) + _implicit(instruction, row.results)
    return Step(
        instruction,
        _unit(instruction),
        _arithmetic(instruction) if row.arithmetic else _other(instruction),
        reads + old,
        writes,
        scalars_read,
        scalars_written,
        at + instruction.size,
        instruction.immediate + 1 if row.name == "s_nop" else 1,
        frozenset(reads + old + writes),
        frozenset(scalars_read + scalars_written),
    )


def _implicit(instruction: Instruction, tokens: tuple[str, ...]) -> tuple[int, ...]:
    found: list[int] = []
    if "vcc" in tokens:
        found += [VCC, VCC + 1]
    if "exec" in tokens:
        found += [EXEC, EXEC + 1]
    if "m0" in tokens or ("lds" in instruction.flags and tokens is instruction.row.sources):
        found.append(M0)
    return tuple(found)


def _unit(instruction: Instruction) -> Unit:
    row = instruction.row
    if row.name in _TRANSCENDENTAL:
        return "transcendental"
    return _UNITS.get(row.form, "vector" if row.vector else "scalar")


def _arithmetic(instruction: Instruction) -> Callable[[Group, Wave], None]:
    plain = compiled(instruction)
    return lambda _group, wave: plain(wave)


def _other(instruction: Instruction) -> Callable[[Group, Wave], None]:
    act = instruction.row.run
    return lambda group, wave: act(group, wave, instruction)
