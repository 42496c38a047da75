"""What the process that runs problems of KernelBench is asked, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen


@frozen
class Problem:
    """path: of the file."""

    level: int
    number: int
    path: str


@frozen
class Asked:
    """Problems in order, and how they are run.

    seconds: the limit of one problem. until: the time of day (`time.time`) after which none is begun; 0: no limit.
    seeds, shapes: of inputs and weights, and of other sizes. rounds: of measured calls; 0: no times. beside: what is
    measured beside eager torch, "compile" and "max-autotune". jobs: processes that prove and build kernels ahead.
    """

    problems: tuple[Problem, ...]
    device: str = "cuda"
    solver: str = "portfolio"
    seconds: float = 300.0
    until: float = 0.0
    seeds: int = 5
    shapes: int = 2
    rounds: int = 30
    beside: tuple[str, ...] = ("compile", "max-autotune")
    jobs: int = 0

    def write(self, place: Path) -> None:
        place.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(place: Path) -> Asked:
        data: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
        problems: Sequence[dict[str, Any]] = data.pop("problems")
        return Asked(tuple(Problem(**each) for each in problems), beside=tuple(data.pop("beside")), **data)
