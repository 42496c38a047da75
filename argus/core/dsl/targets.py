"""What a kernel declares of its targets: one or several, threads or warps, and the policy of waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

from attrs import frozen

from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import IntLike, extent
from argus.core.span import Span
from argus.core.target import Target

Targets = Target | tuple[Target, ...]
WaitPolicy = Literal["manual", "automatic"]
"""Who writes the waits for queues: the author, or the language before the first statement that needs each."""


@frozen
class ForTarget:
    """The configuration of a kernel, or program, that is declared for several targets."""

    target: Target


def configs_of(
    name: str, target: Targets | None, configs: Mapping[str, object] | None, span: Span
) -> Mapping[str, object]:
    """The configurations by name: those given, or one for each of several targets. Raises E107 for both."""
    if not isinstance(target, tuple):
        return configs or {}
    if configs or not target or len(set(map(id, target))) != len(target):
        also = ", and has `configs`" if configs else ""
        message = f"`{name}` is for the targets ({', '.join(map(str, target))}){also}"
        fault("E107", message, span=span, help="write `target=(gfx942, sm_90a)`, or give each configuration a `target`")
    for each in target:
        if not isinstance(each, Target):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
            fault(
                "E107",
                f"a target of `{name}` is {describe_value(each)}",
                span=span,
                help="write `target=(gfx942, sm_90a)`",
            )
    return {each.name: ForTarget(each) for each in target}


def threads_of(target: Target, threads: object, warps: object) -> object:
    """The threads of a block: as given, or those of so many warps (waves) of the target."""
    return threads if warps is None else extent(cast(IntLike, warps), "`warps`") * target.unit


def check_waits(name: str, waits: object, span: Span) -> WaitPolicy:
    """The policy of waits. Raises E107 for any other value."""
    if waits in get_args(WaitPolicy):
        return cast(WaitPolicy, waits)
    fault(
        "E107",
        f"the waits of `{name}` are {describe_value(waits)}",
        span=span,
        help='write `waits="automatic"`, or leave it out to write them by hand',
    )
