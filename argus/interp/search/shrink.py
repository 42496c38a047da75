"""Shrinks the sizes of a counterexample: a local minimum at which the same statement violates the same invariant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import define, evolve, field, frozen

from argus.core.diagnostic import ArgusError
from argus.core.index import Cond, Symbol
from argus.core.walk import IntArray, evaluate
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.budget import RunBudget
from argus.interp.search.diagnosis import Witness
from argus.interp.search.schedule import Schedule
from argus.interp.search.search import assumed
from argus.interp.violation import Violation

RUNS = 16
"""The largest number of runs at smaller sizes."""

_WINDOW = 1 << 12
"""The number of consecutive values of one size to scan for an admissible one."""

Sizes = Mapping[str, int]


@frozen
class Shrunk:
    """sizes: the smallest found. smallest: no single size can be reduced by one admissible step and still fail."""

    sizes: dict[str, int]
    smallest: bool


def shrink(prepared: Prepared, witness: Witness, budget: RunBudget) -> tuple[Witness, bool]:
    """The witness at locally minimal sizes, and whether their minimality was established."""
    kernel, raw = prepared.kernel, witness.raw or witness.violation
    found: dict[tuple[int, ...], Violation] = {}

    def fails(sizes: Sizes) -> bool | None:
        if len(tried) >= RUNS or not budget.spend():
            return None
        tried.append(sizes)
        same = [v for v in _violations(prepared, sizes, witness.schedule) if v.code == raw.code and v.stmt is raw.stmt]
        if same:
            found[tuple(sizes.values())] = same[0]
        return bool(same)

    tried: list[Sizes] = []
    start = {symbol.name: witness.sizes[symbol.name] for symbol in kernel.sizes}
    shrunk = descend(kernel.sizes, assumed(kernel), start, fails)
    violation = found.get(tuple(shrunk.sizes.values()))
    if violation is None:
        return witness, shrunk.smallest
    reported = violation if witness.at_cause is None else witness.at_cause(violation)
    return evolve(witness, sizes=shrunk.sizes, violation=reported, raw=violation), shrunk.smallest


def _violations(prepared: Prepared, sizes: Sizes, schedule: Schedule) -> tuple[Violation, ...]:
    try:
        return find_violations(prepared, sizes, schedule)
    except (ArgusError, ZeroDivisionError):
        return ()


def descend(symbols: Sequence[Symbol], assumption: Cond, start: Sizes, fails: Callable[[Sizes], bool | None]) -> Shrunk:
    """Coordinate descent from failing sizes to smaller ones, until no single size can be reduced by one step.

    fails: called for sizes that satisfy the assumption; None means unknown and ends the search. Each size is tried at
    its least value (1 or more), then one step down; only if that fails is the range between bisected.
    """
    descent = _Descent(tuple(symbols), assumption, dict(start), fails)
    while descent.round():
        pass
    return Shrunk(descent.sizes, not descent.stopped)


@define(eq=False)
class _Descent:
    symbols: tuple[Symbol, ...]
    assumption: Cond
    sizes: dict[str, int]
    fails: Callable[[Sizes], bool | None]
    stopped: bool = False
    _known: dict[tuple[int, ...], bool] = field(factory=dict[tuple[int, ...], bool])

    def round(self) -> bool:
        """Try to reduce each size once; returns whether some size was reduced and the search goes on."""
        before = dict(self.sizes)
        for symbol in self.symbols:
            self._lower(symbol)
        return not self.stopped and self.sizes != before

    def _lower(self, symbol: Symbol) -> None:
        now = self.sizes[symbol.name]
        least = self._admissible(symbol, max(1, symbol.low or 0), now)
        if not least.size or self._try(symbol, int(least[0])):
            return
        last = self._admissible(symbol, max(int(least[0]), now - _WINDOW), now)
        if last.size and self._try(symbol, int(last[-1])):
            self._between(symbol, int(least[0]), int(last[-1]))

    def _between(self, symbol: Symbol, low: int, high: int) -> None:
        """Bisect between a value that does not fail and one that does."""
        while high - low > 1 and not self.stopped:
            middle = (low + high) // 2
            admissible = self._admissible(symbol, middle, high)
            if not admissible.size:
                high = middle
            elif self._try(symbol, int(admissible[0])):
                high = int(admissible[0])
            else:
                low = int(admissible[0])

    def _admissible(self, symbol: Symbol, start: int, stop: int) -> IntArray:
        """The admissible values in [start, stop) of this size for the current other sizes, within one window."""
        values = np.arange(start, min(stop, start + _WINDOW), dtype=np.int64)
        env = {other: self.sizes[other.name] for other in self.symbols} | {symbol: values}
        try:
            allowed = np.broadcast_to(np.asarray(evaluate(self.assumption, env)), values.shape)
        except ZeroDivisionError:
            return values[:0]
        return values[allowed.astype(np.bool_)]

    def _try(self, symbol: Symbol, value: int) -> bool:
        """Reduce a size to a value if that fails too; returns whether it does."""
        sizes = self.sizes | {symbol.name: value}
        key = tuple(sizes.values())
        if key not in self._known and not self.stopped:
            answer = self.fails(sizes)
            self.stopped |= answer is None
            self._known[key] = bool(answer)
        if self._known.get(key, False):
            self.sizes = sizes
            return True
        return False
