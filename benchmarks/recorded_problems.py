"""Recorded problems of all families, as policies search them, and which of them may teach a policy about another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

from argus.policy.experience import RecordedProblem
from argus.policy.nearest import Beyond, residuals
from argus.policy.planner import Situation
from argus.search.designs.space import situation
from argus.search.designs.wave_quantisation import problem_size
from argus.search.problems.families.problem import family_problem
from argus.search.problems.problem import Gemm
from benchmarks.recorded import TABLES, table

FAMILY_TABLES = Path(__file__).resolve().parent / "results" / "families"
TWIN = 0.99
"""Rank correlation of designs of two problems above which one says too much of the other."""


@frozen(eq=False)
class Recorded:
    """A recorded problem. place: its coordinates. size: the covariate of fitted priors. times: microseconds by design;
    None of those that the gate rejects.
    """

    name: str
    place: tuple[float, ...]
    size: float
    before: Situation
    times: Mapping[str, float | None]

    @property
    def best(self) -> float:
        return min(each for each in self.times.values() if each is not None)

    @property
    def beyond(self) -> Beyond:
        passed = [each.name for each in self.before.options if self.times[each.name] is not None]
        refused = [each.name for each in self.before.options if self.times[each.name] is None]
        return residuals(self.place, self.lesson, passed, refused)

    @property
    def lesson(self) -> RecordedProblem:
        passed = [(each, took) for each in self.before.options if (took := self.times[each.name]) is not None]
        values = np.log([self.before.bound / took for _, took in passed])
        return RecordedProblem(self.size, self.before.features, np.array([each.features for each, _ in passed]), values)


@cache
def recorded(family: str) -> tuple[Recorded, ...]:
    return tuple(_products(family) if "." not in family else _of_family(family))


def _products(target: str) -> Iterator[Recorded]:
    path = TABLES / f"{target}.json"
    for shape, times in table(path).times.items():
        asked = Gemm(*shape, "bf16", target)
        before = situation(asked, tuple(table(path).points))
        known = {each.name: times[each.name] for each in before.options}
        yield Recorded("x".join(map(str, shape)), tuple(map(log2, shape)), problem_size(asked), before, known)


def _of_family(family: str) -> Iterator[Recorded]:
    data: Any = json.loads((FAMILY_TABLES / f"{family}.json").read_text(encoding="utf-8"))
    proved = {(each["kind"], each["name"]): each["proved"] for each in data["points"]}
    names = dict.fromkeys(row["problem"] for row in data["rows"])
    for name in names:
        asked = family_problem(name, data["target"])
        rows = [row for row in data["rows"] if row["problem"] == name and row["name"] != "torch"]
        kinds = {row["name"]: row["kind"] for row in data["points"]}
        times: dict[str, float | None] = {
            row["name"]: row["microseconds"] if proved.get((kinds[row["name"]], row["name"]), True) else None
            for row in rows
        }
        before = situation(asked, tuple(times))
        known = {each.name: times[each.name] for each in before.options}
        # The arms are to find a fast design, not to be told one.
        yield Recorded(name, asked.space.place, asked.space.size, evolve(before, first=""), known)


def common_ranks(one: Recorded, other: Recorded) -> float | None:
    """The rank correlation of the times of the designs that both have; None of two designs or fewer."""
    both = [(a, b) for name, a in one.times.items() if a is not None and (b := other.times.get(name)) is not None]
    if len(both) <= 2:
        return None
    one_rank, other_rank = (np.argsort(np.argsort(each)).astype(np.float64) for each in np.array(both).T)
    one_rank, other_rank = one_rank - one_rank.mean(), other_rank - other_rank.mean()
    return float(one_rank @ other_rank) / float(one_rank @ one_rank)


@cache
def teachers(family: str, number: int) -> tuple[int, ...]:
    """Numbers of the other problems of the family that are no twins."""
    every = recorded(family)
    ranks = {each: common_ranks(every[number], every[each]) for each in range(len(every)) if each != number}
    return tuple(each for each, found in ranks.items() if found is None or found <= TWIN)
