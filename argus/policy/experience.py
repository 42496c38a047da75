"""What earlier problems teach of a new one: weights of features, fitted to each, and how far they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    """One problem: features of its designs, [design, feature], and the logarithm of the share of the bound of each."""

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


def fitted(
    lessons: Sequence[Lesson], *, deviation: float = 0.3, noise: float = 0.15, least: float = 0.1
) -> dict[str, Weight]:
    """Of each feature the mean over the problems, and their standard deviation, `least` more.

    The spread from problem to problem is what a new problem may differ by.
    """
    names = tuple(sorted({name for each in lessons for name in each.names}))
    found = np.array([each.weights(names, deviation, noise) for each in lessons])
    spread = found.std(axis=0) + least
    return {
        name: Weight(float(mean), float(width))
        for name, mean, width in zip(names, found.mean(axis=0), spread, strict=True)
    }


def written(weights: Mapping[str, Weight], sources: Sequence[str]) -> str:
    """The text of a file that `experience` reads. sources: what the weights were fitted to, in words."""
    rows = {name: [round(each.mean, 4), round(each.deviation, 4)] for name, each in sorted(weights.items())}
    return json.dumps({"sources": list(sources), "weights": rows}, indent=1) + "\n"


def experience(target: str, folder: Path | None = None) -> dict[str, Weight]:
    """The weights that the knowledge base holds for a target; none where there is no file for it.

    Raises ArgusError (E902) for a file that says something else.
    """
    path = (home() if folder is None else folder) / "experience" / f"{target}.json"
    if not path.is_file():
        return {}
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): Weight(float(mean), float(width)) for name, (mean, width) in data["weights"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        message = f"`{path}` holds no weights of features: {problem}"
        advice = "write it with `python benchmarks/planner.py learn`"
        raise ArgusError(Diagnostic("E902", "error", message, help=advice)) from problem
