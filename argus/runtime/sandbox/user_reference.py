"""Calls a user's reference function with arrays by name, and checks the array or arrays that it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NoReturn, cast

import numpy as np
import numpy.typing as npt

from argus.core.diagnostic import ArgusError, Diagnostic

Exact = npt.NDArray[np.float64]
Oracle = Callable[..., object]
"""Computes a kernel's outputs from float64 inputs by name: returns an array, or a mapping of outputs by name."""
REFERENCE, WORK = "reference", "work"
"""Names of functions in a user's file: the reference for its kernels' outputs, and their amount of work."""


def call_reference(reference: Oracle, given: Mapping[str, Exact]) -> object:
    """The result of the user's function, given the arrays that its parameters name. Raises ArgusError (E903)."""
    try:
        parameters = inspect.signature(reference).parameters.values()
        every = any(each.kind is each.VAR_KEYWORD for each in parameters)
        passed = {
            name: array for name, array in given.items() if every or any(each.name == name for each in parameters)
        }
        return reference(**passed)
    except Exception as fault:  # noqa: BLE001 reason: the user's own code may raise anything
        advice = f"give its parameters names of inputs: {', '.join(given)}"
        _refuse(f"`{REFERENCE}` raised {type(fault).__name__}: {fault}", advice, fault)


def reference_outputs(expected: object, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Exact]:
    """A reference's result as arrays by output name. Raises ArgusError (E903) unless they have these shapes."""
    return {name: _output(expected, name, shape, alone=len(shapes) == 1) for name, shape in shapes.items()}


def _output(expected: object, name: str, shape: tuple[int, ...], *, alone: bool) -> Exact:
    found: object = expected
    if isinstance(expected, Mapping):
        found = cast("Mapping[str, object]", expected).get(name)
    elif not alone:
        found = None
    advice = f"return the array of `{name}`, or a dict of arrays by name, of shape {shape}"
    if found is None:
        _refuse(f"`{REFERENCE}` returns nothing for the output `{name}`", advice)
    try:
        made = np.asarray(found, np.float64)
    except (TypeError, ValueError) as fault:
        _refuse(f"`{REFERENCE}` returns no array for `{name}`", advice, fault)
    if made.shape != shape:
        _refuse(f"`{REFERENCE}` returns an array of shape {made.shape} for `{name}`, expected {shape}", advice)
    return made


def _refuse(message: str, advice: str, cause: Exception | None = None) -> NoReturn:
    raise ArgusError(Diagnostic("E903", "error", message, help=advice)) from cause
