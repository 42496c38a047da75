"""Compare emitted texts with the interpreter: they are executed on the CPU under several schedules.

Inputs are small integers, so sums are exact in every order and outputs must agree bit for bit, unless the kernel uses a
function that the machine approximates (exponential, root, quotient and such); those agree within the bound of
`argus.runtime.cpu.differences`. Outputs with a claimed formula are compared with it, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from argus.core.algebra import TRUE
from argus.core.diagnostic import ArgusError
from argus.core.ir import Copy, Fold, Kernel, Map, Op, walk
from argus.core.ir.element_walk import nodes
from argus.core.memory.placement import shared_memory_plan
from argus.emit.artifact import LaunchInfo, cuda_launch, launch_info
from argus.emit.cpu.compiler import Executable, compile_unit
from argus.emit.cpu.shared_arrays import moved_apart
from argus.emit.cpu.unit import Unit, unit_of
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import hip_texts
from argus.emit.names import assign_names
from argus.interp.memory.loading import inputs, outputs
from argus.interp.search.search import sizes_in_order
from argus.interp.violation import UnsatisfiedPromiseError
from argus.runtime.cpu.differences import Difference, first_difference
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
from argus.runtime.run import inputs_of
from argus.verifier.api import interpret
from argus.verifier.claimed_formulas import claimed_outputs

Array = npt.NDArray[Any]
_EXACT = frozenset(
    (*("neg", "add", "sub", "mul", "max", "min", "abs", "clamp"), *("fma", "max_nan", "min_nan", "floor", "ceil"))
) | {"round", "sign"}
LARGEST = 4
_DOWN = 10
_SIZES = 3
"""Sizes of a validation unless some are given."""
_CANDIDATES = 400
_MOST_WORK = 1 << 21
"""The largest product of the sizes that are chosen: a second in the interpreter."""
SEEDS = 3
SECONDS = 60.0


@frozen
class Trial:
    """One run of the text. exact: whether it was compared bit for bit. ended: empty, or how it ended early.

    limit: the limit that ended it, if one did. text: which of the texts that a build chooses from, counted from 1.
    """

    sizes: Mapping[str, int]
    seed: int
    exact: bool
    elements: int
    difference: Difference | None
    findings: tuple[Finding, ...]
    ended: str = ""
    limit: Limit | None = None
    text: int = 1

    @property
    def right(self) -> bool:
        return self.difference is None and not self.findings and not self.ended


@frozen
class Validation:
    """The trials of one kernel. seconds: building, and all else."""

    kernel: str
    target: str
    trials: tuple[Trial, ...] = field(factory=tuple[Trial, ...])
    seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def right(self) -> bool:
        return all(trial.right for trial in self.trials)


@frozen
class Emitted:
    """A kernel's text and its launch description. number: as `Trial.text`."""

    kernel: Kernel
    text: str
    info: LaunchInfo
    number: int = 1


def emitted(kernel: Kernel) -> Emitted:
    """The text that a build prefers. Raises ArgusError (E501) as the emitters do."""
    return every_text(kernel)[0]


def every_text(kernel: Kernel) -> tuple[Emitted, ...]:
    """The texts that a build chooses from, the preferred one first. Raises ArgusError (E501) as the emitters do."""
    if kernel.target.name == "sm_90a":
        made = cuda_text(kernel)
        return (Emitted(kernel, made.text, cuda_launch(kernel, made.symbol, made.plan, made.guards)),)
    stored = frozenset(s.target.buffer.name for s in walk(kernel.body) if isinstance(s, Copy))
    info = launch_info(kernel, assign_names(kernel).kernel, stored)
    return tuple(Emitted(kernel, text, info, number) for number, text in enumerate(hip_texts(kernel), 1))


def unit(made: Emitted) -> Unit:
    """The text as C++ for the CPU, with arrays in shared memory apart."""
    kernel = made.kernel
    if kernel.target.name != "sm_90a":
        return unit_of(made.text, kernel.target.name, made.info.symbol)
    offsets, _ = shared_memory_plan(kernel)
    text, arrays = moved_apart(made.text, assign_names(kernel).buffers, offsets)
    return evolve(unit_of(text, kernel.target.name, made.info.symbol), arrays=arrays)


def validate(
    kernel: Kernel,
    sizes: Sequence[Mapping[str, int]] = (),
    *,
    seeds: int | Sequence[int] = SEEDS,
    seconds: float = SECONDS,
    gibibytes: float = GIBIBYTES,
    made: Emitted | None = None,
    stop: bool = False,
) -> Validation:
    """Execute a kernel's texts at each of the sizes (some that meet its assumptions, if none are given) and each seed.

    seeds: how many schedules and inputs for each size, or which. seconds, gibibytes: the limits of one run, of time and
    of memory beside its tensors. made: a text, if it is none that the emitter makes. stop: end with the first run that
    fails.

    Raises ArgusError: E303 and E304 as the compiler does, E402 for sizes that violate an assumption, E501 for a kernel
    that is not emitted or interpreted.
    """
    texts = every_text(kernel) if made is None else (made,)
    start = perf_counter()
    units = [unit(text) for text in texts]
    compiled = [(text, own, compile_unit(own)) for text, own in zip(texts, units, strict=True)]
    built = perf_counter() - start
    trials: list[Trial] = []
    limits = Limits(seconds, gibibytes)
    for run, chosen, seed in product(compiled, sizes or chosen_sizes(kernel), seeds_of(seeds)):
        trials.append(run_trial(*run, chosen, seed, limits))
        if stop and not trials[-1].right:
            break
    return Validation(kernel.name, kernel.target.name, tuple(trials), (built, perf_counter() - start - built))


def seeds_of(seeds: int | Sequence[int]) -> Sequence[int]:
    """The first so many seeds, or those given."""
    return range(seeds) if isinstance(seeds, int) else seeds


def chosen_sizes(kernel: Kernel, count: int = _SIZES) -> list[dict[str, int]]:
    """Some of the sizes with tails that the search for counterexamples would try: from the least to several tiles.

    Raises ArgusError (E402) if no sizes are found for which integer tensors can keep their promises.
    """
    every = [dict(each) for each in islice(sizes_in_order(kernel), _CANDIDATES)]
    fixed = {name for name in (every[0] if every else ()) if len({each[name] for each in every}) == 1}

    def work(sizes: Mapping[str, int]) -> int:
        """Of sizes that the kernel leaves open; those that it fixes may be the extents of its tiles."""
        return prod(value for name, value in sizes.items() if name not in fixed)

    found = sorted((each for each in every if prod(each.values())), key=work) or every
    found = [each for each in found if work(each) <= _MOST_WORK] or found[:count]
    usable = [each for each in found if _has_inputs(kernel, each)]
    if found and not usable:
        inputs_of(kernel, found[-1], 0)  # raises
    if not usable:
        return []
    even = max(usable, key=lambda each: (_evenness(each, usable), -prod(each.values())))
    picked = [usable[0], even, usable[-1], *usable[len(usable) // 2 :]][:count]
    return [dict(each) for each in dict.fromkeys(tuple(each.items()) for each in picked)]


def _evenness(sizes: Mapping[str, int], among: Sequence[Mapping[str, int]]) -> float:
    """How far the least of the sizes is up the values that it takes: 1 if all are at their largest."""
    ladders = {name: sorted({each[name] for each in among}) for name in sizes}
    return min(
        (ladders[n].index(v) / max(1, len(ladders[n]) - 1) for n, v in sizes.items() if len(ladders[n]) > 1), default=0
    )


def _has_inputs(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    if all(buffer.promise is TRUE for buffer in kernel.parameters):
        return True
    try:
        inputs_of(kernel, sizes, 0)
    except (ArgusError, UnsatisfiedPromiseError):
        return False
    return True


def run_trial(
    text: Emitted, own: Unit, executable: Executable, sizes: Mapping[str, int], seed: int, limits: Limits
) -> Trial:
    """One run of a compiled text beside the interpreter's. Raises ArgusError (E402) for sizes that it does not take."""
    kernel = text.kernel
    arrays = small_inputs(kernel, sizes, seed)
    known = {buffer.name for buffer in inputs(kernel)}
    unknown = frozenset(buffer.name for buffer in kernel.parameters if buffer.name not in known)
    tensors = laid_out(kernel, sizes, arrays, unknown)
    answer = run_unit(executable, own, kernel, text.info, sizes, tensors, schedule_of(seed), limits)
    if answer.ended or not answer.tensors:
        return Trial(sizes, seed, is_exact(kernel), 0, None, answer.findings, answer.ended, answer.limit, text.number)
    found = _outputs_of(kernel, answer.tensors, arrays, sizes)
    return trial_of(text, sizes, seed, arrays, found, answer.findings)


def run_text(kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """What the preferred text of a kernel leaves in its outputs, executed on the CPU on these arrays.

    Raises ArgusError (E303, E304, E501) as `validate`, and RuntimeError where the text reports a fault or ends early.
    """
    text = emitted(kernel)
    own = unit(text)
    tensors = laid_out(kernel, sizes, arrays, frozenset())
    answer = run_unit(compile_unit(own), own, kernel, text.info, sizes, tensors, schedule_of(seed), Limits(SECONDS))
    if answer.ended or answer.findings or not answer.tensors:
        raise RuntimeError(f"{answer.ended} {answer.findings}")
    return _outputs_of(kernel, answer.tensors, arrays, sizes)


def _outputs_of(
    kernel: Kernel, tensors: Mapping[str, TensorState], arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The outputs of a run, as arrays of their shapes."""
    names = [buffer.name for buffer in outputs(kernel)]
    return {name: view_of(tensors[name].held, arrays[name].shape, strides_of(kernel, name, sizes)) for name in names}


def trial_of(
    text: Emitted,
    sizes: Mapping[str, int],
    seed: int,
    arrays: Mapping[str, Array],
    found: Mapping[str, Array],
    findings: tuple[Finding, ...],
) -> Trial:
    """Outputs beside those of the interpreter, and the formulas claimed of them. arrays: all parameters, in order."""
    kernel = text.kernel
    expected = interpret(kernel, *arrays.values(), tags=False, given_sizes=sizes)
    claims = tuple(claimed_outputs(kernel, arrays, sizes, 0))
    exact = is_exact(kernel)
    differs = first_difference(found, expected, claims, exact=exact)
    count = sum(each.size for each in found.values())
    return Trial(sizes, seed, exact, count, differs, findings, text=text.number)


def small_inputs(kernel: Kernel, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Random inputs: `small_numbers` in every float tensor; integer tensors keep their promises."""
    random = np.random.default_rng(seed)
    return {
        name: array if array.dtype.kind in "iu" else small_numbers(random, array.shape, array.dtype)
        for name, array in inputs_of(kernel, sizes, seed).items()
    }


def small_numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Integers from -4 to 4, which may be added in any order.

    One float alone, such as the scale of scores, is a power of two from 2^-14 to 2^-6: exponentials stay finite.
    """
    found = random.integers(-LARGEST, LARGEST + 1, shape).astype(np.float32)
    return (np.exp2(found - _DOWN) if shape == (1,) and dtype.kind not in "iu" else found).astype(dtype)


def is_exact(kernel: Kernel) -> bool:
    """Whether every operation of a kernel is exact on small integers."""
    ops = {node.name for s in walk(kernel.body) if isinstance(s, Map) for node in nodes(s.elem) if isinstance(node, Op)}
    return ops <= _EXACT and not any(isinstance(s, Fold) for s in walk(kernel.body))
