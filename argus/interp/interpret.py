"""The user's entry: run a kernel on arrays, as a launch would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.index import Index, Sym, Symbol
from argus.core.ir import Assume, Buffer, Kernel, walk
from argus.core.span import Span
from argus.core.walk import evaluate, show, symbols
from argus.interp.prepared import Prepared
from argus.interp.run import outputs, run_prepared
from argus.interp.schedule import Schedule

Array = npt.NDArray[Any]


def interpret(kernel: Kernel, *arrays: Array, schedule: Schedule = Schedule("late", 0, "lowest")) -> dict[str, Array]:  # noqa: B008 reason: frozen
    """Run `kernel` on one array for each parameter, in order; the outputs, by name, as new arrays.

    An output's contents are ignored (unless the kernel reads them too); its shape binds sizes.
    Raises ArgusError: E401 for a count, rank, shape or type that does not fit, E402 for an assumption that
    the sizes break, E501 for a construct without a meaning here.
    """
    sizes = bind(kernel, arrays)
    given = {buffer.name: array for buffer, array in zip(kernel.parameters, arrays, strict=True)}
    outcome = run_prepared(Prepared(kernel), sizes, given, schedule, tags=False, values=True)
    return {buffer.name: outcome.arrays[buffer.name] for buffer in outputs(kernel)}


def bind(kernel: Kernel, arrays: Sequence[Array]) -> dict[str, int]:
    """The sizes that the arrays' shapes give, checked against types, shapes and assumptions."""
    if len(arrays) != len(kernel.parameters):
        names = ", ".join(buffer.name for buffer in kernel.parameters)
        _mismatch(
            kernel, kernel.span, f"`{kernel.name}` takes {len(kernel.parameters)} arrays ({names}), found {len(arrays)}"
        )
    sizes: dict[Symbol, int] = {}
    for buffer, array in zip(kernel.parameters, arrays, strict=True):
        _bind_one(kernel, buffer, array, sizes)
    for symbol in kernel.sizes:
        if symbol not in sizes:
            _mismatch(kernel, kernel.span, f"no array of `{kernel.name}` has the size {symbol.name} as an extent")
    for buffer, array in zip(kernel.parameters, arrays, strict=True):
        _check_shape(kernel, buffer, array, sizes)
    _check_assumptions(kernel, sizes)
    return {symbol.name: value for symbol, value in sizes.items()}


def _bind_one(kernel: Kernel, buffer: Buffer, array: object, sizes: dict[Symbol, int]) -> None:
    if not isinstance(array, np.ndarray):
        _mismatch(kernel, buffer.span, f"`{buffer.name}` expects a NumPy array, found {type(array).__name__}")
    held = cast(Array, array)
    wanted = buffer.dtype.numpy
    if held.dtype != wanted:
        text = f"`{buffer.name}` expects elements of type {wanted} ({buffer.dtype}), found {held.dtype}"
        _mismatch(kernel, buffer.span, text, f"convert it: `{buffer.name}.astype({wanted.name!r})`")
    if held.ndim != len(buffer.shape):
        text = f"`{buffer.name}` expects {len(buffer.shape)} axes ({_shape(buffer.shape)}), found {held.ndim}"
        _mismatch(kernel, buffer.span, text)
    for extent, found in zip(buffer.shape, held.shape, strict=True):
        if isinstance(extent, Sym):
            sizes.setdefault(extent.symbol, int(found))


def _check_shape(kernel: Kernel, buffer: Buffer, array: Array, sizes: Mapping[Symbol, int]) -> None:
    expected = tuple(int(cast(int, evaluate(extent, sizes))) for extent in buffer.shape)
    if expected != array.shape:
        text = f"`{buffer.name}` expects shape ({_shape(buffer.shape)}) = {expected}, found {array.shape}"
        _mismatch(kernel, buffer.span, text, "sizes are bound by the first array that has them")


def _check_assumptions(kernel: Kernel, sizes: Mapping[Symbol, int]) -> None:
    for symbol, value in sizes.items():
        if (symbol.low is not None and value < symbol.low) or (symbol.high is not None and value > symbol.high):
            _broken(kernel, f"{symbol.low} <= {symbol.name} <= {symbol.high}", {symbol: value}, kernel.span)
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Assume) or not symbols(stmt.cond) <= sizes.keys():
            continue
        if not bool(evaluate(stmt.cond, sizes)):
            named = {symbol: sizes[symbol] for symbol in sorted(symbols(stmt.cond), key=lambda s: s.name)}
            _broken(kernel, show(stmt.cond), named, stmt.span)


def _shape(extents: Sequence[Index]) -> str:
    return ", ".join(show(extent) for extent in extents)


def _mismatch(kernel: Kernel, span: Span, message: str, repair: str = "") -> NoReturn:
    label = Label(span, "declared here")
    raise ArgusError(Diagnostic("E401", "error", message, label, help=repair, kernel=kernel.name))


def _broken(kernel: Kernel, condition: str, named: Mapping[Symbol, int], span: Span) -> NoReturn:
    values = ", ".join(f"{symbol.name} = {value}" for symbol, value in named.items())
    raise ArgusError(
        Diagnostic(
            "E402",
            "error",
            f"assumption `{condition}` of `{kernel.name}` does not hold for {values}",
            Label(span, "assumed here"),
            facts=tuple((symbol.name, str(value)) for symbol, value in named.items()),
            help="pass arrays whose sizes satisfy it",
            kernel=kernel.name,
        )
    )
