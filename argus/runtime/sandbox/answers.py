"""What a user's own reference says: it is asked with arrays by name, and answers with an array, or with several."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NoReturn, cast

import numpy as np
import numpy.typing as npt

from argus.core.diagnostic import ArgusError, Diagnostic

Exact = npt.NDArray[np.float64]
Oracle = Callable[..., object]
"""What a kernel computes, of float64 inputs by name: an array, or outputs by name."""
REFERENCE, WORK = "reference", "work"
"""Functions of a user's file: what its kernels compute, and how much of it there is to do."""


def asked(reference: Oracle, given: Mapping[str, Exact]) -> object:
    """What the user's function says, of those arrays that it names. Raises ArgusError (E903)."""
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


def answered(expected: object, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Exact]:
    """The arrays that a reference gives for outputs of such shapes. Raises ArgusError (E903)."""
    return {name: _output(expected, name, shape, alone=len(shapes) == 1) for name, shape in shapes.items()}


def _output(expected: object, name: str, shape: tuple[int, ...], *, alone: bool) -> Exact:
    found: object = expected
    if isinstance(expected, Mapping):
        found = cast("Mapping[str, object]", expected).get(name)
    elif not alone:
        found = None
    advice = f"return the array of `{name}`, or a dict of arrays by name, of shape {shape}"
    if found is None:
        _refuse(f"`{REFERENCE}` gives nothing for the output `{name}`", advice)
    try:
        made = np.asarray(found, np.float64)
    except (TypeError, ValueError) as fault:
        _refuse(f"`{REFERENCE}` gives no array for `{name}`", advice, fault)
    if made.shape != shape:
        _refuse(f"`{REFERENCE}` gives the shape {made.shape} for `{name}`, expected {shape}", advice)
    return made


def _refuse(message: str, advice: str, cause: Exception | None = None) -> NoReturn:
    raise ArgusError(Diagnostic("E903", "error", message, help=advice)) from cause
