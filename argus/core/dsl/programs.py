"""`@program`: traces a function that launches several kernels in stream order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, overload

from attrs import field, frozen

from argus.core.check import check_program
from argus.core.diagnostic import ArgusError, InternalError
from argus.core.dsl.faults import exception_diagnostic, fault
from argus.core.dsl.launches import Launches, tracing_program
from argus.core.dsl.parameters import configs_text, parameters, template_name, traceable
from argus.core.dsl.source_location import span_of_function
from argus.core.dsl.targets import ForTarget, Targets, configs_of
from argus.core.dsl.views import Tensor
from argus.core.ir import ClaimedProgram, Program, whole
from argus.core.target import Target


@frozen
class ProgramTemplate:
    """A decorated function: one program, or a family with one program per configuration."""

    function: Callable[..., None]
    configs: Mapping[str, Any] = field(converter=dict)
    name: str
    target: Target | None = None

    def __repr__(self) -> str:
        return f"<program {self.name}{configs_text(self.configs)}; `.trace()` gives the traced program>"

    def instances(self) -> tuple[str | None, ...]:
        """The names of the shipped configurations; `(None,)` for a single program."""
        return tuple(self.configs) or (None,)

    def instance(self, config: object, name: str) -> Program:
        """The program of any configuration, shipped or not. Raises ArgusError as `trace`."""
        return ProgramTemplate(self.function, {name: config}, self.name, self.target).trace(name)

    def trace(self, config: str | None = None) -> Program:
        """Run the function once and return the program that it traces.

        Raises ArgusError for any error in the program or its kernels, and for exceptions of the function itself.
        """
        function = traceable(self.function, "program")
        span = span_of_function(function.__code__)
        if config is not None and config not in self.configs:
            fault("E107", f"program `{self.name}` has no configuration `{config}`", span=span)
        chosen = next(iter(self.configs.values()), None) if config is None else self.configs[config]
        name = self.name if config is None else f"{self.name}_{config}"
        launches = Launches(function.__code__, chosen.target if isinstance(chosen, ForTarget) else self.target)
        arguments = {"cfg": chosen} if "cfg" in signature(function).parameters else {}
        buffers, sizes = parameters(launches.unique, function, span, arguments)
        launches.parameters = tuple(buffers)
        with tracing_program(launches):
            try:
                function(*(Tensor(whole(buffer)) for buffer in buffers), **arguments)
            except (ArgusError, InternalError):
                raise
            except Exception as problem:
                raise ArgusError(exception_diagnostic(name, problem, span)) from problem
        traced = (tuple(launches.workspaces), tuple(launches.launches))
        own = (name, tuple(buffers), tuple(sizes.values()), *traced, span)
        made = ClaimedProgram(*own, tuple(launches.claims)) if launches.claims else Program(*own)
        found = check_program(made)
        if found:
            raise ArgusError(found[0])
        return made


@overload
def program(function: Callable[..., None], /) -> ProgramTemplate: ...


@overload
def program(
    *, target: Targets | None = None, configs: Mapping[str, object] | None = None, name: str | None = None
) -> Callable[[Callable[..., None]], ProgramTemplate]: ...


def program(
    function: Callable[..., None] | None = None,
    /,
    *,
    target: Targets | None = None,
    configs: Mapping[str, object] | None = None,
    name: str | None = None,
) -> ProgramTemplate | Callable[[Callable[..., None]], ProgramTemplate]:
    """Make a function of `Tensor["M K", bf16]` parameters a program: it calls kernels on its tensors and workspaces.

    target: the target of its kernels that name none, or several, each of which gets a program. configs: named values
    for the keyword parameter `cfg`. name: by default the function's. Raises ArgusError (E107) for anything but a plain
    `def`, and for a name that is no identifier.
    """

    def decorate(traced: Callable[..., None]) -> ProgramTemplate:
        made = traceable(traced, "program")
        called = template_name("program", made, name)
        each = configs_of(called, target, configs, span_of_function(made.__code__))
        return ProgramTemplate(made, each, called, None if isinstance(target, tuple) else target)

    return decorate if function is None else decorate(function)
