"""`@kernel`: a traced function, and the kernels that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from types import FunctionType
from typing import Any, get_type_hints, overload

from attrs import field, frozen

from argus.core import algebra
from argus.core.check import check, thread_count
from argus.core.diagnostic import ArgusError, Diagnostic, InternalError
from argus.core.dsl.faults import described, fault, raised
from argus.core.dsl.handles import extents
from argus.core.dsl.place import span_of_function
from argus.core.dsl.roles import assembled
from argus.core.dsl.tracer import Tracer, tracing
from argus.core.dsl.views import Tensor, TensorSpec, declared
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Kernel, Strided, whole
from argus.core.span import Span
from argus.core.target import Target

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
LARGEST_SIZE = 1 << 30
"""Sizes of tensors lie in [0, LARGEST_SIZE]: coordinates then fit 32-bit integers with room for a tile."""


@frozen
class Template:
    """A decorated function: one kernel, or a family with one kernel a configuration."""

    function: Callable[..., None]
    target: Target | None
    threads: int | None
    cluster: tuple[int, ...]
    configs: Mapping[str, Any] = field(converter=dict)

    @property
    def name(self) -> str:
        return self.function.__name__

    def trace(self, config: str | None = None) -> Kernel:
        """Run the function once and return the kernel it describes.

        Raises ArgusError for whatever is wrong with it, also when the function itself raises.
        """
        chosen = self._config(config)
        target: object = getattr(chosen, "target", None) if self.target is None else self.target
        threads: object = getattr(chosen, "threads", None) if self.threads is None else self.threads
        if not isinstance(target, Target) or not isinstance(threads, int):
            fault(
                "E107",
                f"kernel `{self.name}` does not say for which target and how many threads",
                span=span_of_function(_plain(self.function).__code__),
                help="write `@kernel(target=gfx942, threads=256)`, or give the configuration these fields",
            )
        name = self.name if config is None else f"{self.name}_{config}"
        return _trace(name, _plain(self.function), target, threads, chosen)

    def instances(self) -> tuple[str | None, ...]:
        """The names of the configurations shipped; `(None,)` if there is just one kernel."""
        return tuple(self.configs) or (None,)

    def _config(self, name: str | None) -> Any:  # noqa: ANN401 reason: a family's configuration is its author's type
        if name is None:
            return next(iter(self.configs.values()), None)
        if name not in self.configs:
            fault(
                "E107",
                f"kernel `{self.name}` has no configuration `{name}`",
                span=span_of_function(_plain(self.function).__code__),
                help=f"choose one of {', '.join(self.configs) or 'none'}",
            )
        return self.configs[name]


@overload
def kernel(function: Callable[..., None], /) -> Template: ...


@overload
def kernel(
    *,
    target: Target | None = None,
    threads: int | None = None,
    cluster: tuple[int, ...] = (1,),
    configs: Mapping[str, object] | None = None,
) -> Callable[[Callable[..., None]], Template]: ...


def kernel(
    function: Callable[..., None] | None = None,
    /,
    *,
    target: Target | None = None,
    threads: int | None = None,
    cluster: tuple[int, ...] = (1,),
    configs: Mapping[str, object] | None = None,
) -> Template | Callable[[Callable[..., None]], Template]:
    """Make a function of `Tensor["M K", bf16]` parameters a kernel.

    configs: named values for the keyword parameter `cfg`; a value may carry `target` and `threads`.
    cluster: blocks that share memory; one, for now (E501). Raises ArgusError for what is not a plain `def`.
    """

    def decorate(traced: Callable[..., None]) -> Template:
        return Template(_plain(traced), target, threads, _of_one(cluster), configs or {})

    return decorate if function is None else decorate(function)


def _of_one(cluster: tuple[int, ...]) -> tuple[int, ...]:
    if any(extent != 1 for extent in extents(cluster, "a cluster")):
        fault("E501", f"clusters of {cluster} are not built yet", help="leave `cluster` out")
    return tuple(cluster)


def _plain(function: Callable[..., None]) -> FunctionType:
    if not isinstance(function, FunctionType) or not function.__name__.isidentifier():
        fault("E107", f"a kernel is a `def` with a name, found {described(function)}", help="decorate a function")
    if isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function):
        fault("E107", f"`{function.__name__}` does not run when it is called", help="remove `yield` and `async`")
    return function


def _tensors(function: FunctionType, span: Span) -> dict[str, TensorSpec]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as problem:  # noqa: BLE001 reason: an annotation is the user's code and may raise anything
        fault("E107", f"an annotation of `{function.__name__}` cannot be read: {problem}", span=span)
    specs: dict[str, TensorSpec] = {}
    for name, parameter in signature(function).parameters.items():
        spec: object = hints.get(name)
        if parameter.kind is Parameter.KEYWORD_ONLY:
            _check_keyword(function, parameter, span)
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


def _check_keyword(function: FunctionType, parameter: Parameter, span: Span) -> None:
    if parameter.name != "cfg" and parameter.default is Parameter.empty:
        fault(
            "E107",
            f"keyword parameter `{parameter.name}` of `{function.__name__}` gets no value",
            span=span,
            help="name it `cfg` to get the configuration, or give it a default",
        )


def _parameter(name: str, spec: TensorSpec, sizes: dict[str, Symbol], span: Span) -> Buffer:
    found = declared(spec)
    if isinstance(found, str):
        fault("E107", f"parameter `{name}`: {found}", span=span, help='write `Tensor["M K", bf16]`')
    axes, dtype = found
    shape: list[Index] = []
    for axis in axes:
        if axis.isdecimal():
            shape.append(algebra.const(int(axis)))
        else:
            shape.append(algebra.sym(sizes.setdefault(axis, Symbol(axis, "size", 0, LARGEST_SIZE))))
    strides: list[Index] = []
    stride: Index = algebra.const(1)
    for extent in reversed(shape):
        strides.append(stride)
        stride = algebra.mul(stride, extent)
    return Buffer(name, "global", dtype, tuple(shape), Strided(tuple(reversed(strides))), 16, span=span)


def _parameters(tracer: Tracer, function: FunctionType, span: Span) -> tuple[list[Buffer], dict[str, Symbol]]:
    """The kernel's tensors and the sizes that they name; a name is one or the other."""
    sizes: dict[str, Symbol] = {}
    buffers = [_parameter(name, spec, sizes, span) for name, spec in _tensors(function, span).items()]
    for name in (*(buffer.name for buffer in buffers), *sizes):
        if tracer.unique(name) != name:
            fault("E107", f"`{name}` names a size and something else of `{function.__name__}`", span=span)
    return buffers, sizes


def _trace(name: str, function: FunctionType, target: Target, threads: int, config: object) -> Kernel:
    span = span_of_function(function.__code__)
    _refuse(thread_count(name, target, threads, span))
    tracer = Tracer(target, threads, function.__code__)
    parameters, sizes = _parameters(tracer, function, span)
    tensors = [Tensor(whole(buffer)) for buffer in parameters]
    keyword = {"cfg": config} if "cfg" in signature(function).parameters else {}
    with tracing(tracer):
        try:
            function(*tensors, **keyword)
        except (ArgusError, InternalError):
            raise
        except Exception as problem:
            raise ArgusError(raised(name, problem, span)) from problem
        for complete in tracer.at_end:
            complete()
        prologue, roles, epilogue = assembled(tracer.block.finished(tracer.close(tracer.scopes[0])))
    made = Kernel(
        name=name,
        target=target,
        parameters=tuple(parameters),
        sizes=tuple(sizes.values()),
        threads=threads,
        grid=tracer.grid or (algebra.const(1),),
        blocks=tracer.blocks or (Symbol("block_0", "block", 0, 0),),
        thread=tracer.thread,
        prologue=prologue,
        roles=roles,
        epilogue=epilogue,
        cluster=(1,),
        span=span,
    )
    _refuse(check(made))
    return made


def _refuse(found: tuple[Diagnostic, ...]) -> None:
    if found:
        raise ArgusError(found[0])
