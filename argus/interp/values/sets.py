"""Tag components: an integer, or an interned multiset of the integers of all elements that a value was made of.

A set is *open* while elements are combined one by one, and *closed* if a reduction or a matrix instruction made it: an
element that is combined with a reduction over itself keeps its own integer, as in `x - mean`. It is *weighted* if its
elements may have other weights than 1, so that what it has twice may cancel; *mixed* if it contains values without the
name; and *padded* if it contains padding that is not neutral.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt
from attrs import define, field

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
How = Literal["sum", "difference", "extremum", "product"]
"""How two values are combined: a sum and a product count, an extremum does not."""

MISSING = int(np.iinfo(np.int64).min)
"""The component of a record without that name."""
UNTRACKED = MISSING + 1
"""A component that is not tracked, and therefore not checked."""
UNCOUNTED = MISSING + 2
"""The component of a reduction over elements that are not tracked."""
_FIRST = MISSING + 3
_LEAST = MISSING + (1 << 48)
_LARGEST = 1 << 22

OPEN, WEIGHTED, MIXED, PADDED = 1, 2, 4, 8
_Set = tuple[int, int, int]
"""Two bit sets, the members and those contained more than once, and the flags."""


def is_set(components: IntArray) -> BoolArray:
    """Which components are sets."""
    return (components >= _FIRST) & (components < _LEAST)


def is_single(components: IntArray) -> BoolArray:
    """Which components are integers."""
    return components >= _LEAST


def is_unknown(components: IntArray) -> BoolArray:
    """Which components are not tracked."""
    return (components == UNTRACKED) | (components == UNCOUNTED)


@define(eq=False)
class Sets:
    """All sets so far. Equal sets have equal numbers, which are below every integer that an expression takes."""

    _known: dict[_Set, int] = field(factory=dict[_Set, int])
    _all: list[_Set] = field(factory=list[_Set])
    _combined: dict[tuple[How, int, int], int] = field(factory=dict[tuple[How, int, int], int])

    def of(self, members: Iterable[int]) -> int:
        """The closed multiset of these integers; UNCOUNTED if one is negative or too large."""
        return self.reduced(members, "sum")

    def reduced(self, components: Iterable[int], how: How, flags: int = 0) -> int:
        """The closed multiset of a reduction of elements with these components; MISSING for none."""
        total: _Set = (0, 0, flags)
        for component in components:
            if component == MISSING:
                continue
            each = self._set(component)
            united = None if each is None else _union(total, each, how)
            if united is None:
                return UNTRACKED if component == UNTRACKED else UNCOUNTED
            total = united
        once, again, marked = total
        return self._intern((once, again, (marked | (WEIGHTED if how == "extremum" else 0)) & ~OPEN))

    def combined(self, how: How, one: int, two: int) -> int:
        """The component of two values combined element by element. Two integers of a product are equal."""
        if one == two and (one >= _LEAST or how == "extremum"):
            return one
        if MISSING in (one, two):
            return self._alone(how, max(one, two))
        key = (how, min(one, two), max(one, two))
        if key not in self._combined:
            self._combined[key] = self._of_both(how, one, two)
        return self._combined[key]

    def _alone(self, how: How, component: int) -> int:
        """The component of a value combined with one that does not have the name."""
        if how == "sum":
            return component
        complete = how == "extremum" and not self.is_own(component)
        return MISSING if complete else self.weighted(component)

    def _of_both(self, how: How, one: int, two: int) -> int:
        mine, theirs = self.is_own(one), self.is_own(two)
        left, right = self._set(one), self._set(two)
        if mine != theirs:
            apart = left is not None and right is not None and not left[0] & right[0]
            return UNTRACKED if apart and how != "product" else one if mine else two
        if left is None or right is None or (how == "product" and not mine):
            return UNTRACKED if mine else UNCOUNTED
        flags = OPEN if mine else 0
        made = _union(left, right, "extremum" if how == "product" else how)
        if made is None:
            return UNTRACKED if mine else UNCOUNTED
        return self._intern((made[0], made[1], made[2] | flags | (0 if how == "sum" else WEIGHTED)))

    def is_own(self, component: int) -> bool:
        """Whether it is of the element itself, and not of a reduction that the element was combined with."""
        return component >= _LEAST or component == UNTRACKED or self.has(component, OPEN)

    def weighted(self, component: int) -> int:
        """The component of a value times an unknown number: what it counts twice, it may count half each."""
        if component < _FIRST or component >= _LEAST:
            return component
        once, again, flags = self._all[component - _FIRST]
        if again:
            return UNTRACKED if flags & OPEN else UNCOUNTED
        return self._intern((once, 0, flags | WEIGHTED))

    def mixed(self, component: int) -> int:
        """The component of a sum of elements with these integers and of elements without the name."""
        found = self._set(component)
        return component if found is None else self._intern((found[0], found[1], found[2] | OPEN | MIXED))

    def has(self, component: int, flag: int) -> bool:
        """Whether a component has a flag."""
        return _FIRST <= component < _LEAST and bool(self._all[component - _FIRST][2] & flag)

    def _set(self, component: int) -> _Set | None:
        """A component as a set; None if unknown."""
        if component >= _LARGEST or _LEAST <= component < 0 or component in (UNTRACKED, UNCOUNTED):
            return None
        return (1 << component, 0, 0) if component >= 0 else self._all[component - _FIRST]

    def members(self, component: int) -> tuple[int, ...]:
        """The integers of a component, ascending; twice if they are contained more than once."""
        if component >= _LEAST:
            return (component,)
        once, again, _ = self._all[component - _FIRST]
        found: list[int] = []
        while once:
            lowest = once & -once
            found += [lowest.bit_length() - 1] * (2 if again & lowest else 1)
            once ^= lowest
        return tuple(found)

    def plain(self, component: int) -> int:
        """The component without flags that say how it was made; a set of one element is that element."""
        if not _FIRST <= component < _LEAST:
            return component
        once, again, flags = self._all[component - _FIRST]
        if not again and not flags & (MIXED | PADDED) and once & (once - 1) == 0:
            return once.bit_length() - 1
        return self._intern((once, again, flags & (MIXED | PADDED)))

    def is_range(self, component: int, low: int, high: int) -> bool:
        """Whether it is the set [low, high) without repetitions."""
        if component >= _LEAST:
            return (low, high) == (component, component + 1)
        once, again, flags = self._all[component - _FIRST]
        return not again and not flags & (MIXED | PADDED) and 0 <= low < high and once == (1 << high) - (1 << low)

    def text(self, component: int) -> str:
        """A component as text."""
        if component in (UNTRACKED, UNCOUNTED):
            return "(not tracked)"
        if component >= _LEAST:
            return str(component)
        found = self.members(component)
        more = [text for flag, text in ((MIXED, "nothing"), (PADDED, "padding")) if self.has(component, flag)]
        if not more and found == tuple(range(found[0], found[-1] + 1)):
            return f"{{{found[0]}}}" if len(found) == 1 else f"{{{found[0]}..{found[-1]}}}"
        return f"{{{', '.join([*map(str, found[:8]), *(['...'] if len(found) > 8 else []), *more])}}}"

    def _intern(self, made: _Set) -> int:
        if not made[0]:
            return MISSING
        found = self._known.get(made)
        if found is None:
            found = self._known[made] = len(self._all) + _FIRST
            self._all.append(made)
        return found


def _union(one: _Set, two: _Set, how: How) -> _Set | None:
    """The multiset union; None if both contain an element whose weights may cancel."""
    both, flags = one[0] & two[0], one[2] | two[2]
    if how == "extremum":
        return one[0] | two[0], 0, flags
    if both and (flags & WEIGHTED or how == "difference"):
        return None
    return one[0] | two[0], one[1] | two[1] | both, flags
