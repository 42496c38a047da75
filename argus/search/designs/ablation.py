"""Ablation: estimates a technique's effect from pairs of recorded designs that differ in that technique only."""

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
"""Percentile of the ratios at the lower end of an effect's range, and above its upper end."""
_SAME = 1e-3
UNKNOWN_EFFECT = Effect(0.5, 1.0, 2.0, "static model")
"""Effect of a technique without experiments: symmetric around 1."""


@frozen
class Table:
    """Times in microseconds by design name, for one problem on one machine. command: repeats the measurement."""

    command: str
    target: str
    shape: str
    basis: Basis
    times: Mapping[str, float]


def ablation_pairs(transformation: Transformation, tables: Sequence[Table]) -> Iterator[Lineage]:
    """All pairs of designs with and without the technique in the same table.

    A pair with equal times from the static model is left out, as the model does not cover the technique.
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
    """Geometric mean and central 95 % range of the ratios; of measured ones if there are any.

    `UNKNOWN_EFFECT` without experiments.
    """
    basis: Basis = "time" if any(row.basis == "time" for row in rows) else "static model"
    ratios = [log(row.ratio) for row in rows if row.basis == basis]
    if not ratios:
        return UNKNOWN_EFFECT
    likely = float(np.mean(ratios))
    low, high = (float(each) for each in np.percentile(ratios, (_TAIL, 100 - _TAIL)))
    return Effect(exp(min(low, likely)), exp(likely), exp(max(high, likely)), basis)


def representative_rows(rows: Sequence[Lineage]) -> tuple[Lineage, ...]:
    """For each target, the experiments with the largest, the median and the smallest ratio."""
    chosen: list[Lineage] = []
    for target in dict.fromkeys(row.target for row in rows):
        listed = sorted((row for row in rows if row.target == target), key=lambda row: -row.ratio)
        chosen += [listed[place] for place in sorted({0, len(listed) // 2, len(listed) - 1})]
    return tuple(chosen)
