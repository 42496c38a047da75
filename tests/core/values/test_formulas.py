from __future__ import annotations

import pytest

from argus.core.query import Budget, Unsat
from argus.core.values import equality
from argus.core.values.atoms import NoNormalFormError
from argus.core.values.conditions import Integers
from argus.core.values.equality import Different, Equal, Undecided, equal
from argus.core.values.expr import Expr
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.z3_backend import Z3
from tests.core.values.formulas import Case, attention_cases, softmax_cases
from tests.core.values.more_formulas import element_cases, loop_cases, mask_cases, norm_cases

CASES = {**softmax_cases(), **attention_cases(), **norm_cases(), **element_cases(), **loop_cases(), **mask_cases()}


def proved(held: Expr, case: Case, solver: Solver) -> bool:
    """Whether the held value is the formula, the conditions on integers that are left answered by the solver."""
    answer = equal(held, case.formula, case.facts)
    if isinstance(answer, Undecided) and not answer.reason:
        return all(
            isinstance(each, Integers) and isinstance(solver.check(each.query, Budget.about(1.0)), Unsat)
            for each in answer.conditions
        )
    return isinstance(answer, Equal)


def test_conditions_that_grow_too_large_leave_it_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(iter(CASES.values()))

    def too_large(*_: object) -> None:
        raise NoNormalFormError("the normal form is too large")

    monkeypatch.setattr(equality, "settled", too_large)
    found = equality.by_normal_forms(case.held, case.formula, case.facts)
    assert found == Undecided(frozenset(), "the normal form is too large")


@pytest.mark.share(8)
@pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=["z3", "cvc5"])
@pytest.mark.parametrize("name", CASES)
def test_what_programs_compute_is_the_formula(name: str, solver: Solver) -> None:
    assert proved(CASES[name].held, CASES[name], solver)


@pytest.mark.share(8)
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_twin_has_a_witness(name: str) -> None:
    case = CASES[name]

    answer = equal(case.wrong, case.formula, case.facts)

    assert isinstance(answer, Different)
    assert abs(answer.left - answer.right) > 1e-7 * max(1.0, abs(answer.left))
