"""Shortened JSON reports on rejected candidates, for a language model's prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import cast

from attrs import evolve

from argus.core.diagnostic import Diagnostic, Label
from argus.core.verdict import Report
from argus.policy.llm.view import Rejection
from argus.policy.planner import Outcome
from argus.report.diagnostic_text import render_plain, to_json
from argus.report.json_document import report_json
from argus.report.sources import read_source

_LONG = frozenset({"alike", "called_from", "place", "smallest", "schema", "page", "kernel"})
"""Keys to drop: they repeat others, or are of use only to a person."""


def rendered(diagnostic: Diagnostic, text: str = "") -> str:
    """A diagnostic as text with source lines, by file names without folders. text: of a kernel from source text."""
    files = {PurePath(frame.file).name: frame.file for label in _labels(diagnostic) for frame in label.span.frames}

    def source(name: str) -> str | None:
        return text or read_source(files.get(name, name))

    primary, *others = map(_without_folders, _labels(diagnostic))
    return render_plain(evolve(diagnostic, primary=primary, secondary=tuple(others)), source)


def _labels(diagnostic: Diagnostic) -> tuple[Label, ...]:
    return (diagnostic.primary, *diagnostic.secondary)


def _without_folders(label: Label) -> Label:
    frames = tuple(evolve(frame, file=PurePath(frame.file).name) for frame in label.span.frames)
    return evolve(label, span=evolve(label.span, frames=frames))


def rejection(name: str, outcome: Outcome, found: Report | Diagnostic | Mapping[str, object]) -> Rejection:
    """The rejection of a candidate. name: the candidate's. found: the report or diagnostic, or JSON data of one.

    File paths are cut to file names, and empty values are left out.
    """
    match found:
        case Report():
            report = report_json(found)
            wanted = ("verdict", "reason", "attempt", "diagnostics", "counterexample", "uncovered")
            data = {key: report[key] for key in wanted}
        case Diagnostic():
            data = {"diagnostics": [to_json(found)]}
        case _:
            data = dict(found)
    return Rejection(name, outcome, json.dumps(_short(data), default=str))


def _short(value: object) -> object:
    match value:
        case dict():
            pairs = {key: _short(each) for key, each in cast("dict[str, object]", value).items() if key not in _LONG}
            named = {key: PurePath(str(each)).name if key == "file" else each for key, each in pairs.items()}
            return {key: each for key, each in named.items() if each not in (None, "", [], {})}
        case list():
            return [_short(each) for each in cast("list[object]", value)]
        case _:
            return value
