"""Public entry points: interpret a kernel or a program on NumPy arrays, as a launch would run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from argus.core.algebra import TRUE
from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.index import Index, Sym, Symbol
from argus.core.index_text import show
from argus.core.ir import Assume, Buffer, Kernel, Program, walk
from argus.core.proof.obligation import INVARIANT_PRIORITY
from argus.core.span import Span
from argus.core.walk import evaluate, symbols
from argus.interp.compiled_kernel import Prepared
from argus.interp.memory.loading import outputs, satisfies_promise
from argus.interp.programs import launch_sizes, run_program
from argus.interp.run import run_prepared
from argus.interp.search.schedule import Schedule
from argus.interp.violation import Violation

Array = npt.NDArray[Any]


def interpret(
    kernel: Kernel,
    *arrays: Array,
    schedule: Schedule = Schedule("late", 0, "lowest"),  # noqa: B008 reason: frozen
    tags: bool = True,
    given_sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """Run `kernel` on one array per parameter, in order; returns the outputs, by name, as new arrays.

    An output's contents are ignored (unless the kernel also reads them); its shape binds sizes.
    tags: check tags and the other invariants that a run can violate. given_sizes: by name, those of no array at least.
    Raises ArgusError: the first violated invariant (I1, ...), E401 for a count, rank, shape or type that does not fit,
    E402 for an assumption that the sizes violate, E501 for a construct that the interpreter does not support.
    """
    sizes = bind(kernel, arrays, given_sizes)
    given = {buffer.name: array for buffer, array in zip(kernel.parameters, arrays, strict=True)}
    _check_promises(kernel, sizes, given)
    outcome = run_prepared(Prepared(kernel), sizes, given, schedule, tags=tags, values=True)
    _check_violations(kernel, outcome.violations if tags else ())
    return {buffer.name: outcome.arrays[buffer.name] for buffer in outputs(kernel)}


def interpret_program(
    program: Program,
    *arrays: Array,
    schedule: Schedule = Schedule("late", 0, "lowest"),  # noqa: B008 reason: frozen
    tags: bool = True,
    given_sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """Run a program on one array per parameter, in order; returns the tensors that its launches write, as new arrays.

    given_sizes: as of `interpret`. Raises ArgusError as `interpret` does; the assumptions and promises of all launches
    are checked before the first.
    """
    sizes = bind(program, arrays, given_sizes)
    given = {buffer.name: array for buffer, array in zip(program.parameters, arrays, strict=True)}
    for launch in program.launches:
        env = {symbol.name: sizes[symbol.name] for symbol in program.sizes}
        own = launch_sizes(launch, {symbol: env[symbol.name] for symbol in program.sizes})
        check_assumptions(launch.kernel, own)
        passed = {name: given[buffer.name] for name, buffer in launch.arguments.items() if buffer.name in given}
        _check_promises(launch.kernel, {symbol.name: value for symbol, value in own.items()}, passed)
    outcome = run_program(program, sizes, given, schedule, tags=tags)
    _check_violations(program, outcome.violations if tags else ())
    written = {launch.arguments[buffer.name] for launch in program.launches for buffer in outputs(launch.kernel)}
    return {buffer.name: outcome.arrays[buffer.name] for buffer in program.parameters if buffer in written}


def _check_violations(kernel: Kernel | Program, found: Sequence[Violation]) -> None:
    """Raises the first violation of a run as its diagnostic."""
    if not found:
        return
    first = min(found, key=lambda each: INVARIANT_PRIORITY.index(each.code))
    related = tuple(Label(stmt.span, remark) for stmt, remark in first.related)
    other = () if first.other is None else (Label(first.other.span, "the other access"),)
    facts = (("block", str(first.block)), ("thread", str(first.thread)), *first.facts)
    advice = "verify it; `interpret(..., tags=False)` computes values without these checks"
    at = Label(first.stmt.span, f"thread {first.thread}")
    raise ArgusError(
        Diagnostic(first.code, "error", first.message, at, (*other, *related), facts, help=advice, kernel=kernel.name)
    )


def _check_promises(kernel: Kernel, sizes: Mapping[str, int], given: Mapping[str, Array]) -> None:
    """Check promises about the integers that expressions read. Raises E402 for the first element that violates one."""
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    integers = {name: array.astype(np.int64) for name, array in given.items() if array.dtype.kind == "i"}
    for buffer in kernel.parameters:
        if buffer.promise is TRUE or buffer.name not in given:
            continue
        kept = satisfies_promise(buffer, given[buffer.name], env, integers)
        if not kept.all():
            at = tuple(int(axis[0]) for axis in np.nonzero(~kept))
            element = f"{buffer.name}[{', '.join(map(str, at))}]"
            _promise_violated(kernel, buffer, element, int(given[buffer.name][at]))


def bind(kernel: Kernel | Program, arrays: Sequence[Array], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """The sizes bound by the arrays' shapes, after checking types, shapes and assumptions. given: sizes, by name."""
    if len(arrays) != len(kernel.parameters):
        names = ", ".join(buffer.name for buffer in kernel.parameters)
        _mismatch(
            kernel, kernel.span, f"`{kernel.name}` takes {len(kernel.parameters)} arrays ({names}), found {len(arrays)}"
        )
    sizes = {symbol: given[symbol.name] for symbol in kernel.sizes if given and symbol.name in given}
    for buffer, array in zip(kernel.parameters, arrays, strict=True):
        _bind_one(kernel, buffer, array, sizes)
    for symbol in kernel.sizes:
        if symbol not in sizes:
            text = f"no array of `{kernel.name}` has the size {symbol.name} as an extent"
            _mismatch(kernel, kernel.span, text, f'pass `given_sizes={{"{symbol.name}": ...}}`')
    for buffer, array in zip(kernel.parameters, arrays, strict=True):
        _check_shape(kernel, buffer, array, sizes)
    if isinstance(kernel, Kernel):
        check_assumptions(kernel, sizes)
    return {symbol.name: value for symbol, value in sizes.items()}


def _bind_one(kernel: Kernel | Program, buffer: Buffer, array: object, sizes: dict[Symbol, int]) -> None:
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


def _check_shape(kernel: Kernel | Program, buffer: Buffer, array: Array, sizes: Mapping[Symbol, int]) -> None:
    expected = tuple(int(cast(int, evaluate(extent, sizes))) for extent in buffer.shape)
    if expected != array.shape:
        text = f"`{buffer.name}` expects shape ({_shape(buffer.shape)}) = {expected}, found {array.shape}"
        _mismatch(kernel, buffer.span, text, "sizes are bound by the first array that has them")


def check_assumptions(kernel: Kernel, sizes: Mapping[Symbol, int]) -> None:
    """Raises ArgusError (E402) for sizes that violate an assumption."""
    for symbol, value in sizes.items():
        if (symbol.low is not None and value < symbol.low) or (symbol.high is not None and value > symbol.high):
            _assumption_violated(
                kernel, f"{symbol.low} <= {symbol.name} <= {symbol.high}", {symbol: value}, kernel.span
            )
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Assume) or not symbols(stmt.cond) <= sizes.keys():
            continue
        if not bool(evaluate(stmt.cond, sizes)):
            named = {symbol: sizes[symbol] for symbol in sorted(symbols(stmt.cond), key=lambda s: s.name)}
            _assumption_violated(kernel, show(stmt.cond), named, stmt.span)


def _shape(extents: Sequence[Index]) -> str:
    return ", ".join(show(extent) for extent in extents)


def _promise_violated(kernel: Kernel, buffer: Buffer, element: str, value: int) -> NoReturn:
    message = f"`{kernel.name}` is promised `{show(buffer.promise)}` of `{buffer.name}`, found {element} = {value}"
    raise ArgusError(
        Diagnostic(
            "E402",
            "error",
            message,
            Label(buffer.span, "promised of its elements"),
            facts=((element, str(value)),),
            help="pass integers that keep the promise",
            kernel=kernel.name,
        )
    )


def _mismatch(kernel: Kernel | Program, span: Span, message: str, repair: str = "") -> NoReturn:
    label = Label(span, "declared here")
    raise ArgusError(Diagnostic("E401", "error", message, label, help=repair, kernel=kernel.name))


def _assumption_violated(kernel: Kernel, condition: str, named: Mapping[Symbol, int], span: Span) -> NoReturn:
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
