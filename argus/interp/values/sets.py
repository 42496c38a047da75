"""Interned sets of tag components: the set that a sum ranges over, represented by a number.

A component of a record is an integer or the number of a set, which is below every integer that an expression takes.
Equal sets have equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from attrs import define, field

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MISSING = int(np.iinfo(np.int64).min)
"""The component of a record without that name."""
UNTRACKED = MISSING + 1
"""A component that is not tracked, and therefore not checked."""
_FIRST = MISSING + 2
_LEAST = MISSING + (1 << 48)
_LARGEST = 1 << 22


def is_set(components: IntArray) -> BoolArray:
    """Which components are sets."""
    return (components >= _FIRST) & (components < _LEAST)


def is_single(components: IntArray) -> BoolArray:
    """Which components are integers."""
    return components >= _LEAST


@define(eq=False)
class Sets:
    """All sets so far, each as two bit sets: its members, and the members that it contains more than once."""

    _known: dict[tuple[int, int], int] = field(factory=dict[tuple[int, int], int])
    _all: list[tuple[int, int]] = field(factory=list[tuple[int, int]])
    _named: dict[tuple[str, int], frozenset[tuple[str, int]]] = field(
        factory=dict[tuple[str, int], frozenset[tuple[str, int]]]
    )

    def of(self, members: Iterable[int]) -> int:
        """The component of the multiset of these integers; UNTRACKED if one is negative or too large."""
        once, again = 0, 0
        for member in members:
            if not 0 <= member < _LARGEST:
                return UNTRACKED
            again |= once & 1 << member
            once |= 1 << member
        return self._intern(once, again)

    def union(self, components: Iterable[int]) -> int:
        """The multiset union of sets and integers: members of two of them are contained more than once."""
        once, again = 0, 0
        for component in components:
            if component == UNTRACKED or component >= _LARGEST or _LEAST <= component < 0:
                return UNTRACKED
            if component == MISSING:
                continue
            members, repeated = (1 << component, 0) if component >= 0 else self._all[component - _FIRST]
            again |= repeated | once & members
            once |= members
        return self._intern(once, again)

    def members(self, component: int) -> tuple[int, ...]:
        """The integers of a component, ascending; twice if they are contained more than once."""
        if component >= _LEAST:
            return (component,)
        once, again = self._all[component - _FIRST]
        found: list[int] = []
        while once:
            lowest = once & -once
            found += [lowest.bit_length() - 1] * (2 if again & lowest else 1)
            once ^= lowest
        return tuple(found)

    def named(self, name: str, component: int) -> frozenset[tuple[str, int]]:
        """The integers of a set, each paired with the name; empty if the set contains one more than once. Cached."""
        known = self._named.get((name, component))
        if known is None:
            once = not self._all[component - _FIRST][1]
            known = frozenset((name, each) for each in (self.members(component) if once else ()))
            self._named[name, component] = known
        return known

    def is_range(self, component: int, low: int, high: int) -> bool:
        """Whether it is the set [low, high) without repetitions."""
        if component >= _LEAST:
            return (low, high) == (component, component + 1)
        once, again = self._all[component - _FIRST]
        return not again and 0 <= low < high and once == (1 << high) - (1 << low)

    def text(self, component: int) -> str:
        """A component as text."""
        if component == UNTRACKED:
            return "(not tracked)"
        if component >= _LEAST:
            return str(component)
        found = self.members(component)
        if found == tuple(range(found[0], found[-1] + 1)):
            return f"{{{found[0]}}}" if len(found) == 1 else f"{{{found[0]}..{found[-1]}}}"
        return f"{{{', '.join(map(str, found[:8]))}{', ...' if len(found) > 8 else ''}}}"

    def _intern(self, once: int, again: int) -> int:
        if not once:
            return MISSING
        found = self._known.get((once, again))
        if found is None:
            found = self._known[once, again] = len(self._all) + _FIRST
            self._all.append((once, again))
        return found
