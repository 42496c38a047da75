"""Verification reports as JSON of the schema `argus.report/1` (see `schema` and docs/reports.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import cast

from attrs import asdict

from argus.core.span import Span
from argus.core.verdict import (
    Counterexample,
    Hop,
    Place,
    ProgramReport,
    Proved,
    ProvedVariant,
    Refuted,
    Report,
    Unknown,
)
from argus.report.diagnostic_text import frame_json, to_json
from argus.report.summary import assumptions, numbered, results, verdict_word

SCHEMA = "argus.report/1"
_RECORD = re.compile(r"[^\s=,]+=-?\d+(?:, [^\s=,]+=-?\d+)*")


def schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of the document that `argus verify --json` prints."""
    text = files("argus.report").joinpath("schemas", "report-1.json").read_text(encoding="utf-8")
    return cast("dict[str, object]", json.loads(text))


def report_json(report: Report) -> dict[str, object]:
    """One kernel's report in the schema `argus.report/1`. No key is removed or changes its meaning within it."""
    verdict = report.verdict
    return {
        "name": report.kernel,
        "target": report.target,
        "solver": report.solver,
        "verdict": verdict_word(verdict),
        "exit_code": report.exit_code,
        "reason": verdict.reason if isinstance(verdict, Unknown) else "",
        "attempt": verdict.attempt if isinstance(verdict, Unknown) else "",
        "findings": [asdict(finding) for finding in report.findings],
        "diagnostics": [to_json(diagnostic) for diagnostic in report.diagnostics],
        "assumptions": list(assumptions(verdict)),
        "results": list(results(verdict)),
        "coverage": dict(numbered(verdict.coverage)) if isinstance(verdict, Proved) else {},
        "uncovered": list(report.uncovered),
        "cost": asdict(report.cost),
        "counterexample": _counterexample(verdict.counterexample) if isinstance(verdict, Refuted) else None,
        "nearest": None if report.nearest is None else _variant(report.nearest),
    }


def program_json(report: ProgramReport) -> dict[str, object]:
    """One program's report in the schema `argus.report/1`. Its launches' reports are among the kernels."""
    return {
        "name": report.program,
        "verdict": verdict_word(report.verdict),
        "exit_code": report.exit_code,
        "launches": [each.kernel for each in report.launches],
        "crossings": [asdict(each) for each in report.crossings],
    }


def _variant(found: ProvedVariant) -> dict[str, object]:
    changes = [{"kind": each.kind, "text": each.text, "at": _frame(each.at)} for each in found.changes]
    return {"changes": changes, "uncovered": list(found.uncovered)}


def _counterexample(found: Counterexample) -> dict[str, object]:
    return {
        "code": found.code,
        "message": found.message,
        "replayed": found.replayed,
        "sizes": dict(found.sizes),
        "smallest": found.smallest,
        "block": list(found.block),
        "thread": found.thread,
        "other_thread": found.other_thread,
        "buffer": found.buffer,
        "element": None if found.element is None else list(found.element),
        "iteration": dict(found.iteration),
        "other_iteration": dict(found.other_iteration),
        "place": found.place,
        "at": _frame(found.at),
        "other_at": _frame(found.other_at),
        "schedule": found.schedule,
        "tags": [_tags(name, text) for name, text in found.tags],
        "elements": [_place(place) for place in found.elements],
        "alike": [_place(place) for place in found.alike],
        "chain": [_hop(hop) for hop in found.chain],
        "repair": found.repair,
    }


def _hop(hop: Hop) -> dict[str, object]:
    return {
        "kind": hop.kind,
        "at": _frame(hop.span),
        "called_from": [frame_json(frame) for frame in hop.span.frames[1:]],
        "block": list(hop.block),
        "thread": hop.thread,
        "iteration": dict(hop.iteration),
        "target": _place(hop.target),
        "sources": [_place(source) for source in hop.sources],
    }


def _place(place: Place) -> dict[str, object]:
    return {
        "buffer": place.buffer,
        "space": place.space,
        "element": None if place.element is None else list(place.element),
    }


def _frame(span: Span) -> dict[str, object] | None:
    return None if span.frame is None else frame_json(span.frame)


def _tags(name: str, text: str) -> dict[str, object]:
    """The tags of one element; `names` holds them as numbers if the text is a record."""
    return {"of": name, "text": text, "names": dict(_names(text.split(", "))) if _RECORD.fullmatch(text) else {}}


def _names(parts: Iterable[str]) -> Iterable[tuple[str, int]]:
    for part in parts:
        name, _, value = part.partition("=")
        yield name, int(value)
