"""The range, gaps and collisions of a layout's images, computed exactly from its modes without a table.

Modes are (extent, stride) pairs, first fastest. An image is a sum of x * stride over the modes, 0 <= x < extent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import gcd, lcm

from attrs import frozen

Modes = tuple[tuple[int, int], ...]
_STEPS = 20_000
"""Most digits that a search for collisions tries."""


class UndecidedError(Exception):
    """A search reached its step limit; a table may still decide."""


@frozen
class _Digit:
    """A mode of a search. below: size of the modes before it in the layout. rest, common: the largest sum of the modes
    searched after it, and the greatest common divisor of their strides.
    """

    extent: int
    stride: int
    below: int
    rest: int
    common: int


def lowest(modes: Modes) -> int:
    """The smallest image."""
    return sum((extent - 1) * stride for extent, stride in modes if stride < 0)


def strides_nest(modes: Modes) -> bool:
    """Whether each stride exceeds the largest sum of the smaller ones; the images are then distinct."""
    reach = 0
    for stride, extent in sorted((abs(stride), extent) for extent, stride in modes if extent > 1):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def share_only_zero(a: Modes, b: Modes) -> bool:
    """Whether ranges and divisibility show that the images share only 0.

    A common image lies in both ranges and is a multiple of the gcd of the strides of each.
    """
    step = lcm(*(gcd(*(stride for extent, stride in modes if extent > 1)) for modes in (a, b)))
    low, high = max(lowest(a), lowest(b)), min(_highest(a), _highest(b))
    return step == 0 or (high < step and low > -step)


def _highest(modes: Modes) -> int:
    return sum((extent - 1) * stride for extent, stride in modes if stride > 0)


def first_gap(modes: Modes) -> int | None:
    """The smallest integer between two images that is not an image; None if the images are an interval.

    If the modes of smaller stride fill an interval, the next mode extends it without a gap if its stride is at most the
    interval's length; otherwise no later mode closes that gap.
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
    """(first, second): the smallest index `second` that has the image of an earlier index `first`; None if injective.

    Raises UndecidedError if the strides do not nest and the search reaches its limit.
    """
    placed: list[tuple[int, int, int]] = []
    below = 1
    steps = count()
    for extent, stride in modes:
        if extent > 1:
            placed.append((extent, stride, below))
            if not strides_nest(tuple(mode[:2] for mode in placed)):
                found = _collision_with_top_digit(placed[-1], placed[:-1], steps)
                if found is not None:
                    return found
        below *= extent
    return None


def _collision_with_top_digit(
    top: tuple[int, int, int], lower: list[tuple[int, int, int]], steps: Iterator[int]
) -> tuple[int, int] | None:
    """The first collision whose second index has its highest digit in the mode `top`; the modes `lower` have no
    collision.

    Subtracting the digits that both indices share leaves another collision, so the first index has digit 0 in this
    mode: the second index's digit times the stride is a difference of two images of the lower modes, and each lower
    digit is 0 in one of the two.
    """
    extent, stride, below = top
    if stride == 0:
        return 0, below
    digits, reach, common = _by_descending_stride(lower)
    step = common // gcd(common, stride)
    for digit in range(step, min(extent - 1, reach // abs(stride)) + 1, step):
        _count_step(steps)
        pair = min(_differences(digit * stride, digits, steps), default=None)
        if pair is not None:
            return pair[1], digit * below + pair[0]
    return None


def _by_descending_stride(lower: list[tuple[int, int, int]]) -> tuple[list[_Digit], int, int]:
    """The modes by descending stride, the largest absolute sum that they reach, and the gcd of their strides."""
    digits: list[_Digit] = []
    reach = common = 0
    for extent, stride, below in sorted(lower, key=lambda mode: abs(mode[1])):
        digits.append(_Digit(extent, stride, below, reach, common))
        reach += abs(stride) * (extent - 1)
        common = gcd(common, stride)
    return digits[::-1], reach, common


def _differences(target: int, digits: list[_Digit], steps: Iterator[int], place: int = 0) -> Iterator[tuple[int, int]]:
    """All pairs (i, j) of indices with image(j) - image(i) = target in which no mode has a nonzero digit in both."""
    if place == len(digits):
        if target == 0:
            yield 0, 0
        return
    mode = digits[place]
    for x in _candidate_digits(target, mode):
        _count_step(steps)
        for i, j in _differences(target - x * mode.stride, digits, steps, place + 1):
            yield i + max(-x, 0) * mode.below, j + max(x, 0) * mode.below


def _candidate_digits(target: int, mode: _Digit) -> range:
    """The digits x for which the later modes may reach the remainder target - x * stride."""
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


def _count_step(steps: Iterator[int]) -> None:
    if next(steps) >= _STEPS:
        raise UndecidedError
