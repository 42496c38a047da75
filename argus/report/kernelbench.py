"""What the processes that run problems of KernelBench are asked, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

Row = dict[str, Any]
"""What is found of a problem. cut: why it is not the whole row, if it is not."""
_LEAST = 3.0
"""Seconds before the end from which no problem is begun."""


@frozen
class Problem:
    """path: of the file."""

    level: int
    number: int
    path: str

    @property
    def key(self) -> str:
        return f"{self.level}.{self.number}"


@frozen
class Asked:
    """Problems in order, and how they are run.

    seconds: the limit of one problem. until: the time of day (`time.time`) at which all ends; 0: no limit.
    seeds, shapes: of inputs and weights, and of other sizes. rounds: of measured calls; 0: no times. beside: what is
    measured beside eager torch, "compile" and "max-autotune"; the latter in a second turn, when all problems have had
    theirs. gpus: processes that run problems, each on a GPU of its own; 0: problems are only prepared. jobs: processes
    that prove and build kernels ahead. ahead_seconds: the limit of one problem there. cold: whether they do so from
    empty caches, a problem each. folder: of the tickets by which processes share out the problems.
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
    gpus: int = 1
    jobs: int = 0
    ahead_seconds: float = 300.0
    cold: bool = False
    folder: str = ""

    def is_over(self, now: float) -> bool:
        """Whether no problem is begun any more, at this time of day."""
        return bool(self.until) and now > self.until - _LEAST

    def write(self, place: Path) -> None:
        place.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(place: Path) -> Asked:
        data: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
        problems: Sequence[dict[str, Any]] = data.pop("problems")
        return Asked(tuple(Problem(**each) for each in problems), beside=tuple(data.pop("beside")), **data)


def ahead_of(problem: Problem) -> str:
    """The name of the ticket of what was proved and built ahead."""
    return f"ahead-{problem.key}"


SEARCHED = "max-autotune"
"""The peer whose times are of a turn of its own, in which all others were measured again."""
WITH_SEARCHED = "times with max-autotune"
_OF_TIMES = ("milliseconds", "host_milliseconds", "rounds", "bytes", "flops")


def merged(one: Row, other: Row) -> Row:
    """Of two rows of a problem, the later one last, that which says more, with the times that say more.

    `tree_of_times`, if the times are of other sources than the rest. Times beside max-autotune stay apart.
    """
    if one.get("error") or other.get("error"):
        return other if one.get("error") else one
    more, less = sorted((other, one), key=lambda row: -len(row["errors"]))
    timed = max((more, less), key=lambda row: len(row.get("milliseconds", {}).keys() - {SEARCHED}))
    calls = less.get("first_call", {}) | more.get("first_call", {})
    times = {name: timed[name] for name in _OF_TIMES if name in timed}
    if timed.get("tree") != more.get("tree"):
        times["tree_of_times"] = timed.get("tree")
    searched = searched_times(other) or searched_times(one)
    apart = {WITH_SEARCHED: searched} if searched else {}
    return more | times | {"first_call": calls} | apart


def searched_times(row: Row) -> Row:
    """The times of the turn with max-autotune, and what they are of; empty if there are none."""
    if SEARCHED not in row.get("milliseconds", {}):
        return row.get(WITH_SEARCHED, {})
    return {name: row[name] for name in (*_OF_TIMES, "tree") if name in row}
