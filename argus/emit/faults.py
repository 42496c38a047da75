"""Diagnostics for constructs that this version does not emit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from attrs import evolve

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.span import NOWHERE, Span

_SHOWN = 8


def not_built(what: str, span: Span = NOWHERE, kernel: str = "") -> ArgusError:
    """The error E501 for a construct without an emitted form."""
    return ArgusError(
        Diagnostic(
            "E501",
            "error",
            f"not built yet: emission of {what}",
            primary=Label(span, "this cannot be emitted"),
            help="write it with statements that are emitted: copy, mma, element-wise values, wait, sync, loop, when",
            kernel=kernel,
        )
    )


@contextmanager
def emitted_at(span: Span) -> Generator[None]:
    """E501 that is raised within without a line of the program is at this one."""
    try:
        yield
    except ArgusError as problem:
        found = problem.diagnostic
        if found.code != "E501" or found.primary.span.frame is not None:
            raise
        raise ArgusError(evolve(found, primary=evolve(found.primary, span=span))) from problem


def warned(name: str, warnings: Sequence[str]) -> ArgusError:
    """The error E307 for warnings of a compiler, each of which means a mistake in the emitted text."""
    more = f", and {len(warnings) - 1} more" if len(warnings) > 1 else ""
    return ArgusError(
        Diagnostic(
            "E307",
            "error",
            f"the compiler warns about the text of `{name}`: {warnings[0].strip()}{more}, expected no warning",
            facts=(("compiler", "\n".join(warnings[:_SHOWN])),),
            help="report this with the kernel: the text is Argus's own",
            kernel=name,
        )
    )
