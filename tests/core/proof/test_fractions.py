"""Divisors in sums of products: one that is 0 is not cleared."""

from __future__ import annotations

from argus.core.proof.analysis import analyse
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.fractions import cleared
from argus.core.query import Budget
from argus.core.values.expr import element, expr, fn
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from property_tests.programs import CORPUS, templates

X, Y = element("X"), element("Y")


def test_a_divisor_that_is_0_stays() -> None:
    (template,) = templates(CORPUS / "proved" / "softmax_by_the_maximum_of_one_block.py")
    known = Known(analyse(template.trace(), Session(Z3(), Budget.about(1.0))).flows[0], ())

    assert cleared(fn("div", X, fn("sub", Y, Y)), known) is None
    assert cleared(fn("div", X, expr(0)), known) is None
