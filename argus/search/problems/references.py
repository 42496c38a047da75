"""Differential test of a kernel in the interpreter against a user's reference, on random inputs of small sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dtype import DType
from argus.runtime.sandbox.user_reference import REFERENCE, Exact, Oracle, call_reference, reference_outputs
from argus.search.problems.input_rules import PLAIN, InputRules, Sizes
from argus.search.problems.traced import Traced, admits, interpretable, read_names, shape_at, small_sizes
from argus.verifier.api import interpret
from argus.verifier.reference import F32_ROUNDING, INTERPRETED, Comparison, compare

Array = npt.NDArray[Any]
TOLERANCE = (
    f"of each element {INTERPRETED} u + s 2^-23, times the largest element of its output, where u is the rounding of"
    " the coarsest type of the parameters and s the largest size: roundings of intermediate results, and of sums in"
    " float32"
)
_OF_THE_FIRST = 24
_DRAWN = 400
_SIZES = 2
"""Number of size assignments per seed, out of the cheapest admissible ones."""
_MANTISSA = {"f32": 24, "f16": 11, "bf16": 8, "e4m3": 4, "e4m3fnuz": 4, "e5m2fnuz": 3}


@frozen(eq=False)
class Trial:
    """Inputs of one run. arrays: all parameters by name, outputs filled with NaN. read: names of the inputs."""

    sizes: Mapping[str, int]
    seed: int
    arrays: Mapping[str, Array]
    read: tuple[str, ...]

    @property
    def given(self) -> dict[str, Exact]:
        """The inputs in float64, as passed to the reference."""
        return {name: self.arrays[name].astype(np.float64) for name in self.read}

    @property
    def at(self) -> str:
        """Sizes and seed, for messages."""
        return f"{', '.join(f'{name}={extent}' for name, extent in self.sizes.items())}, seed {self.seed}"


def find_difference(reference: Oracle, kernel: Traced, seeds: Sequence[int], rules: InputRules = PLAIN) -> str:
    """Describe where the kernel's outputs differ from the reference's by more than rounding; empty if nowhere.

    Raises ArgusError (E903) if the reference raises or returns anything but the outputs, and for integer inputs, whose
    valid values are unknown.
    """
    for trial in random_trials(kernel, seeds, rules):
        for name, found in compare_outputs(kernel, trial, call_reference(reference, trial.given)):
            if not found.right:
                return (
                    f"{found.outside:,} of {found.elements:,} elements of {name} differ from `{REFERENCE}`: the largest"
                    f" error is {found.worst:.3g}, where rounding may cause {found.allowed:.3g}, at {trial.at}"
                )
    return ""


def find_change(kernel: Traced, other: Traced, seeds: Sequence[int]) -> str:
    """Describe where the outputs of two kernels differ in a bit, in the interpreter; empty if nowhere.

    Raises ArgusError (E903) for integer inputs, whose valid values are unknown.
    """
    for trial in random_trials(kernel, seeds):
        made = interpret(other, *trial.arrays.values(), tags=False)
        for name, wanted in interpret(kernel, *trial.arrays.values(), tags=False).items():
            if wanted.tobytes() != made[name].tobytes():
                return f"{name} is another at {trial.at}"
    return ""


def random_trials(kernel: Traced, seeds: Sequence[int], rules: InputRules = PLAIN) -> Iterator[Trial]:
    """Trials at random small sizes with normal numbers, and integers by the rules. Raises ArgusError (E903)."""
    check_types(kernel, rules)
    read = read_names(kernel)
    for seed in seeds:
        if not kernel.sizes and not interpretable(kernel, {}):
            return
        for kind in rules.kinds:
            for sizes in _sizes(kernel, seed, rules):
                generator = np.random.default_rng([seed, *sizes.values()])
                yield Trial(sizes, seed, _arrays(kernel, sizes, rules, kind, generator), read)


def _sizes(kernel: Traced, seed: int, rules: InputRules) -> list[Sizes]:
    """Small admissible sizes: of the rules, else by chance of those with least work."""
    generator = np.random.default_rng(seed)
    if rules.small is not None:
        drawn = (each for each in islice(rules.small(generator), _DRAWN) if admits(kernel, each))
        return list(islice(drawn, _SIZES if len(rules.kinds) == 1 else 1))
    known = list(islice(small_sizes(kernel), _OF_THE_FIRST))
    return [known[int(number)] for number in generator.permutation(len(known))[:_SIZES]]


def _arrays(
    kernel: Traced, sizes: Sizes, rules: InputRules, kind: str, generator: np.random.Generator
) -> dict[str, Array]:
    shapes = {each.name: shape_at(each, kernel, sizes) for each in kernel.parameters}
    given = rules.arrays({name: shapes[name] for name in read_names(kernel)}, sizes, kind, generator)
    return {
        each.name: given.get(each.name, np.full(shapes[each.name], np.nan)).astype(each.dtype.numpy)
        for each in kernel.parameters
    }


def check_types(kernel: Traced, rules: InputRules = PLAIN) -> None:
    """Raises ArgusError (E903) for a parameter that is not floating-point, unless there are rules for integers."""
    for each in kernel.parameters:
        if each.dtype.name not in _MANTISSA and rules.integers is None:
            _refuse(f"`{each.name}` is of {each.dtype.name}", "random inputs need floating-point parameters")


def compare_outputs(kernel: Traced, trial: Trial, expected: object) -> Iterator[tuple[str, Comparison]]:
    """Interpret the kernel and compare each output with the reference's. Raises ArgusError (E903)."""
    made = interpret(kernel, *trial.arrays.values(), tags=False)
    wanted = reference_outputs(expected, {name: array.shape for name, array in made.items()})
    for name, array in made.items():
        bound = tolerance(wanted[name], kernel, trial.sizes)
        yield name, compare(array.astype(np.float64), wanted[name], bound, REFERENCE)


def tolerance(expected: Exact, kernel: Traced, sizes: Mapping[str, int]) -> Exact:
    """The error bound `TOLERANCE` of each element; it allows for unknown roundings of intermediate results."""
    largest = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
    coarsest = max(rounding(each.dtype) for each in kernel.parameters if each.dtype.name in _MANTISSA)
    long = max(sizes.values(), default=1)
    return np.full(expected.shape, (INTERPRETED * coarsest + long * F32_ROUNDING) * largest)


def rounding(dtype: DType) -> float:
    """The unit roundoff of a type."""
    return 2.0 ** -_MANTISSA[dtype.name]


def _refuse(message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic("E903", "error", message, help=advice))
