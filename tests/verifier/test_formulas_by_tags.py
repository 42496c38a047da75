"""Outputs are compared with formulas of tensors by their tags: quotients, sums, integers in memory, windows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from argus.core.algebra import const, coord, floordiv, sub, sym
from argus.core.dtype import f32
from argus.core.index import Symbol
from argus.core.ir import Buffer, Strided, whole
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.interpret import interpret
from argus.runtime.cpu.validate import chosen_sizes, small_inputs
from argus.runtime.run_references import compare_run
from argus.verifier.formula_values import Value
from argus.verifier.formulas import contents
from argus.verifier.kernel import verify
from argus.verifier.tagged_arrays import Known, record_of
from property_tests.programs import CORPUS, templates

SEEDS = {
    "attention_of_grouped_heads": 0,
    "box_that_begins_at_a_computed_chunk": 0,
    "columns_left_out": 0,
    "convolution_of_one_wave": 0,
    "convolution_transposed": 0,
    "grouped_experts": 2,
    "grouped_experts_scaled": 2,
    "integers_clamped": 0,
    "layer_norm_in_two_passes": 0,
    "leaky_slope": 0,
    "rows_of_a_table": 0,
    "scaled_by_single_numbers": 0,
}


@pytest.mark.share(12)
@pytest.mark.parametrize("name", SEEDS)
def test_an_output_is_compared_and_a_wrong_element_is_found(name: str) -> None:
    (template,) = templates(CORPUS / "proved" / f"{name}.py")
    kernel, seed = template.trace(), SEEDS[name]
    verdict = verify(kernel, solver="z3", budget=Budget.about(5.0)).verdict
    assert isinstance(verdict, Proved)
    sizes = chosen_sizes(kernel)[0]
    arrays = small_inputs(kernel, sizes, seed)
    made = interpret(kernel, *arrays.values(), tags=False)

    found, left = compare_run(kernel, arrays, made, seed, None, verdict.results, sizes)

    assert left == ()
    assert found is not None
    assert found.right
    assert found.elements > 0
    (output,) = made
    wrong = {output: made[output].copy()}
    wrong[output].flat[0] += 1 + abs(wrong[output].flat[0]) / 8
    found, _ = compare_run(kernel, arrays, wrong, seed, None, verdict.results, sizes)
    assert found is not None
    assert not found.right


def test_elements_without_a_claim_may_hold_anything() -> None:
    """Columns of every other tile are left out."""
    (template,) = templates(CORPUS / "proved" / "columns_left_out.py")
    kernel, sizes = template.trace(), {"M": 8, "K": 16, "N": 48}
    arrays = small_inputs(kernel, sizes, 0)
    made = interpret(kernel, *arrays.values(), tags=False)
    results = ("each element of `C` is bf16(sum over k of A * B)",)
    made["C"][:, 16:32] = np.nan

    found, left = compare_run(kernel, arrays, made, 0, None, results, sizes)

    assert found is not None
    assert (left, found.right, found.elements) == ((), True, 8 * 32)


N = Symbol("N", "size", 0, None)
X = Buffer("X", "global", f32, (sym(N),), Strided((const(1),)))
NUMBERS = np.arange(4.0) + 1
KNOWN = Known({N: 4})


def by(name: str, index: object) -> npt.NDArray[np.float64]:
    record = record_of(((name, index),), whole(X))  # pyright: ignore[reportArgumentType] reason: any expression
    assert record is not None
    return record.over_tags(NUMBERS, KNOWN)


def test_elements_lie_at_their_tags() -> None:
    assert by("n", coord(0)).tolist() == [1, 2, 3, 4]
    assert by("n", sub(sym(N), coord(0))).tolist()[1:] == [4, 3, 2, 1]
    assert np.isnan(by("n", sub(sym(N), coord(0)))[0])
    assert by("n", sub(coord(0), 1)).tolist() == [2, 3, 4]


def test_two_elements_with_one_tag_have_no_value() -> None:
    with pytest.raises(ValueError, match="two elements with the same tags"):
        by("n", floordiv(coord(0), 2))


def test_a_tag_that_no_element_has_is_no_value() -> None:
    record = record_of((("n", coord(0)),), whole(X))
    assert record is not None
    with pytest.raises(ValueError, match="a tag that no element has"):
        record.at_tags(NUMBERS, ["n"], (5,), evolve(KNOWN, sizes={N: 5}))


OF_ONE = Value((), np.asarray(3.0), np.zeros(()), 2.0**-24)
INTEGER = Value((), np.asarray(3.0), np.zeros(()), 0.0)


@pytest.mark.parametrize(
    ("rounding", "operation", "error"),
    [
        ("exp2 to bf16", "exp2", 3.0),
        ("exp2 to bf16", "sum", 0.0),
        ("fma to bf16", "add", 3.0),
        ("max to bf16", "sum", 3.0),
        ("a value to bf16", "sum", 3.0),
    ],
)
def test_the_operation_that_is_rounded_has_the_error_of_its_type(rounding: str, operation: str, error: float) -> None:
    """An operation that the formula does not show may be any of those that it shows."""
    (line,) = (f"each element of `Y` is (sum over k of exp2(X)) + W, rounded on the way: {rounding}",)
    stated = contents([line])["Y"]
    assert stated.rounded(operation, OF_ONE).error == error * 2.0**-8
    named = operation in rounding or rounding.startswith("fma")
    assert stated.rounded(operation, INTEGER).error == (error * 2.0**-8 if named else 0)
