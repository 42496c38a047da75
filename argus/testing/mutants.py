"""Classifies mutants of a kernel: refuted, unknown or proved; a proved mutant must be correct in every run.

A proof is checked independently of the verifier: the interpreter runs the mutant at small sizes under directed and
random schedules with tags, and its results are compared with float64 or with those of the original kernel.
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
from argus.interp.memory.loading import outputs
from argus.interp.run import Outcome, promised_integers, run_prepared
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import sizes_in_order
from argus.interp.violation import UnsatisfiedPromiseError
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session
from argus.testing.mutation import Mutant
from argus.verifier.claimed_formulas import claimed_outputs
from argus.verifier.kernel import first_unproved, verify
from argus.verifier.reference import Comparison, Contraction, claimed_contraction, compare, compare_with_claims

Array = npt.NDArray[Any]
Sizes = Mapping[str, int]
Fate = Literal["ill-formed", "refuted", "unknown", "unproved", "equivalent", "retold", "unchecked", "survived"]
"""refuted: by a replayed counterexample. unknown: neither proved nor refuted. unproved: no proof, and no search for a
counterexample. equivalent: proved, and all runs agree with the original. retold: proved, no claim fails in any run, and
results differ, as the verdict states other results than the original's. unchecked: proved, but the interpreter cannot
run it. survived: proved, but a run fails, or results differ though the verdict states the same ones: a bug of the
verifier."""

_CLOSE = {"float32": 2.0**-14}
_CLOSE_OTHERS = 4 * 2.0**-8
"""Tolerance between two runs, relative to the largest element: rounding of reordered sums, then to bf16."""


@frozen
class Thoroughness:
    """How much a proved mutant is run: number of sizes, random schedules per size, most runs with tags."""

    sizes: int = 12
    random: int = 8
    runs: int = 400


@frozen
class Judged:
    """A mutant's fate. code: the refuted invariant. why: the reason; empty for refuted and equivalent mutants."""

    fate: Fate
    code: str = ""
    why: str = ""
    runs: int = 0


@define(eq=False)
class Judge:
    """Judges the mutants of one kernel.

    solver, budget: as for `verify`. searches: whether to search for a counterexample if there is no proof.
    The original's stated results, and its outputs by sizes, are cached. Outputs with a claimed formula are compared
    with it, others with the claimed contraction or with the original.
    """

    original: Kernel
    budget: Budget = field(factory=lambda: Budget.about(2.0))
    thoroughness: Thoroughness = field(factory=Thoroughness)
    solver: str = "z3"
    searches: bool = True
    _claimed: Contraction | None = field(init=False)
    _results: tuple[str, ...] | None = field(default=None, init=False)
    _numbers: dict[tuple[int, ...], Mapping[str, Array]] = field(
        factory=dict[tuple[int, ...], Mapping[str, Array]], init=False
    )

    def __attrs_post_init__(self) -> None:
        self._claimed = claimed_contraction(self.original)

    def __call__(self, mutant: Mutant) -> Judged:
        faults = check(mutant.kernel)
        if faults:
            return Judged("ill-formed", faults[0].code, faults[0].message)
        if not self.searches:
            open_claim = first_unproved(mutant.kernel, Session(resolve(self.solver), self.budget, None))
            if open_claim is not None:
                return Judged("unproved", *open_claim)
        report = verify(mutant.kernel, solver=self.solver, budget=self.budget)
        match report.verdict:
            case Proved():
                return self.judge_proved(
                    mutant, same_results=not report.uncovered and report.verdict.results == self.original_results()
                )
            case Refuted(counterexample=found):
                return Judged("refuted", found.code)
            case _:
                return Judged("unknown", report.diagnostics[0].code, report.diagnostics[0].primary.text)

    def original_results(self) -> tuple[str, ...]:
        """The results that the original's verdict states for its outputs."""
        if self._results is None:
            verdict = verify(self.original, solver=self.solver).verdict
            self._results = verdict.results if isinstance(verdict, Proved) else ()
        return self._results

    def judge_proved(self, mutant: Mutant, *, same_results: bool) -> Judged:
        """The fate of a proved mutant. same_results: whether its verdict states the original's results."""
        prepared = Prepared(mutant.kernel)
        sizes = spread_sizes(self._runnable_sizes(sizes_in_order(mutant.kernel)), self.thoroughness.sizes)
        if not sizes:
            return Judged("unchecked", "E402", "no integers are known that satisfy the data contracts at any size")
        try:
            runs, failure = self._run_with_tags(prepared, sizes)
            if failure:
                return Judged("survived", "", failure, runs)
            more, difference = self._run_with_values(prepared, sizes)
        except ArgusError as problem:
            return Judged("unchecked", problem.diagnostic.code, problem.diagnostic.message)
        except ZeroDivisionError:
            return Judged("survived", "", "proved, but a run divides by zero")
        if not difference:
            return Judged("equivalent", runs=runs + more)
        return Judged("survived" if same_results else "retold", "", difference, runs + more)

    def _runnable_sizes(self, sizes: Iterable[Sizes]) -> list[Sizes]:
        """The sizes for which integer inputs are known that satisfy the original's data contracts."""

        def known(size: Sizes) -> bool:
            try:
                promised_integers(self.original, size, 7)
            except UnsatisfiedPromiseError:
                return False
            return True

        return [size for size in sizes if known(size)]

    def _run_with_tags(self, prepared: Prepared, sizes: Sequence[Sizes]) -> tuple[int, str]:
        """Run with tags: directed schedules spread over the sizes, random ones, then the remaining directed ones.

        Returns the number of runs, and the first failure or an empty string.
        """
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

    def _run_with_values(self, prepared: Prepared, sizes: Sequence[Sizes]) -> tuple[int, str]:
        """Run with values, and compare each run with what the original claims or computes.

        Integer inputs satisfy the original's data contracts, even if the mutant's are weaker.
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
        told: set[str] = set()
        for stated in claimed_outputs(self.original, outcome.arrays, size, 0):
            told.add(stated.output)
            made = outcome.arrays[stated.output][stated.rows].astype(np.float64)
            found = compare(made, stated.expected, stated.bound, f"the formula of `{stated.output}`")
            if not found.right:
                return f"{found.outside} numbers are not {found.with_what}"
        if told == {each.name for each in outputs(self.original)}:
            return ""
        claimed = self._claimed
        if claimed is not None:
            found = _as_claimed(claimed, outcome.arrays)
            if found.right:
                return ""
            # Operands rounded before they are multiplied have larger errors, but then so has the original.
            if _as_claimed(claimed, self._original(size)).right:
                return f"{found.outside} numbers are not {found.with_what}"
        for name, wanted in self._original(size).items():
            made = outcome.arrays[name].astype(np.float64)
            right = wanted.astype(np.float64)
            largest = float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right)))
            close = _CLOSE.get(wanted.dtype.name, _CLOSE_OTHERS) * largest
            found = compare(made, right, np.full(right.shape, close), "the original")
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
    return compare_with_claims(claimed, arrays, arrays[claimed.output.name], 0)


def spread_sizes(sizes: Sequence[Sizes], most: int) -> list[Sizes]:
    """At most `most` of the sizes: the smallest ones, and others spread up to the largest."""
    if len(sizes) <= most:
        return list(sizes)
    first = most // 2
    rest = sizes[first:]
    return [*sizes[:first], *rest[:: -(-len(rest) // (most - first))]]


def _diagonal(sizes: Sequence[Sizes], every: Sequence[Schedule], shift: int) -> list[tuple[Sizes, Schedule]]:
    return [(size, every[(place + shift) % len(every)]) for place, size in enumerate(sizes)]
