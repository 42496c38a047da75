"""Interprets programs of several kernels: launches in stream order, with tensors and tags passed between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.core.check import formula_claims
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Program, program_claims
from argus.core.ir import Launch as Step
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import Prepared
from argus.interp.memory.cells import PLAIN, Cells, Records, blank
from argus.interp.memory.loading import begin, extent, fill, inputs, outputs
from argus.interp.run import Outcome, needs_values, promised_integers, run_blocks
from argus.interp.search.schedule import Adversary, Schedule
from argus.interp.state import Launch
from argus.interp.values.drawn_inputs import drawn_floats
from argus.interp.values.formulas import check_claim_of_program
from argus.interp.values.precision import IN_FLOAT64, precision_of
from argus.interp.values.tensor_claims import array_of
from argus.interp.violation import Reporter

Array = npt.NDArray[Any]


def run_program(
    program: Program,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array] | None = None,
    schedule: Schedule = Schedule(),  # noqa: B008 reason: frozen
    *,
    tags: bool = True,
    values: bool = True,
    seed: int = 0,
    limit: int = 20,
) -> Outcome:
    """Run the launches of a program in order and report what they violate.

    arrays: inputs by name, random from `seed` where absent. Violations are listed in launch order; workspaces start
    uninitialised. A tensor that no launch uses is returned unchanged if it was given.
    Raises KeyError for a size without a value, ArgusError (E501) for a construct that the interpreter does not support.
    """
    env = {symbol: sizes[symbol.name] for symbol in program.sizes}
    claims = program_claims(program)
    stated = claims or [each for step in program.launches for each in formula_claims(step.kernel)]
    compared = tags and not values and bool(stated)
    last = {claim.view.buffer: _last_writer(program, claim.view.buffer) for _, claim in claims} if compared else {}
    precision = precision_of([step.kernel for step in program.launches]) if schedule.rounds else IN_FLOAT64
    values = values or compared or any(needs_values(step.kernel) for step in program.launches)
    launches = [
        Launch(
            Prepared(step.kernel),
            launch_sizes(step, env),
            {},
            values,
            tags,
            Adversary(schedule),
            Reporter(limit),
            records_sets=position + 1 < len(program.launches),
            exact=compared and not schedule.rounds,
            compared=compared,
            precision=precision,
            claimed=frozenset(parameter for number, parameter in last.values() if number == position),
        )
        for position, step in enumerate(program.launches)
    ]
    coverage: dict[Any, int] = {}
    given = dict(arrays or {})
    with np.errstate(all="ignore"):
        memory = _memory(program, launches, given, (seed, schedule.draw) if schedule.rounds else seed)
        records, written = Records(), set[Buffer]()
        for step, launch in zip(program.launches, launches, strict=True):
            launch.records = records
            launch.tensors.update({b: memory[step.arguments[b.name]] for b in step.kernel.parameters})
            _clear_tags(step, launch, written)
            begin(launch)
            run_blocks(launch)
            coverage.update(launch.coverage)
            written |= _written(step)
        if compared and not any(launch.halted for launch in launches):
            only_read = [b for b in program.parameters if b in memory and b not in written]
            reads = {buffer.name: _array(program, launches, buffer) for buffer in only_read} | _unread(
                program, memory, given, env
            )
            for stmt, claim in claims:
                number, parameter = last[claim.view.buffer]
                earlier = program.launches[:number]
                filled = any(claim.view.buffer in _written(step) for step in earlier)
                check_claim_of_program(stmt, claim, (launches[number], parameter), reads, env, filled=filled)
    found = {b.name: _array(program, launches, b) for b in program.parameters if b in memory} if values else {}
    found |= {b.name: given[b.name] for b in program.parameters if values and b not in memory and b.name in given}
    violations = tuple(violation for launch in launches for violation in launch.reporter.violations)
    return Outcome(found, violations, coverage)


def _unread(
    program: Program, memory: Mapping[Buffer, Cells], given: Mapping[str, Array], env: Mapping[Symbol, int]
) -> dict[str, Array]:
    """The tensors that no launch takes, of which a claim may speak all the same."""
    random, found = np.random.default_rng(0), dict[str, Array]()
    for buffer in program.parameters:
        if buffer not in memory:
            shape = tuple(_number(each, env) for each in buffer.shape)
            made = given.get(buffer.name)
            found[buffer.name] = drawn_floats(buffer.dtype, shape, random, 0) if made is None else made
    return found


def _written(step: Step) -> set[Buffer]:
    """The program's tensors that a launch writes."""
    return {step.arguments[buffer.name] for buffer in outputs(step.kernel)}


def _last_writer(program: Program, buffer: Buffer) -> tuple[int, Buffer]:
    """The number of the last launch that writes a tensor, and the parameter that it writes."""
    return next(
        (number, parameter)
        for number, step in reversed(tuple(enumerate(program.launches)))
        for parameter in outputs(step.kernel)
        if step.arguments[parameter.name] is buffer
    )


def promised_integers_of_program(program: Program, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Random integer tensors, by the program's names, that satisfy the promises of the launch that reads them first.

    Raises ArgusError (E402) if none are found.
    """
    found: dict[str, Array] = {}
    mine = {buffer.name for buffer in program.parameters}
    for step in program.launches:
        own = launch_sizes(step, {symbol: sizes[symbol.name] for symbol in program.sizes})
        made = promised_integers(step.kernel, {symbol.name: value for symbol, value in own.items()}, seed)
        outer = {step.arguments[name].name: array for name, array in made.items()}
        found |= {name: array for name, array in outer.items() if name in mine and name not in found}
    return found


def launch_sizes(step: Step, env: Mapping[Symbol, int]) -> dict[Symbol, int]:
    """The values of the kernel's sizes at a launch."""
    return {symbol: _number(size, env) for symbol, size in step.sizes}


def _number(size: Index, env: Mapping[Symbol, int]) -> int:
    return int(np.asarray(evaluate(size, env)))


def _users(program: Program, launches: list[Launch], buffer: Buffer) -> list[tuple[Launch, Buffer]]:
    """The launches that use a tensor, each with the parameter that it is passed to."""
    return [
        (launch, parameter)
        for step, launch in zip(program.launches, launches, strict=True)
        for parameter in step.kernel.parameters
        if step.arguments[parameter.name] is buffer
    ]


def _memory(
    program: Program, launches: list[Launch], arrays: Mapping[str, Array], seed: int | tuple[int, int]
) -> dict[Buffer, Cells]:
    """The tensors of the program at its start: filled inputs, uninitialised outputs and workspaces."""
    random = np.random.default_rng(seed)
    memory: dict[Buffer, Cells] = {}
    for buffer in (*program.parameters, *program.workspaces):
        users = _users(program, launches, buffer)
        if not users:
            continue
        launch, parameter = users[0]
        cells = blank(
            extent(launch, parameter), buffer.dtype, values=launch.values, tags=launch.tags, exact=launch.exact
        )
        memory[buffer] = cells
        if buffer in program.parameters and parameter in inputs(launch.prepared.kernel):
            given = arrays.get(buffer.name)
            for each, held in users:
                fill(each, held, cells, given, random)
                given = given if cells.values is None else _contents(each, held, cells)
    return memory


def _contents(launch: Launch, buffer: Buffer, cells: Cells) -> Array:
    launch.tensors[buffer] = cells
    return array_of(launch, buffer)


def _clear_tags(step: Step, launch: Launch, written: set[Buffer]) -> None:
    """Remove tags of tensors that no launch has written: each kernel assigns the tags of its own inputs."""
    for buffer in step.kernel.parameters:
        marks = launch.tensors[buffer].marks
        if marks is not None and step.arguments[buffer.name] not in written:
            marks[marks >= 0] = PLAIN


def _array(program: Program, launches: list[Launch], buffer: Buffer) -> Array:
    launch, parameter = _users(program, launches, buffer)[0]
    return array_of(launch, parameter)
