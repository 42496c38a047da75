"""The result of checking a protocol: it holds, it fails, or it is out of scope."""

from __future__ import annotations

from typing import NoReturn

from attrs import frozen


@frozen
class _Outcome:
    def __bool__(self) -> NoReturn:
        raise TypeError(f"an outcome is not a bool: match on Holds, Fails, Unknown (this is {self})")


@frozen
class Holds(_Outcome):
    """No read is torn, stale or overwritten, no barrier gets too many arrivals, and there is no deadlock.

    scope: the checked sizes, as text; only explicit-state search is bounded.
    """

    scope: str

    __bool__ = _Outcome.__bool__


@frozen
class Size:
    """The size of a counterexample: uses per tile (the nominal trip count) and tiles."""

    trips: int
    tiles: int

    @property
    def uses(self) -> int:
        return self.trips * self.tiles


@frozen
class Fails(_Outcome):
    """A failure. claim: the violated claim's name. what: the failure as a sentence.

    size and schedule: a run that shows it, with the schedule as actor names, replayed by `search.replay`. cycle: the
    events of a cyclic wait. model: an assignment that violates the claim, by symbol name.
    """

    claim: str
    what: str
    size: Size | None = None
    schedule: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()
    model: tuple[tuple[str, int], ...] = ()

    __bool__ = _Outcome.__bool__


@frozen
class Unknown(_Outcome):
    """The protocol is out of scope, or the budget is exhausted."""

    reason: str

    __bool__ = _Outcome.__bool__


Outcome = Holds | Fails | Unknown
