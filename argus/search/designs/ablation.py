"""What techniques were worth: pairs of designs of a table that differ in one technique alone, by its `undo`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import exp, log

import numpy as np
from attrs import frozen

from argus.kernels.gemm import configuration
from argus.policy.technique import Basis, Effect, Lineage
from argus.search.designs.designs import name as name_of
from argus.search.transformation import Design, Transformation

_TAIL = 2.5
"""Percent of experiments below the least ratio that an effect names, and above its greatest."""
_SAME = 1e-3
UNKNOWN_EFFECT = Effect(0.5, 1.0, 2.0, "static model")
"""What is believed of a technique that no experiment shows: an even chance."""


@frozen
class Table:
    """Microseconds of designs by name, for one problem on one machine. command: that repeats it."""

    command: str
    target: str
    shape: str
    basis: Basis
    times: Mapping[str, float]


def ablation_pairs(transformation: Transformation, tables: Sequence[Table]) -> Iterator[Lineage]:
    """Every design that has the technique and is in a table without it, too.

    Where the static model gives both the very same time it does not see the technique: that is no experiment.
    """
    for table in tables:
        for named, time in table.times.items():
            design = _design(named)
            if design is None or design.target.name != table.target:
                continue
            without = transformation.undo(design)
            before = None if without is None else table.times.get(name_of(without))
            if without is not None and before is not None and not _not_modelled(table, before / time):
                ratio = before / time
                yield Lineage(table.command, table.target, table.shape, name_of(without), named, ratio, table.basis)


@lru_cache(maxsize=8192)
def _design(named: str) -> Design | None:
    return configuration(named)


def _not_modelled(table: Table, ratio: float) -> bool:
    return table.basis == "static model" and abs(ratio - 1) < _SAME


def estimate_effect(rows: Sequence[Lineage]) -> Effect:
    """From the ratios of experiments, those with times where there are any: their geometric mean, and what all but a
    few percent lie within. Without experiments, an even chance.
    """
    basis: Basis = "time" if any(row.basis == "time" for row in rows) else "static model"
    ratios = [log(row.ratio) for row in rows if row.basis == basis]
    if not ratios:
        return UNKNOWN_EFFECT
    likely = float(np.mean(ratios))
    low, high = (float(each) for each in np.percentile(ratios, (_TAIL, 100 - _TAIL)))
    return Effect(exp(min(low, likely)), exp(likely), exp(max(high, likely)), basis)


def representative_rows(rows: Sequence[Lineage]) -> tuple[Lineage, ...]:
    """Of each target the experiment that speaks most for a technique, the middle one and the one most against it."""
    chosen: list[Lineage] = []
    for target in dict.fromkeys(row.target for row in rows):
        listed = sorted((row for row in rows if row.target == target), key=lambda row: -row.ratio)
        chosen += [listed[place] for place in sorted({0, len(listed) // 2, len(listed) - 1})]
    return tuple(chosen)
