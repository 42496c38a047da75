"""Which input elements a value of a run depends on, and how much, against what a formula depends on.

Both are differentiated numerically along a random direction over a group of elements of one tensor. A group on which
the two disagree is halved, unless it behaves as one: the run does not depend on it at all, or it depends on all of it
by the same factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from math import inf, isclose, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
Evaluate = Callable[[Mapping[str, Array]], float]
"""A value as a function of the contents of all tensors, by name."""
_STEP = 2.0**-12
_CLOSE = 1e-5
_TRIED = 512
"""Groups of which it is asked whether a formula depends on them."""
_NOTHING = 1e-9
"""A derivative that rounding explains, relative to the value."""


@frozen
class Counted:
    """Elements of a tensor that count `ratio` times as much in the run as in the formula.

    ratio: 0 if only the formula depends on them, inf if only the run does. elements: in row-major order.
    """

    tensor: str
    elements: tuple[tuple[int, ...], ...]
    ratio: float


@frozen
class Influence:
    """Where a run and a formula differ. agrees: whether some elements count as in the formula. complete: whether every
    element was looked at.
    """

    counted: tuple[Counted, ...]
    agrees: bool
    complete: bool


def influence(
    run: Evaluate, formula: Evaluate, tensors: Mapping[str, Array], varied: Sequence[str], limit: int
) -> Influence | None:
    """The elements of the `varied` tensors that count otherwise in the run; None if a value is no number.

    tensors: the contents around which both are differentiated. limit: the number of runs.
    """
    if not isfinite(run(tensors)) or not isfinite(formula(tensors)):
        return None
    search = _Search(run, formula, tensors, limit - 1)
    found = [part for name in varied for part in search.differences(name)]
    shapes = {name: tensors[name].shape for name in varied}
    return Influence(tuple(_joined(found, shapes)), search.agrees, search.complete)


@define(eq=False)
class _Search:
    run: Evaluate
    formula: Evaluate
    tensors: Mapping[str, Array]
    left: int
    agrees: bool = False
    complete: bool = True
    random: np.random.Generator = field(factory=lambda: np.random.default_rng(0))

    def differences(self, tensor: str) -> Iterator[tuple[str, IntArray, float]]:
        """Groups of elements (as places in the flattened tensor) that count otherwise, each with its ratio."""
        pending: list[IntArray] = [np.arange(self.tensors[tensor].size)]
        while pending:
            group = pending.pop()
            if group.size == 0:
                continue
            if self.left < 4:
                self.complete = False
                return
            one = self._derivatives(tensor, group)
            if not all(map(isfinite, one)):
                self.complete = False
                return
            if _same(*one):
                self.agrees |= one[0] != 0
                continue
            two = one if group.size == 1 else self._derivatives(tensor, group)
            ratios = [_ratio(*one), _ratio(*two)]
            alike = ratios[0] == ratios[1] or isclose(ratios[0], ratios[1], rel_tol=10 * _CLOSE)
            if alike and (group.size == 1 or isfinite(ratios[0])):
                yield tensor, group if ratios[0] == inf else self._read(tensor, group), ratios[0]
            else:
                middle = group.size // 2
                pending += [group[middle:], group[:middle]]

    def _read(self, tensor: str, group: IntArray) -> IntArray:
        """The elements of a group that the formula depends on; all of them if there are too many to try."""
        pending, found = [group], list[int]()
        for _ in range(_TRIED):
            if not pending:
                return np.array(found, np.int64)
            part = pending.pop()
            if self._slope(self.formula, tensor, part, self._direction(part)) == 0:
                continue
            if part.size == 1:
                found.append(int(part[0]))
            else:
                pending += [part[part.size // 2 :], part[: part.size // 2]]
        return group

    def _derivatives(self, tensor: str, group: IntArray) -> tuple[float, float]:
        """The derivatives of run and formula along a random direction over the group."""
        self.left -= 2
        along = self._direction(group)
        return self._slope(self.run, tensor, group, along), self._slope(self.formula, tensor, group, along)

    def _direction(self, group: IntArray) -> npt.NDArray[np.float64]:
        return self.random.uniform(0.5, 1.0, group.size) * self.random.choice((-1.0, 1.0), group.size)

    def _slope(self, of: Evaluate, tensor: str, group: IntArray, along: npt.NDArray[np.float64]) -> float:
        """The derivative along a direction; 0 for what rounding explains."""
        ends = [of({**self.tensors, tensor: self._moved(tensor, group, s * along)}) for s in (_STEP, -_STEP)]
        slope = (ends[0] - ends[1]) / (2 * _STEP)
        return 0.0 if abs(slope) <= _NOTHING * max(1.0, *map(abs, ends)) else slope

    def _moved(self, tensor: str, group: IntArray, by: npt.NDArray[np.float64]) -> Array:
        moved = self.tensors[tensor].astype(np.float64).reshape(-1)
        moved[group] += by
        return moved.reshape(self.tensors[tensor].shape)


def _same(run: float, formula: float) -> bool:
    return isclose(run, formula, rel_tol=_CLOSE)


def _ratio(run: float, formula: float) -> float:
    if formula == 0:
        return 1.0 if run == 0 else inf
    return run / formula


def _joined(found: Sequence[tuple[str, IntArray, float]], shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Counted]:
    """Groups of one tensor with the same ratio as one."""

    def key(part: tuple[str, IntArray, float]) -> tuple[str, float]:
        return part[0], part[2] if part[2] in (0.0, inf) else float(f"{part[2]:.4g}")

    for (tensor, ratio), parts in groupby(sorted(found, key=key), key):
        places = np.sort(np.concatenate([part[1] for part in parts]))
        at = (
            np.stack(np.unravel_index(places, shapes[tensor]), axis=1) if shapes[tensor] else np.zeros((1, 0), np.int64)
        )
        yield Counted(tensor, tuple(tuple(map(int, place)) for place in at), ratio)
