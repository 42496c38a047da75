"""Refutes kernels: shows a fault on a concrete run of the interpreter, or recomputes it if it is static."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import cast

import numpy as np
from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.index import Read
from argus.core.invariants import invariant
from argus.core.ir import Assert, Copy, Equals, For, Kernel, Stmt, Tag, trips, walk
from argus.core.proof.obligation import INVARIANT_PRIORITY, Obligation
from argus.core.query import Budget
from argus.core.span import NOWHERE, Span
from argus.core.verdict import Counterexample
from argus.core.walk import evaluate, mentions, symbols
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run_prepared, uses_agents
from argus.interp.search.advice import advice_for
from argus.interp.search.budget import RunBudget
from argus.interp.search.dataflow_repairs import Change, find_repair
from argus.interp.search.diagnosis import Witness
from argus.interp.search.provenance import DATA_FLOW, Provenance, trace_provenance
from argus.interp.search.runs import Runs
from argus.interp.search.search import assumed, sizes_in_order, whole_tiles
from argus.interp.search.shrink import Shrunk, descend, shrink
from argus.interp.violation import Violation
from argus.verifier.formula_diagnosis import NO_DIAGNOSIS, Diagnosis, diagnose_kernel
from argus.verifier.refute_text import describe_schedule, facts, hop_labels, iteration_text, thread_text
from argus.verifier.run_search import search, search_events


@frozen(eq=False)
class Refutation:
    """A counterexample with its report."""

    kernel: Kernel
    counterexample: Counterexample
    diagnostic: Diagnostic


@frozen(eq=False)
class Suspect:
    """An unproved obligation, and the sizes at which a solver found it violated, if one did."""

    obligation: Obligation
    sizes: Mapping[str, int] | None


def refute(kernel: Kernel, suspects: Sequence[Suspect], budget: Budget, runs: Runs | None = None) -> Refutation | None:
    """Show one of the suspected faults, the cause before its symptoms; None if no run within the budget shows any.

    suspects: in the order in which they should be reported. budget: limits the number of runs.
    runs: results of earlier runs of this same kernel.
    """
    left = RunBudget.of(budget)
    obligations = [suspect.obligation for suspect in suspects]
    for suspect in suspects:
        if suspect.sizes is not None and is_static(suspect.obligation):
            return static_fault(kernel, suspect)
    models = [suspect.sizes for suspect in suspects if suspect.sizes is not None]
    sizes = list(sizes_in_order(kernel, [model for model in models if _affordable(kernel, model)]))
    try:
        prepared = Prepared(kernel, runs or Runs())
        if uses_agents(kernel):
            witness = search_events(prepared, sizes, left)
        else:
            stages = (search(prepared, sizes, codes, left) for codes in _search_stages(suspects))
            witness = next(filter(None, stages), None)
    except ArgusError as problem:
        if problem.diagnostic.code != "E501":
            raise
        return None  # the interpreter does not support a construct of the kernel
    except ZeroDivisionError:
        return None  # such a run is undefined; that divisors are positive is an obligation of its own
    except RecursionError:
        return None  # a claimed formula of too many operations, one in another, which no run can be compared with
    if witness is None:
        return None
    shrunk, smallest = shrink(prepared, witness, left)
    return _refutation(prepared, shrunk, smallest, obligations, _change(kernel, shrunk, sizes))


def _change(kernel: Kernel, witness: Witness, sizes: Sequence[Mapping[str, int]]) -> Change | None:
    """A change to the kernel that removes a data-flow fault, if one is found."""
    violation = witness.violation
    if witness.help or violation.code not in ("I1", "I2", "I3", "I4", "I5"):
        return None
    if violation.code == "I5" and violation.other is not None:
        return None
    tried = [dict(each) for each in (witness.sizes, *_extreme_sizes(kernel, sizes), *whole_tiles(kernel))]
    distinct = [each for place, each in enumerate(tried) if each not in tried[:place]]
    return find_repair(kernel, violation.code, distinct, witness.schedule)


def _describe_change(change: Change) -> str:
    frame = change.stmt.span.frame
    line = "" if frame is None else f"line {frame.line}: "
    shown = ", ".join("(" + ", ".join(map(str, each.values())) + ")" for each in change.tried)
    names = ", ".join(change.tried[0]) if change.tried else ""
    places = f" at ({names}) = {shown}" if names else ""
    return f"{line}{change.help}; no fault is left then{places}"


def _extreme_sizes(kernel: Kernel, sizes: Sequence[Mapping[str, int]]) -> Iterable[Mapping[str, int]]:
    """Of these sizes, the first (least work), and the one with the most loop iterations."""
    counts = [trips(stmt) for stmt in walk(kernel.body) if isinstance(stmt, For)]

    def iterations(size: Mapping[str, int]) -> int:
        env = {symbol: size[symbol.name] for symbol in kernel.sizes}
        return sum(int(cast(int, evaluate(count, env))) for count in counts if symbols(count) <= env.keys())

    return (*sizes[:1], *sorted(sizes, key=iterations)[-1:])


def _search_stages(suspects: Sequence[Suspect]) -> Iterable[frozenset[str]]:
    """Invariants to search violations of: first the primary one that runs can violate, then all suspected, then all."""
    broken = [suspect.obligation.invariant for suspect in suspects if suspect.sizes is not None]
    first = next((invariant for invariant in broken if invariant not in _STATIC), None)
    if first is not None:
        yield frozenset((first,))
    if suspects:
        yield frozenset(suspect.obligation.invariant for suspect in suspects)
    yield frozenset(INVARIANT_PRIORITY)


def is_static(obligation: Obligation) -> bool:
    """Whether the fault shows without a run: a budget, a layout, or the range of an integer not read from memory."""
    if obligation.replayable:
        return False
    if obligation.of_descriptor:
        return True
    if obligation.invariant == "I28":
        return not mentions(algebra.all_of((*obligation.hypotheses, obligation.goal)), (Read,))
    return obligation.invariant in _STATIC


_STATIC = frozenset(("I14", "I17", "I18", "I20", "I21", "I22", "I28", "I33", "I40"))
"""Invariants whose violation no run shows."""


def _affordable(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether tensors of these sizes are small enough to run."""
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    tagged = [stmt.view for stmt in walk(kernel.body) if isinstance(stmt, Tag)]
    shapes = [each.shape for each in (*kernel.parameters, *tagged) if symbols(*each.shape) <= env.keys()]
    counts = [prod(int(cast(int, evaluate(extent, env))) for extent in shape) for shape in shapes]
    return sum(counts) <= _MOST_ELEMENTS


_MOST_ELEMENTS = 1 << 20


def static_fault(kernel: Kernel, suspect: Suspect) -> Refutation:
    """The refutation of a static obligation: its witness is computed from the program at the failing sizes."""
    obligation = suspect.obligation
    message = obligation.fault or f"not so: {obligation.what}"
    sizes: Mapping[str, int] = suspect.sizes or {}
    shrunk = (
        _minimise_sizes(kernel, obligation, sizes) if sizes and symbols(obligation.goal) else Shrunk({}, smallest=True)
    )
    sizes = shrunk.sizes
    launch = (("launch", ", ".join(f"{name}={value}" for name, value in sizes.items())),) if sizes else ()
    diagnostic = Diagnostic(
        obligation.invariant,
        "error",
        message,
        Label(obligation.stmt.span, invariant(obligation.invariant).title),
        tuple(Label(stmt.span, remark) for stmt, remark in obligation.related()),
        (*launch, *_measured(kernel, obligation, sizes), *obligation.witness, _RECOMPUTED),
        help=obligation.help,
        kernel=kernel.name,
    )
    place = str(obligation.stmt.span)
    found = Counterexample(
        obligation.invariant,
        message,
        "recomputed",
        tuple(sizes.items()),
        place=place,
        at=obligation.stmt.span,
        other_at=NOWHERE if obligation.other is None else obligation.other.span,
        repair=obligation.help,
        smallest=shrunk.smallest,
    )
    return Refutation(kernel, found, diagnostic)


def _minimise_sizes(kernel: Kernel, obligation: Obligation, sizes: Mapping[str, int]) -> Shrunk:
    """The least sizes at which a static obligation fails, where it mentions only sizes."""
    conditions = obligation.hypotheses
    data = mentions(algebra.all_of((obligation.goal, *conditions)), (Read,))
    if data or not symbols(obligation.goal, *conditions) <= set(kernel.sizes):
        return Shrunk(dict(sizes), smallest=False)

    def fails(smaller: Mapping[str, int]) -> bool:
        env = {symbol: smaller[symbol.name] for symbol in kernel.sizes}
        return all(evaluate(cond, env) for cond in conditions) and not evaluate(obligation.goal, env)

    return descend(kernel.sizes, assumed(kernel), sizes, fails)


_RECOMPUTED = ("recomputed", "yes, from the layouts and the machine's limits")


def _measured(kernel: Kernel, obligation: Obligation, sizes: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    """The measured quantities of a static fault, evaluated at the failing sizes where they mention only sizes."""
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes if symbol.name in sizes}
    for name, quantity in obligation.quantities:
        if symbols(quantity) <= env.keys():
            yield name, str(int(np.asarray(evaluate(quantity, env))))


def _refutation(
    prepared: Prepared, witness: Witness, smallest: bool, suspects: Sequence[Obligation], change: Change | None
) -> Refutation:
    came = trace_provenance(prepared, witness.sizes, witness.schedule, witness.violation)
    data = _integers(prepared, witness)
    evidence = RunEvidence(came, data, change, diagnose_kernel(prepared, witness))
    return refutation_of_run(prepared.kernel, witness, smallest, suspects, evidence)


@frozen
class RunEvidence:
    """Evidence about a failing run besides the violation.

    came: the path by which the faulty elements got there. data: the contents, by name, of the integer tensors that
    control the kernel. change: a change to the kernel that repairs it. differs: what differs from a formula.
    """

    came: Provenance = field(factory=Provenance)
    data: tuple[tuple[str, str], ...] = ()
    change: Change | None = None
    differs: Diagnosis = NO_DIAGNOSIS


def refutation_of_run(
    kernel: Kernel,
    witness: Witness,
    smallest: bool,
    suspects: Sequence[Obligation],
    known: RunEvidence = RunEvidence(),
) -> Refutation:
    """The refutation that a failing run gives, with its diagnostic."""
    came, change, differs = known.came, known.change, known.differs
    violation = evolve(witness.violation, facts=(*witness.violation.facts, *differs.facts))
    advice = [o for o in suspects if o.invariant == violation.code]
    exact = [o for o in advice if o.stmt.span == violation.stmt.span]
    usual = advice_for(kernel, violation.code) if uses_agents(kernel) else ""
    obligation_help = next((o.help for o in (*exact, *advice) if o.help), "")
    stated = (
        (differs.advice or _OF_FORMULA)
        if isinstance(violation.stmt, Assert) and isinstance(violation.stmt.claim, Equals)
        else ""
    )
    general = witness.help or stated or usual or obligation_help or advice_for(kernel, violation.code)
    help_text = general if change is None else _describe_change(change)
    counterexample = Counterexample(
        code=violation.code,
        message=violation.message,
        replayed="interpreter",
        sizes=tuple(witness.sizes.items()),
        block=violation.block,
        thread=violation.thread,
        other_thread=violation.other_thread,
        buffer=violation.buffer,
        element=violation.element,
        iteration=violation.iteration,
        place=str(violation.stmt.span),
        schedule=describe_schedule(witness.schedule),
        at=violation.stmt.span,
        other_at=NOWHERE if violation.other is None else violation.other.span,
        other_iteration=violation.other_iteration,
        tags=violation.facts if violation.code in DATA_FLOW else (),
        elements=came.elements,
        alike=came.alike,
        chain=came.hops,
        repair=help_text,
        smallest=smallest,
    )
    if change is not None:
        violation = evolve(violation, related=(*violation.related, (change.stmt, change.help)))
    cause = exact[0] if exact else advice[0] if advice else None
    diagnostic = _diagnostic(kernel, counterexample, violation, cause, help_text, known.data)
    return Refutation(kernel, counterexample, diagnostic)


_OF_FORMULA = (
    "follow the element through the lines above: another element, a part of a sum left out, a missing rescale, or a "
    "constant in place of a size; or correct the formula"
)


def _integers(prepared: Prepared, witness: Witness) -> tuple[tuple[str, str], ...]:
    """The contents of the integer tensors that control the kernel, each as one line of text."""
    run_prepared(prepared, witness.sizes, None, witness.schedule, tags=False, values=False, blocks=())
    return tuple((name, str(prepared.integers[name])) for name in sorted(prepared.integers))


def _diagnostic(
    kernel: Kernel,
    found: Counterexample,
    violation: Violation,
    cause: Obligation | None,
    help_text: str,
    data: tuple[tuple[str, str], ...] = (),
) -> Diagnostic:
    """The diagnostic, at the statement at fault; the statements it conflicts with are secondary labels."""
    unit = kernel.target.unit
    here = f"{thread_text(violation.thread, unit)}{iteration_text(violation.iteration)}"
    remarks = {stmt.span: remark for stmt, remark in reversed(violation.related)}
    primary = Label(violation.stmt.span, remarks.get(violation.stmt.span, here))
    secondary: list[Label] = []
    if violation.other is not None and violation.other.span not in remarks:
        accessor = "" if violation.other_thread is None else f" by {thread_text(violation.other_thread, unit)}"
        secondary.append(
            Label(violation.other.span, f"the other access{accessor}{iteration_text(violation.other_iteration)}")
        )
    secondary += [Label(span, remark) for span, remark in remarks.items() if span != primary.span]
    if cause is not None and isinstance(violation.stmt, Assert) and not isinstance(cause.stmt, Assert):
        primary = Label(cause.stmt.span, here if violation.block else "the only place that could write it")
        secondary.append(Label(violation.stmt.span, "claimed here"))
    known = {primary.span, *(label.span for label in secondary)}
    secondary += [label for label in hop_labels(found) if label.span not in known]
    known |= {label.span for label in secondary}
    related = () if cause is None else cause.related()
    secondary += [Label(stmt.span, remark) for stmt, remark in related if not _has_label(stmt, known)]
    return Diagnostic(
        violation.code,
        "error",
        violation.message,
        primary,
        tuple(dict.fromkeys(secondary)),
        (*data, *facts(found, violation)),
        help=help_text,
        kernel=kernel.name,
    )


def _has_label(stmt: Stmt, known: set[Span]) -> bool:
    """Whether the statement has a label already; for a copy, also one on the same line reached by another call."""
    lines = {span.frame for span in known}
    return stmt.span in known or (isinstance(stmt, Copy) and stmt.span.frame in lines)
