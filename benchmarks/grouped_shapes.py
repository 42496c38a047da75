"""Shapes of grouped products that are timed: how many rows each expert has, N and K."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from random import Random

from attrs import frozen


@frozen
class Shape:
    """Rows of so many experts, N columns, and K. counts: of each expert's rows."""

    name: str
    counts: tuple[int, ...]
    N: int
    K: int

    @property
    def rows(self) -> int:
        return sum(self.counts)


def distributed(rows: int, weights: Sequence[float], random: Random) -> tuple[int, ...]:
    """Rows dealt out to experts at random by weight."""
    counts = [0] * len(weights)
    for expert in random.choices(range(len(weights)), weights, k=rows):
        counts[expert] += 1
    return tuple(counts)


def shapes() -> list[Shape]:
    """Those of reference figures, each by the distribution of those, equal counts, Zipf's law and a single expert."""
    found: list[tuple[str, Shape]] = []
    for experts, rows, columns, depth in (
        (8, 8192, 14336, 4096),
        (64, 16384, 2816, 2048),
        (256, 32768, 4096, 7168),
        (8, 32768, 14336, 4096),
    ):
        random = Random(experts * rows)  # noqa: S311 reason: a seed makes the counts repeatable
        skewed = [exp(0.5 * random.gauss(0, 1)) for _ in range(experts)]
        zipf = [1 / (1 + e) for e in range(experts)]
        random.shuffle(zipf)
        ways = {
            "skewed": distributed(rows, skewed, random),
            "uniform": (rows // experts,) * experts,
            "zipf": distributed(rows, zipf, random),
            "one": tuple(rows if e == experts // 2 else 0 for e in range(experts)),
        }
        name = f"E{experts} {rows // 1024}k"
        found += [(way, Shape(f"{name} {way}", counts, columns, depth)) for way, counts in ways.items()]
    order = [way for way, _ in found]
    return [shape for _, shape in sorted(found, key=lambda pair: order.index(pair[0]))]
