"""What becomes of mutants: each is refuted, left open, or proved; one that is proved must be right in every run.

The judge of a proof is not the prover: it is the interpreter, which runs the mutant at small sizes under directed and
random schedules with tags, and its numbers, which are compared with float64 or with those of the original kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from argus.core.check import check
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import Outcome, promised_integers, run_prepared
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import sizes_in_order
from argus.interp.violation import UnsatisfiedPromiseError
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session
from argus.testing.mutation import Mutant
from argus.verifier.kernel import unproved, verify
from argus.verifier.reference import Comparison, Contraction, compared, compared_with_claims, contraction

Array = npt.NDArray[Any]
Sizes = Mapping[str, int]
Fate = Literal["ill-formed", "refuted", "unknown", "unproved", "equivalent", "retold", "unchecked", "survived"]
"""refuted: by a replayed counterexample. unknown: neither proved nor refuted. unproved: no proof, and
no counterexample was looked for. equivalent: proved, and no run differs.
retold: proved, no claim fails in any run, numbers differ, and the verdict says so: it tells another result than that of
the original. unchecked: proved, and the interpreter cannot run it. survived: proved, and a run fails, or numbers differ
where the verdict tells the same: a fault of the verifier."""

_CLOSE = {"float32": 2.0**-14}
_CLOSE_OTHERS = 4 * 2.0**-8
"""How far numbers of two runs may differ, of the largest: roundings of sums in another order, then to bf16."""


@frozen
class Thoroughness:
    """How much a proved mutant is run: sizes, random schedules at each, and runs with tags at most."""

    sizes: int = 12
    random: int = 8
    runs: int = 400


@frozen
class Judged:
    """A mutant's fate. code: of the invariant refuted. why: in words, for all but the refuted and equivalent."""

    fate: Fate
    code: str = ""
    why: str = ""
    runs: int = 0


@define(eq=False)
class Judge:
    """Judges the mutants of one kernel.

    solver, budget: of `verify`. searches: whether counterexamples are looked for where there is no proof.
    What the original is told to compute, and its numbers by sizes, are kept.
    """

    original: Kernel
    budget: Budget = field(factory=lambda: Budget.about(2.0))
    thoroughness: Thoroughness = field(factory=Thoroughness)
    solver: str = "z3"
    searches: bool = True
    _claimed: Contraction | None = field(init=False)
    _told: tuple[str, ...] | None = field(default=None, init=False)
    _numbers: dict[tuple[int, ...], Mapping[str, Array]] = field(
        factory=dict[tuple[int, ...], Mapping[str, Array]], init=False
    )

    def __attrs_post_init__(self) -> None:
        self._claimed = contraction(self.original)

    def __call__(self, mutant: Mutant) -> Judged:
        faults = check(mutant.kernel)
        if faults:
            return Judged("ill-formed", faults[0].code, faults[0].message)
        if not self.searches:
            open_claim = unproved(mutant.kernel, Session(resolve(self.solver), self.budget, None))
            if open_claim is not None:
                return Judged("unproved", *open_claim)
        report = verify(mutant.kernel, solver=self.solver, budget=self.budget)
        match report.verdict:
            case Proved():
                return self.of_proved(mutant, stated=not report.uncovered and report.verdict.results == self.told())
            case Refuted(counterexample=found):
                return Judged("refuted", found.code)
            case _:
                return Judged("unknown", report.diagnostics[0].code, report.diagnostics[0].primary.text)

    def told(self) -> tuple[str, ...]:
        """What the verdict of the original says that its outputs hold."""
        if self._told is None:
            verdict = verify(self.original, solver=self.solver).verdict
            self._told = verdict.results if isinstance(verdict, Proved) else ()
        return self._told

    def of_proved(self, mutant: Mutant, *, stated: bool) -> Judged:
        """The fate of a mutant that is taken for proved. stated: whether its verdict tells what the original's does."""
        prepared = Prepared(mutant.kernel)
        sizes = spaced(self._kept(sizes_in_order(mutant.kernel)), self.thoroughness.sizes)
        if not sizes:
            return Judged("unchecked", "E402", "no integers are known that keep what is promised at any size")
        try:
            runs, failure = self._tagged(prepared, sizes)
            if failure:
                return Judged("survived", "", failure, runs)
            more, difference = self._valued(prepared, sizes)
        except ArgusError as problem:
            return Judged("unchecked", problem.diagnostic.code, problem.diagnostic.message)
        except ZeroDivisionError:
            return Judged("survived", "", "proved, but a run divides by zero")
        if not difference:
            return Judged("equivalent", runs=runs + more)
        return Judged("survived" if stated else "retold", "", difference, runs + more)

    def _kept(self, sizes: Iterable[Sizes]) -> list[Sizes]:
        """Sizes for which integers are known that keep what the original is promised of them."""

        def known(size: Sizes) -> bool:
            try:
                promised_integers(self.original, size, 7)
            except UnsatisfiedPromiseError:
                return False
            return True

        return [size for size in sizes if known(size)]

    def _tagged(self, prepared: Prepared, sizes: Sequence[Sizes]) -> tuple[int, str]:
        """Runs with tags: directed schedules in turn over the sizes, all of them in the end, then random ones."""
        every = directed(prepared.kernel)
        drawn = [Schedule("mixed", seed) for seed in range(self.thoroughness.random)]
        apart = [(size, each) for shift in range(len(every)) for size, each in _diagonal(sizes, every, shift)]
        planned = [
            *islice(apart, len(sizes)),
            *((size, each) for size in sizes for each in drawn),
            *apart[len(sizes) :],
        ]
        made = planned[: self.thoroughness.runs]
        for done, (size, schedule) in enumerate(made):
            outcome = run_prepared(prepared, size, None, schedule, tags=True, values=False)
            if outcome.violations:
                first = outcome.violations[0]
                where = f"at {dict(size)} under {schedule}"
                return done + 1, f"proved, but {first.code} {first.message} ({first.stmt.span}) {where}"
        return len(made), ""

    def _valued(self, prepared: Prepared, sizes: Sequence[Sizes]) -> tuple[int, str]:
        """Runs with numbers, each compared with what the original claims or computes.

        Integers are those that the original is promised, also where a mutant is promised less of them.
        """
        schedules = cycle((Schedule("mixed", 3), Schedule("early", 0, "lowest"), Schedule("late", 0, "highest")))
        for done, (size, schedule) in enumerate(zip(sizes, schedules, strict=False)):
            given = promised_integers(self.original, size, 7)
            outcome = run_prepared(prepared, size, given, schedule, tags=False, values=True, seed=7)
            difference = self._difference(size, outcome)
            if difference:
                return done + 1, f"{difference} at {dict(size)} under {schedule}"
        return len(sizes), ""

    def _difference(self, size: Sizes, outcome: Outcome) -> str:
        claimed = self._claimed
        if claimed is not None:
            found = _as_claimed(claimed, outcome.arrays)
            if found.right:
                return ""
            # Operands that are rounded before they are multiplied stray further: then the original does so too.
            if _as_claimed(claimed, self._original(size)).right:
                return f"{found.outside} numbers are not {found.with_what}"
        for name, wanted in self._original(size).items():
            made = outcome.arrays[name].astype(np.float64)
            right = wanted.astype(np.float64)
            largest = float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right)))
            close = _CLOSE.get(wanted.dtype.name, _CLOSE_OTHERS) * largest
            found = compared(made, right, np.full(right.shape, close), "the original")
            if not found.right:
                return f"{found.outside} numbers of `{name}` are not those of the original"
        return ""

    def _original(self, size: Sizes) -> Mapping[str, Array]:
        key = tuple(size.values())
        if key not in self._numbers:
            plain = Schedule("early", 0, "lowest")
            given = promised_integers(self.original, size, 7)
            outcome = run_prepared(Prepared(self.original), size, given, plain, tags=False, values=True, seed=7)
            self._numbers[key] = outcome.arrays
        return self._numbers[key]


def _as_claimed(claimed: Contraction, arrays: Mapping[str, Array]) -> Comparison:
    return compared_with_claims(claimed, arrays, arrays[claimed.output.name], 0)


def spaced(sizes: Sequence[Sizes], most: int) -> list[Sizes]:
    """The smallest sizes, and others up to the largest."""
    if len(sizes) <= most:
        return list(sizes)
    first = most // 2
    rest = sizes[first:]
    return [*sizes[:first], *rest[:: -(-len(rest) // (most - first))]]


def _diagonal(sizes: Sequence[Sizes], every: Sequence[Schedule], shift: int) -> list[tuple[Sizes, Schedule]]:
    return [(size, every[(place + shift) % len(every)]) for place, size in enumerate(sizes)]
