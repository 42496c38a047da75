"""The tools of the MCP server: each call returns one JSON document, in the schemas of the command line.

Kernel texts come from an agent and run in the sandbox. Every call returns a document: an error in the text becomes a
diagnostic in it, with exit code 3, as on the command line.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any, Protocol

import numpy as np
from attrs import asdict, evolve, field, frozen

from argus import __version__
from argus.core.diagnostic import ArgusError, Diagnostic, InternalError
from argus.policy.knowledge import kb_folder, load_practices, load_techniques, related_techniques
from argus.policy.practice import Practice
from argus.policy.technique import Technique
from argus.report.diagnostic_text import to_json
from argus.report.json_document import SCHEMA as REPORT
from argus.runtime.sandbox import (
    Answer,
    Build,
    Built,
    CheckedKernel,
    Failed,
    Interpret,
    Interpreted,
    Limits,
    Refused,
    Request,
    Suggest,
    Suggested,
    Task,
    Verified,
    Verify,
)
from argus.runtime.sandbox import run as run_contained
from argus.runtime.sandbox.request import JUDGING, Array, Result
from argus.search.document import SCHEMA as OPTIMIZE
from argus.search.document import result_document
from argus.search.evaluation.gpu import gpu_available
from argus.search.loop import Limits as Until
from argus.search.problems.problem import gemm_of
from argus.search.run import SearchResult, Settings, optimize

Document = dict[str, Any]
SUGGESTIONS, RUN, BUILD, KNOWLEDGE = "argus.suggestions/1", "argus.interpreted/1", "argus.built/1", "argus.knowledge/1"
_REFUTED, _OPEN, _REFUSED, _INTERNAL = 1, 2, 3, 4
_SHOWN = 16
"""Number of elements listed per output."""


class Contained(Protocol):
    """The signature of `argus.runtime.sandbox.run`, for tests to replace."""

    def __call__(self, request: Request, /) -> Answer | Refused: ...


@frozen
class Tools:
    """The tools: each public method returns a document of plain data.

    longest: time limit per call, in seconds. at_once: concurrent calls. ask: runs a request in the sandbox. knowledge:
    loads the techniques. practices: loads those of families.
    search: searches for designs. Errors in a kernel text raise nothing.
    """

    longest: float = 300.0
    at_once: int = 2
    ask: Contained = run_contained
    knowledge: Callable[[], Sequence[Technique]] = field(default=lambda: load_techniques(kb_folder()))
    practices: Callable[[], Sequence[Practice]] = load_practices
    search: Callable[[str, str, Settings], SearchResult] = optimize
    _slots: BoundedSemaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_slots", BoundedSemaphore(self.at_once))

    def verify(self, text: str, kernel: str, solver: str, seconds: float) -> Document:
        """Verify kernels; schema `argus.report/1`. `shown` is the text for people."""
        return self._asked(REPORT, text, kernel, lambda: Verify(solver, seconds), _verified)

    def interpret(self, text: str, kernel: str, sizes: Mapping[str, int], seed: int, reference: str = "") -> Document:
        """Interpret kernels. reference: the text of one kernel that computes the expected outputs; empty for none."""
        if not reference:
            return self._asked(RUN, text, kernel, lambda: Interpret(dict(sizes), seed), _interpreted)
        known = self._answer(
            RUN, lambda: Request(reference, (), file="reference.py", judging=self._limits()), "the reference"
        )
        if isinstance(known, dict):
            return known
        if len(known.kernels) != 1:
            message = f"the reference holds {len(known.kernels)} kernels, expected one"
            return _refused(RUN, to_json(Diagnostic("E701", "error", message, help="leave one kernel in it")))
        plain = known.kernels[0].plain
        return self._asked(RUN, text, kernel, lambda: Interpret(dict(sizes), seed, reference=plain), _interpreted)

    def build(self, text: str, kernel: str, target: str, with_code: bool) -> Document:
        def describe(judged: CheckedKernel, result: Result) -> tuple[int, Document]:
            return _built(judged, result, with_code=with_code)

        return self._asked(BUILD, text, kernel, lambda: Build(target), describe)

    def suggest_invariants(self, text: str, kernel: str, seconds: float) -> Document:
        return self._asked(SUGGESTIONS, text, kernel, lambda: Suggest(seconds), _suggested)

    def search_knowledge(self, words: str, target: str, most: int) -> Document:
        """Techniques and practices of the knowledge base, the closest match first in each."""
        try:
            found = related_techniques(tuple(self.knowledge()), words, target)
            others = related_techniques(tuple(self.practices()), words, target)
        except ArgusError as problem:
            return _refused(KNOWLEDGE, to_json(problem.diagnostic), "techniques") | {"practices": []}
        kept = max(0, most)
        techniques = [asdict(each) for each in found[:kept]]
        return _document(KNOWLEDGE, 0, techniques=techniques, practices=[asdict(each) for each in others[:kept]])

    def optimise(self, problem: str, target: str, seconds: float, trials: int) -> Document:
        """Search the designs of a family. A problem cannot be a file here: an agent's code never runs in the search.

        A worker process evaluates candidates, so that a crash does not end the server.
        """
        try:
            asked = gemm_of(problem, target)
            if not (math.isfinite(seconds) and seconds > 0 and trials > 0):
                message = f"`seconds` is {seconds:g} and `trials` is {trials}, expected both above 0"
                return _refused(
                    OPTIMIZE, to_json(Diagnostic("E701", "error", message, help="see the tool's description")), "judged"
                )
            limits = Until(min(seconds, self.longest), trials)
            with self._slots:
                found = self.search(str(asked), target, Settings(limits=limits, workers=1, gpu=gpu_available(target)))
        except ArgusError as problem_found:
            return _refused(OPTIMIZE, to_json(problem_found.diagnostic), "judged")
        return result_document(found) | {"version": __version__, "exit_code": 0 if found.best else _REFUTED}

    def _asked(self, schema: str, text: str, kernel: str, task: Callable[[], Task], describe: Describe) -> Document:
        answer = self._answer(
            schema, lambda: Request(text, (task(),), kernel=kernel, judging=self._limits()), "the tool"
        )
        if isinstance(answer, dict):
            return answer
        pairs = [describe(each, each.results[0]) for each in answer.kernels]
        code = next((code for code in (_REFUSED, _REFUTED, _OPEN) if code in [each for each, _ in pairs]), 0)
        return _finished(_document(schema, code, kernels=[data for _, data in pairs]), answer.kernels)

    def _answer(self, schema: str, asked: Callable[[], Request], whose: str) -> Answer | Document:
        """Run a request in the sandbox; returns its answer, or a document with a diagnostic if it was refused."""
        try:
            request = asked()
        except (ValueError, TypeError) as problem:
            message = f"an argument of {whose} is out of range: {str(problem)[:200]}"
            return _refused(schema, to_json(Diagnostic("E701", "error", message, help="see the tool's description")))
        try:
            with self._slots:
                answer = self.ask(request)
        except InternalError as problem:
            return _document(schema, _INTERNAL, kernels=[], internal_error={"message": str(problem), "saved": ""})
        if isinstance(answer, Refused):
            return _refused(schema, dict(answer.data)) | {"shown": answer.text}
        return answer

    def _limits(self) -> Limits:
        cpu = max(1, int(self.longest))
        return evolve(JUDGING, wall_seconds=self.longest, cpu_seconds=cpu)


Describe = Callable[[CheckedKernel, Result], tuple[int, Document]]
"""Returns the exit code of one kernel, and its part of the document."""


def _document(schema: str, code: int, **parts: object) -> Document:
    return {"schema": schema, "version": __version__, **parts, "exit_code": code}


def _refused(schema: str, diagnostic: Mapping[str, Any], what: str = "kernels") -> Document:
    nothing: list[object] = []
    return _document(schema, _REFUSED, **{what: nothing}, diagnostics=[dict(diagnostic)])


def _finished(result_document: Document, kernels: Sequence[CheckedKernel]) -> Document:
    """The document with the diagnostics of failed kernels, and the text for people."""
    results = [result for each in kernels for result in each.results]
    failed = [dict(each.diagnostic) for each in results if isinstance(each, Failed)]
    shown = "\n\n".join(each.text for each in results if isinstance(each, Failed | Verified) and each.text)
    result_document["kernels"] = [each for each in result_document["kernels"] if each]
    return result_document | ({"diagnostics": failed} if failed else {}) | {"shown": shown}


def _verified(_: CheckedKernel, result: Result) -> tuple[int, Document]:
    return (result.exit_code, dict(result.report)) if isinstance(result, Verified) else (_REFUSED, {})


def _interpreted(judged: CheckedKernel, result: Result) -> tuple[int, Document]:
    if not isinstance(result, Interpreted):
        return _REFUSED, {}
    compared = result.compared
    wrong = compared is not None and compared.outside > 0
    found: Document = {
        "name": judged.name,
        "target": judged.target,
        "compared": None if compared is None else asdict(compared),
        "outputs": {name: _summary(values) for name, values in result.outputs.items()},
        "seconds": result.seconds,
    }
    return _REFUTED if wrong else 0 if compared is not None else _OPEN, found


def _summary(array: Array) -> Document:
    """An output's type, shape, first elements and range."""
    values = np.asarray(array.values, np.float64)
    finite = values[np.isfinite(values)]
    return {
        "dtype": array.dtype,
        "shape": list(array.shape),
        "first": [value if np.isfinite(value) else str(value) for value in values.ravel()[:_SHOWN].tolist()],
        "least": float(finite.min()) if finite.size else None,
        "greatest": float(finite.max()) if finite.size else None,
        "not_finite": int(values.size - finite.size),
    }


def _built(judged: CheckedKernel, result: Result, *, with_code: bool) -> tuple[int, Document]:
    if not isinstance(result, Built):
        return _REFUSED, {}
    sources = {name: data.decode() for name, data in result.files.items() if name.endswith((".hip", ".cu", ".json"))}
    rest = {name: data for name, data in result.files.items() if name not in sources}
    found: Document = {
        "name": judged.name,
        "target": result.target,
        "report": dict(result.report),
        "warnings": list(result.warnings),
        "sources": sources,
        "files": {name: len(data) for name, data in result.files.items()},
    }
    code = {name: base64.b64encode(data).decode() for name, data in rest.items()}
    return 0, found | ({"code": code} if with_code else {})


def _suggested(_: CheckedKernel, result: Result) -> tuple[int, Document]:
    if not isinstance(result, Suggested):
        return _REFUSED, {}
    return 0 if result.suggestions["found"] else _OPEN, dict(result.suggestions)
