"""Priors of feature weights, fitted to recorded problems: mean, slope with the problem's size, and deviation."""

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
from argus.policy.bandit import WeightPrior
from argus.policy.knowledge import kb_folder

Vector = npt.NDArray[np.float64]


@frozen
class RecordedProblem:
    """One recorded problem. size: a scalar covariate, such as the amount of work per SM.

    names: of the features. features: matrix [design, feature]. values: log(bound / time) of each design.
    """

    size: float
    names: tuple[str, ...]
    features: Vector
    values: Vector

    def weights(self, names: Sequence[str], deviation: float, noise: float) -> Vector:
        """Posterior mean (ridge regression) in the order of `names`; 0 for features that the problem lacks."""
        places = [names.index(name) for name in self.names]
        precision = self.features.T @ self.features / noise**2 + np.eye(len(places)) / deviation**2
        found = np.zeros(len(names))
        found[places] = np.linalg.solve(precision, self.features.T @ self.values / noise**2)
        return found


@frozen
class Trend:
    """A weight: mean at the mean size, slope per standard deviation of size, deviation of problems from that line."""

    mean: float
    slope: float
    deviation: float


@frozen
class Experience:
    """Fitted priors. usual, spread: mean and standard deviation of the training sizes; least, most: their range."""

    usual: float
    spread: float
    least: float
    most: float
    trends: Mapping[str, Trend]

    def at(self, size: float | None) -> dict[str, WeightPrior]:
        """Priors at a size, clamped to the training range; at the mean size for None."""
        if size is None or not self.spread:
            moved = 0.0
        else:
            moved = (min(max(size, self.least), self.most) - self.usual) / self.spread
        return {name: WeightPrior(each.mean + moved * each.slope, each.deviation) for name, each in self.trends.items()}


NOTHING = Experience(0.0, 0.0, 0.0, 0.0, {})


def fit_experience(
    lessons: Sequence[RecordedProblem], *, deviation: float = 0.3, noise: float = 0.15, least: float = 0.1
) -> Experience:
    """For each feature, fit a line of the problems' weights over their sizes, and the deviation from it.

    Slopes are shrunk as if one more problem, one standard deviation away, had slope 0 [ridge regression, Hoerl and
    Kennard 1970]. The prior's deviation is the residual deviation between problems plus `least`.
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


def experience_text(found: Experience, sources: Sequence[str]) -> str:
    """The JSON text that `load_experience` reads. sources: describe the training data."""
    sizes = {name: round(getattr(found, name), 4) for name in _SIZES}
    rows = {
        name: [round(each.mean, 4), round(each.slope, 4), round(each.deviation, 4)]
        for name, each in sorted(found.trends.items())
    }
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    head = json.dumps({"sources": list(sources), "sizes": sizes}, indent=1).removesuffix("\n}")
    return f'{head},\n "weights": {{\n{lines}\n }}\n}}\n'


_SIZES = ("usual", "spread", "least", "most")


def load_experience(target: str, folder: Path | None = None) -> Experience:
    """Read a target's fitted priors from the knowledge base; `NOTHING` if it has no file.

    Raises ArgusError (E902) for a malformed file.
    """
    path = (kb_folder() if folder is None else folder) / "experience" / f"{target}.json"
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
            raise ValueError("weights are finite, and their deviations above 0")  # noqa: TRY301 reason: reported as the others
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        message = f"`{path}` holds no weights of features: {problem}"
        advice = "write it with `python benchmarks/planner.py learn`"
        raise ArgusError(Diagnostic("E902", "error", message, help=advice)) from problem
    return Experience(usual, spread, least, most, trends)
