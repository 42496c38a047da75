"""The sandbox's operations: trace untrusted text in one process, check its kernels in another, or run a reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic, InternalError
from argus.report.diagnostic_text import render_plain, to_json
from argus.runtime.sandbox.isolation import Name, choose_isolation, run_isolated
from argus.runtime.sandbox.messages import (
    Floats,
    Job,
    ReferenceCalls,
    ReferenceResults,
    Reply,
    SentDiagnostic,
    TraceRequest,
    decode,
    encode,
)
from argus.runtime.sandbox.parse_output import parse_output
from argus.runtime.sandbox.process import ProcessResult
from argus.runtime.sandbox.request import TRACING, Answer, Limits, Refused, Request
from argus.runtime.sandbox.user_reference import Exact
from argus.verifier.loader import Exported

_KILLED = (-9, 137)
_SHOWN_LINES = 6


@frozen
class ReferenceOutputs:
    """The results of a reference. given: those of each call by output, or under "" for a single array. work: the JSON
    data that `work` returned, None without it.
    """

    given: tuple[Mapping[str, Exact], ...]
    work: object


def run(request: Request, isolation: Name | None = None) -> Answer | Refused:
    """Trace the kernels of a text and run the requested tasks on each, without trusting the text.

    The text runs in a process that has no network, can write only to a folder in memory, and is killed with all
    processes that it starts. Its output is treated as data: another process, in which the text never runs, parses
    kernels from it strictly, and verifies, interprets and builds them. So the text cannot forge a verdict, whatever it
    does in its own process.

    isolation: "bwrap" or "namespaces"; by default the first that works on this machine. Where none does, the text is
    not run, and the answer says why (E941).
    Raises InternalError where the checking process fails for a reason other than the text.
    """
    try:
        name = choose_isolation() if isolation is None else isolation
        seconds = 0.8 * request.tracing.wall_seconds
        text = encode(TraceRequest(request.text, request.file, request.kernel, seconds))
        traced = run_isolated(name, ["-m", "argus.runtime.sandbox.trace_kernels"], text, request.tracing)
    except ArgusError as problem:
        return _refusal(problem.diagnostic, isolation or "", 0.0)
    why = _failure(traced, request.tracing, "the process that ran the text")
    if why is not None:
        return _refusal(why, name, traced.seconds)
    return _check(request, name, traced)


def trace_text(
    text: str, kernel: str = "", limits: Limits = TRACING, file: str = "kernel.py", seconds: float | None = None
) -> tuple[Exported, ...] | Refused:
    """The kernels of a text, traced in a sandboxed process and parsed here as data; nothing is verified.

    kernel: the name of one of them, all by default. file: the text's name or path, for locations. seconds: to load
    it, and to trace each kernel, at most 0.8 of the wall time. The kernels' claims are not yet proved.
    """
    most = 0.8 * limits.wall_seconds
    try:
        name = choose_isolation()
        data = encode(TraceRequest(text, PurePath(file).name, kernel, most if seconds is None else min(seconds, most)))
        ended = run_isolated(name, ["-m", "argus.runtime.sandbox.trace_kernels"], data, limits)
        why = _failure(ended, limits, "the process that ran the text")
        if why is not None:
            return _refusal(why, name, ended.seconds)
        return parse_output(ended.output, file).exported
    except ArgusError as problem:
        return _refusal(problem.diagnostic, "", 0.0)


def evaluate_reference(
    text: str, given: Sequence[Mapping[str, Exact]], sizes: Mapping[str, int]
) -> ReferenceOutputs | Refused:
    """The results of a text's reference for each call's arrays, and of its `work` at these sizes, run in the sandbox.

    The numbers are as untrusted as the text.
    """
    limits = TRACING
    try:
        name = choose_isolation()
        calls = tuple({each: Floats.of(array) for each, array in call.items()} for call in given)
        data = encode(ReferenceCalls(text, "kernel.py", calls, sizes, 0.8 * limits.wall_seconds))
        ended = run_isolated(name, ["-m", "argus.runtime.sandbox.run_reference"], data, limits)
        why = _failure(ended, limits, "the process that ran the reference")
        if why is not None:
            return _refusal(why, name, ended.seconds)
        return _parse_results(decode(ended.output, ReferenceResults), len(calls))
    except ValueError as problem:
        message = f"the process that ran the reference wrote malformed output: {problem}"
        repair = "compute with NumPy alone, and do not modify Argus or its output"
        return _refusal(Diagnostic("E945", "error", message, help=repair), "", 0.0)
    except ArgusError as problem:
        return _refusal(problem.diagnostic, "", 0.0)


def _parse_results(answers: ReferenceResults, calls: int) -> ReferenceOutputs:
    """The parsed results. Raises ValueError for a wrong number of results, ArgusError (E903) for errors in the text."""
    if answers.fault:
        printable = "".join(letter if letter.isprintable() else "?" for letter in answers.fault[:400])
        raise ArgusError(Diagnostic("E903", "error", printable, help="fix the reference"))
    if len(answers.given) != calls:
        raise ValueError(f"{len(answers.given)} results for {calls} calls")
    given = tuple({name: each.values for name, each in answer.items()} for answer in answers.given)
    return ReferenceOutputs(given, json.loads(answers.work) if answers.work else None)


def _check(request: Request, name: Name, traced: ProcessResult) -> Answer | Refused:
    job = encode(Job(request.text, request.file, request.tasks))
    try:
        checked = run_isolated(
            name, ["-m", "argus.runtime.sandbox.check_kernels"], job + traced.output, request.judging
        )
    except ArgusError as problem:
        return _refusal(problem.diagnostic, name, traced.seconds)
    seconds = traced.seconds + checked.seconds
    why = _failure(checked, request.judging, "the process that checked the kernel")
    if why is not None:
        return _refusal(why, name, seconds)
    try:
        reply = decode(checked.output, Reply)
    except ValueError as problem:
        raise InternalError(f"the checking process answered {problem}; it wrote: {checked.said[-2000:]}") from problem
    if reply.refused is not None:
        return _rejection(reply.refused, name, seconds, traced)
    return Answer(reply.kernels, name, seconds)


def _rejection(sent: SentDiagnostic, name: Name, seconds: float, traced: ProcessResult) -> Refused:
    given: Mapping[str, Any] = sent.diagnostic
    facts = tuple((each["name"], each["value"]) for each in given["facts"])
    diagnostic = Diagnostic(given["code"], "error", given["message"], facts=facts, help=given["help"])
    if diagnostic.code in ("E944", "E945"):
        return _refusal(evolve(diagnostic, facts=facts + _error_output(traced)), name, seconds)
    return Refused(diagnostic, given, sent.text, name, seconds)


def _refusal(diagnostic: Diagnostic, name: str, seconds: float) -> Refused:
    return Refused(diagnostic, to_json(diagnostic), render_plain(diagnostic, lambda _: None), name, seconds)


def _failure(ended: ProcessResult, limits: Limits, who: str) -> Diagnostic | None:
    """The diagnostic for a process that was killed or ended without output; None for one that ended normally."""
    still = "" if ended.gone else "; a process that it started has not ended yet"
    if ended.cause == "time":
        message = (
            f"{who} took longer than {limits.wall_seconds:g} s, and was killed with all that it had started{still}"
        )
        return Diagnostic("E942", "error", message, facts=_error_output(ended), help=_TIME)
    if ended.cause == "output":
        message = f"{who} wrote more than {limits.output_bytes:,} bytes, and was killed with all it had started{still}"
        return Diagnostic("E943", "error", message, help="print less; a kernel is small")
    if ended.status in _KILLED:
        message = f"{who} was killed: it used {limits.cpu_seconds} s of processor time, or exceeded its memory limit"
        return Diagnostic("E942", "error", message, facts=_error_output(ended), help=_TIME)
    if not ended.output and ended.status != 0:
        message = f"{who} ended with status {ended.status} and without an answer"
        repair = "remove code that ends, replaces or starves the process: a kernel's text only describes a kernel"
        return Diagnostic("E944", "error", message, facts=_error_output(ended), help=repair)
    return None


_TIME = "keep work and endless loops out of the module level and of kernels, or allow more"


def _error_output(ended: ProcessResult) -> tuple[tuple[str, str], ...]:
    last = "\n".join(line[:200] for line in ended.said.splitlines()[-_SHOWN_LINES:])
    return (("last words", last),) if last else ()
