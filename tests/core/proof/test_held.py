"""What outputs hold, as expressions: the stated formula for corpus kernels, and never for wrong twins."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Kernel
from argus.core.proof.analysis import Analysis, analyse
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.outputs import value_of_output
from argus.core.query import Budget
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from property_tests.programs import CORPUS, templates
from tests.core.proof.held_formulas import FORMULAS, Expected, sizes


def traced(name: str) -> Kernel:
    (template,) = templates(CORPUS / "proved" / f"{name}.py")
    return template.trace()


def analysed(kernel: Kernel) -> Analysis:
    return analyse(kernel, Session(Z3(), Budget.about(1.0)))


def coordinates(tensor: Buffer) -> list[Index]:
    return [algebra.sym(Symbol(f"at{axis}", "fresh", 0)) for axis in range(len(tensor.shape))]


def output(kernel: Kernel, name: str) -> Buffer:
    return next(each for each in kernel.parameters if each.name == name)


def agrees(analysis: Analysis, expected: Expected) -> bool:
    """Whether the output is the formula on every control path."""
    for flow in analysis.flows:
        tensor = output(flow.timeline.kernel, expected.output)
        at = coordinates(tensor)
        held = value_of_output(flow, tensor, at)
        if held is None:
            return False
        formula = expected.formula(sizes(flow.timeline.kernel), at)
        if held.adds or not all(Known(flow, case.given).equal(case.value, formula) for case in held.cases):
            return False
    return bool(analysis.flows)


@pytest.mark.share(6)
@pytest.mark.parametrize("name", FORMULAS)
def test_an_output_is_its_formula(name: str) -> None:
    assert agrees(analysed(traced(name)), FORMULAS[name])
