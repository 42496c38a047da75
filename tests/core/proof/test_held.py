"""What outputs hold, as expressions: the stated formula for corpus kernels, and never for wrong twins."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.check import check
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Kernel
from argus.core.proof.analysis import Analysis, analyse
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.outputs import value_of_output
from argus.core.proof.values.held.terms import exchanged, replaced
from argus.core.query import Budget
from argus.core.values.expr import Reduce, element, reduce_
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from argus.testing.mutation import mutated, named
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


@pytest.mark.share(48)
@pytest.mark.parametrize("name", FORMULAS)
def test_an_output_is_its_formula(name: str) -> None:
    assert agrees(analysed(traced(name)), FORMULAS[name])


WRONG = named(
    [
        "other_operation",
        "other_number",
        "neighbouring_element",
        "constant_element",
        "other_mask",
        "drop_argument",
        "shift_by_one",
        "freeze_symbol",
        "step_symbol",
        "scale_symbol",
        "swap_axes",
        "init_never",
        "one_operand_twice",
    ]
)
"""Edits that change what is computed, wherever they are well-formed and have any effect."""
SAME = {"attention_of_one_wave": ["constant_element: 0.0 for `max_34`"]}
"""Twins that compute the same: a softmax does not depend on the reference of its weights, as far as reals go."""


@pytest.mark.share(160)
@pytest.mark.parametrize(
    "name",
    [
        "rows_less_their_mean",
        pytest.param("attention_of_one_wave", marks=pytest.mark.nightly),
        "scaled_output",
        "split_k_turned",
    ],
)
def test_a_wrong_twin_is_not_its_formula(name: str) -> None:
    kernel = traced(name)
    twins = [each for each in mutated(kernel, WRONG) if not check(each.kernel)]
    some = twins[:: max(1, len(twins) // 24)]

    assert len(some) >= 12
    equal = [each for each in some if agrees(analysed(each.kernel), FORMULAS[name])]
    assert [f"{each.operator}: {each.what}" for each in equal] == SAME.get(name, [])


@pytest.mark.share(3)
def test_a_tile_read_before_it_is_written_has_no_value() -> None:
    kernel = traced("scaled_output")
    (twin,) = mutated(kernel, named(["init_never"]))

    (flow,) = analysed(twin.kernel).flows
    tensor = output(flow.timeline.kernel, "C")

    assert value_of_output(flow, tensor, coordinates(tensor)) is None


def test_roundings_between_inputs_and_output_are_told() -> None:
    (flow,) = analysed(traced("attention_of_one_wave")).flows
    tensor = output(flow.timeline.kernel, "O")

    held = value_of_output(flow, tensor, coordinates(tensor))

    assert held is not None
    assert [each.dtype.name for each in held.roundings] == ["bf16", "bf16"]


def test_a_bound_variable_is_bound_once_after_an_exchange() -> None:
    bound, size = Symbol("~1", "fresh", 0), algebra.sym(Symbol("N", "size", 1))
    top = reduce_("max", bound, 0, size, element("X", algebra.sym(bound)))
    whole = reduce_("sum", bound, 0, size, element("V", algebra.sym(bound)) * element("m"))

    found = exchanged(whole, {element("m"): top})

    assert isinstance(found, Reduce)
    assert replaced(found.body, {found.variable: algebra.const(3)}) is element("V", 3) * top
