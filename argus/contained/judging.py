"""Inside, in a process of its own in which no text has run: reads kernels from data, and does what is asked of each.

Reads a `Job` in the first line of its standard input and, behind it, what the text came to; writes a `Reply`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, assert_never

import numpy.typing as npt
from attrs import asdict

from argus.api import build, interpret
from argus.contained.believed import believed
from argus.contained.exchange import Job, Reply, Told, decoded, encoded
from argus.contained.request import (
    Array,
    Build,
    Built,
    Compared,
    Failed,
    Interpret,
    Interpreted,
    Judged,
    Result,
    Suggest,
    Suggested,
    Task,
    Verified,
    Verify,
)
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.plain import written
from argus.core.query import Budget
from argus.emit.artifact import Artifact
from argus.loader import Exported
from argus.reference import Comparison, compared_with_claims, contraction
from argus.render import render_plain, to_json
from argus.report_json import report_json
from argus.run import run
from argus.solver_choice import resolve
from argus.suggest import suggest_invariants
from argus.suggest.data import suggestions_json
from argus.summary import word
from argus.verify_program import Asked


def main() -> None:
    first, _, data = sys.stdin.buffer.read().partition(b"\n")
    job = decoded(first, Job)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        exported = believed(data, job.file).exported
        reply = Reply(tuple(_judged(each, job) for each in exported))
    except ArgusError as problem:
        reply = Reply(refused=told(problem.diagnostic, job.text, job.file))
    with os.fdopen(answer, "wb") as stream:
        stream.write(encoded(reply))


def told(diagnostic: Diagnostic, text: str, file: str) -> Told:
    """With the lines of the text that it names, and of nothing else."""
    return Told(to_json(diagnostic), _shown(diagnostic, text, file))


def _shown(diagnostic: Diagnostic, text: str, file: str) -> str:
    return render_plain(diagnostic, lambda name: text if name == file else None)


def _judged(each: Exported, job: Job) -> Judged:
    kernel = each.trace()
    results = tuple(_result(task, each, kernel, job) for task in job.tasks)
    return Judged(
        kernel.name, kernel.target.name, tuple(size.name for size in kernel.sizes), results, written([kernel])
    )


def _result(task: Task, each: Exported, kernel: Kernel, job: Job) -> Result:
    try:
        return _done(task, each, kernel, job)
    except ArgusError as problem:
        diagnostic = problem.diagnostic
        shown = _shown(diagnostic, job.text, job.file)
        return Failed(diagnostic.code, diagnostic.message, to_json(diagnostic), shown)


def _done(task: Task, each: Exported, kernel: Kernel, job: Job) -> Result:
    match task:
        case Verify():
            return _verified(task, each, kernel, job)
        case Interpret():
            return _interpreted(task, kernel)
        case Build():
            return _built(task, kernel)
        case Suggest(seconds=seconds):
            return Suggested(suggestions_json(suggest_invariants(kernel, budget=Budget(seconds=seconds))))
        case _:
            assert_never(task)


def _verified(task: Verify, each: Exported, kernel: Kernel, job: Job) -> Verified:
    asked = Asked(resolve(task.solver), Budget(seconds=task.seconds), None)
    report = asked.report(each, kernel)
    shown = "\n\n".join(_shown(diagnostic, job.text, job.file) for diagnostic in report.diagnostics)
    verdict = word(report.verdict)
    return Verified(verdict, report.exit_code, report.uncovered, report_json(report), shown)


def _interpreted(task: Interpret, kernel: Kernel) -> Interpreted:
    start = perf_counter()
    if not task.arrays:
        ran = run(kernel, task.sizes, seed=task.seed, on="interpreter")
        outputs = {name: Array.of(values) for name, values in ran.arrays.items()}
        return Interpreted(outputs, _compared(ran.comparison), ran.milliseconds[0] / 1000)
    arrays = {buffer.name: _given(task, buffer.name) for buffer in kernel.parameters}
    made = interpret(kernel, *arrays.values())
    claimed = contraction(kernel)
    found = None if claimed is None else compared_with_claims(claimed, arrays, made[claimed.output.name], task.seed)
    outputs = {name: Array.of(values) for name, values in made.items()}
    return Interpreted(outputs, _compared(found), perf_counter() - start)


def _given(task: Interpret, name: str) -> npt.NDArray[Any]:
    try:
        return task.arrays[name].values
    except (LookupError, ValueError) as problem:
        message = f"tensor `{name}` has no array, or one that is none: {problem}"
        raise ArgusError(Diagnostic("E401", "error", message, help="give an array for each tensor")) from None


def _compared(found: Comparison | None) -> Compared | None:
    return None if found is None else Compared(**asdict(found))


def _built(task: Build, kernel: Kernel) -> Built:
    with tempfile.TemporaryDirectory() as name:
        made = build(kernel, task.target or None, name)
        files = {path.name: path.read_bytes() for path in _files(made)}
    return Built(made.target, files, asdict(made.report), tuple(each.message for each in made.warnings))


def _files(made: Artifact) -> list[Path]:
    return [path for path in (made.source, made.assembly, made.code, made.description) if path is not None]


if __name__ == "__main__":
    main()
