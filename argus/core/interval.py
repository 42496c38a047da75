"""Interval arithmetic on integers: `(low, high)`, inclusive, None for unbounded; every result is an enclosure."""

from __future__ import annotations

from argus.core.index import BinOp, Range

ANY: Range = (None, None)


def add(a: Range, b: Range) -> Range:
    """The interval of `x + y` for x in a, y in b."""
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return low, high


def scale(a: Range, factor: int) -> Range:
    """The interval of `factor * x` for x in a."""
    if factor == 0:
        return 0, 0
    low = None if a[0] is None else a[0] * factor
    high = None if a[1] is None else a[1] * factor
    return (low, high) if factor > 0 else (high, low)


def hull(a: Range, b: Range) -> Range:
    """The smallest interval that contains both."""
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return low, high


def within(a: Range, low: int, high: int) -> bool:
    """Whether every value lies in `[low, high]`."""
    return a[0] is not None and a[1] is not None and low <= a[0] and a[1] <= high


def _multiply(a: Range, b: Range) -> Range:
    if None not in a and None not in b:
        corners = [x * y for x in a for y in b if x is not None and y is not None]
        return min(corners), max(corners)
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        high = a[1] * b[1] if a[1] is not None and b[1] is not None else None
        return a[0] * b[0], high
    return ANY


def _floordiv(a: Range, b: Range) -> Range:
    if b[0] is None or b[0] <= 0:
        return ANY
    if b[0] == b[1]:
        low = None if a[0] is None else a[0] // b[0]
        return low, None if a[1] is None else a[1] // b[0]
    low = 0 if a[0] is not None and a[0] >= 0 else None
    return low, None if a[1] is None or a[1] < 0 else a[1] // b[0]


def _mod(a: Range, b: Range) -> Range:
    if b[0] is None or b[0] <= 0:
        return ANY
    high = None if b[1] is None else b[1] - 1
    if a[0] is not None and a[0] >= 0 and a[1] is not None:
        high = a[1] if high is None else min(high, a[1])
    return 0, high


def _bounded_by_bits(a: Range, b: Range) -> Range:
    """`|` and `^` of non-negative numbers stay below the next power of two."""
    if a[0] is None or b[0] is None or a[0] < 0 or b[0] < 0:
        return ANY
    if a[1] is None or b[1] is None:
        return 0, None
    return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1


def of_bin(op: BinOp, a: Range, b: Range) -> Range:
    """An enclosure of `x op y` for x in a, y in b."""
    match op:
        case "*":
            return _multiply(a, b)
        case "//":
            return _floordiv(a, b)
        case "%":
            return _mod(a, b)
        case "min":
            highs = [h for h in (a[1], b[1]) if h is not None]
            low = None if a[0] is None or b[0] is None else min(a[0], b[0])
            return low, min(highs) if highs else None
        case "max":
            lows = [x for x in (a[0], b[0]) if x is not None]
            high = None if a[1] is None or b[1] is None else max(a[1], b[1])
            return max(lows) if lows else None, high
        case "&":
            known = [h for low, h in (a, b) if low is not None and low >= 0 and h is not None]
            nonnegative = any(low is not None and low >= 0 for low, _ in (a, b))
            return (0 if nonnegative else None), (min(known) if known else None)
        case "|" | "^":
            return _bounded_by_bits(a, b)
        case "<<" | ">>":
            return ANY
