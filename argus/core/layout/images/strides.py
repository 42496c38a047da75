"""Exact facts about the images of a layout from its modes alone: range, gaps, collisions.

Modes are (extent, stride) pairs, first fastest. The images are the sums of one multiple x * stride, 0 <= x < extent,
of each mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import gcd, lcm

from attrs import frozen

Modes = tuple[tuple[int, int], ...]
_STEPS = 20_000
"""Digits that a search for collisions tries before it gives up."""


class UndecidedError(Exception):
    """A search has taken its steps; a table may still decide."""


@frozen
class _Digit:
    """A mode of a search: its extent and stride, its number `below` of indices, what the modes after it reach."""

    extent: int
    stride: int
    below: int
    rest: int
    common: int


def lowest(modes: Modes) -> int:
    """The smallest image."""
    return sum((extent - 1) * stride for extent, stride in modes if stride < 0)


def strides_nest(modes: Modes) -> bool:
    """Whether each stride exceeds all that smaller ones reach, which makes the images distinct."""
    reach = 0
    for stride, extent in sorted((abs(stride), extent) for extent, stride in modes if extent > 1):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def share_only_zero(a: Modes, b: Modes) -> bool:
    """Whether 0 alone is in the ranges of the images of both, and a multiple of what divides all images of each."""
    step = lcm(*(gcd(*(stride for extent, stride in modes if extent > 1)) for modes in (a, b)))
    low, high = max(lowest(a), lowest(b)), min(_highest(a), _highest(b))
    return step == 0 or (high < step and low > -step)


def _highest(modes: Modes) -> int:
    return sum((extent - 1) * stride for extent, stride in modes if stride > 0)


def first_gap(modes: Modes) -> int | None:
    """The smallest integer between two images that is none itself; None if the images are an interval.

    If the modes of smaller stride fill an interval, the next one goes on without a gap if its stride is at most the
    interval's length, and all later ones leave that gap open if it is not.
    """
    reach = 0
    for stride, extent in sorted((abs(stride), extent) for extent, stride in modes if extent > 1):
        if stride > reach + 1:
            return lowest(modes) + reach + 1
        reach += stride * (extent - 1)
    return None


def first_at_least(modes: Modes, need: int) -> int | None:
    """The smallest index whose image is at least `need`; None if there is none."""
    top = _highest(modes)
    if top < need:
        return None
    index = 0
    for extent, stride in reversed(modes):
        digit = 0
        if stride > 0:
            top -= (extent - 1) * stride
            digit = max(0, -(-(need - top) // stride))
            need -= digit * stride
        index = index * extent + digit
    return index


def first_outside(modes: Modes, onto: int) -> int | None:
    """The smallest index whose image is not in [0, onto); None if there is none."""
    above = first_at_least(modes, onto)
    under = first_at_least(tuple((extent, -stride) for extent, stride in modes), 1)
    return min((index for index in (above, under) if index is not None), default=None)


def first_collision(modes: Modes) -> tuple[int, int] | None:
    """(first, second): second is the smallest index whose image an earlier one, first, has; None if there is none.

    Raises UndecidedError where strides neither nest nor are few.
    """
    placed: list[tuple[int, int, int]] = []
    below = 1
    steps = count()
    for extent, stride in modes:
        if extent > 1:
            placed.append((extent, stride, below))
            if not strides_nest(tuple(mode[:2] for mode in placed)):
                found = _with_top(placed[-1], placed[:-1], steps)
                if found is not None:
                    return found
        below *= extent
    return None


def _with_top(
    top: tuple[int, int, int], lower: list[tuple[int, int, int]], steps: Iterator[int]
) -> tuple[int, int] | None:
    """The first collision whose second index has its highest digit in the mode `top`, where `lower` has none.

    Digits that both indices have can be taken off both, so the other one is 0 in this mode: its digit times the
    stride is a difference of two images of the lower modes, with each of their digits 0 in one of the two.
    """
    extent, stride, below = top
    if stride == 0:
        return 0, below
    digits, reach, common = _arranged(lower)
    step = common // gcd(common, stride)
    for digit in range(step, min(extent - 1, reach // abs(stride)) + 1, step):
        _spend(steps)
        pair = min(_differences(digit * stride, digits, steps), default=None)
        if pair is not None:
            return pair[1], digit * below + pair[0]
    return None


def _arranged(lower: list[tuple[int, int, int]]) -> tuple[list[_Digit], int, int]:
    """The modes by descending stride, what they reach together, and the greatest common divisor of their strides."""
    digits: list[_Digit] = []
    reach = common = 0
    for extent, stride, below in sorted(lower, key=lambda mode: abs(mode[1])):
        digits.append(_Digit(extent, stride, below, reach, common))
        reach += abs(stride) * (extent - 1)
        common = gcd(common, stride)
    return digits[::-1], reach, common


def _differences(target: int, digits: list[_Digit], steps: Iterator[int], place: int = 0) -> Iterator[tuple[int, int]]:
    """All pairs (i, j) of indices with no digit in common and image(j) - image(i) = target."""
    if place == len(digits):
        if target == 0:
            yield 0, 0
        return
    mode = digits[place]
    for x in _candidates(target, mode):
        _spend(steps)
        for i, j in _differences(target - x * mode.stride, digits, steps, place + 1):
            yield i + max(-x, 0) * mode.below, j + max(x, 0) * mode.below


def _candidates(target: int, mode: _Digit) -> range:
    """The digits x for which what is left, target - x * stride, is within reach of the modes after this one."""
    size = abs(mode.stride)
    sign = 1 if mode.stride > 0 else -1
    low = max(-(mode.extent - 1), -((mode.rest - target) // size))
    high = min(mode.extent - 1, (target + mode.rest) // size)
    if mode.common == 0:
        exact = target % size == 0
        return range(sign * target // size, sign * target // size + 1) if exact and low <= high else range(0)
    shared = gcd(size, mode.common)
    if target % shared:
        return range(0)
    step = mode.common // shared
    start = target // shared * pow(size // shared, -1, step) if step > 1 else 0
    first = low + (start - low) % step
    chosen = range(first, high + 1, step)
    return chosen if sign > 0 else range(-first, -high - 1, -step)


def _spend(steps: Iterator[int]) -> None:
    if next(steps) >= _STEPS:
        raise UndecidedError
