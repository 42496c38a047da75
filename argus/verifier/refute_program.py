"""Refutation of a launch among others: a fault shown on a run of the whole program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Assert, Buffer, Copy, Launch, Program, Stmt, walk
from argus.core.proof.obligation import INVARIANT_PRIORITY, Obligation
from argus.core.proof.outputs.launch_context import Launched
from argus.core.query import Budget
from argus.interp.programs import run_program
from argus.interp.search.budget import RunBudget
from argus.interp.search.diagnosis import Witness
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import assumed, sizes_in_order, work
from argus.interp.search.shrink import RUNS, descend
from argus.interp.violation import UnsatisfiedPromiseError, Violation
from argus.verifier.refute import Refutation, Suspect, is_static, shown, static_fault

Sizes = Mapping[str, int]
_GARBAGE = frozenset(("I38",))
_OF_PARTS = frozenset(("I2", "I3", "I4", "I38"))
"""What slices that are not apart, not complete or begin with garbage show as when the program is run."""


@frozen(eq=False)
class Place:
    """A launch of a program: its number, and all launches over the program's sizes."""

    program: Program
    number: int
    launches: tuple[Launched, ...]

    @property
    def own(self) -> Launched:
        return self.launches[self.number]


def refute_launch(place: Place, suspects: Sequence[Suspect], budget: Budget) -> Refutation | None:
    """Show one of the faults suspected of a launch, on the program's tensors; None if no run within the bound does.

    budget: whose runs the search may make.
    """
    left = RunBudget.of(budget)
    for suspect in suspects:
        if suspect.sizes is not None and is_static(suspect.obligation):
            return static_fault(place.own.kernel, suspect)
    try:
        witness = _search(place, suspects, left)
        if witness is None:
            return None
        witness, smallest = _shrunk(place, witness, left, split=_of_slices(suspects))
    except ArgusError as problem:
        if problem.diagnostic.code != "E501":
            raise
        return None
    except ZeroDivisionError:
        return None
    obligations = [suspect.obligation for suspect in suspects]
    told = evolve(witness.violation, code=_code(witness.violation, suspects), related=_cause(witness, suspects))
    return shown(place.own.kernel, evolve(witness, violation=told), smallest, obligations)


def _code(violation: Violation, suspects: Sequence[Suspect]) -> str:
    """The invariant to blame: of slices, where that they are right is what is not proved."""
    if violation.code == "I38" and not _of_memory(violation.stmt):
        return violation.code
    return "I34" if violation.code in _of_slices(suspects) else violation.code


def _of_memory(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and "global" in (stmt.source.buffer.space, stmt.target.buffer.space)


def _cause(witness: Witness, suspects: Sequence[Suspect]) -> tuple[tuple[Stmt, str], ...]:
    """Where the slices are to blame and show elsewhere: what is not so, at its own statement."""
    owed = [suspect.obligation for suspect in suspects if suspect.obligation.invariant == "I34"]
    if isinstance(witness.violation.stmt, Assert) and len(owed) == len(_elsewhere(witness, owed)):
        return witness.violation.related  # the report begins at the first of them by itself
    told = tuple((each.stmt, f"not so: {each.what}") for each in _elsewhere(witness, owed)[:1])
    return (*witness.violation.related, *told)


def _elsewhere(witness: Witness, owed: Sequence[Obligation]) -> list[Obligation]:
    return [each for each in owed if each.stmt.span != witness.violation.stmt.span]


def _of_slices(suspects: Sequence[Suspect]) -> frozenset[str]:
    """What doubtful slices may show as: garbage, and where a solver has seen them fail, sums that are not right."""
    owed = [suspect for suspect in suspects if suspect.obligation.invariant == "I34"]
    failing = any(suspect.sizes is not None for suspect in owed)
    return frozenset(_OF_PARTS if failing else _GARBAGE if owed else ())


def _search(place: Place, suspects: Sequence[Suspect], budget: RunBudget) -> Witness | None:
    sizes = list(_sizes(place, suspects))
    split = _of_slices(suspects)
    for schedule in directed(place.program.launches[place.number].kernel):
        for size in sizes:
            if not budget.spend():
                return None
            found = _violations(place, size, schedule, split=split)
            if found:
                return Witness(size, schedule, min(found, key=lambda v: INVARIANT_PRIORITY.index(v.code)))
    return None


def _sizes(place: Place, suspects: Sequence[Suspect]) -> Iterator[Sizes]:
    """Small sizes at which a solver saw a failure; then small ones that some launch's own tiles suggest, among others
    at which a solver saw one.
    """
    models = [suspect.sizes for suspect in suspects if suspect.sizes is not None]
    seen: set[tuple[int, ...]] = set()
    each = chain(*(sizes_in_order(launch.kernel) for launch in place.launches), models)

    def cost(size: Sizes) -> tuple[int, int]:
        return sum(work(launch.kernel, size)[0] for launch in place.launches), _sum(size)

    first = [model for model in models if max(model.values(), default=0) <= _SMALL]
    for size in (*sorted(first, key=_sum), *sorted(each, key=cost)):
        key = tuple(size[symbol.name] for symbol in place.program.sizes)
        if key not in seen and max(key, default=0) <= _LARGEST:
            seen.add(key)
            yield {symbol.name: size[symbol.name] for symbol in place.program.sizes}


def _sum(size: Sizes) -> int:
    return sum(size.values())


_SMALL = 1 << 8
_LARGEST = 1 << 12


def _violations(place: Place, size: Sizes, schedule: Schedule, *, split: frozenset[str]) -> list[Violation]:
    """Those of this launch, in a run of the program.

    split: of what else may show in later launches: elements that it left unwritten, sums that are not whole.
    """
    launch = place.program.launches[place.number]
    own = set(walk(launch.kernel.body))
    try:
        outcome = run_program(place.program, size, None, schedule, tags=True, values=False)
    except UnsatisfiedPromiseError:
        return []
    after = (
        set(_users(place.program.launches[place.number + 1 :], set(launch.arguments.values())))
        if split
        else set[Stmt]()
    )
    found = outcome.violations
    return [v for v in found if v.stmt in own or (v.code in split & {"I3", "I38"} and v.stmt in after)]


def _users(launches: Sequence[Launch], tensors: set[Buffer]) -> Iterator[Stmt]:
    """The copies and claims of launches that are given some of these tensors of the program."""
    for launch in launches:
        if tensors & set(launch.arguments.values()):
            yield from (stmt for stmt in walk(launch.kernel.body) if isinstance(stmt, Copy | Assert))


def _shrunk(place: Place, witness: Witness, budget: RunBudget, *, split: frozenset[str]) -> tuple[Witness, bool]:
    """The witness at sizes as small as they can be one by one, and whether that was shown."""
    found: dict[tuple[int, ...], Violation] = {}
    tried: list[Sizes] = []

    def fails(sizes: Sizes) -> bool | None:
        if len(tried) >= RUNS or not budget.spend():
            return None
        tried.append(sizes)
        every = _violations(place, sizes, witness.schedule, split=split)
        same = [v for v in every if (v.code, v.stmt) == (witness.violation.code, witness.violation.stmt)]
        if same:
            found[tuple(sizes.values())] = same[0]
        return bool(same)

    shrunk = descend(place.program.sizes, assumed(place.own.kernel), witness.sizes, fails)
    violation = found.get(tuple(shrunk.sizes.values()))
    kept = witness if violation is None else evolve(witness, sizes=shrunk.sizes, violation=violation)
    return kept, shrunk.smallest
