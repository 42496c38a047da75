"""Shared deliveries of designs for tests, created once."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any, cast

from attrs import evolve

from argus.search.certificates.delivery import deliver
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.judgement import Judgement
from argus.search.problems.problem import problem_of
from argus.search.run import SearchResult

DESIGNS = {"sm_90a": "cooperative", "gfx942": "cdna3"}
PROBLEM = "gemm:512x512x512:bf16"


@cache
def best(target: str) -> Judgement:
    """The gate's judgement of a design with a predicted time."""
    found = GateTask(PROBLEM, target)(DESIGNS[target])
    assert found.outcome == "timed", found.why
    return found


def found(target: str, judgement: Judgement | None = None) -> SearchResult:
    """A run of one candidate."""
    judged = judgement or best(target)
    return SearchResult(problem_of(PROBLEM, target), "run-0001", Path("runs.db"), judged, (judged,), "trials spent", 3)


@cache
def _made(target: str, reward: str, home: Path) -> Path:
    judged = best(target)
    if reward == "measured":
        judged = evolve(judged, reward="measured")
    folder = home / f"{target}-{reward}"
    deliver(found(target, judged), folder, device="NVIDIA H200" if reward == "measured" else "")
    return folder


def delivery(target: str, to: Path, home: Path, reward: str = "predicted") -> Path:
    """A copy of a delivery that a test may change. home: folder of the original."""
    shutil.copytree(_made(target, reward, home), to)
    return to


def claimed(folder: Path) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((folder / "certificate.json").read_text(encoding="utf-8")))


def claim(folder: Path, data: dict[str, Any]) -> None:
    (folder / "certificate.json").write_text(json.dumps(data), encoding="utf-8")
