"""`@kernel`: a traced function, and the kernels that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, get_type_hints

from attrs import field, frozen

from argus.core import algebra
from argus.core.check import check
from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.dsl.faults import fault
from argus.core.dsl.place import span_of, span_of_function
from argus.core.dsl.tracer import Tracer, tracing
from argus.core.dsl.views import Tensor, TensorSpec
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Kernel, Strided, whole
from argus.core.span import Frame, Span
from argus.core.target import Target

LARGEST_SIZE = 1 << 30
"""Sizes of tensors lie in [0, LARGEST_SIZE]: coordinates then fit 32-bit integers with room for a tile."""


@frozen
class Template:
    """A decorated function: one kernel, or a family with one kernel a configuration."""

    function: Callable[..., None]
    target: Target | None
    threads: int | None
    configs: Mapping[str, Any] = field(converter=dict)

    @property
    def name(self) -> str:
        return self.function.__name__

    def trace(self, config: str | None = None) -> Kernel:
        """Run the function once and return the kernel it describes.

        Raises ArgusError for whatever is wrong with it, also when the function itself raises.
        """
        chosen = self._config(config)
        target = self.target or getattr(chosen, "target", None)
        threads = self.threads or getattr(chosen, "threads", None)
        code = _code(self.function)
        if not isinstance(target, Target) or not isinstance(threads, int):
            fault(
                "E107",
                f"kernel `{self.name}` does not say for which target and how many threads",
                span=span_of_function(code),
                help="write `@kernel(target=gfx942, threads=256)`, or give the configuration these fields",
            )
        name = self.name if config is None else f"{self.name}_{config}"
        return _trace(name, self.function, target, threads, chosen)

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
                span=span_of_function(_code(self.function)),
                help=f"choose one of {', '.join(self.configs) or 'none'}",
            )
        return self.configs[name]


def kernel(
    function: Callable[..., None] | None = None,
    *,
    target: Target | None = None,
    threads: int | None = None,
    configs: Mapping[str, object] | None = None,
) -> Any:  # noqa: ANN401 reason: decorator with and without arguments
    """Make a function of `Tensor["M K", bf16]` parameters a kernel.

    configs: named values for the keyword parameter `cfg`; a value may carry `target` and `threads`.
    """
    if function is not None:
        return Template(function, target, threads, configs or {})
    return lambda traced: Template(traced, target, threads, configs or {})


def _code(function: Callable[..., None]) -> Any:  # noqa: ANN401 reason: a code object, or a fault
    if not isinstance(function, FunctionType):
        fault("E107", f"{function!r} is not a Python function", help="decorate a `def`")
    return function.__code__


def _specs(function: Callable[..., None]) -> dict[str, TensorSpec]:
    span = span_of_function(_code(function))
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as problem:
        fault("E107", f"an annotation of `{function.__name__}` cannot be read: {problem}", span=span)
    specs: dict[str, TensorSpec] = {}
    for name, parameter in signature(function).parameters.items():
        if parameter.kind is Parameter.KEYWORD_ONLY:
            continue
        spec = hints.get(name)
        if not isinstance(spec, TensorSpec):
            fault(
                "E107",
                f"parameter `{name}` of `{function.__name__}` is not a tensor",
                span=span,
                help=f'annotate it: `{name}: Tensor["M N", bf16]`',
            )
        specs[name] = spec
    return specs


def _parameter(name: str, spec: TensorSpec, sizes: dict[str, Symbol], span: Span) -> Buffer:
    shape: list[Index] = []
    for axis in spec.axes:
        if axis.isdigit():
            shape.append(algebra.const(int(axis)))
        else:
            shape.append(algebra.sym(sizes.setdefault(axis, Symbol(axis, "size", 0, LARGEST_SIZE))))
    strides: list[Index] = []
    stride: Index = algebra.const(1)
    for extent in reversed(shape):
        strides.append(stride)
        stride = algebra.mul(stride, extent)
    return Buffer(name, "global", spec.dtype, tuple(shape), Strided(tuple(reversed(strides))), 16, span=span)


def _trace(name: str, function: Callable[..., None], target: Target, threads: int, config: object) -> Kernel:
    code = _code(function)
    tracer = Tracer(target, threads, code)
    span = span_of_function(code)
    sizes: dict[str, Symbol] = {}
    parameters = [_parameter(tracer.unique(p), spec, sizes, span) for p, spec in _specs(function).items()]
    for size in sizes:
        tracer.unique(size)
    tensors = [Tensor(whole(buffer)) for buffer in parameters]
    keyword = {"cfg": config} if "cfg" in signature(function).parameters else {}
    with tracing(tracer):
        try:
            function(*tensors, **keyword)
        except ArgusError:
            raise
        except Exception as problem:
            raise ArgusError(_raised(name, problem, span)) from problem
        body = tracer.close(tracer.scopes[0])
    made = Kernel(
        name=name,
        target=target,
        parameters=tuple(parameters),
        sizes=tuple(sizes.values()),
        threads=threads,
        grid=tracer.grid or (algebra.const(1),),
        blocks=tracer.blocks or (Symbol("block_0", "block", 0, 0),),
        thread=tracer.thread,
        prologue=body,
        span=span,
    )
    found = check(made)
    if found:
        raise ArgusError(found[0])
    return made


def _raised(name: str, problem: Exception, span: Span) -> Diagnostic:
    """A report of the user's own exception, at the user's innermost line."""
    trace = problem.__traceback__
    place = span
    while trace is not None:
        found = span_of(trace.tb_frame, None)
        if found.frames and found.frames[0].file != __file__:
            frame = found.frames[0]
            place = Span((Frame(frame.file, trace.tb_lineno, 0, 0, frame.function),))
        trace = trace.tb_next
    return Diagnostic(
        "E103",
        "error",
        f"kernel `{name}` raised {type(problem).__name__} while it was traced: {problem}",
        Label(place, "raised here"),
        help="the function runs once, as ordinary Python, to describe the kernel; mend the line shown",
        kernel=name,
    )
