"""A user's reference beside a kernel in the interpreter: fresh inputs, small sizes that the assumptions admit."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from itertools import islice
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from argus.api import interpret
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.interp.search import sizes_in_order
from argus.optimizer.files import REFERENCE, KernelFile
from argus.optimizer.workload import inputs, shape_of
from argus.reference import F32_ROUNDING, INTERPRETED, compared

Array = npt.NDArray[Any]
_OF_THE_FIRST = 24
_SIZES = 2
"""Sets of sizes a seed, of those least in work."""
_MANTISSA = {"f32": 24, "f16": 11, "bf16": 8, "e4m3": 4}


def differs(problem: KernelFile, kernel: Kernel, seeds: tuple[int, ...]) -> str:
    """Where the kernel's outputs and the reference's differ by more than rounding; empty if nowhere.

    Raises ArgusError (E903) for a reference that raises, or gives something else than the outputs, and for inputs of
    integers, whose meaning nobody says.
    """
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for sizes in _sizes(kernel, generator):
            found = _at(problem, kernel, sizes, generator)
            if found:
                shown = ", ".join(f"{name}={extent}" for name, extent in sizes.items())
                return f"{found}, at {shown}, seed {seed}"
    return ""


def _sizes(kernel: Kernel, generator: np.random.Generator) -> list[Mapping[str, int]]:
    """Small sizes, drawn: nobody tunes for them."""
    known = list(islice(sizes_in_order(kernel), _OF_THE_FIRST))
    chosen = generator.permutation(len(known))[:_SIZES]
    return [known[int(number)] for number in chosen]


def _at(problem: KernelFile, kernel: Kernel, sizes: Mapping[str, int], generator: np.random.Generator) -> str:
    given = {each.name for each in inputs(kernel)}
    arrays: dict[str, Array] = {}
    for each in kernel.parameters:
        if each.dtype.name not in _MANTISSA:
            _refuse(f"`{each.name}` is of {each.dtype.name}", "parameters of floating point alone are filled")
        shape = shape_of(each, kernel, sizes)
        values = generator.standard_normal(shape) if each.name in given else np.full(shape, np.nan)
        arrays[each.name] = values.astype(each.dtype.numpy)
    expected = _expected(problem, {name: arrays[name].astype(np.float64) for name in arrays if name in given})
    made = interpret(kernel, *arrays.values())
    for name, array in made.items():
        wanted = _output(expected, name, array, alone=len(made) == 1)
        found = compared(array.astype(np.float64), wanted, _bound(wanted, kernel, sizes), REFERENCE)
        if not found.right:
            return (
                f"{found.outside:,} of {found.elements:,} elements of {name} differ from `{REFERENCE}`: the largest"
                f" error is {found.worst:.3g}, where rounding may cause {found.allowed:.3g}"
            )
    return ""


def _bound(expected: npt.NDArray[np.float64], kernel: Kernel, sizes: Mapping[str, int]) -> npt.NDArray[np.float64]:
    """Some roundings to the coarsest type of the kernel, and of sums in float32 as long as the largest size, each of
    the largest element: intermediate results are rounded, too, and where, the reference does not say.
    """
    largest = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
    coarsest = max(_rounding(each.dtype) for each in kernel.parameters)
    long = max(sizes.values(), default=1)
    return np.full(expected.shape, (INTERPRETED * coarsest + long * F32_ROUNDING) * largest)


def _rounding(dtype: DType) -> float:
    """The largest relative error of rounding to a type."""
    return 2.0 ** -_MANTISSA[dtype.name]


def _expected(problem: KernelFile, given: Mapping[str, Array]) -> object:
    """What the user's function says, of those arrays that it names."""
    reference = problem.reference
    parameters = inspect.signature(reference).parameters.values()
    every = any(each.kind is each.VAR_KEYWORD for each in parameters)
    passed = {name: array for name, array in given.items() if every or any(each.name == name for each in parameters)}
    try:
        return reference(**passed)
    except Exception as fault:  # noqa: BLE001 reason: the user's own code may raise anything
        advice = f"give its parameters names of inputs: {', '.join(given)}"
        _refuse(f"`{REFERENCE}` raised {type(fault).__name__}: {fault}", advice, fault)


def _output(expected: object, name: str, array: Array, *, alone: bool) -> npt.NDArray[np.float64]:
    """The array that the reference gives for an output."""
    found: object = expected
    if isinstance(expected, Mapping):
        found = cast("Mapping[str, object]", expected).get(name)
    elif not alone:
        found = None
    advice = f"return the array of `{name}`, or a dict of arrays by name, of shape {array.shape}"
    if found is None:
        _refuse(f"`{REFERENCE}` gives nothing for the output `{name}`", advice)
    try:
        made = np.asarray(found, np.float64)
    except (TypeError, ValueError) as fault:
        _refuse(f"`{REFERENCE}` gives no array for `{name}`", advice, fault)
    if made.shape != array.shape:
        _refuse(f"`{REFERENCE}` gives the shape {made.shape} for `{name}`, expected {array.shape}", advice)
    return made


def _refuse(message: str, advice: str, cause: Exception | None = None) -> NoReturn:
    raise ArgusError(Diagnostic("E903", "error", message, help=advice)) from cause
