"""What recorded problems say of a design beyond its features: by how much the linear model was wrong about it there.

The features generalise over sizes; what a design owes to several of them together is the same at problems near it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import dist, isfinite
from pathlib import Path
from typing import Any

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.experience import RecordedProblem
from argus.policy.knowledge import kb_folder

REFUSED = -2.0
"""Stands for log(bound / time) beyond the features of a design that the gate rejects."""
_SHRINK = 0.3
"""Of all problems' weight, added to that of those that have recorded a design: few say less than many."""
_UNIT = 1000
"""Numbers of a file are in thousandths."""


@frozen
class Beyond:
    """A recorded problem. place: its coordinates, such as logarithms of its sizes. values: log(bound / time) by design,
    less what the problem's own linear fit explains; `REFUSED` of those that the gate rejects.
    """

    place: tuple[float, ...]
    values: Mapping[str, float]


def residuals(
    place: tuple[float, ...], lesson: RecordedProblem, names: Sequence[str], refused: Sequence[str] = ()
) -> Beyond:
    """Of one problem. names: of the lesson's designs, in order. refused: those that the gate rejects."""
    weights = lesson.weights(lesson.names, _DEVIATION, _NOISE)
    left = lesson.values - lesson.features @ weights
    return Beyond(place, {**dict(zip(names, map(float, left), strict=True)), **dict.fromkeys(refused, REFUSED)})


_DEVIATION, _NOISE = 0.3, 0.15
"""As of `argus.policy.experience.fit_experience`."""


def beyond_features(recorded: Sequence[Beyond], place: tuple[float, ...]) -> dict[str, float]:
    """By design, the mean over recorded problems, each weighted by 1 / (1 + its distance), shrunk towards 0."""
    own = [each for each in recorded if len(each.place) == len(place)]
    sums: dict[str, float] = {}
    weights: dict[str, float] = {}
    for each in own:
        weight = 1 / (1 + dist(each.place, place))
        for name, value in each.values.items():
            sums[name] = sums.get(name, 0.0) + weight * value
            weights[name] = weights.get(name, 0.0) + weight
    whole = sum(1 / (1 + dist(each.place, place)) for each in own)
    return {name: total / (weights[name] + _SHRINK * whole) for name, total in sums.items()}


def recorded_text(recorded: Sequence[Beyond], sources: Sequence[str]) -> str:
    """The JSON text that `load_recorded` reads. sources: describe the data."""
    designs = sorted({name for each in recorded for name in each.values})
    rows = (
        json.dumps(
            {
                "place": [round(x, 4) for x in each.place],
                "values": [None if name not in each.values else round(_UNIT * each.values[name]) for name in designs],
            },
            separators=(",", ":"),
        )
        for each in recorded
    )
    head = f'"sources": {json.dumps(list(sources))},\n"designs": {json.dumps(designs, separators=(",", ":"))}'
    lines = ",\n".join(rows)
    return f'{{{head},\n"problems": [\n{lines}\n]}}\n'


def load_recorded(name: str, folder: Path | None = None) -> tuple[Beyond, ...]:
    """Read recorded problems from the knowledge base; none if it has no such file.

    Raises ArgusError (E902) for a malformed file.
    """
    path = (kb_folder() if folder is None else folder) / "experience" / f"{name}.recorded.json"
    if not path.is_file():
        return ()
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        designs = [str(each) for each in data["designs"]]
        found = tuple(
            Beyond(
                tuple(float(x) for x in each["place"]),
                {
                    design: float(value) / _UNIT
                    for design, value in zip(designs, each["values"], strict=True)
                    if value is not None
                },
            )
            for each in data["problems"]
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise _malformed(path, repr(problem)) from problem
    if not all(isfinite(value) for each in found for value in (*each.place, *each.values.values())):
        raise _malformed(path, "it has numbers that are not finite")
    return found


def _malformed(path: Path, why: str) -> ArgusError:
    message = f"`{path}` is no file of recorded problems: {why}"
    return ArgusError(Diagnostic("E902", "error", message, help="write it again: python benchmarks/arms.py learn"))
