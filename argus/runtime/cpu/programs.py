"""Compare the emitted texts of a program's launches, run in order on the same memory, with the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from math import prod
from time import perf_counter
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.index import Sym
from argus.core.ir import Buffer, Launch, Program
from argus.core.walk import evaluate
from argus.emit.cpu.compiler import Executable, compile_unit
from argus.emit.cpu.unit import Unit
from argus.interp.interpret import interpret_program
from argus.interp.memory.loading import inputs, outputs
from argus.interp.programs import launch_sizes, promised_integers_of_program
from argus.interp.search.search import sizes_in_order
from argus.runtime.cpu.differences import first_difference
from argus.runtime.cpu.launch import (
    GIBIBYTES,
    Finding,
    Limit,
    Limits,
    TensorState,
    laid_out,
    run_unit,
    schedule_of,
    strides_of,
    view_of,
)
from argus.runtime.cpu.validate import (
    SECONDS,
    SEEDS,
    Emitted,
    Trial,
    Validation,
    every_text,
    is_exact,
    seeds_of,
    small_numbers,
    unit,
)
from argus.verifier.claimed_formulas import claimed_outputs

Array = npt.NDArray[Any]
Built = Sequence[tuple[Launch, Emitted, Unit, Executable]]
_SIZES = 3
_ATTEMPTS = 200
_MOST_ELEMENTS = 1 << 18


def validate_program(
    program: Program,
    sizes: Sequence[Mapping[str, int]] = (),
    *,
    seeds: int | Sequence[int] = SEEDS,
    seconds: float = SECONDS,
    gibibytes: float = GIBIBYTES,
) -> Validation:
    """Execute a program's texts at each of the sizes (some that meet all assumptions, if none are given) and each seed.

    Where a build chooses from several texts of a kernel, all launches run by their first, then by their second.
    Raises ArgusError as `validate` does.
    """
    start = perf_counter()
    made = [every_text(each.kernel) for each in program.launches]
    built = [[_built(text) for text in texts] for texts in made]
    compiled = perf_counter()
    several = [
        [(each, *texts[min(number, len(texts) - 1)]) for each, texts in zip(program.launches, built, strict=True)]
        for number in range(max(map(len, built)))
    ]
    trials = [
        evolve(_trial(program, run, chosen, seed, Limits(seconds, gibibytes)), text=number)
        for number, run in enumerate(several, 1)
        for chosen in sizes or _chosen_sizes(program)
        for seed in seeds_of(seeds)
    ]
    times = (compiled - start, perf_counter() - compiled)
    return Validation(program.name, program.target.name, tuple(trials), times)


def _built(text: Emitted) -> tuple[Emitted, Unit, Executable]:
    own = unit(text)
    return text, own, compile_unit(own)


def _chosen_sizes(program: Program) -> list[dict[str, int]]:
    """Small sizes that meet the assumptions of all launches; drawn among those of the single launches."""
    ladders: dict[str, set[int]] = {symbol.name: {1, 2, 40} for symbol in program.sizes}
    for launch in program.launches:
        for found in islice(sizes_in_order(launch.kernel), _ATTEMPTS):
            for symbol, value in launch.sizes:
                for own in program.sizes:
                    if own.name == symbol.name or (isinstance(value, Sym) and value.symbol == own):
                        ladders[own.name].add(found[symbol.name])
    drawn = np.random.default_rng(0)
    chosen: list[dict[str, int]] = []
    for _ in range(_ATTEMPTS):
        sizes = {name: int(drawn.choice(sorted(values))) for name, values in ladders.items()}
        elements = sum(prod(_shape(each, sizes, program)) for each in program.parameters)
        if sizes not in chosen and elements <= _MOST_ELEMENTS and _runs(program, sizes):
            chosen.append(sizes)
        if len(chosen) == _SIZES:
            break
    return chosen


def _runs(program: Program, sizes: Mapping[str, int]) -> bool:
    try:
        interpret_program(program, *_inputs(program, sizes, 0).values())
    except (ArgusError, ValueError):
        return False
    return True


def _shape(buffer: Buffer, sizes: Mapping[str, int], program: Program) -> tuple[int, ...]:
    env = {symbol: sizes[symbol.name] for symbol in program.sizes}
    return tuple(int(cast(int, evaluate(extent, env))) for extent in buffer.shape)


def _inputs(program: Program, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Small numbers, which may be added in any order, and integers that are as promised. Raises ArgusError (E402)."""
    random = np.random.default_rng(seed)
    made = {
        buffer.name: small_numbers(random, _shape(buffer, sizes, program), np.dtype(buffer.dtype.numpy))
        for buffer in program.parameters
    }
    return made | promised_integers_of_program(program, sizes, seed)


def _trial(program: Program, built: Built, sizes: Mapping[str, int], seed: int, limits: Limits) -> Trial:
    arrays = _inputs(program, sizes, seed)
    memory: dict[Buffer, TensorState] = {}
    findings: list[Finding] = []
    exact = all(is_exact(launch.kernel) for launch in program.launches)
    ended, limit = "", cast("Limit | None", None)
    for launch, text, own, executable in built:
        kernel = launch.kernel
        env = {s.name: n for s, n in launch_sizes(launch, {s: sizes[s.name] for s in program.sizes}).items()}
        fresh = {
            each.name: arrays.get(held.name, np.zeros(_shape(held, sizes, program), held.dtype.numpy))
            for each in kernel.parameters
            for held in (launch.arguments[each.name],)
        }
        read = {each.name for each in inputs(kernel)}
        unknown = frozenset(n for n in fresh if n not in read or launch.arguments[n] not in program.parameters)
        tensors = laid_out(kernel, env, fresh, unknown)
        tensors |= {n: memory[launch.arguments[n]] for n in tensors if launch.arguments[n] in memory}
        answer = run_unit(executable, own, kernel, text.info, env, tensors, schedule_of(seed), limits)
        findings += answer.findings
        if answer.ended:
            ended, limit = f"launch `{kernel.name}`: {answer.ended}", answer.limit
            break
        memory |= {launch.arguments[name]: state for name, state in answer.tensors.items()}
    if ended:
        return Trial(sizes, seed, exact, 0, None, tuple(findings), ended, limit)
    expected = interpret_program(program, *arrays.values(), tags=False)
    found = {name: _contents(program, memory, name, sizes, array) for name, array in expected.items()}
    claims = tuple(claimed_outputs(program, arrays, sizes, 0))
    differs = first_difference(found, expected, claims, exact=exact)
    return Trial(sizes, seed, exact, sum(each.size for each in found.values()), differs, tuple(findings))


def _contents(
    program: Program, memory: Mapping[Buffer, TensorState], name: str, sizes: Mapping[str, int], like: Array
) -> Array:
    """A tensor after the last launch that writes it."""
    buffer = next(each for each in program.parameters if each.name == name)
    for launch in reversed(program.launches):
        for own in outputs(launch.kernel):
            if launch.arguments[own.name] is buffer:
                env = launch_sizes(launch, {s: sizes[s.name] for s in program.sizes})
                strides = strides_of(launch.kernel, own.name, {s.name: n for s, n in env.items()})
                return view_of(memory[buffer].held, like.shape, strides)
    return like
