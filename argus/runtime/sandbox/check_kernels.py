"""The sandbox's checking process: reads kernels from data, and runs the requested tasks on each; runs no user text.

Reads a `Job` in the first line of its standard input and, after it, the output of `trace_kernels`; writes a `Reply`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from time import perf_counter
from traceback import format_exception
from typing import Any, assert_never

import numpy.typing as npt
from attrs import asdict, evolve

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.serde import read, write
from argus.emit.artifact import Artifact
from argus.report.diagnostic_text import render_plain, to_json
from argus.report.json_document import report_json
from argus.report.summary import verdict_word
from argus.runtime.run import MOST_WORK, inputs_of, too_large
from argus.runtime.run_sizes import sizes_of
from argus.runtime.sandbox.messages import Job, Reply, SentDiagnostic, decode, encode
from argus.runtime.sandbox.parse_output import parse_output
from argus.runtime.sandbox.request import (
    Array,
    Build,
    Built,
    CheckedKernel,
    Compared,
    Failed,
    Interpret,
    Interpreted,
    Result,
    Suggest,
    Suggested,
    Task,
    Verified,
    Verify,
)
from argus.solvers.choice import resolve
from argus.verifier.api import build, interpret
from argus.verifier.loader import Exported
from argus.verifier.program import ExportVerifier
from argus.verifier.reference import Comparison, claimed_contraction, compare_with_claims, compare_with_interpreter
from argus.verifier.suggest import suggest_invariants
from argus.verifier.suggest.data import suggestions_json

Values = npt.NDArray[Any]
_LONGEST = 4000
"""How many characters of an exception's traceback to report."""
_TOO_LARGE = Diagnostic(
    "E943",
    "error",
    "the tasks on the kernel need more memory than they are allowed",
    help="use a smaller kernel, or smaller sizes",
)


def main() -> None:
    first, _, data = sys.stdin.buffer.read().partition(b"\n")
    job = decode(first, Job)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        exported = parse_output(data, job.file).exported
        reply = Reply(tuple(_check(each, job) for each in exported))
    except ArgusError as problem:
        reply = Reply(refused=sent_diagnostic(problem.diagnostic, job.text, job.file))
    except MemoryError:
        reply = Reply(refused=sent_diagnostic(_TOO_LARGE, job.text, job.file))
    with os.fdopen(answer, "wb") as stream:
        stream.write(encode(reply))


def sent_diagnostic(diagnostic: Diagnostic, text: str, file: str) -> SentDiagnostic:
    """The diagnostic as JSON and as text; the text quotes lines of the user's text only, of no other file."""
    return SentDiagnostic(to_json(diagnostic), _render(diagnostic, text, file))


def _render(diagnostic: Diagnostic, text: str, file: str) -> str:
    return render_plain(diagnostic, lambda name: text if name == file else None)


def _check(each: Exported, job: Job) -> CheckedKernel:
    kernel = each.trace()
    results = tuple(_result(task, each, kernel, job) for task in job.tasks)
    return CheckedKernel(
        kernel.name, kernel.target.name, tuple(size.name for size in kernel.sizes), results, write([kernel])
    )


def _result(task: Task, each: Exported, kernel: Kernel, job: Job) -> Result:
    try:
        return _run_task(task, each, kernel, job)
    except ArgusError as problem:
        diagnostic = problem.diagnostic
        shown = _render(diagnostic, job.text, job.file)
        return Failed(diagnostic.code, diagnostic.message, to_json(diagnostic), shown)
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: the data may describe a kernel that tracing never produces
        diagnostic = _crash(task, kernel, problem)
        return Failed(
            diagnostic.code, diagnostic.message, to_json(diagnostic), render_plain(diagnostic, lambda _: None)
        )


def _crash(task: Task, kernel: Kernel, problem: Exception) -> Diagnostic:
    """E945 for a crash of a task, whether the data or Argus is at fault; it is no verdict on the kernel."""
    message = f"`{kernel.name}` made the task `{task.kind}` crash: {type(problem).__name__}"
    facts = (("found", "".join(format_exception(problem))[-_LONGEST:]),)
    repair = "write it with `argus.language` alone; if it is, this is a bug in Argus: report it with the text"
    return Diagnostic("E945", "error", message, facts=facts, help=repair, kernel=kernel.name)


def _run_task(task: Task, each: Exported, kernel: Kernel, job: Job) -> Result:
    match task:
        case Verify():
            return _verify(task, each, kernel, job)
        case Interpret():
            return _interpret(task, kernel)
        case Build():
            return _build(task, kernel)
        case Suggest(seconds=seconds):
            return Suggested(suggestions_json(suggest_invariants(kernel, budget=Budget.about(seconds))))
        case _:
            assert_never(task)


def _verify(task: Verify, each: Exported, kernel: Kernel, job: Job) -> Verified:
    asked = ExportVerifier(resolve(task.solver), Budget.about(task.seconds), None)
    report = asked.report(each, kernel)
    shown = "\n\n".join(_render(diagnostic, job.text, job.file) for diagnostic in report.diagnostics)
    verdict = verdict_word(report.verdict)
    return Verified(verdict, report.exit_code, report.uncovered, report_json(report), shown)


def _interpret(task: Interpret, kernel: Kernel) -> Interpreted:
    reference = None if task.reference is None else _reference(task.reference)
    trusted = kernel if reference is None else reference
    sizes = task.sizes if task.arrays else sizes_of(trusted, task.sizes)
    arrays = _inputs(task, trusted, sizes)
    start = perf_counter()
    made = _run(kernel, arrays, sizes if reference is None else task.sizes)
    seconds = perf_counter() - start
    found: Comparison | None = None
    if reference is not None:
        found = _compare(reference, made, _run(reference, arrays, sizes))
    elif (claimed := claimed_contraction(kernel)) is not None:
        found = compare_with_claims(claimed, arrays, made[claimed.output.name], task.seed)
    outputs = {name: Array.of(values) for name, values in made.items()}
    return Interpreted(outputs, None if found is None else Compared(**asdict(found)), seconds)


def _reference(plain: Mapping[str, Any]) -> Kernel:
    try:
        (found,) = read(plain)
    except ValueError as problem:
        raise _unfit(
            f"the reference is not a kernel: {problem}", "pass the output of `argus.core.serde.write`"
        ) from None
    if not isinstance(found, Kernel):
        raise _unfit("the reference is a program", "pass one kernel")
    return found


def _inputs(task: Interpret, kernel: Kernel, sizes: Mapping[str, int]) -> Mapping[str, Values]:
    """The input arrays by tensor name. Raises ArgusError: E401, E402, E411."""
    if task.arrays:
        return {name: _values(name, array) for name, array in task.arrays.items()}
    if prod(sizes.values()) > MOST_WORK:
        raise too_large(kernel, sizes, "as asked")
    return inputs_of(kernel, sizes, task.seed)


def _values(name: str, array: Array) -> Values:
    try:
        return array.values
    except (LookupError, ValueError) as problem:
        raise _unfit(f"the array of `{name}` is malformed: {problem}", "pass bytes of its type and shape") from None


def _run(kernel: Kernel, arrays: Mapping[str, Values], sizes: Mapping[str, int]) -> dict[str, Values]:
    absent = [buffer.name for buffer in kernel.parameters if buffer.name not in arrays]
    if absent:
        given = ", ".join(arrays)
        raise _unfit(f"`{kernel.name}` has a tensor `{absent[0]}`, found arrays for {given}", "use the same names")
    ordered = (arrays[buffer.name] for buffer in kernel.parameters)
    return interpret(kernel, *ordered, tags=False, given_sizes=sizes)


def _compare(reference: Kernel, made: Mapping[str, Values], wanted: Mapping[str, Values]) -> Comparison:
    """The comparison of the outputs with those of the reference on the same inputs."""
    for name, values in wanted.items():
        if name not in made or (made[name].shape, made[name].dtype) != (values.shape, values.dtype):
            message = f"the reference `{reference.name}` writes `{name}` of {values.dtype} and shape {values.shape}"
            raise _unfit(message, "write tensors of the same names, types and shapes")
    return evolve(compare_with_interpreter(made, wanted), with_what=f"the reference `{reference.name}`")


def _unfit(message: str, repair: str) -> ArgusError:
    return ArgusError(Diagnostic("E401", "error", message, help=repair))


def _build(task: Build, kernel: Kernel) -> Built:
    with tempfile.TemporaryDirectory() as name:
        made = build(kernel, task.target or None, name)
        files = {path.name: path.read_bytes() for path in _files(made)}
    return Built(made.target, files, asdict(made.report), tuple(each.message for each in made.warnings))


def _files(made: Artifact) -> list[Path]:
    return [path for path in (made.source, made.assembly, made.code, made.description) if path is not None]


if __name__ == "__main__":
    main()
