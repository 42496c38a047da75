"""Arrays with named axes and error bounds, and the operations on them that formulas of outputs consist of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core import dtype as dtypes
from argus.core.dtype import DType
from argus.core.elementwise import ELEMENT_OPS, INTEGER_OPS
from argus.verifier.reference import F32_ROUNDING, Exact, rounding_of

Array = npt.NDArray[Any]
_ROUNDINGS_OF_AN_OPERATION = 8
"""How many roundings of its type an operation may be off: the hardware's functions are approximations."""
_LARGEST = 2.0**53
"""Integers up to here are exact in float64."""


class NoValueError(Exception):
    """The formula contains something that is not evaluated."""


@frozen(eq=False)
class Value:
    """An array with named axes. error: a bound on the difference of each element. unit: its type's rounding.

    holes: whether it is NaN for tags that no element has; what is computed of these is NaN, too.
    """

    axes: tuple[str, ...]
    exact: Exact
    error: Exact
    unit: float
    holes: bool = False

    def along(self, axes: Sequence[str]) -> tuple[Exact, Exact]:
        """The array and its error with these axes, in order; extent 1 along those that it lacks."""
        held = [name for name in axes if name in self.axes]
        order = [self.axes.index(name) for name in held]
        places = tuple(slice(None) if name in self.axes else None for name in axes)
        return self.exact.transpose(order)[places], self.error.transpose(order)[places]


def aligned(*parts: Value) -> tuple[tuple[str, ...], list[Value]]:
    """All axes of values, and the values with one extent along each: NaN where an element has no such tag."""
    most: dict[str, int] = {}
    for part in parts:
        for axis, extent in zip(part.axes, part.exact.shape, strict=True):
            most[axis] = max(most.get(axis, 0), extent)
    found: list[Value] = []
    for part in parts:
        more = [(0, most[axis] - extent) for axis, extent in zip(part.axes, part.exact.shape, strict=True)]
        if any(by for _, by in more):
            exact, error = (np.pad(each, more, constant_values=np.nan) for each in (part.exact, part.error))
            found.append(evolve(part, exact=exact, error=error, holes=True))
        else:
            found.append(part)
    return tuple(most), found


def with_holes(value: Value, of: Sequence[Value]) -> Value:
    """The value, NaN where an element of which it is computed does not exist."""
    if not any(part.holes for part in of):
        return value
    missing = [np.isnan(part.along(value.axes)[0]) for part in of if part.holes]
    lost = np.logical_or.reduce([np.broadcast_to(each, value.exact.shape) for each in missing])
    return evolve(value, exact=np.where(lost, np.nan, value.exact), holes=True)


COMPARED: Mapping[str, Callable[[Exact, Exact], Array]] = {"<": np.less, "<=": np.less_equal, "==": np.equal}


def rounded(value: Value, unit: float) -> Value:
    """The value in a type with this rounding; 0: as it is."""
    if not unit:
        return value
    error = value.error + unit * (np.abs(value.exact) + value.error)
    return evolve(value, error=error, unit=max(unit, value.unit))


def cast_to(name: str, parts: Sequence[Value]) -> Value:
    kind = getattr(dtypes, name, None)
    if not isinstance(kind, DType) or len(parts) != 1:
        raise NoValueError
    (value,) = parts
    if kind.family != "float":
        return _wrapped(value, kind.bits)
    unit = rounding_of(kind.numpy)
    nearest = value.exact.astype(kind.numpy).astype(np.float64)
    error = value.error + unit * (np.abs(value.exact) + value.error)
    return Value(value.axes, np.where(np.isfinite(nearest), value.exact, nearest), error, unit, value.holes)


def _wrapped(value: Value, bits: int) -> Value:
    """Integers modulo 2^bits. Raises NoValueError for numbers that may be no integers, or not known exactly."""
    if value.unit or value.error.any() or not _are_integers(value.exact):
        raise NoValueError
    half = 2.0 ** (bits - 1)
    return evolve(value, exact=np.mod(value.exact + half, 2 * half) - half)


def _are_integers(numbers: Exact) -> bool:
    return bool(np.all((np.abs(numbers) <= _LARGEST) & (numbers == np.floor(numbers))))


def apply(name: str, parts: Sequence[Value]) -> Value:
    """The operation, with the errors of its operands at the corners of their intervals and its own roundings."""
    entry = ELEMENT_OPS[name]
    if entry.arity != len(parts):
        raise NoValueError
    axes, held = aligned(*parts)
    operands = [part.along(axes) for part in held]
    exact = np.asarray(entry.meaning(*(value for value, _ in operands)), np.float64)
    unit = max(part.unit for part in parts)
    if not unit and name in INTEGER_OPS and all(map(_are_integers, (exact, *(value for value, _ in operands)))):
        return with_holes(Value(axes, exact, np.zeros_like(exact), 0.0), held)
    spread = np.zeros_like(exact)
    if any(np.nan_to_num(part.error).any() for part in parts):
        for signs in product((-1, 1), repeat=len(parts)):
            moved = (value + sign * error for sign, (value, error) in zip(signs, operands, strict=True))
            corner = entry.meaning(*moved)
            spread = np.fmax(spread, np.abs(corner - exact))
    relative = max(_ROUNDINGS_OF_AN_OPERATION * max(unit, F32_ROUNDING / 2), entry.relative)
    return with_holes(Value(axes, exact, spread + relative * np.abs(exact), unit), held)
