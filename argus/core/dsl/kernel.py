"""`@kernel`: traces a decorated function, once for each configuration, into a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from math import prod
from types import FunctionType
from typing import Any, overload

from attrs import field, frozen

from argus.core import algebra
from argus.core.check import check, check_thread_count
from argus.core.diagnostic import ArgusError, Diagnostic, InternalError
from argus.core.dsl.faults import exception_diagnostic, fault
from argus.core.dsl.handles import extent, extents
from argus.core.dsl.launches import Launches, bind_tensors, current_program
from argus.core.dsl.parameters import configs_text, launch_integers, parameters, template_name, traceable
from argus.core.dsl.roles import split_at_roles
from argus.core.dsl.source_location import span_of_function
from argus.core.dsl.sync.automatic_waits import with_waits
from argus.core.dsl.targets import ForTarget, Targets, WaitPolicy, check_waits, configs_of, threads_of
from argus.core.dsl.tracer import Tracer, tracing
from argus.core.dsl.views import Tensor
from argus.core.index import Symbol
from argus.core.ir import Kernel, whole
from argus.core.target import Target


@frozen
class Template:
    """A decorated function: one kernel, or a family with one kernel per configuration."""

    function: Callable[..., None]
    target: Target | None
    threads: int | None
    cluster: tuple[int, ...] | None
    resident: int | None
    configs: Mapping[str, Any] = field(converter=dict)
    name: str
    warps: int | None
    waits: WaitPolicy | None

    def __repr__(self) -> str:
        target = "any target" if self.target is None else str(self.target)
        return f"<kernel {self.name} for {target}{configs_text(self.configs)}; `.trace()` gives the traced kernel>"

    def trace(self, config: str | None = None) -> Kernel:
        """Run the function once and return the kernel that it traces.

        Raises ArgusError for any error in the kernel, and for exceptions of the function itself.
        """
        return self._trace_with(
            self.name if config is None else f"{self.name}_{config}", self._config(config), self._integers()
        )

    def instance(self, config: object, name: str) -> Kernel:
        """The kernel of any configuration, shipped or not. Raises ArgusError as `trace`."""
        return self._trace_with(f"{self.name}_{name}", config, self._integers())

    def __call__(self, *tensors: Tensor, **keywords: object) -> None:
        """Launch the kernel in the program being traced, on whole tensors of the program.

        cfg: the kernel's configuration; by default that of the program's target, or the first. Symbolic integers among
        the other keywords become sizes of the kernel. Raises E105 outside a program, E106 for tensors that do not match
        the parameters, and as `trace`.
        """
        program = current_program(self.name)
        arguments = bind_tensors(self.name, self.function, tensors)
        values = dict(keywords)
        chosen = values.pop("cfg") if "cfg" in values else self._config_in(program)
        program.add(self._trace_with(program.kernel_name(self.name), chosen, values), arguments, values)

    def _integers(self) -> dict[str, object]:
        """The sizes that a launch gives besides those of its tensors, by keyword."""
        function = traceable(self.function)
        return {**launch_integers(function, span_of_function(function.__code__), ())}

    def _trace_with(self, name: str, chosen: object, keywords: Mapping[str, object]) -> Kernel:
        span = span_of_function(traceable(self.function).__code__)
        target: object = self._declared("target", chosen)
        warps, threads = self._declared("warps", chosen), self._declared("threads", chosen)
        threads = threads_of(target, threads, warps) if isinstance(target, Target) else None
        if not isinstance(target, Target) or not isinstance(threads, int):
            fault(
                "E107",
                f"kernel `{self.name}` does not say for which target and how many threads",
                span=span,
                help="write `@kernel(target=gfx942, threads=256)`, or give the configuration these fields",
            )
        waits = check_waits(self.name, self.waits or "manual", span)
        asked: tuple[int, ...] = getattr(chosen, "cluster", (1,)) if self.cluster is None else self.cluster
        cluster = _cluster_shape(asked, target, self.function)
        wanted: int = getattr(chosen, "resident", 1) if self.resident is None else self.resident
        resident = extent(wanted, "the number of resident blocks")
        function = traceable(self.function)
        arguments = {"cfg": chosen, **keywords} if "cfg" in signature(function).parameters else keywords
        tracer = Tracer(target, threads, function.__code__, cluster)
        return _trace_function(tracer, name, function, arguments, resident, waits)

    def _declared(self, name: str, chosen: object) -> object:
        """What the decorator says, else the configuration."""
        own: object = getattr(self, name)
        return getattr(chosen, name, None) if own is None else own

    def instances(self) -> tuple[str | None, ...]:
        """The names of the shipped configurations; `(None,)` for a single kernel."""
        return tuple(self.configs) or (None,)

    def _config_in(self, program: Launches) -> object:
        """The configuration of a launch that names none: the first of the program's target, or the first."""
        meant = program.target
        if meant is None:
            return self._config(None)
        same = (config for config in self.configs.values() if getattr(config, "target", None) is meant)
        return next(same, self._config(None) or ForTarget(meant))

    def _config(self, name: str | None) -> Any:  # noqa: ANN401 reason: a family's configuration is its author's type
        if name is None:
            return next(iter(self.configs.values()), None)
        if name not in self.configs:
            fault(
                "E107",
                f"kernel `{self.name}` has no configuration `{name}`",
                span=span_of_function(traceable(self.function).__code__),
                help=f"choose one of {', '.join(self.configs) or 'none'}",
            )
        return self.configs[name]


@overload
def kernel(function: Callable[..., None], /) -> Template: ...


@overload
def kernel(
    *,
    target: Targets | None = None,
    threads: int | None = None,
    warps: int | None = None,
    cluster: tuple[int, ...] | None = None,
    resident: int | None = None,
    waits: WaitPolicy | None = None,
    configs: Mapping[str, object] | None = None,
    name: str | None = None,
) -> Callable[[Callable[..., None]], Template]: ...


def kernel(
    function: Callable[..., None] | None = None,
    /,
    *,
    target: Targets | None = None,
    threads: int | None = None,
    warps: int | None = None,
    cluster: tuple[int, ...] | None = None,
    resident: int | None = None,
    waits: WaitPolicy | None = None,
    configs: Mapping[str, object] | None = None,
    name: str | None = None,
) -> Template | Callable[[Callable[..., None]], Template]:
    """Make a function of `Tensor["M K", bf16]` parameters a kernel.

    A keyword parameter annotated `Int` is a size of no tensor, from 0 to 2^30; a launch gives it with the other sizes.
    target: one target, or several, each of which gets a kernel from the same text, called `NAME_gfx942`. threads: of a
    block; warps: instead of threads, as so many warps (waves) of the target. waits: "automatic" inserts the waits for
    queues, each before the first statement that needs it; by default they are written by hand.
    configs: named values for the keyword parameter `cfg`; a value may carry `target`, `threads`, `warps`,
    `cluster` and `resident`. cluster: blocks of a cluster along each axis of the tiles. resident: blocks of which one
    processor must have the registers at once, 1 by default: compilers then use fewer registers for each thread. name:
    by default the function's. Raises ArgusError (E107) for anything but a plain `def`, and for a name that is no
    identifier.
    """

    def decorate(traced: Callable[..., None]) -> Template:
        made = traceable(traced)
        called = template_name("kernel", made, name)
        each = configs_of(called, target, configs, span_of_function(made.__code__))
        one = None if isinstance(target, tuple) else target
        return Template(made, one, threads, cluster, resident, each, called, warps, waits)

    return decorate if function is None else decorate(function)


_MAX_CLUSTER = 8
"""The largest cluster size that is portable [CUDA C++ Programming Guide, thread block clusters]."""


def _cluster_shape(cluster: tuple[int, ...], target: Target, function: Callable[..., None]) -> tuple[int, ...]:
    """The checked cluster shape; (1,) without clusters. Raises E230 or E501."""
    sizes = extents(cluster, "a cluster")
    if prod(sizes) == 1:
        return (1,)
    span = span_of_function(traceable(function).__code__)
    if "wgmma" not in target.queues:
        fault("E501", f"clusters of {target} are not built yet", span=span, help="leave `cluster` out")
    if prod(sizes) > _MAX_CLUSTER:
        fault(
            "E230",
            f"a cluster of {prod(sizes)} blocks",
            span=span,
            help=f"give at most {_MAX_CLUSTER}",
        )
    return sizes


def _trace_function(
    tracer: Tracer,
    name: str,
    function: FunctionType,
    keywords: Mapping[str, object],
    resident: int,
    waits: WaitPolicy,
) -> Kernel:
    target, threads = tracer.target, tracer.threads
    span = span_of_function(function.__code__)
    _raise_first(check_thread_count(name, target, threads, span))
    tracer.parameters, sizes = parameters(tracer.unique, function, span, keywords)
    tensors = [Tensor(whole(buffer)) for buffer in tracer.parameters]
    with tracing(tracer):
        try:
            function(*tensors, **keywords)
        except (ArgusError, InternalError):
            raise
        except Exception as problem:
            raise ArgusError(exception_diagnostic(name, problem, span)) from problem
        for complete in tracer.at_end:
            complete()
        traced = tracer.close(tracer.scopes[0])
        if waits == "automatic":
            traced = with_waits(traced, target, frozenset(tracer.unwaited))
        whole_body = tracer.block.finish_body(traced)
        prologue, roles, epilogue = split_at_roles(whole_body, clustered=tracer.cluster != (1,))
    made = Kernel(
        name=name,
        target=target,
        parameters=tuple(tracer.parameters),
        sizes=tuple(sizes.values()),
        threads=threads,
        grid=tracer.grid or (algebra.const(1),),
        blocks=tracer.blocks or (Symbol("block_0", "block", 0, 0),),
        thread=tracer.thread,
        prologue=prologue,
        roles=roles,
        epilogue=epilogue,
        cluster=tracer.cluster,
        resident=resident,
        span=span,
    )
    _raise_first(check(made))
    return made


def _raise_first(found: tuple[Diagnostic, ...]) -> None:
    if found:
        raise ArgusError(found[0])
