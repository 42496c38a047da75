"""Inside, in a process of its own in which no text has run: reads kernels from data, and does what is asked of each.

Reads a `Job` in the first line of its standard input and, behind it, what the text came to; writes a `Reply`.
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
from argus.runtime.run import MOST_WORK, inputs_of, sizes_of, too_large
from argus.runtime.sandbox.messages import Job, Reply, Told, decoded, encoded
from argus.runtime.sandbox.parse_output import believed
from argus.runtime.sandbox.request import (
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
from argus.solvers.choice import resolve
from argus.verifier.api import build, interpret
from argus.verifier.loader import Exported
from argus.verifier.program import ExportVerifier
from argus.verifier.reference import Comparison, claimed_contraction, compare_with_claims, compare_with_interpreter
from argus.verifier.suggest import suggest_invariants
from argus.verifier.suggest.data import suggestions_json

Values = npt.NDArray[Any]
_LONGEST = 4000
"""Characters of an exception that are told."""
_TOO_LARGE = Diagnostic(
    "E943",
    "error",
    "what is asked of the kernel needs more memory than it may have",
    help="take a smaller kernel, or smaller sizes",
)


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
    except MemoryError:
        reply = Reply(refused=told(_TOO_LARGE, job.text, job.file))
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
    return Judged(kernel.name, kernel.target.name, tuple(size.name for size in kernel.sizes), results, write([kernel]))


def _result(task: Task, each: Exported, kernel: Kernel, job: Job) -> Result:
    try:
        return _done(task, each, kernel, job)
    except ArgusError as problem:
        diagnostic = problem.diagnostic
        shown = _shown(diagnostic, job.text, job.file)
        return Failed(diagnostic.code, diagnostic.message, to_json(diagnostic), shown)
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: what is read may be what no text of the language traces to
        diagnostic = _unread(task, kernel, problem)
        return Failed(
            diagnostic.code, diagnostic.message, to_json(diagnostic), render_plain(diagnostic, lambda _: None)
        )


def _unread(task: Task, kernel: Kernel, problem: Exception) -> Diagnostic:
    """Nothing is concluded from it, whichever of the two is at fault."""
    message = f"`{kernel.name}` stopped what reads it ({task.kind}): {type(problem).__name__}"
    facts = (("found", "".join(format_exception(problem))[-_LONGEST:]),)
    repair = "write it with `argus.language` alone; if it is, this is a bug in Argus: report it with the text"
    return Diagnostic("E945", "error", message, facts=facts, help=repair, kernel=kernel.name)


def _done(task: Task, each: Exported, kernel: Kernel, job: Job) -> Result:
    match task:
        case Verify():
            return _verified(task, each, kernel, job)
        case Interpret():
            return _interpreted(task, kernel)
        case Build():
            return _built(task, kernel)
        case Suggest(seconds=seconds):
            return Suggested(suggestions_json(suggest_invariants(kernel, budget=Budget.about(seconds))))
        case _:
            assert_never(task)


def _verified(task: Verify, each: Exported, kernel: Kernel, job: Job) -> Verified:
    asked = ExportVerifier(resolve(task.solver), Budget.about(task.seconds), None)
    report = asked.report(each, kernel)
    shown = "\n\n".join(_shown(diagnostic, job.text, job.file) for diagnostic in report.diagnostics)
    verdict = verdict_word(report.verdict)
    return Verified(verdict, report.exit_code, report.uncovered, report_json(report), shown)


def _interpreted(task: Interpret, kernel: Kernel) -> Interpreted:
    reference = None if task.reference is None else _reference(task.reference)
    arrays = _inputs(task, kernel if reference is None else reference)
    start = perf_counter()
    made = _run(kernel, arrays)
    seconds = perf_counter() - start
    found: Comparison | None = None
    if reference is not None:
        found = _beside(reference, made, _run(reference, arrays))
    elif (claimed := claimed_contraction(kernel)) is not None:
        found = compare_with_claims(claimed, arrays, made[claimed.output.name], task.seed)
    outputs = {name: Array.of(values) for name, values in made.items()}
    return Interpreted(outputs, None if found is None else Compared(**asdict(found)), seconds)


def _reference(plain: Mapping[str, Any]) -> Kernel:
    try:
        (found,) = read(plain)
    except ValueError as problem:
        raise _unfit(f"the reference is no kernel: {problem}", "give what `argus.core.serde.write` gives") from None
    if not isinstance(found, Kernel):
        raise _unfit("the reference is a program", "give one kernel")
    return found


def _inputs(task: Interpret, kernel: Kernel) -> Mapping[str, Values]:
    """By the names of tensors. Raises ArgusError: E401, E402, E411, E701."""
    if task.arrays:
        return {name: _values(name, array) for name, array in task.arrays.items()}
    sizes = sizes_of(kernel, task.sizes)
    if prod(sizes.values()) > MOST_WORK:
        raise too_large(kernel, sizes, "as asked")
    return inputs_of(kernel, sizes, task.seed)


def _values(name: str, array: Array) -> Values:
    try:
        return array.values
    except (LookupError, ValueError) as problem:
        raise _unfit(f"the array of `{name}` is none: {problem}", "give bytes of its type and shape") from None


def _run(kernel: Kernel, arrays: Mapping[str, Values]) -> dict[str, Values]:
    absent = [buffer.name for buffer in kernel.parameters if buffer.name not in arrays]
    if absent:
        given = ", ".join(arrays)
        raise _unfit(f"`{kernel.name}` has a tensor `{absent[0]}`, found arrays of {given}", "use the same names")
    return interpret(kernel, *(arrays[buffer.name] for buffer in kernel.parameters))


def _beside(reference: Kernel, made: Mapping[str, Values], wanted: Mapping[str, Values]) -> Comparison:
    """What was made beside what the reference makes of the same inputs."""
    for name, values in wanted.items():
        if name not in made or (made[name].shape, made[name].dtype) != (values.shape, values.dtype):
            message = f"the reference `{reference.name}` writes `{name}` of {values.dtype} and shape {values.shape}"
            raise _unfit(message, "write tensors of the same names, types and shapes")
    return evolve(compare_with_interpreter(made, wanted), with_what=f"the reference `{reference.name}`")


def _unfit(message: str, repair: str) -> ArgusError:
    return ArgusError(Diagnostic("E401", "error", message, help=repair))


def _built(task: Build, kernel: Kernel) -> Built:
    with tempfile.TemporaryDirectory() as name:
        made = build(kernel, task.target or None, name)
        files = {path.name: path.read_bytes() for path in _files(made)}
    return Built(made.target, files, asdict(made.report), tuple(each.message for each in made.warnings))


def _files(made: Artifact) -> list[Path]:
    return [path for path in (made.source, made.assembly, made.code, made.description) if path is not None]


if __name__ == "__main__":
    main()
