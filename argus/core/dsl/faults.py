"""Raising the user's mistakes, at the user's line."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, cast

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.dsl.source_location import frame_at, is_ours, span_of, user_frame
from argus.core.span import Span

# What Python raises where the language is given a value of a kind that it does not foresee.
_OPERAND = (TypeError, ValueError, AttributeError, IndexError, KeyError, OverflowError, ZeroDivisionError)


def fault(code: str, message: str, *, help: str = "", here: str = "", span: Span | None = None) -> NoReturn:
    """Raise ArgusError for the DSL call being made (or at `span`)."""
    place = span_of(user_frame(), None) if span is None else span
    raise ArgusError(Diagnostic(code, "error", message, Label(place, here), help=help))


def describe_value(value: object) -> str:
    """A value as a report names it: never by its address in memory, so that equal runs report alike."""
    if isinstance(value, tuple):
        return f"({', '.join(map(describe_value, cast(tuple[object, ...], value)))})"
    literal = value is None or type(value) in (bool, int, float, str, dict)
    return repr(value) if literal else f"a value of type `{type(value).__name__}`"


def exception_diagnostic(name: str, problem: Exception, declaration: Span) -> Diagnostic:
    """A report of what the kernel's function raised, at the user's innermost line.

    E103 for an exception of the user's own code; E106 where the language itself could not take an operand.
    """
    trace = problem.__traceback__
    place, inside = declaration, False
    while trace is not None:
        inside = is_ours(trace.tb_frame.f_code)
        if not inside:
            place = _place(trace)
        trace = trace.tb_next
    kind = type(problem).__name__
    if inside and isinstance(problem, _OPERAND):
        message, help_ = f"an operand of a wrong kind ({kind}: {problem})", "compare the call with its documentation"
        return Diagnostic("E106", "error", message, Label(place, "in this call"), help=help_, kernel=name)
    message = f"kernel `{name}` raised {kind} while it was traced: {problem}"
    help_ = "the function runs once, as ordinary Python, to describe the kernel; mend the line shown"
    return Diagnostic("E103", "error", message, Label(place, "raised here"), help=help_, kernel=name)


def _place(trace: TracebackType) -> Span:
    return Span((frame_at(trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno),))
