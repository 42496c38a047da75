"""Predicts the time of a gfx942 kernel from its machine code, and names the lines of the program that limit it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.cost.dies import DIE_MACHINES, DieMachine
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.emit.build import COMPILE_SECONDS
from argus.emit.hip.taken import taken
from argus.emit.hip.text import compiled_texts
from argus.interp.gfx942.code_object import Descriptor
from argus.interp.gfx942.dispatch import Extents, triple
from argus.interp.gfx942.timing.predict import CodePrediction, Launch, predict
from argus.interp.interpret import check_assumptions
from argus.runtime.cpu.validate import emitted
from argus.runtime.expressions import value_of
from argus.runtime.machine.launch import MachineCode, compiled
from argus.runtime.machine.validate import no_machine_code
from argus.runtime.run_sizes import sizes_of

MACHINE = "MI300X"
Integers = npt.NDArray[np.int32]
_LINES = 4


@frozen
class LimitingLine:
    """A line of the user's program (FILE:LINE) or, without one, an instruction. share: of what limits."""

    place: str
    share: float
    instruction: str


@frozen
class Performance:
    """What was predicted for a kernel at sizes on a machine; `lines` limit it, the first of them most."""

    kernel: str
    machine: str
    sizes: Mapping[str, int]
    descriptor: Descriptor
    predicted: CodePrediction
    lines: tuple[LimitingLine, ...]


def performance(
    kernel: Kernel, sizes: Mapping[str, int], machine: str = MACHINE, integers: Mapping[str, Integers] | None = None
) -> Performance:
    """Compile a kernel and predict the time of a launch. sizes: those not given are chosen as `argus run` does.

    machine: a name of `argus.core.cost.dies.DIE_MACHINES`. integers: the contents of tensors that the kernel branches
    on or finds its operands by; other tensors count as zeros.
    Raises ArgusError: E301 for an unknown machine, E303 and E304 as the compiler does, E402 for sizes that violate an
    assumption, E421 for a kernel of another target, E501 for a text that is not emitted, E502 for an instruction that
    is not modelled, E701 for an unknown size.
    """
    if kernel.target.name != "gfx942":
        raise no_machine_code(kernel, "name a kernel for gfx942")
    model, known = machine_of(machine), sizes_of(kernel, sizes)
    check_assumptions(kernel, {symbol: known[symbol.name] for symbol in kernel.sizes})
    return of_code(kernel, built(kernel), known, model, integers)


def machine_of(name: str) -> DieMachine:
    """Raises ArgusError (E301)."""
    if name not in DIE_MACHINES:
        message = f"unknown machine `{name}`: expected one of {', '.join(f'`{each}`' for each in DIE_MACHINES)}"
        raise ArgusError(Diagnostic("E301", "error", message, help="name the machine that the kernel is to run on"))
    return DIE_MACHINES[name]


def built(kernel: Kernel) -> MachineCode:
    """The code that a build takes: of several texts the first without scratch memory, or that with the least."""
    info = emitted(kernel).info
    made = taken(kernel, compiled_texts(kernel), lambda text: compiled(kernel, text, info), _scratch, COMPILE_SECONDS)
    return made[1]


def _scratch(made: MachineCode) -> int:
    return made.code.kernel(made.info.symbol).descriptor.scratch_bytes


def of_code(
    kernel: Kernel,
    made: MachineCode,
    sizes: Mapping[str, int],
    model: DieMachine,
    integers: Mapping[str, Integers] | None = None,
) -> Performance:
    """The prediction for compiled code. sizes: all of them. integers: as of `performance`. Raises ArgusError (E502)."""
    grid = triple([value_of(extent, sizes) for extent in made.info.grid])
    extents = Extents(grid, triple((made.info.threads,)))
    known = integers or {}
    arguments = tuple(sizes[e.name] if e.kind == "int" else known.get(e.name) for e in made.info.arguments)
    bits = {buffer.name: buffer.dtype.bits for buffer in kernel.parameters}
    read = [each for each in made.info.arguments if each.kind == "pointer" and not each.written]
    operands = sum(prod(value_of(extent, sizes) for extent in each.shape) * bits[each.name] / 8 for each in read)
    found = predict(made.code, Launch(made.info.symbol, extents, arguments, operands), model)
    described = made.code.kernel(made.info.symbol).descriptor
    return Performance(kernel.name, model.name, sizes, described, found, _lines(made, found))


def _lines(made: MachineCode, found: CodePrediction) -> tuple[LimitingLine, ...]:
    """By line, the shares of its instructions added up."""
    shares: dict[str, float] = defaultdict(float)
    example: dict[str, str] = {}
    for instruction, share in found.at:
        place = made.source_of(instruction.address) or f"0x{instruction.address:x}"
        shares[place] += share
        example.setdefault(place, str(instruction))
    ordered = sorted(shares, key=lambda each: -shares[each])[:_LINES]
    return tuple(LimitingLine(place, shares[place], example[place]) for place in ordered)
