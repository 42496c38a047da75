"""What values are to the softmax of their row (I23): maxima, what is measured from one, and sums of exponentials of it.

A record may stand as one of these, told by the sets of elements that the maxima are of; 0 is none. Sums and quotients
of exponentials want one reference, and a factor that moves a sum to another one starts from the sum's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from argus.interp.values.sets import MISSING, Sets

IntArray = npt.NDArray[np.int64]
Elements = frozenset[tuple[str, int]]
"""What a maximum is of: the elements' components, each with its name."""
Kind = Literal[
    "maximum", "gap", "drop", "weight", "factor", "inverse",
    "mean", "apart", "square", "less", "less2", "shift", "shift2", "squares", "moved", "uneven",
]  # fmt: skip
"""In the first line what stands in a softmax, in the second what stands to a mean (`statistics`)."""

NONE = 0
STATISTICS: frozenset[Kind] = frozenset(
    ("mean", "apart", "square", "less", "less2", "shift", "shift2", "squares", "moved", "uneven")
)


@frozen
class Standing:
    """`over`: the reference; of a drop or a factor `before` is the one that it starts from.

    scale: of what stands to a mean, the number that it has been multiplied by; None where that is not known. back: of
    the distance of two means, that of the second, where it differs.
    """

    kind: Kind
    over: Elements
    before: Elements = frozenset()
    scale: float | None = 1.0
    back: float | None = 1.0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the elements that it speaks of."""
        return tuple(sorted({name for name, _ in self.over | self.before}))


@define(eq=False)
class Standings:
    """Every standing so far, by number.

    doubtful: something was weighed in a way that scales do not follow. scaled: so was a sum, by a number.
    """

    doubtful: bool = False
    scaled: bool = False
    _known: dict[Standing, int] = field(factory=dict[Standing, int])
    _all: list[Standing] = field(factory=list[Standing])
    _in_softmax: list[bool] = field(factory=lambda: [False])
    _components: dict[int, dict[str, int]] = field(factory=dict[int, dict[str, int]])

    @property
    def any(self) -> bool:
        return bool(self._all)

    def of(self, number: int) -> Standing | None:
        return None if number <= NONE else self._all[number - 1]

    def number(self, standing: Standing | None) -> int:
        if standing is None:
            return NONE
        if standing not in self._known:
            self._all.append(standing)
            self._in_softmax.append(standing.kind not in STATISTICS)
            self._known[standing] = len(self._all)
        return self._known[standing]

    def but_statistics(self, numbers: IntArray) -> IntArray:
        """The same, where a value stands in a softmax."""
        kept = np.array(self._in_softmax, np.bool_)
        return np.where(kept[numbers], numbers, NONE)

    def components(self, sets: Sets, number: int) -> dict[str, int]:
        """`components` of what stands as this number, with the sets of these records: found once."""
        known = self._components.get(number)
        if known is None:
            known = self._components[number] = components(sets, self.of(number))
        return known

    def weights(self, numbers: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these stand as exponentials."""
        kinds = np.array([False, *(standing.kind == "weight" for standing in self._all)], np.bool_)
        return kinds[numbers]

    def mapped(self, name: str, one: IntArray) -> IntArray:
        """The standings after an operation of one operand."""
        numbers, back = np.unique(one, return_inverse=True)
        found = [self.number(_exponential(name, self.of(int(number)))) for number in numbers]
        return np.array(found, np.int64)[back].reshape(one.shape)

    def combined(self, name: str, one: IntArray, two: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """The standings after an operation of two, and where their references do not fit."""
        return self._pairwise(lambda a, b: _combined(name, a, b), one, two)

    def _pairwise(
        self, rule: Callable[[Standing | None, Standing | None], tuple[Standing | None, bool]], a: IntArray, b: IntArray
    ) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        first, back = kinds(a.ravel(), b.ravel())
        numbers = zip(a.ravel()[first].tolist(), b.ravel()[first].tolist(), strict=True)
        outcomes = [rule(self.of(one), self.of(two)) for one, two in numbers]
        found = np.array([self.number(standing) for standing, _ in outcomes], np.int64)
        bad = np.array([wrong for _, wrong in outcomes], np.bool_)
        return found[back].reshape(a.shape), bad[back].reshape(a.shape)


def kinds(*columns: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """A place of each combination of values that columns have beside each other, and which one each place has."""
    code = np.zeros(columns[0].shape, np.int64)
    for column in columns:
        if column.size and bool((column != column[0]).any()):
            values, which = np.unique(column, return_inverse=True)
            code = code * len(values) + which
    _, first, back = np.unique(code, return_index=True, return_inverse=True)
    return first, back.astype(np.int64)


def components(sets: Sets, standing: Standing | None) -> dict[str, int]:
    """The components of what stands to a mean in this way, of the names of its sets; none for what keeps its own."""
    if standing is None or standing.kind not in STATISTICS - {"apart", "square"}:
        return {}
    elements = standing.over | standing.before if standing.kind in ("shift", "shift2") else standing.over
    if standing.kind in ("less", "less2"):
        return dict.fromkeys(standing.names, MISSING)
    return {name: sets.of(each for own, each in elements if own == name) for name in standing.names}


def _exponential(name: str, one: Standing | None) -> Standing | None:
    if one is None or name not in ("exp", "exp2") or one.kind not in ("gap", "drop"):
        return None
    return Standing("weight" if one.kind == "gap" else "factor", one.over, one.before)


def _combined(name: str, one: Standing | None, two: Standing | None) -> tuple[Standing | None, bool]:
    both = (name, None if one is None else one.kind, None if two is None else two.kind)
    if one is None or two is None:
        return _with_any(both, one or two), False
    match both:
        case ("max", "maximum", "maximum"):
            return Standing("maximum", one.over | two.over), False
        case ("sub", "maximum", "maximum"):
            return Standing("drop", two.over, one.over), False
        case ("mul", "weight", "factor"):
            return Standing("weight", two.over), one.over != two.before
        case ("mul", "factor", "weight"):
            return Standing("weight", one.over), two.over != one.before
        case ("add", "weight", "weight"):
            return one, one.over != two.over
        case ("mul", "weight", "inverse") | ("mul", "inverse", "weight") | ("div", "weight", "weight"):
            return None, one.over != two.over
        case _:
            return None, False


def _with_any(both: tuple[str, Kind | None, Kind | None], known: Standing | None) -> Standing | None:
    """Of a value that stands for something and one that does not."""
    if known is None:
        return None
    match both:
        case ("sub", None, "maximum"):
            return Standing("gap", known.over)
        case ("mul", "weight", None) | ("mul", None, "weight"):
            return known
        case ("div", None, "weight"):
            return Standing("inverse", known.over)
        case _:
            return None
