"""Refutes one launch of a program by a run of the whole program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from attrs import evolve, frozen

from argus.core.check.reads import written_tensors
from argus.core.diagnostic import ArgusError
from argus.core.ir import Assert, Buffer, Copy, Equals, Launch, Program, Stmt, program_claims, walk
from argus.core.proof.obligation import INVARIANT_PRIORITY, Obligation
from argus.core.proof.outputs.launch_context import LaunchContext
from argus.core.proof.values.held.deciding import deciding
from argus.core.query import Budget
from argus.interp.programs import run_program
from argus.interp.search.budget import RunBudget
from argus.interp.search.diagnosis import Witness
from argus.interp.search.schedule import Schedule, directed, rounding
from argus.interp.search.search import assumed, sizes_in_order, work
from argus.interp.search.shrink import RUNS, descend
from argus.interp.violation import UnsatisfiedPromiseError, Violation
from argus.verifier.formula_diagnosis import diagnose_program
from argus.verifier.refute import Refutation, RunEvidence, Suspect, is_static, refutation_of_run, static_fault
from argus.verifier.refute_rounding import (
    EVIDENCE,
    MOST_SIZES,
    asks_for_rounding,
    budget_of_rounding,
    is_of_formula,
)

Sizes = Mapping[str, int]
_GARBAGE = frozenset(("I38",))
_OF_PARTS = frozenset(("I2", "I3", "I4", "I38"))
"""The invariants that a run violates when slices overlap, are incomplete, or start from uninitialised memory."""


@frozen(eq=False)
class ProgramLaunch:
    """A launch of a program: its number, and all launches over the program's sizes."""

    program: Program
    number: int
    launches: tuple[LaunchContext, ...]

    @property
    def claims(self) -> tuple[tuple[Assert, Equals], ...]:
        """The program's claims about tensors that this launch is the last to write."""
        found = program_claims(self.program)
        later = {each for launch in self.launches[self.number + 1 :] for each in _written(launch)}
        return tuple(pair for pair in found if pair[1].view.buffer in _written(self.own) - later)

    @property
    def own(self) -> LaunchContext:
        return self.launches[self.number]


def _written(launch: LaunchContext) -> frozenset[Buffer]:
    """The program's tensors that a launch writes."""
    return frozenset(launch.arguments[buffer] for buffer in written_tensors(launch.kernel))


def refute_launch(site: ProgramLaunch, suspects: Sequence[Suspect], budget: Budget) -> Refutation | None:
    """Show one of the launch's suspected faults on the program's tensors; None if no run within the budget does.

    budget: limits the number of runs.
    """
    left = RunBudget.of(budget)
    for suspect in suspects:
        if suspect.sizes is not None and is_static(suspect.obligation):
            return static_fault(site.own.kernel, suspect)
    try:
        witness = _search(site, suspects, left) or _search_rounded(site, suspects, budget)
        if witness is None:
            return None
        witness, smallest = _shrink(site, witness, left, split=_slice_symptoms(suspects))
    except ArgusError as problem:
        if problem.diagnostic.code != "E501":
            raise
        return None
    except (ZeroDivisionError, RecursionError):
        return None
    obligations = [suspect.obligation for suspect in suspects]
    explained = evolve(witness.violation, code=_code(witness.violation, suspects), related=_cause(witness, suspects))
    rounded = witness.schedule.rounds
    evidence = EVIDENCE if rounded else RunEvidence(differs=diagnose_program(site.program, witness))
    return refutation_of_run(site.own.kernel, evolve(witness, violation=explained), smallest, obligations, evidence)


def _code(violation: Violation, suspects: Sequence[Suspect]) -> str:
    """The invariant to report: I34 where the violation is a symptom of slices that are not proved correct, or is of an
    assertion about a sum that earlier launches computed in parts.
    """
    if violation.code == "I38" and not _is_global_copy(violation.stmt):
        return violation.code
    asked = {suspect.obligation.stmt.span for suspect in suspects if suspect.obligation.invariant == "I34"}
    of_parts = violation.code == "I3" and violation.stmt.span in asked
    return "I34" if of_parts or violation.code in _slice_symptoms(suspects) else violation.code


def _is_global_copy(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and "global" in (stmt.source.buffer.space, stmt.target.buffer.space)


def _cause(witness: Witness, suspects: Sequence[Suspect]) -> tuple[tuple[Stmt, str], ...]:
    """The violation's related statements, with the first violated slice obligation at another statement, if any."""
    slice_obligations = [suspect.obligation for suspect in suspects if suspect.obligation.invariant == "I34"]
    if isinstance(witness.violation.stmt, Assert) and len(slice_obligations) == len(
        _at_other_statements(witness, slice_obligations)
    ):
        return witness.violation.related  # the diagnostic already starts at the first of them
    explained = tuple(
        (each.stmt, f"not so: {each.what}") for each in _at_other_statements(witness, slice_obligations)[:1]
    )
    return (*witness.violation.related, *explained)


def _at_other_statements(witness: Witness, slice_obligations: Sequence[Obligation]) -> list[Obligation]:
    return [each for each in slice_obligations if each.stmt.span != witness.violation.stmt.span]


def _slice_symptoms(suspects: Sequence[Suspect]) -> frozenset[str]:
    """The invariants that incorrect slices may violate: reads of uninitialised memory, and wrong sums where a solver
    found the slices to be violated.
    """
    slice_obligations = [suspect for suspect in suspects if suspect.obligation.invariant == "I34"]
    failing = any(suspect.sizes is not None for suspect in slice_obligations)
    return frozenset(_OF_PARTS if failing else _GARBAGE if slice_obligations else ())


def _search(site: ProgramLaunch, suspects: Sequence[Suspect], budget: RunBudget) -> Witness | None:
    sizes = list(_sizes(site, suspects)) if budget.left > 0 else []
    split = _slice_symptoms(suspects)
    for schedule in directed(site.program.launches[site.number].kernel, compares=bool(site.claims)):
        for size in sizes:
            if not budget.spend():
                return None
            found = _violations(site, size, schedule, split=split)
            if found:
                return Witness(size, schedule, min(found, key=lambda v: INVARIANT_PRIORITY.index(v.code)))
    return None


def _search_rounded(site: ProgramLaunch, suspects: Sequence[Suspect], budget: Budget) -> Witness | None:
    """A run in which numbers that are rounded to their types decide otherwise than the program's claim says."""
    decided = any(deciding(launch.kernel) for launch in site.launches[: site.number + 1])
    if not decided or not site.claims or not asks_for_rounding(suspects):
        return None
    left = budget_of_rounding(budget)
    for schedule in rounding(site.program.launches[site.number].kernel):
        for size in islice(_sizes(site, ()), MOST_SIZES):
            if not left.spend():
                return None
            found = _violations(site, size, schedule, split=frozenset())
            wrong = next(filter(is_of_formula, found), None)
            if wrong is not None:
                return Witness(size, schedule, wrong)
    return None


def _sizes(site: ProgramLaunch, suspects: Sequence[Suspect]) -> Iterator[Sizes]:
    """Sizes to try: small ones at which a solver found a violation; then, by cost, sizes derived from the launches'
    tiles and the solver's other models.
    """
    models = [suspect.sizes for suspect in suspects if suspect.sizes is not None]
    seen: set[tuple[int, ...]] = set()
    each = chain(*(sizes_in_order(launch.kernel) for launch in site.launches), models)

    def cost(size: Sizes) -> tuple[int, int]:
        return sum(work(launch.kernel, size)[0] for launch in site.launches), _sum(size)

    first = [model for model in models if max(model.values(), default=0) <= _SMALL]
    for size in (*sorted(first, key=_sum), *sorted(each, key=cost)):
        key = tuple(size[symbol.name] for symbol in site.program.sizes)
        if key not in seen and max(key, default=0) <= _LARGEST:
            seen.add(key)
            yield {symbol.name: size[symbol.name] for symbol in site.program.sizes}


def _sum(size: Sizes) -> int:
    return sum(size.values())


_SMALL = 1 << 8
_LARGEST = 1 << 12


def _violations(site: ProgramLaunch, size: Sizes, schedule: Schedule, *, split: frozenset[str]) -> list[Violation]:
    """The violations of this launch in a run of the program.

    split: invariants whose violation in a later launch also counts: elements left unwritten, incomplete sums.
    """
    launch = site.program.launches[site.number]
    own: set[Stmt] = {*walk(launch.kernel.body), *(stmt for stmt, _ in site.claims)}
    try:
        outcome = run_program(site.program, size, None, schedule, tags=True, values=False)
    except UnsatisfiedPromiseError:
        return []
    after = (
        set(_users(site.program.launches[site.number + 1 :], set(launch.arguments.values()))) if split else set[Stmt]()
    )
    found = outcome.violations
    return [v for v in found if v.stmt in own or (v.code in split & {"I3", "I38"} and v.stmt in after)]


def _users(launches: Sequence[Launch], tensors: set[Buffer]) -> Iterator[Stmt]:
    """The copies and claims of the launches that take some of these tensors."""
    for launch in launches:
        if tensors & set(launch.arguments.values()):
            yield from (stmt for stmt in walk(launch.kernel.body) if isinstance(stmt, Copy | Assert))


def _shrink(site: ProgramLaunch, witness: Witness, budget: RunBudget, *, split: frozenset[str]) -> tuple[Witness, bool]:
    """The witness with each size minimised in turn, and whether minimality was established."""
    found: dict[tuple[int, ...], Violation] = {}
    tried: list[Sizes] = []

    def fails(sizes: Sizes) -> bool | None:
        if len(tried) >= RUNS or not budget.spend():
            return None
        tried.append(sizes)
        every = _violations(site, sizes, witness.schedule, split=split)
        same = [v for v in every if (v.code, v.stmt) == (witness.violation.code, witness.violation.stmt)]
        if same:
            found[tuple(sizes.values())] = same[0]
        return bool(same)

    shrunk = descend(site.program.sizes, assumed(site.own.kernel), witness.sizes, fails)
    violation = found.get(tuple(shrunk.sizes.values()))
    kept = witness if violation is None else evolve(witness, sizes=shrunk.sizes, violation=violation)
    return kept, shrunk.smallest
