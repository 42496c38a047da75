"""Chooses what the outputs of a run are compared with: a user's function, the claims, or the proved formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index import Symbol
from argus.core.ir import Kernel, Program
from argus.interp.memory.loading import outputs
from argus.interp.programs import launch_sizes
from argus.runtime.sandbox.user_reference import Oracle, call_reference, reference_outputs
from argus.verifier.claimed_formulas import ClaimedOutput, claimed_outputs
from argus.verifier.formulas import Formula, contents
from argus.verifier.loader import load_names
from argus.verifier.reference import (
    INTERPRETED,
    Comparison,
    Exact,
    claimed_contraction,
    compare,
    compare_with_claims,
    rounding_of,
)

Array = npt.NDArray[Any]
Expected = tuple[str, Exact, Exact]
"""The name of an output, what is expected of it, and the error bound of each element."""


def compare_run(
    kernel: Kernel | Program,
    arrays: Mapping[str, Array],
    made: Mapping[str, Array],
    seed: int,
    reference: Oracle | None,
    results: Sequence[str],
    sizes: Mapping[str, int],
) -> tuple[Comparison | None, tuple[str, ...]]:
    """The comparison of all outputs that have a reference, and the names of those that have none.

    arrays: the inputs by name, and the outputs before the run. made: the outputs. reference: the user's function, which
    is then the only reference. results: those of the proof, each of which may state a formula. sizes: by name.
    Raises ArgusError (E903) if the user's function fails.
    """
    if reference is not None:
        parts = [_part(made, each) for each in _by_function(arrays, made, reference)]
        return _compared(parts, "the function given as reference"), ()
    stated = tuple(claimed_outputs(kernel, arrays, sizes, seed))
    claimed = claimed_contraction(kernel) if isinstance(kernel, Kernel) and not stated else None
    if claimed is not None:
        return compare_with_claims(claimed, arrays, made[claimed.output.name], seed), ()
    told = {each.output for each in stated}
    proved = tuple(each for each in _by_formulas(kernel, arrays, made, results, sizes) if each[0] not in told)
    parts = [*(_of_rows(made, each) for each in stated), *(_part(made, each) for each in proved)]
    named = told | {name for name, _, _ in proved}
    comparison = _compared(parts, _named(stated, proved, made)) if parts else None
    return comparison, tuple(name for name in made if name not in named)


def _named(stated: Sequence[ClaimedOutput], proved: Sequence[Expected], made: Mapping[str, Array]) -> str:
    """What the outputs are compared with, in words."""
    if not stated:
        return "the proved formula in float64"
    part = any(len(each.rows) < len(made[each.output]) for each in stated)
    rows = ", some of the rows" if part else ""
    return f"the claimed formula in float64{rows}" + (", and the proved formula of the others" if proved else "")


def load_reference(what: str) -> Oracle:
    """The function that `FILE:FUNCTION` names; the file runs in this process, as a kernel's does.

    Raises ArgusError: E001 if there is no such file, E002 or E003 if it fails, E903 if it has no such function.
    """
    file, colon, name = what.rpartition(":")
    if not colon or not name.isidentifier():
        message = f"expected a reference as FILE:FUNCTION, found {what}"
        raise ArgusError(Diagnostic("E701", "error", message, help="such as `--reference reference.py:softmax`"))
    function = load_names(file).get(name)
    if not callable(function):
        message = f"`{file}` has no function `{name}` to compare with"
        raise ArgusError(Diagnostic("E903", "error", message, help=f"define `def {name}(...)` at the top of the file"))
    return function


def _by_function(arrays: Mapping[str, Array], made: Mapping[str, Array], reference: Oracle) -> Iterator[Expected]:
    """What a user's function returns, to within INTERPRETED roundings of the largest element of each output."""
    given = {name: array.astype(np.float64) for name, array in arrays.items()}
    expected = reference_outputs(call_reference(reference, given), {name: array.shape for name, array in made.items()})
    for name, exact in expected.items():
        largest = np.max(np.abs(exact), initial=0.0, where=np.isfinite(exact))
        unit = rounding_of(made[name].dtype)
        yield name, exact, np.full(exact.shape, INTERPRETED * unit * largest)


def _by_formulas(
    kernel: Kernel | Program,
    arrays: Mapping[str, Array],
    made: Mapping[str, Array],
    results: Sequence[str],
    sizes: Mapping[str, int],
) -> Iterator[Expected]:
    forms, steps = contents(results), _steps(kernel)
    for number, (one, names) in enumerate(steps):
        for buffer in outputs(one):
            outer = names[buffer.name]
            if outer in made and buffer.name in forms:
                own = _own_sizes(kernel, number, sizes)
                value = Formula(outer, forms[buffer.name], steps[: number + 1], own).evaluate(arrays, buffer.dtype)
                if value is not None:
                    yield outer, *value


def _steps(kernel: Kernel | Program) -> tuple[tuple[Kernel, Mapping[str, str]], ...]:
    """The kernels in the order of their launches, each with the caller's name of each of its parameters."""
    if isinstance(kernel, Kernel):
        return ((kernel, {buffer.name: buffer.name for buffer in kernel.parameters}),)
    return tuple((s.kernel, {name: buffer.name for name, buffer in s.arguments.items()}) for s in kernel.launches)


def _own_sizes(kernel: Kernel | Program, number: int, sizes: Mapping[str, int]) -> Mapping[Symbol, int]:
    """The sizes of a launch, from those of the kernel or program."""
    given = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    return given if isinstance(kernel, Kernel) else launch_sizes(kernel.launches[number], given)


_Part = tuple[Exact, Exact, Exact]
"""What was found, what is expected, and the bound."""


def _part(made: Mapping[str, Array], expected: Expected) -> _Part:
    name, exact, bound = expected
    return made[name].astype(np.float64), exact, bound


def _of_rows(made: Mapping[str, Array], expected: ClaimedOutput) -> _Part:
    stated = ~np.isinf(expected.bound)
    found = made[expected.output][expected.rows].astype(np.float64)
    return found[stated], expected.expected[stated], expected.bound[stated]


def _compared(given: Sequence[_Part], what: str) -> Comparison:
    """One comparison of several outputs, where something is expected of their elements."""
    parts = [tuple(each[~np.isinf(part[2])] for each in part) for part in given]
    found, exact, bound = (np.concatenate([part[at] for part in parts]) for at in range(3))
    return compare(found, exact, bound, what)
