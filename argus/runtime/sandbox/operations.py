"""`run`: a text in one contained process, what it came to in another, and an answer of what the second found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic, InternalError
from argus.report.diagnostic_text import render_plain, to_json
from argus.runtime.sandbox.answers import Exact
from argus.runtime.sandbox.isolation import Name, chosen, contained
from argus.runtime.sandbox.messages import Answers, Floats, Job, Questions, Reply, Text, Told, decoded, encoded
from argus.runtime.sandbox.parse_output import believed
from argus.runtime.sandbox.process import Ended
from argus.runtime.sandbox.request import TRACING, Answer, Limits, Refused, Request
from argus.verifier.loader import Exported

_KILLED = (-9, 137)
_SHOWN_LINES = 6


@frozen
class Referred:
    """given: what each call gave, by output, by no name where that is one array. work: data, None without any."""

    given: tuple[Mapping[str, Exact], ...]
    work: object


def run(request: Request, isolation: Name | None = None) -> Answer | Refused:
    """Trace the kernels of a text and do what is asked of each, without trusting the text.

    The text runs in a process without network, with nothing to write but a folder in memory, that is killed with all
    that it starts. What it says is data: another process, in which the text never ran, reads kernels from it strictly
    and verifies, interprets and builds those; so the text can forge no verdict, whatever it does to its own process.

    isolation: "bwrap" or "namespaces"; by default the first that holds on this machine. Where none does, the text is
    not run, and the answer says what is missing (E941).
    Raises InternalError where the judging process fails without the text being the reason.
    """
    try:
        name = chosen() if isolation is None else isolation
        seconds = 0.8 * request.tracing.wall_seconds
        text = encoded(Text(request.text, request.file, request.kernel, seconds))
        traced = contained(name, ["-m", "argus.runtime.sandbox.trace_kernels"], text, request.tracing)
    except ArgusError as problem:
        return _told(problem.diagnostic, isolation or "", 0.0)
    why = _stopped(traced, request.tracing, "the process that ran the text")
    if why is not None:
        return _told(why, name, traced.seconds)
    return _judged(request, name, traced)


def traced(text: str, kernel: str = "", limits: Limits = TRACING) -> tuple[Exported, ...] | Refused:
    """The kernels of a text, traced in one contained process and read here as data; nothing is judged.

    kernel: the name of one of them, all by default. What a kernel claims is its own claim, yet to be proved.
    """
    try:
        name = chosen()
        said = encoded(Text(text, "kernel.py", kernel, 0.8 * limits.wall_seconds))
        ended = contained(name, ["-m", "argus.runtime.sandbox.trace_kernels"], said, limits)
        why = _stopped(ended, limits, "the process that ran the text")
        if why is not None:
            return _told(why, name, ended.seconds)
        return believed(ended.output, "kernel.py").exported
    except ArgusError as problem:
        return _told(problem.diagnostic, "", 0.0)


def referred(text: str, given: Sequence[Mapping[str, Exact]], sizes: Mapping[str, int]) -> Referred | Refused:
    """What a text's reference gives for each call's arrays, run in one contained process; its `work` at these sizes.

    The numbers are the text's own: what it says that they are.
    """
    limits = TRACING
    try:
        name = chosen()
        calls = tuple({each: Floats.of(array) for each, array in call.items()} for call in given)
        said = encoded(Questions(text, "kernel.py", calls, sizes, 0.8 * limits.wall_seconds))
        ended = contained(name, ["-m", "argus.runtime.sandbox.run_reference"], said, limits)
        why = _stopped(ended, limits, "the process that ran the reference")
        if why is not None:
            return _told(why, name, ended.seconds)
        return _believed(decoded(ended.output, Answers), len(calls))
    except ValueError as problem:
        message = f"what the process that ran the reference wrote is no answer: {problem}"
        repair = "compute with NumPy alone, and change nothing of Argus or of its output"
        return _told(Diagnostic("E945", "error", message, help=repair), "", 0.0)
    except ArgusError as problem:
        return _told(problem.diagnostic, "", 0.0)


def _believed(answers: Answers, calls: int) -> Referred:
    """Raises ValueError for what answers something else than was asked, ArgusError (E903) for a fault of the text."""
    if answers.fault:
        told = "".join(letter if letter.isprintable() else "?" for letter in answers.fault[:400])
        raise ArgusError(Diagnostic("E903", "error", told, help="mend the reference"))
    if len(answers.given) != calls:
        raise ValueError(f"{len(answers.given)} answers to {calls} questions")
    given = tuple({name: each.values for name, each in answer.items()} for answer in answers.given)
    return Referred(given, json.loads(answers.work) if answers.work else None)


def _judged(request: Request, name: Name, traced: Ended) -> Answer | Refused:
    job = encoded(Job(request.text, request.file, request.tasks))
    try:
        judged = contained(name, ["-m", "argus.runtime.sandbox.check_kernels"], job + traced.output, request.judging)
    except ArgusError as problem:
        return _told(problem.diagnostic, name, traced.seconds)
    seconds = traced.seconds + judged.seconds
    why = _stopped(judged, request.judging, "the process that judged the kernel")
    if why is not None:
        return _told(why, name, seconds)
    try:
        reply = decoded(judged.output, Reply)
    except ValueError as problem:
        raise InternalError(f"the judging process answered {problem}; it said: {judged.said[-2000:]}") from problem
    if reply.refused is not None:
        return _refused(reply.refused, name, seconds, traced)
    return Answer(reply.kernels, name, seconds)


def _refused(told: Told, name: Name, seconds: float, traced: Ended) -> Refused:
    given: Mapping[str, Any] = told.diagnostic
    facts = tuple((each["name"], each["value"]) for each in given["facts"])
    diagnostic = Diagnostic(given["code"], "error", given["message"], facts=facts, help=given["help"])
    if diagnostic.code in ("E944", "E945"):
        return _told(evolve(diagnostic, facts=facts + _words(traced)), name, seconds)
    return Refused(diagnostic, given, told.text, name, seconds)


def _told(diagnostic: Diagnostic, name: str, seconds: float) -> Refused:
    return Refused(diagnostic, to_json(diagnostic), render_plain(diagnostic, lambda _: None), name, seconds)


def _stopped(ended: Ended, limits: Limits, who: str) -> Diagnostic | None:
    """Why a process did not come to its end by itself; None if it did."""
    still = "" if ended.gone else "; what it started has not ended yet"
    if ended.cause == "time":
        message = (
            f"{who} took longer than {limits.wall_seconds:g} s, and was killed with all that it had started{still}"
        )
        return Diagnostic("E942", "error", message, facts=_words(ended), help=_TIME)
    if ended.cause == "output":
        message = f"{who} wrote more than {limits.output_bytes:,} bytes, and was killed with all it had started{still}"
        return Diagnostic("E943", "error", message, help="print less; a kernel is small")
    if ended.status in _KILLED:
        message = f"{who} was killed: it used {limits.cpu_seconds} s of a processor, or memory that it may not have"
        return Diagnostic("E942", "error", message, facts=_words(ended), help=_TIME)
    if not ended.output and ended.status != 0:
        message = f"{who} ended with status {ended.status} and without an answer"
        repair = "remove what ends, replaces or starves the process: a kernel's text only describes a kernel"
        return Diagnostic("E944", "error", message, facts=_words(ended), help=repair)
    return None


_TIME = "keep work and endless loops out of the module level and of kernels, or allow more"


def _words(ended: Ended) -> tuple[tuple[str, str], ...]:
    last = "\n".join(line[:200] for line in ended.said.splitlines()[-_SHOWN_LINES:])
    return (("last words", last),) if last else ()
