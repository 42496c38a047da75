"""Places the labels of plots so that they do not overlap. Lengths are pixels."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

LETTER = 7.0
"""Upper bound of the average width of a character of 12 pixels."""
LINE = 15.0
"""Height of a line of text of 12 pixels."""


@frozen
class Label:
    """A label centred at `at` on an axis, `extent` long. major: kept in preference to others."""

    at: float
    extent: float
    words: str
    major: bool = True


def legible(labels: Sequence[Label], apart: float = 4.0) -> tuple[Label, ...]:
    """The labels without those that overlap one which is kept: major ones first, otherwise in order."""
    kept: list[Label] = []
    for label in sorted(labels, key=lambda each: not each.major):
        if all(abs(label.at - other.at) >= (label.extent + other.extent) / 2 + apart for other in kept):
            kept.append(label)
    return tuple(sorted(kept, key=lambda each: each.at))


def spread(wanted: Sequence[float], low: float, high: float, gap: float = LINE) -> list[float]:
    """Positions at least `gap` apart, in the order of those wanted and with the least sum of squared moves.

    They lie from `low` to `high`; if that is too short for all, they begin at `low`. Computed by isotonic regression
    (pool adjacent violators) [Barlow, Bartholomew, Bremner and Brunk 1972].
    """
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    pools: list[tuple[float, int]] = []
    for rank, place in enumerate(order):
        mean, count = wanted[place] - rank * gap, 1
        while pools and pools[-1][0] > mean:
            before, size = pools.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        pools.append((mean, count))
    most = max(low, high - gap * (len(wanted) - 1))
    means = [min(max(mean, low), most) for mean, count in pools for _ in range(count)]
    found = {place: mean + rank * gap for rank, (place, mean) in enumerate(zip(order, means, strict=True))}
    return [found[place] for place in range(len(wanted))]


def shortened(words: str, room: float) -> str:
    """The words, cut with an ellipsis to fit `room` pixels."""
    most = int(room / LETTER)
    return words if len(words) <= most else f"{words[: max(0, most - 1)]}\N{HORIZONTAL ELLIPSIS}"
