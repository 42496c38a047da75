"""Verifies one kernel: analyses it, proves its obligations or refutes one by replay, and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter

from attrs import frozen

from argus.core import algebra
from argus.core.diagnostic import Diagnostic, Label
from argus.core.dsl.kernel import Template
from argus.core.index import And, Cond, Index, Symbol
from argus.core.index_text import show
from argus.core.invariants import INVARIANTS
from argus.core.ir import Buffer, Kernel
from argus.core.proof.analysis import Analysis, analyse
from argus.core.proof.applicability import CHECKED_INVARIANTS, machine_assumptions, not_applicable, real_assumptions
from argus.core.proof.obligation import INVARIANT_PRIORITY, Obligation
from argus.core.proof.outputs.data_contracts import declared_promises, promise_witnesses
from argus.core.query import Answer, Budget, GaveUp, Sat, Unsat
from argus.core.verdict import Cost, Finding, Proved, Refuted, Report, Standing, Unknown, Vacuous, Verdict
from argus.core.walk import evaluate
from argus.interp.search.runs import Runs
from argus.report.shown import ShownReport
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.solvers.choice import resolve
from argus.solvers.session.answers import OutOfTime
from argus.solvers.session.session import Session
from argus.verifier.garbage import few_collections
from argus.verifier.progress import tell
from argus.verifier.refute import Refutation, Suspect, is_static, static_fault
from argus.verifier.refute_rounding import refute_or_round
from argus.verifier.uncovered import uncovered_outputs

Refuter = Callable[[Sequence[Suspect]], Refutation | None]


@frozen(eq=False)
class CheckedObligation:
    """An obligation and the solver's result: standing, reason, method, and the model that falsifies it, if any."""

    obligation: Obligation
    standing: Standing
    reason: str
    method: str
    model: Mapping[str, int]


@few_collections()
def verify(
    kernel: Kernel | Template,
    *,
    solver: str | Solver | None = None,
    budget: Budget | None = None,
    config: str | None = None,
    cache: Cache | None = None,
    runs: Runs | None = None,
) -> Report:
    """Prove every invariant of a kernel for all sizes, or refute one by a replayed counterexample.

    solver: "z3", "cvc5", "enumerate", "portfolio", "all", the name of an installed backend, or a backend;
    by default the portfolio, or what `use_solver` has chosen.
    config: which instance of a family, by default the first. cache: solver answers on disk; None uses no cache.
    runs: results of earlier interpreter runs of this same kernel, such as from a check by another solver.
    Raises ArgusError when the kernel cannot be traced or the solver is unknown.
    """
    start = perf_counter()
    traced = kernel if isinstance(kernel, Kernel) else kernel.trace(config or kernel.instances()[0])
    backend = resolve(solver)
    session = Session(backend, budget or Budget(), cache)
    try:
        tell("analysing its data flow")
        analysis = analyse(traced, session)
        return report_on(
            traced, analysis, session, lambda found: refute_or_round(traced, found, session.budget, runs), start
        )
    except OutOfTime:
        return out_of_time(traced, session, start)


def report_on(kernel: Kernel, analysis: Analysis, session: Session, refuter: Refuter, start: float) -> Report:
    """The report on an analysed kernel. refuter: finds a run that shows a fault. start: when the work began."""
    backend, assumptions = session.solver, analysis.assumptions
    asked = analysis.promise_prover or session
    if isinstance(asked.check((*assumptions, *promise_witnesses(kernel))), Unsat):
        listed = tuple(show(cond) for cond in (*assumptions, *declared_promises(kernel)))
        return _report(kernel, backend, Vacuous(listed), (), (_vacuous(kernel, listed),), session, start)
    found = _check_obligations(session, analysis)
    return _conclude(kernel, backend, analysis, found, session, refuter, start)


def check_obligations(kernel: Kernel, session: Session) -> tuple[Analysis, tuple[CheckedObligation, ...]]:
    """The analysis of a kernel and its checked obligations, without a verdict or a search for counterexamples."""
    analysis = analyse(kernel, session)
    return analysis, _check_obligations(session, analysis)


def first_unproved(kernel: Kernel, session: Session) -> tuple[str, str] | None:
    """The unproved invariant that a verdict would report, and why; None if all are proved. No run is made."""
    analysis, found = check_obligations(kernel, session)
    if analysis.unmodelled:
        return "", analysis.unmodelled[0].reason
    first = next(iter(_by_cause(found)), None)
    return None if first is None else (first.obligation.invariant, first.reason or f"{first.obligation.what}: refuted")


def _check_obligations(session: Session, analysis: Analysis) -> tuple[CheckedObligation, ...]:
    """Checks each obligation; those with the same hypotheses are asked together, since one query may prove them all."""
    by_hypotheses: dict[tuple[Cond, ...], dict[Obligation, Cond]] = {}
    for each in analysis.obligations:
        if not each.unknown:
            by_hypotheses.setdefault(_hypotheses(analysis, each), {})[each] = each.goal
    answers: dict[Obligation, tuple[tuple[Cond, ...], Answer]] = {}
    for number, (hypotheses, goals) in enumerate(by_hypotheses.items(), 1):
        tell(f"proving {_invariants_of(goals)}, {len(goals)} statements, group {number} of {len(by_hypotheses)}")
        found = session.prove_each(hypotheses, tuple(goals.values()))
        answers |= {each: (hypotheses, answer) for each, answer in zip(goals, found, strict=True)}
    return tuple(_check(session, analysis, each, answers.get(each)) for each in analysis.obligations)


def _invariants_of(obligations: Iterable[Obligation]) -> str:
    return ", ".join(dict.fromkeys(each.invariant for each in obligations))


def _check(
    session: Session, analysis: Analysis, obligation: Obligation, found: tuple[tuple[Cond, ...], Answer] | None
) -> CheckedObligation:
    if found is None:
        return CheckedObligation(obligation, "unknown", obligation.unknown, "", {})
    hypotheses, answer = found
    if obligation.asserted and not isinstance(session.check(hypotheses), Sat):
        reason = "no execution is known to reach it, so a proof might compare nothing"
        return CheckedObligation(obligation, "unknown", reason, "", {})
    match answer:
        case Unsat(solver=method):
            return CheckedObligation(obligation, "proved", "", method, {})
        case Sat(solver=method):
            if is_static(obligation):
                return CheckedObligation(
                    obligation, "refuted", "", method, {s.name: n for s, n in answer.model.items()}
                )
            wrong = _falsified_conjunct(obligation.goal, answer.model)
            smallest = session.minimise([*hypotheses, algebra.negate(wrong)], _order(analysis, obligation))
            model = smallest.model if isinstance(smallest, Sat) else answer.model
            return CheckedObligation(obligation, "refuted", "", method, {s.name: n for s, n in model.items()})
        case GaveUp(solver=method, reason=reason):
            return CheckedObligation(obligation, "unknown", f"{method} gave up: {reason}", method, {})


def _falsified_conjunct(goal: Cond, model: Mapping[Symbol, int]) -> Cond:
    """A conjunct that the model falsifies, for a goal of many parts: minimising a model of it is a smaller query."""
    if not isinstance(goal, And) or len(goal.parts) <= _FEW:
        return goal
    try:
        return next((part for part in goal.parts if not evaluate(part, model)), goal)
    except (KeyError, ZeroDivisionError):
        return goal


_FEW = 16


def _order(analysis: Analysis, obligation: Obligation) -> Sequence[Index]:
    sizes = [algebra.sym(symbol) for symbol in analysis.timeline.kernel.sizes]
    return (algebra.add(*sizes), *sizes, *obligation.minimise)


def _hypotheses(analysis: Analysis, obligation: Obligation) -> tuple[Cond, ...]:
    given = {"facts": analysis.facts, "assumptions": analysis.assumptions, "nothing": ()}[obligation.premises]
    hypotheses = (*given, *obligation.hypotheses)
    if analysis.promise_prover is None:
        return hypotheses
    return (*hypotheses, *analysis.promise_prover.instances((*hypotheses, obligation.goal)))


# -- conclusions ---------------------------------------------------------------------------------------------


def _conclude(
    kernel: Kernel,
    solver: Solver,
    analysis: Analysis,
    checked: tuple[CheckedObligation, ...],
    session: Session,
    refuter: Refuter,
    start: float,
) -> Report:
    findings = tuple(_findings(kernel, analysis, checked))
    unproved = _by_cause(checked)
    suspects = [each for each in unproved if each.standing == "refuted"]
    if unproved or analysis.unmodelled:
        suspected = _invariants_of(each.obligation for each in unproved)
        tell(f"running it in search of a counterexample to {suspected or 'its claims'}")
        found = refuter([_suspect(kernel, each) for each in unproved])
        if found is not None:
            settled = tuple(_mark_refuted(finding, found) for finding in findings)
            others = _other_static_faults(kernel, found, suspects)
            return _report(
                kernel, solver, Refuted(found.counterexample), settled, (found.diagnostic, *others), session, start
            )
        return _unknown_report(kernel, solver, analysis, findings, unproved, session, start)
    unbuilt = next((finding for finding in findings if finding.standing == "not built yet"), None)
    if unbuilt is not None:
        return _unchecked_report(kernel, solver, unbuilt, findings, session, start)
    verdict = _proved(kernel, analysis, checked)
    left = uncovered_outputs(kernel, [each.obligation for each in checked])
    names, warnings = tuple(each.name for each in left), tuple(each.warning for each in left)
    return _report(kernel, solver, verdict, findings, warnings, session, start, names)


def _by_cause(checked: Sequence[CheckedObligation]) -> list[CheckedObligation]:
    """The unproved obligations, refuted ones first, causes before symptoms."""
    unproved = (each for each in checked if each.standing != "proved")
    return sorted(unproved, key=lambda each: (each.standing != "refuted", _rank(each)))


def _rank(checked: CheckedObligation) -> int:
    return INVARIANT_PRIORITY.index(checked.obligation.invariant)


def _suspect(kernel: Kernel, checked: CheckedObligation) -> Suspect:
    if checked.standing != "refuted":
        return Suspect(checked.obligation, None)
    return Suspect(checked.obligation, {s.name: checked.model.get(s.name, max(1, s.low or 0)) for s in kernel.sizes})


def _findings(kernel: Kernel, analysis: Analysis, checked: tuple[CheckedObligation, ...]) -> Iterator[Finding]:
    absent = not_applicable(kernel)
    found: dict[str, list[CheckedObligation]] = {}
    for j in checked:
        found.setdefault(j.obligation.invariant, []).append(j)
    for each in INVARIANTS:
        mine = found.get(each.id, [])
        if not mine and each.id in absent:
            yield Finding(each.id, each.title, "not applicable", absent[each.id])
        elif each.id not in CHECKED_INVARIANTS:
            yield Finding(each.id, each.title, "not built yet", "no check for it exists in this version")
        elif analysis.unmodelled and each.id not in ("I18", "I21", "I22"):
            yield Finding(each.id, each.title, "unknown", analysis.unmodelled[0].reason)
        elif not mine:
            yield Finding(each.id, each.title, "not applicable", "no two accesses of this kind conflict")
        else:
            yield _finding(each.id, each.title, mine)


def _finding(code: str, title: str, mine: Sequence[CheckedObligation]) -> Finding:
    standing: Standing = "proved"
    reason = ""
    for j in mine:
        if j.standing != "proved" and standing == "proved":
            standing, reason = "unknown", j.reason or f"{j.obligation.what}: not proved"
    return Finding(code, title, standing, reason, len(mine), sum(j.obligation.compared for j in mine))


def _mark_refuted(finding: Finding, found: Refutation) -> Finding:
    if finding.invariant != found.counterexample.code:
        return finding
    return Finding(
        finding.invariant,
        finding.title,
        "refuted",
        found.counterexample.message,
        finding.obligations,
        finding.compared,
    )


def _other_static_faults(
    kernel: Kernel, found: Refutation, suspects: Sequence[CheckedObligation]
) -> tuple[Diagnostic, ...]:
    """Static faults of other invariants, which are faults whatever the counterexample's run does."""
    code = found.counterexample.code
    others = {j.obligation.invariant: j for j in reversed(suspects) if is_static(j.obligation)}
    return tuple(static_fault(kernel, _suspect(kernel, j)).diagnostic for c, j in others.items() if c != code)


def _proved(kernel: Kernel, analysis: Analysis, checked: tuple[CheckedObligation, ...]) -> Proved:
    methods = Counter(j.method for j in checked)
    coverage: Counter[str] = Counter()
    for j in checked:
        coverage[j.obligation.invariant] += j.obligation.compared
    listed = [show(cond) for cond in analysis.assumptions if cond is not algebra.TRUE]
    listed += [
        f"{show(cond)} for every element: a contract on data, checked at launch" for cond in declared_promises(kernel)
    ]
    listed += [f"{s.low} <= {s.name} <= {s.high}" for s in kernel.sizes]
    listed += [f"tensors are row-major, aligned to 16 bytes and do not overlap: {_names(kernel.parameters)}"]
    later = frozenset[Buffer]().union(*(flow.decided for flow in analysis.flows))
    listed += (*machine_assumptions(kernel), *real_assumptions(kernel, later))
    listed += dict.fromkeys(j.obligation.presumed for j in checked if j.obligation.presumed)
    results = tuple(dict.fromkeys(j.obligation.note for j in checked if j.obligation.note))
    return Proved(len(checked), tuple(sorted(methods.items())), tuple(listed), tuple(sorted(coverage.items())), results)


def _names(buffers: Sequence[Buffer]) -> str:
    return ", ".join(buffer.name for buffer in buffers)


def _unknown_report(
    kernel: Kernel,
    solver: Solver,
    analysis: Analysis,
    findings: tuple[Finding, ...],
    left: Sequence[CheckedObligation],
    session: Session,
    start: float,
) -> Report:
    """The report where nothing is refuted and something is not proved."""
    if analysis.unmodelled:
        first = analysis.unmodelled[0]
        reason, where, code, advice = first.reason, first.stmt.span, "I38", first.advice
    else:
        worst = left[0]
        code = worst.obligation.invariant
        where = worst.obligation.stmt.span
        reason = (
            f"{worst.obligation.what}: {worst.reason or 'not proved, and no run of the interpreter shows a failure'}"
        )
        advice = worst.obligation.instead
    attempt = advice or "state what is missing with `assume(...)`, simplify the addresses named, or raise the budget"
    doubt = Diagnostic(
        code,
        "unknown",
        f"`{kernel.name}` is neither proved nor refuted",
        Label(where, reason),
        notes=(reason,),
        help=attempt,
        kernel=kernel.name,
    )
    return _report(kernel, solver, Unknown(reason, attempt), findings, (doubt,), session, start)


def _unchecked_report(
    kernel: Kernel, solver: Solver, unbuilt: Finding, findings: tuple[Finding, ...], session: Session, start: float
) -> Report:
    """The report where all obligations are proved, but an invariant that applies to the kernel has no check."""
    reason = f"{unbuilt.invariant}, {unbuilt.title}, applies to this kernel, and this version has no check for it"
    attempt = "write the kernel without the construct, or check that invariant by hand"
    doubt = Diagnostic(
        unbuilt.invariant,
        "unknown",
        f"`{kernel.name}` is neither proved nor refuted",
        Label(kernel.span, reason),
        notes=(reason,),
        help=attempt,
        kernel=kernel.name,
    )
    return _report(kernel, solver, Unknown(reason, attempt), findings, (doubt,), session, start)


def out_of_time(kernel: Kernel, session: Session, start: float) -> Report:
    """The report where the time for the whole proof is spent (`Budget.total`)."""
    reason = f"the {session.budget.total:.3g} s for the whole proof are spent"
    attempt = "raise the budget's `total`"
    doubt = Diagnostic(
        "I38",
        "unknown",
        f"`{kernel.name}` is neither proved nor refuted",
        Label(kernel.span, reason),
        notes=(reason,),
        help=attempt,
        kernel=kernel.name,
    )
    return _report(kernel, session.solver, Unknown(reason, attempt), (), (doubt,), session, start)


def _vacuous(kernel: Kernel, listed: tuple[str, ...]) -> Diagnostic:
    return Diagnostic(
        "E403",
        "unknown",
        f"the assumptions of `{kernel.name}` contradict each other",
        Label(kernel.span, "no launch satisfies them"),
        notes=tuple(listed),
        help="remove or weaken an `assume(...)`: a contradiction implies anything",
        kernel=kernel.name,
    )


def _report(
    kernel: Kernel,
    solver: Solver,
    verdict: Verdict,
    findings: tuple[Finding, ...],
    diagnostics: tuple[Diagnostic, ...],
    session: Session,
    start: float,
    uncovered: tuple[str, ...] = (),
) -> Report:
    stats = session.stats
    cost = Cost(
        perf_counter() - start,
        stats.asked,
        stats.by_normal_form,
        stats.memory_hits + stats.disk_hits,
        stats.reached_smt,
    )
    return ShownReport(kernel.name, str(kernel.target), solver.name, verdict, findings, diagnostics, cost, uncovered)
