"""The nearest variant of a kernel that is proved, for a kernel that is neither proved nor refuted.

Variants are tried in the order of what they leave of the kernel: first further assumptions, then other edges of copies,
then claims beside its own or in place of them, then fewer claims. Each is verified like any kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import perf_counter

from attrs import define, evolve, field

from argus.core.check import claim_views
from argus.core.diagnostic import Label
from argus.core.index import Cond
from argus.core.ir import Assert, Buffer, Claim, Equals, Kernel, Products, WrittenOnce, walk, whole
from argus.core.proof.variant_candidates import (
    as_products,
    assumptions_of_goals,
    bounds_of_sizes,
    edges,
    inside_assumptions,
    size_assumptions,
    weaker_claims,
    without_edges,
)
from argus.core.proof.variants import Assuming, Change, Claiming, claim_code, described, varied
from argus.core.query import STEPS_PER_SECOND, Budget
from argus.core.values.expr import Expr
from argus.core.verdict import Proved, ProvedVariant, Report, Unknown
from argus.language import __all__ as _names
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.solvers.session.answers import OutOfTime
from argus.solvers.session.session import Session
from argus.verifier.kernel import CheckedObligation, check_obligations, report_on
from argus.verifier.progress import tell
from argus.verifier.suggest.program import without_claims
from argus.verifier.suggest.values import stored_values

_LONGEST = 320
"""Characters of a claim that is proposed."""
_QUERY = Budget.about(1)
"""What a query about a variant may take: several are tried in the time that one verdict has."""

_SHARE = 0.9
"""Of the time of a query, when the search for a variant ends: what it is at then is still brought to its end."""

_REMARKS = {"claim": "with another claim here it is proved"}
"""What a change is called at its line, where its own text is too long."""


def with_nearest(
    report: Report, kernel: Kernel, solver: Solver, budget: Budget, cache: Cache | None, spent: float
) -> Report:
    """An unknown report with the nearest proved variant, in its help too, if one is found; any other as it is.

    budget: that of the verdict. A verdict and the search for a variant together take as long as one query may
    (10 s by default), of which `spent` seconds of the processor are gone. A budget without runs asks for a proof alone.
    """
    left = _SHARE * min(budget.total, budget.steps / STEPS_PER_SECOND) - spent
    if not isinstance(report.verdict, Unknown) or left <= 0 or not budget.runs:
        return report
    found = nearest_proved(kernel, solver, evolve(budget, total=left), cache)
    if found is None:
        return report
    first, *others = report.diagnostics
    lines = tuple(Label(each.at, _REMARKS.get(each.kind, each.text)) for each in found.changes)
    told = f"proved if you {found}; otherwise {first.help}"
    first = evolve(first, help=told, secondary=(*first.secondary, *lines))
    return evolve(report, nearest=found, diagnostics=(first, *others))


def nearest_proved(kernel: Kernel, solver: Solver, budget: Budget, cache: Cache | None = None) -> ProvedVariant | None:
    """The first variant that is proved, or None if none is within the budget.

    budget: `total` is for all variants together, in seconds of the processor. No run is made.
    """
    limits = evolve(budget, steps=min(budget.steps, _QUERY.steps), runs=0)
    search = _Search(kernel, Session(solver, limits, cache))
    with suppress(OutOfTime):  # what is found by then is proved, if perhaps not with the fewest assumptions
        search.run()
    return search.found


@define
class _Search:
    """The variants of a kernel, one after the other, until one is proved. found: the smallest proved one so far."""

    kernel: Kernel
    session: Session
    found: ProvedVariant | None = field(default=None, init=False)

    def run(self) -> None:
        """Tries variants. Raises OutOfTime where the budget is spent; `found` is then what was proved before."""
        analysis, checked = check_obligations(self.kernel, self.session)
        unproved = () if analysis.unmodelled else tuple(each for each in checked if each.standing != "proved")
        values = dict(stored_values(without_claims(self.kernel), self.session))
        likely = self._likely_assumptions(unproved, values)
        wide = any(each.obligation.invariant == "I28" for each in unproved)
        others = (*size_assumptions(self.kernel), *(bounds_of_sizes(self.kernel) if wide else ()))
        conds = tuple(dict.fromkeys((*likely, *others)))
        for changes in _variants(self.kernel, unproved, values, conds, likely):
            if self._proves(changes):
                self._with_fewer_assumptions(changes)
                return

    def _likely_assumptions(
        self, unproved: Sequence[CheckedObligation], values: dict[Buffer, Expr]
    ) -> tuple[Cond, ...]:
        """Those of which unproved goals and values that end with their tensors speak."""
        goals = [each.obligation.goal for each in unproved if not each.obligation.unknown]
        inside = [cond for output, value in values.items() for cond in inside_assumptions(self.kernel, output, value)]
        return tuple(dict.fromkeys((*assumptions_of_goals(self.kernel, goals), *inside)))

    def _proves(self, changes: Sequence[Change]) -> bool:
        """Whether the variant is proved; then it is `found`."""
        said = tuple(described(self.kernel, change) for change in changes)
        tell(f"trying a variant: {' and '.join(each.text for each in said)}")
        report = _proof(varied(self.kernel, changes), self.session)
        if report is not None:
            self.found = ProvedVariant(said, report.uncovered)
        return report is not None

    def _with_fewer_assumptions(self, changes: Sequence[Change]) -> None:
        """Leaves out assumptions that the proof does not need, the strongest first."""
        others = [change for change in changes if not isinstance(change, Assuming)]
        kept = [cond for change in changes if isinstance(change, Assuming) for cond in change.conds]
        for cond in reversed(kept.copy()):
            fewer = [each for each in kept if each is not cond]
            if self._proves([*others, *_assuming(fewer)]):
                kept = fewer


def _proof(kernel: Kernel, session: Session) -> Report | None:
    """The report on a kernel that is proved, else None; no run is made."""
    start = perf_counter()
    analysis, checked = check_obligations(kernel, session)
    if analysis.unmodelled or any(each.standing != "proved" for each in checked):
        return None
    report = report_on(kernel, analysis, session, lambda _: None, start)
    return report if isinstance(report.verdict, Proved) else None


def _variants(
    kernel: Kernel,
    unproved: Sequence[CheckedObligation],
    values: dict[Buffer, Expr],
    conds: Sequence[Cond],
    likely: Sequence[Cond],
) -> Iterator[tuple[Change, ...]]:
    """The variants in the order in which they are tried. likely: assumptions that are tried alone, too."""
    claims = list(_claim_changes(kernel, unproved, values))
    assuming = _assuming(conds)
    if assuming:
        yield assuming
    for cond in likely if len(conds) > 1 else ():
        yield _assuming([cond])
    for edging in edges(kernel):
        yield (edging,)
    for edging in without_edges(kernel) if assuming else ():
        yield (edging, *assuming)
    for change in claims:
        yield (change,)
    for change in claims if assuming else ():
        yield (change, *assuming)


def _assuming(conds: Sequence[Cond]) -> tuple[Change, ...]:
    return (Assuming(tuple(conds)),) if conds else ()


def _claim_changes(
    kernel: Kernel, unproved: Sequence[CheckedObligation], values: dict[Buffer, Expr]
) -> Iterator[Claiming]:
    """Other claims: what outputs hold, beside the kernel's claims and in place of them; weaker claims; fewer."""
    own = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Assert)]
    blamed = tuple(stmt for stmt in own if any(each.obligation.stmt is stmt for each in unproved))
    only = all(isinstance(each.obligation.stmt, Assert) for each in unproved)
    of_tags = tuple(stmt for stmt in own if not isinstance(stmt.claim, Equals | Products))
    for new in _formulas(values):
        for old in dict.fromkeys(((), blamed, of_tags, tuple(own))):
            said = {view.buffer for stmt in own if stmt not in old for view in claim_views(stmt.claim)}
            fresh = tuple(claim for claim in new if old or claim_views(claim)[0].buffer not in said)
            if fresh:
                yield Claiming(old, fresh)
    for stmt in own:
        for weaker in weaker_claims(stmt.claim) if isinstance(stmt.claim, WrittenOnce) else ():
            yield Claiming((stmt,), (weaker,))
    if blamed and only:
        yield Claiming(blamed, ())


def _formulas(values: dict[Buffer, Expr]) -> Iterator[tuple[Claim, ...]]:
    """What each output holds as a claim, as products where it is one; those that are short enough to read."""
    plain = {output: Equals(whole(output), value) for output, value in values.items()}
    listed = {output: as_products(output, value) or plain[output] for output, value in values.items()}
    for made in dict.fromkeys(tuple(each.values()) for each in (listed, plain)):
        short = tuple(claim for claim in made if _is_writable(claim_code(claim)))
        if short:
            yield short


def _is_writable(code: str) -> bool:
    """Whether a claim is one that a user can write, and short enough to read: not all values have names."""
    if len(code) > _LONGEST:
        return False
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return called <= {*_names}
