"""Shortened JSON reports on rejected candidates, for a language model's prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import cast

from argus.core.diagnostic import Diagnostic
from argus.core.verdict import Report
from argus.policy.llm.view import Rejection
from argus.policy.planner import Outcome
from argus.report.diagnostic_text import to_json
from argus.report.json_document import report_json

_LONG = frozenset(
    {"chain", "alike", "elements", "called_from", "place", "replayed", "smallest", "schema", "page", "kernel"}
)
"""Keys to drop: they repeat others, or are of use only to a person."""


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
