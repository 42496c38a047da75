"""What earlier problems teach of a new one: weights of features, how they go with a problem's size, how they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.bandit import Weight
from argus.policy.knowledge import home

Vector = npt.NDArray[np.float64]


@frozen
class Lesson:
    """One problem. size: a number that tells it from others, such as how much of it each processor gets.

    names: of features. features: of its designs, [design, feature]. values: the logarithm of the share of the bound
    that each design reaches.
    """

    size: float
    names: tuple[str, ...]
    features: Vector
    values: Vector

    def weights(self, names: Sequence[str], deviation: float, noise: float) -> Vector:
        """The mean of the posterior, features in the order of `names`; 0 of those that the problem does not have."""
        places = [names.index(name) for name in self.names]
        precision = self.features.T @ self.features / noise**2 + np.eye(len(places)) / deviation**2
        found = np.zeros(len(names))
        found[places] = np.linalg.solve(precision, self.features.T @ self.values / noise**2)
        return found


@frozen
class Trend:
    """A weight at the usual size, what a standard deviation of sizes adds to it, and how far problems are from that."""

    mean: float
    slope: float
    deviation: float


@frozen
class Experience:
    """usual, spread: mean and standard deviation of the sizes of what was learnt from; least, most: their range."""

    usual: float
    spread: float
    least: float
    most: float
    trends: Mapping[str, Trend]

    def at(self, size: float | None) -> dict[str, Weight]:
        """The weights of a problem, beyond the sizes that taught those of the nearest, without a size the usual."""
        if size is None or not self.spread:
            moved = 0.0
        else:
            moved = (min(max(size, self.least), self.most) - self.usual) / self.spread
        return {name: Weight(each.mean + moved * each.slope, each.deviation) for name, each in self.trends.items()}


NOTHING = Experience(0.0, 0.0, 0.0, 0.0, {})


def fitted(lessons: Sequence[Lesson], *, deviation: float = 0.3, noise: float = 0.15, least: float = 0.1) -> Experience:
    """Of each feature a line through the weights of the problems over their sizes, and how far they are from it.

    Slopes are pulled to 0 as if one more problem, a standard deviation away, had shown none [ridge regression, Hoerl
    and Kennard 1970]. What is left from problem to problem, and `least` more, is what a new one may differ by.
    """
    names = tuple(sorted({name for each in lessons for name in each.names}))
    found = np.array([each.weights(names, deviation, noise) for each in lessons])
    sizes = np.array([each.size for each in lessons])
    usual, spread = float(sizes.mean()), float(sizes.std())
    moved = (sizes - usual) / spread if spread else np.zeros(len(sizes))
    mean = found.mean(axis=0)
    slope = moved @ (found - mean) / (moved @ moved + 1)
    width = (found - mean - np.outer(moved, slope)).std(axis=0) + least
    trends = {name: Trend(*map(float, each)) for name, *each in zip(names, mean, slope, width, strict=True)}
    return Experience(usual, spread, float(sizes.min()), float(sizes.max()), trends)


def written(found: Experience, sources: Sequence[str]) -> str:
    """The text of a file that `experience` reads. sources: what it was fitted to, in words."""
    sizes = {name: round(getattr(found, name), 4) for name in _SIZES}
    rows = {
        name: [round(each.mean, 4), round(each.slope, 4), round(each.deviation, 4)]
        for name, each in sorted(found.trends.items())
    }
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    head = json.dumps({"sources": list(sources), "sizes": sizes}, indent=1).removesuffix("\n}")
    return f'{head},\n "weights": {{\n{lines}\n }}\n}}\n'


_SIZES = ("usual", "spread", "least", "most")


def experience(target: str, folder: Path | None = None) -> Experience:
    """What the knowledge base holds for a target; nothing where there is no file for it.

    Raises ArgusError (E902) for a file that says something else.
    """
    path = (home() if folder is None else folder) / "experience" / f"{target}.json"
    if not path.is_file():
        return NOTHING
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        usual, spread, least, most = (float(data["sizes"][name]) for name in _SIZES)
        trends = {
            str(name): Trend(float(mean), float(slope), float(width))
            for name, (mean, slope, width) in data["weights"].items()
        }
        if not all(isfinite(each.mean + each.slope) and 0 < each.deviation < inf for each in trends.values()):
            raise ValueError("weights are finite, and their deviations above 0")  # noqa: TRY301 reason: told as the others
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        message = f"`{path}` holds no weights of features: {problem}"
        advice = "write it with `python benchmarks/planner.py learn`"
        raise ArgusError(Diagnostic("E902", "error", message, help=advice)) from problem
    return Experience(usual, spread, least, most, trends)
