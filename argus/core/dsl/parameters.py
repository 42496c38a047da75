"""Parameters of kernels and programs: annotated tensors, and keyword configurations and integers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from types import FunctionType
from typing import get_type_hints

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Int
from argus.core.dsl.views import TensorSpec, parse_spec
from argus.core.dtype import DType
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Strided
from argus.core.span import Span
from argus.core.target import LARGEST_SIZE
from argus.core.walk import symbols

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def traceable(function: Callable[..., None], what: str = "kernel") -> FunctionType:
    """The function, if it is a plain `def`. Raises E107 for anything else. what: names it in the message."""
    if not isinstance(function, FunctionType) or not function.__name__.isidentifier():
        fault("E107", f"a {what} is a `def` with a name, found {describe_value(function)}", help="decorate a function")
    if isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function):
        fault("E107", f"`{function.__name__}` is a generator or coroutine function", help="remove `yield` and `async`")
    return function


def template_name(what: str, function: FunctionType, name: str | None) -> str:
    """What a kernel or program is called: by default as its function. Raises E107 for a name that is no identifier."""
    called = function.__name__ if name is None else str(name)
    if not called.isidentifier():
        fault("E107", f"`{called}` is not a name for a {what}", help="use letters, digits and underscores")
    return called


def _tensor_specs(function: FunctionType, span: Span, passed: Collection[str]) -> dict[str, TensorSpec]:
    hints = _hints(function, span)
    specs: dict[str, TensorSpec] = {}
    for name, parameter in signature(function).parameters.items():
        spec: object = hints.get(name)
        if parameter.kind is Parameter.KEYWORD_ONLY:
            _check_keyword(function, parameter, span, passed)
        elif isinstance(spec, TensorSpec) and parameter.kind in _POSITIONAL:
            specs[name] = spec
        else:
            fault(
                "E107",
                f"parameter `{name}` of `{function.__name__}` is not a tensor",
                span=span,
                help=f'annotate it: `{name}: Tensor["M N", bf16]`',
            )
    return specs


def _check_keyword(function: FunctionType, parameter: Parameter, span: Span, passed: Collection[str]) -> None:
    if parameter.name != "cfg" and parameter.name not in passed and parameter.default is Parameter.empty:
        fault(
            "E107",
            f"keyword parameter `{parameter.name}` of `{function.__name__}` gets no value",
            span=span,
            help="name it `cfg` to get the configuration, annotate it `Int` to get a size, or give it a default",
        )


def launch_integers(function: FunctionType, span: Span, passed: Collection[str]) -> dict[str, Int]:
    """The keyword parameters annotated `Int` that have no value, by name: sizes of the kernel, which a launch gives."""
    hints = _hints(function, span)
    return {
        name: Int(algebra.sym(Symbol(name, "size", 0, LARGEST_SIZE)))
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY
        and hints.get(name) is Int
        and name not in passed
        and parameter.default is Parameter.empty
    }


def _hints(function: FunctionType, span: Span) -> Mapping[str, object]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception as problem:  # noqa: BLE001 reason: an annotation is the user's code and may raise anything
        fault("E107", f"an annotation of `{function.__name__}` cannot be read: {problem}", span=span)


def _parameter_buffer(name: str, spec: TensorSpec, sizes: dict[str, Symbol], span: Span) -> Buffer:
    found = parse_spec(spec)
    if isinstance(found, str):
        fault("E107", f"parameter `{name}`: {found}", span=span, help='write `Tensor["M K", bf16]`')
    axes, dtype = found
    shape: list[Index] = []
    for axis in axes:
        if axis.isdecimal():
            shape.append(algebra.const(int(axis)))
        else:
            shape.append(algebra.sym(sizes.setdefault(axis, Symbol(axis, "size", 0, LARGEST_SIZE))))
    return tensor_buffer(name, dtype, tuple(shape), span)


def tensor_buffer(name: str, dtype: DType, shape: tuple[Index, ...], span: Span) -> Buffer:
    """A dense tensor in global memory, last axis fastest."""
    strides: list[Index] = []
    stride: Index = algebra.const(1)
    for extent in reversed(shape):
        strides.append(stride)
        stride = algebra.mul(stride, extent)
    return Buffer(name, "global", dtype, shape, Strided(tuple(reversed(strides))), 16, span=span)


def parameters(
    unique: Callable[[str], str], function: FunctionType, span: Span, keywords: Mapping[str, object]
) -> tuple[list[Buffer], dict[str, Symbol]]:
    """The tensor parameters, and all sizes by name: those of the tensors and of symbolic integers among the keywords.

    Raises E107 for an ill-formed signature, or a name that is both a tensor and a size.
    """
    sizes: dict[str, Symbol] = {}
    buffers = [
        _parameter_buffer(name, spec, sizes, span) for name, spec in _tensor_specs(function, span, keywords).items()
    ]
    for value in keywords.values():
        if isinstance(value, Int):
            for symbol in sorted(symbols(value.node), key=lambda symbol: symbol.name):
                sizes.setdefault(symbol.name, symbol)
    for name in (*(buffer.name for buffer in buffers), *sizes):
        if unique(name) != name:
            fault("E107", f"`{name}` names a size and something else of `{function.__name__}`", span=span)
    return buffers, sizes


def configs_text(configs: Mapping[str, object]) -> str:
    """The names of a family's configurations, for its `repr`; empty for a single kernel."""
    names = list(configs)
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f", configurations {', '.join(names[:4])}{more}" if names else ""
