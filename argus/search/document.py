"""Serialises the result of a run as JSON data of the schema `argus.optimize/1`."""

from __future__ import annotations

from attrs import asdict

from argus.search.run import SearchResult

SCHEMA = "argus.optimize/1"


def result_document(found: SearchResult) -> dict[str, object]:
    """The result as JSON data."""
    bounds = found.problem.bounds
    return {
        "schema": SCHEMA,
        "problem": str(found.problem),
        "target": found.problem.target,
        "run": found.run,
        "journal": str(found.journal),
        "reason": found.reason,
        "light": bounds.light,
        "bottleneck": bounds.bottleneck,
        "spent": None if found.spent is None else asdict(found.spent),
        "best": None if found.best is None else asdict(found.best),
        "last_round": None if found.last_round is None else asdict(found.last_round),
        "judged": [asdict(each) for each in found.judged],
    }
