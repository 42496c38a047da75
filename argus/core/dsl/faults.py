"""Raises diagnostics at the user's source line, and converts exceptions of the traced function to diagnostics."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, cast

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.dsl.source_location import frame_at, is_argus_code, span_of, user_frame
from argus.core.span import Span

# The exceptions that Python raises inside the language for an operand of an unexpected type.
_OPERAND_ERRORS = (TypeError, ValueError, AttributeError, IndexError, KeyError, OverflowError, ZeroDivisionError)


def fault(code: str, message: str, *, help: str = "", here: str = "", span: Span | None = None) -> NoReturn:
    """Raise ArgusError at the user's line that made the current DSL call (or at `span`). here: the label there."""
    place = span_of(user_frame(), None) if span is None else span
    raise ArgusError(Diagnostic(code, "error", message, Label(place, here), help=help))


def describe_value(value: object) -> str:
    """A value as text for a message: without addresses, so that equal runs give equal messages."""
    if isinstance(value, tuple):
        return f"({', '.join(map(describe_value, cast(tuple[object, ...], value)))})"
    literal = value is None or type(value) in (bool, int, float, str, dict)
    return repr(value) if literal else f"a value of type `{type(value).__name__}`"


def exception_diagnostic(name: str, problem: Exception, declaration: Span) -> Diagnostic:
    """The diagnostic for an exception of the traced function, at the user's innermost line.

    E103 for an exception of the user's own code; E106 for one that the language raised for an operand of a wrong type.
    """
    trace = problem.__traceback__
    place, inside = declaration, False
    while trace is not None:
        inside = is_argus_code(trace.tb_frame.f_code)
        if not inside:
            place = _span_of_traceback(trace)
        trace = trace.tb_next
    kind = type(problem).__name__
    if inside and isinstance(problem, _OPERAND_ERRORS):
        message, help_ = f"an operand of a wrong type ({kind}: {problem})", "compare the call with its documentation"
        return Diagnostic("E106", "error", message, Label(place, "in this call"), help=help_, kernel=name)
    message = f"kernel `{name}` raised {kind} while it was traced: {problem}"
    help_ = "tracing runs the function once as ordinary Python; correct the line shown"
    return Diagnostic("E103", "error", message, Label(place, "raised here"), help=help_, kernel=name)


def _span_of_traceback(trace: TracebackType) -> Span:
    return Span((frame_at(trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno),))
