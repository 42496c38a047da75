"""The program being traced: its tensors, workspaces and launches so far."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import signature
from itertools import chain, count
from types import CodeType
from typing import NoReturn

from argus.core import algebra
from argus.core.dsl import source_location
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Int, IntLike, axis_values, extent, unwrap
from argus.core.dsl.parameters import tensor_buffer
from argus.core.dsl.tiles.fragments import check_dtype
from argus.core.dsl.tracer import is_tracing
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.index import Const, Index, Sym, Symbol
from argus.core.index_text import show
from argus.core.ir import Assert, Buffer, Kernel, Launch, View, whole
from argus.core.span import Span
from argus.core.target import Target
from argus.core.walk import substitute, symbols


class Launches:
    """One program under construction, for the duration of its trace.

    target: of its kernels that name none; None if they all do. claims: about the tensors that it leaves.
    formula_symbols: the bound variables of formulas, by wanted name.
    """

    def __init__(self, root: CodeType, target: Target | None = None) -> None:
        self.root = root
        self.target = target
        self.parameters: tuple[Buffer, ...] = ()
        self.sizes: tuple[Symbol, ...] = ()
        self.workspaces: list[Buffer] = []
        self.launches: list[Launch] = []
        self.claims: list[Assert] = []
        self.formula_symbols: dict[str, Symbol] = {}
        self._names: dict[str, int] = {}

    def span(self) -> Span:
        return source_location.span_of(source_location.user_frame(), self.root)

    def unique(self, wanted: str) -> str:
        times = self._names.get(wanted, 0) + 1
        self._names[wanted] = times
        return wanted if times == 1 else self.unique(f"{wanted}_{times}")

    def kernel_name(self, wanted: str) -> str:
        """A name for the kernel of the next launch, distinct from those of earlier launches."""
        taken = {launch.kernel.name for launch in self.launches}
        return next(name for name in chain((wanted,), (f"{wanted}_{i}" for i in count(2))) if name not in taken)

    def add(self, kernel: Kernel, arguments: Mapping[str, Buffer], keywords: Mapping[str, object]) -> None:
        """Launch a kernel on tensors of this program.

        Raises E106 for a tensor of another type or shape than its parameter, or for a size with two different values.
        """
        sizes: dict[Symbol, Index] = {}
        for parameter in kernel.parameters:
            _bind_sizes(kernel, parameter, arguments[parameter.name], sizes)
        for value in keywords.values():
            for symbol in symbols(value.node) if isinstance(value, Int) else ():
                if sizes.setdefault(symbol, algebra.sym(symbol)) is not algebra.sym(symbol):
                    _launch_fault(kernel, f"size {symbol.name} of a keyword differs from that of its tensors")
        for parameter in kernel.parameters:
            _check_extents(kernel, parameter, arguments[parameter.name], sizes)
        bound = tuple((symbol, sizes[symbol]) for symbol in kernel.sizes)
        self.launches.append(Launch(kernel, arguments, bound, self.span()))


def _bind_sizes(kernel: Kernel, parameter: Buffer, argument: Buffer, sizes: dict[Symbol, Index]) -> None:
    if argument.dtype != parameter.dtype:
        _launch_fault(kernel, f"`{parameter.name}` takes {parameter.dtype}, `{argument.name}` is {argument.dtype}")
    if len(argument.shape) != len(parameter.shape):
        found, wanted = len(argument.shape), len(parameter.shape)
        _launch_fault(kernel, f"`{parameter.name}` has {wanted} axes, `{argument.name}` has {found}")
    for size, actual in zip(parameter.shape, argument.shape, strict=True):
        if isinstance(size, Sym):
            sizes.setdefault(size.symbol, actual)


def _check_extents(kernel: Kernel, parameter: Buffer, argument: Buffer, sizes: Mapping[Symbol, Index]) -> None:
    for size, actual in zip(parameter.shape, argument.shape, strict=True):
        wanted = substitute(size, sizes)
        if wanted is not actual:
            name = f"extent {show(size)} of `{parameter.name}`"
            _launch_fault(kernel, f"{name} is {show(wanted)}, that of `{argument.name}` is {show(actual)}")


def _launch_fault(kernel: Kernel, why: str) -> NoReturn:
    fault("E106", f"a launch of `{kernel.name}`: {why}", help="pass tensors of the types and shapes declared")


_current: ContextVar[Launches | None] = ContextVar("argus_program", default=None)


def current_program(what: str) -> Launches:
    """The program being traced. Raises E105 outside a program, and inside a kernel."""
    found = _current.get()
    if found is None or is_tracing():
        help_ = "call it from a function decorated with `@program`"
        fault("E105", f"`{what}` was called outside a program", help=help_)
    return found


@contextmanager
def tracing_program(launches: Launches) -> Generator[None]:
    """Make `launches` the program being traced, for the body of the `with` statement."""
    token = _current.set(launches)
    try:
        yield
    finally:
        _current.reset(token)


def workspace(dtype: DType, shape: tuple[IntLike, ...]) -> Tensor:
    """An uninitialised tensor in global memory that exists for one run of the program."""
    program = current_program("workspace")
    check_dtype(dtype)
    extents = tuple(unwrap(size) for size in axis_values(shape, "a workspace"))
    for found in extents:
        if isinstance(found, Const):
            extent(found.value, "an extent of a workspace")
    name = program.unique(source_location.assigned_name(source_location.user_frame()) or "workspace")
    buffer = tensor_buffer(name, dtype, extents, program.span())
    program.workspaces.append(buffer)
    return Tensor(whole(buffer))


def bind_tensors(kernel: str, function: Callable[..., None], tensors: tuple[object, ...]) -> dict[str, Buffer]:
    """The buffers of a call by parameter name. Raises E106 for anything but whole tensors of the program."""
    names = [each.name for each in signature(function).parameters.values() if each.kind is not each.KEYWORD_ONLY]
    if len(names) != len(tensors):
        fault(
            "E106",
            f"`{kernel}` takes {len(names)} tensors ({', '.join(names)}), found {len(tensors)}",
            help="pass them by position, one for each parameter",
        )
    found: dict[str, Buffer] = {}
    for name, tensor in zip(names, tensors, strict=True):
        if not isinstance(tensor, Tensor):
            fault("E106", f"`{name}` of `{kernel}` is {describe_value(tensor)}", help="pass a tensor of the program")
        if not is_whole(tensor.view):
            what = tensor.view.buffer.name
            fault("E106", f"`{name}` of `{kernel}` is a view of `{what}`", help="pass whole tensors, view them inside")
        found[name] = tensor.view.buffer
    return found


def is_whole(view: View) -> bool:
    """Whether a view is the identity view of its buffer."""
    own = tuple(algebra.coord(axis) for axis in range(len(view.buffer.shape)))
    return view.at == own and view.shape == view.buffer.shape and view.where is algebra.TRUE
