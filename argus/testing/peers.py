"""Adapters of layout libraries, by name: run an operation on draws, and return its results or refusals.

A peer is imported on demand and never installed. `pycute` and `tensor-layouts` run eagerly; `cute-dsl` (CuTe's DSL)
works only while it traces a function, so its draws run inside one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from attrs import frozen

from argus import layout as argus_layout
from argus.core.layout import IntTuple, LayoutError
from argus.core.layout.inttuple import checked
from argus.testing.draws import OPERATIONS, Draw, Operation

TRACED = 1000
"""Draws per traced function."""


@frozen
class Found:
    """The layout that a library returned, unchanged: extents may be 0."""

    shape: IntTuple
    stride: IntTuple


@frozen
class Refused:
    """The library raised an exception."""

    reason: str


Outcome = Found | Refused


class Peer(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def operations(self) -> Collection[Operation]:
        """The operations that it has and that do not end the process."""
        ...

    def outcomes(self, operation: Operation, draws: Sequence[Draw]) -> list[Outcome]:
        """One outcome per draw; an exception of the library becomes `Refused`."""
        ...


class _Result(Protocol):
    shape: object
    stride: object


@frozen
class Eager:
    """A library whose functions run eagerly."""

    name: str
    build: Callable[[IntTuple, IntTuple], object]
    functions: Mapping[Operation, Callable[..., object]]

    @property
    def operations(self) -> Collection[Operation]:
        return self.functions.keys()

    def operands(self, operation: Operation, draw: Draw) -> tuple[object, ...]:
        """A draw's operands, as new values of the library."""
        first = self.build(*draw.a)
        if operation == "complement":
            return first, draw.cotarget
        return (first,) if operation.endswith("inverse") else (first, self.build(*draw.b))

    def outcomes(self, operation: Operation, draws: Sequence[Draw]) -> list[Outcome]:
        function = self.functions[operation]
        return [self._outcome(function, operation, draw) for draw in draws]

    def _outcome(self, function: Callable[..., object], operation: Operation, draw: Draw) -> Outcome:
        try:
            result = cast(_Result, function(*self.operands(operation, draw)))
            return Found(checked(result.shape, "shape"), checked(result.stride, "stride"))
        except Exception as error:  # noqa: BLE001 reason: libraries refuse with AssertionError, TypeError and others
            return Refused(type(error).__name__)


@frozen
class Traced:
    """A library whose functions run only while a function is traced."""

    inside: Eager
    trace: Callable[[Callable[[], None]], Callable[[], object]]

    @property
    def name(self) -> str:
        return self.inside.name

    @property
    def operations(self) -> Collection[Operation]:
        return self.inside.operations

    def outcomes(self, operation: Operation, draws: Sequence[Draw]) -> list[Outcome]:
        found: list[Outcome] = []
        for start in range(0, len(draws), TRACED):
            some = draws[start : start + TRACED]

            def work(some: Sequence[Draw] = some) -> None:
                found.extend(self.inside.outcomes(operation, some))

            _traced(self.trace, work)
        return found


def _traced(trace: Callable[[Callable[[], None]], Callable[[], object]], work: Callable[[], None]) -> None:
    # The tracer rewrites the function's source, so it contains only one call.
    def traced() -> None:
        work()

    trace(traced)()


# -- by name -------------------------------------------------------------------------------------------------


def _argus() -> Peer:
    return Eager("argus", argus_layout.Layout, {name: getattr(argus_layout, name) for name in OPERATIONS})


def _pycute() -> Peer:
    module = imported("pycute", "pycute", "put cutlass/python on the path (PYTHONPATH, or `--path`)")
    return Eager("pycute", module.Layout, {name: getattr(module, name) for name in OPERATIONS})


def _tensor_layouts() -> Peer:
    module = imported("tensor-layouts", "tensor_layouts", "pip install tensor-layouts")
    functions: dict[Operation, Callable[..., object]] = {
        name: getattr(module, "compose" if name == "composition" else name) for name in OPERATIONS
    }
    return Eager("tensor-layouts", module.Layout, functions)


def _cute_dsl() -> Peer:
    module = imported("cute-dsl", "cutlass.cute", "pip install nvidia-cutlass-dsl")

    def build(shape: IntTuple, stride: IntTuple) -> object:
        return module.make_layout(shape, stride=stride)

    # Its divide and product abort the process if the complement has an extent of 0, so they are not run.
    safe: list[Operation] = [name for name in OPERATIONS if name not in {"logical_divide", "logical_product"}]
    return Traced(Eager("cute-dsl", build, {name: getattr(module, name) for name in safe}), module.jit)


_FACTORIES: dict[str, Callable[[], Peer]] = {
    "argus": _argus,
    "pycute": _pycute,
    "tensor-layouts": _tensor_layouts,
    "cute-dsl": _cute_dsl,
}
NAMES = tuple(name for name in _FACTORIES if name != "argus")


def peer(name: str) -> Peer:
    """A library by its name, one of NAMES or `argus`. Raises LayoutError (E814) if it cannot be imported."""
    if name not in _FACTORIES:
        raise LayoutError("E814", f"no peer is named `{name}`", help=f"choose one of {', '.join(_FACTORIES)}")
    return _FACTORIES[name]()


class _Module(Protocol):
    """The attributes that are read from a library's module."""

    Layout: Callable[[IntTuple, IntTuple], object]
    make_layout: Callable[..., object]
    jit: Callable[[Callable[[], None]], Callable[[], object]]


def imported(name: str, module: str, repair: str) -> _Module:
    """The module of a library. Raises LayoutError (E814) if it is not installed."""
    try:
        return cast(_Module, import_module(module))
    except ImportError as error:
        raise LayoutError("E814", f"`{name}` is not installed: {error}", help=repair) from error
