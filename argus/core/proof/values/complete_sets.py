"""The sets of complete collections, also of those on which a value depends in some cases alone.

Outside its cases, such a set is one of those that are there anyway: what is asked of both is asked of one set whose
numbers are those of the first where its conditions hold, and of the second elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argus.core import algebra
from argus.core.index import Index
from argus.core.proof.values.named_parts import Closed


def complete_sets(
    of: Sequence[Closed], numbers: Callable[[Closed], Index | None]
) -> tuple[tuple[str, Index | None], ...]:
    """The sets under their names. numbers: c(x) of one collection where it is there."""
    sets = [numbers(each) for each in of]
    return tuple((each.name, _everywhere(each, own, of, sets)) for each, own in zip(of, sets, strict=True))


def _everywhere(one: Closed, own: Index | None, among: Sequence[Closed], sets: Sequence[Index | None]) -> Index | None:
    rest = next((each for other, each in zip(among, sets, strict=True) if _is_elsewhere(other, one)), None)
    return own if rest is None or own is None else algebra.pick(algebra.all_of(one.given), own, rest)


def _is_elsewhere(other: Closed, one: Closed) -> bool:
    """Whether a collection under the same name is there wherever another one is not."""
    if not one.given or other.name != one.name:
        return False
    return not other.given or other.given == (algebra.negate(algebra.all_of(one.given)),)
