"""What a meaning says of a protocol: it holds, it fails, or the question is beyond this meaning."""

from __future__ import annotations

from typing import NoReturn

from attrs import frozen


@frozen
class _Outcome:
    def __bool__(self) -> NoReturn:
        raise TypeError(f"an outcome is not a bool: match on Holds, Fails, Unknown (this is {self})")


@frozen
class Holds(_Outcome):
    """No read is torn, stale or overwritten, no arrival is one too many, nobody waits for ever.

    scope: for which sizes, in words; only the machine's is bounded.
    """

    scope: str

    __bool__ = _Outcome.__bool__


@frozen
class Size:
    """What a counterexample runs: uses a tile (the nominal trip count) and tiles."""

    trips: int
    tiles: int

    @property
    def uses(self) -> int:
        return self.trips * self.tiles


@frozen
class Fails(_Outcome):
    """claim: what does not hold, by name. what: in words.

    size and schedule: a run that shows it, the schedule as actor names, replayed by `search.replay`. cycle: who
    waits for whom, closed. model: an assignment that violates the claim, by name of the symbol.
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
    """Out of the meaning's scope, or of its budget."""

    reason: str

    __bool__ = _Outcome.__bool__


Outcome = Holds | Fails | Unknown
