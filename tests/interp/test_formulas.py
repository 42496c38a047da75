"""Claims of formulas in runs: right kernels violate none at any inputs, and each wrong twin one, at the element.

The kernels are those of tests/corpus/formulas and of tests/corpus/proved; twins are in tests/corpus/refuted.
"""

from __future__ import annotations

from itertools import islice
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from argus.core.dtype import DTYPES, DType, bf16, f32
from argus.core.ir import Kernel
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations, run
from argus.interp.search.schedule import FLOAT_DRAWS, Schedule, compares_elements, directed
from argus.interp.search.search import sizes_in_order
from argus.interp.values.drawn_inputs import KINDS, drawn_floats, kind_of
from argus.interp.values.formulas import differs
from argus.interp.violation import Violation
from argus.language import (
    Tensor,
    assert_equals,
    assume,
    block_id,
    copy,
    f16,
    kernel,
    load,
    sm_90a,
    spread,
)
from property_tests.programs import CORPUS, templates

RIGHT = sorted([*(CORPUS / "formulas").glob("*.py"), *(CORPUS / "proved").glob("formula_*.py")])
WRONG = sorted((CORPUS / "refuted").glob("formula_*.py"))


def named(path: Path) -> str:
    return path.stem


def traced(path: Path) -> Kernel:
    (template,) = templates(path)
    return template.trace()


def violations(made: Kernel, sizes: int) -> list[Violation]:
    """Those of all kinds of inputs, under the first schedule."""
    prepared = Prepared(made)
    tried = FLOAT_DRAWS if compares_elements(made) else FLOAT_DRAWS - 1
    assert [each.draw for each in directed(made)[:tried]] == [*range(tried)]
    draws = [evolve(directed(made)[0], draw=draw) for draw in range(FLOAT_DRAWS)]
    return [
        violation
        for schedule in draws
        for size in islice(sizes_in_order(made), sizes)
        for violation in find_violations(prepared, size, schedule)
    ]


@pytest.mark.share(160, among="interp: formulas")
@pytest.mark.parametrize("path", RIGHT, ids=named)
def test_a_right_kernel_violates_nothing(path: Path) -> None:
    assert violations(traced(path), 8) == []


@pytest.mark.share(160, among="interp: formulas")
@pytest.mark.parametrize("path", WRONG, ids=named)
def test_a_wrong_twin_differs_at_an_element(path: Path) -> None:
    """The ninth sizes are the first of which a row has three chunks, as one twin needs; of packed sequences the first
    ten have no row.
    """
    found = violations(traced(path), 9) or violations(traced(path), 20)
    assert {each.code for each in found} == {"I39"}
    assert all(each.element is not None and each.other is not None for each in found)
    assert {name for each in found for name, _ in each.facts} == {"found", "expected", "inputs"}


@pytest.mark.share(2)
def test_every_kind_of_inputs_tells_twins_apart() -> None:
    shown = {fact for path in WRONG[:4] for each in violations(traced(path), 8) for fact in each.facts}
    assert {text for name, text in shown if name == "inputs"} == {f"{kind}; computed in float64" for kind in KINDS}


@pytest.mark.parametrize("draw", range(FLOAT_DRAWS), ids=[kind_of(draw) for draw in range(FLOAT_DRAWS)])
@pytest.mark.parametrize("dtype", [each for each in DTYPES if each.family == "float"], ids=str)
def test_inputs_are_of_their_type(dtype: DType, draw: int) -> None:
    made = drawn_floats(dtype, (6, 5), np.random.default_rng(0), draw)
    assert made.dtype == dtype.numpy
    assert len(np.unique(made.astype(np.float64))) > 1
    assert drawn_floats(dtype, (0, 5), np.random.default_rng(0), draw).shape == (0, 5)


def test_primes_are_distinct_where_the_type_has_enough() -> None:
    made = drawn_floats(f32, (20, 20), np.random.default_rng(0), KINDS.index("primes"))
    assert len(np.unique(made)) == 400
    assert (made.astype(np.float64) * 4096 % 2 == 1).all()
    assert len(np.unique(drawn_floats(bf16, (5, 5), np.random.default_rng(0), 2).astype(np.float64))) == 25


@kernel(target=sm_90a, threads=32)
def overflowing(X: Tensor["R 256", f16], Y: Tensor["R 256", f16]) -> None:
    """In f16, the product overflows and the sum is rounded; over the reals it is the input."""
    (row,) = block_id((X.shape[0],))
    v = load(X[row].tile((256,), (0,)), spread((256,), threads=32, vector=8))
    copy((v * 60000.0 * 60000.0 + v) / 3600000001.0, Y[row].tile((256,), (0,)))
    assert_equals(Y, lambda r, n: X[r, n])  # pyright: ignore[reportArgumentType]


def test_overflow_of_a_type_is_no_violation() -> None:
    made = overflowing.trace()
    assert violations(made, 2) == []
    rounded = run(made, {"R": 1}, tags=False).arrays["Y"]
    assert not np.isfinite(rounded.astype(np.float64)).all()


@kernel(target=sm_90a, threads=32)
def part_written(X: Tensor["R N", f32], Y: Tensor["R N", f32]) -> None:
    R, N = X.shape
    assume(N % 4 == 0)
    (row,) = block_id((R,))
    by = spread((128,), threads=32, vector=4)
    copy(load(X[row].tile((128,), (0,)), by, edge=0), Y[row].tile((128,), (0,)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n])  # pyright: ignore[reportArgumentType]


def test_an_element_that_is_never_written_violates_the_claim() -> None:
    prepared = Prepared(part_written.trace())
    assert find_violations(prepared, {"R": 2, "N": 128}, Schedule()) == ()
    (found,) = find_violations(prepared, {"R": 2, "N": 132}, Schedule())
    assert (found.code, found.element) == ("I39", (0, 128))
    assert "is never written" in found.message


def test_a_row_of_no_element_is_compared_as_stated() -> None:
    found = violations(traced(CORPUS / "refuted" / "formula_mean_of_none.py"), 4)
    assert {each.message for each in found} == {"element [0] of `Y` is nan, the formula 0"}


@pytest.mark.parametrize(
    ("found", "expected", "allowed", "wrong"),
    [
        (1.0, 1.0 + 1e-9, 1e-8, False),
        (1.0, 1.0 + 1e-7, 1e-8, True),
        (nan, 1.0, 1e-8, True),
        (nan, inf, 0.0, True),
        (inf, inf, 0.0, False),
        (-inf, inf, 0.0, True),
        (1e300, inf, 0.0, True),
        (nan, nan, 0.0, False),
        (1.0, nan, 0.0, False),
        (1.0, 2.0, nan, False),
    ],
)
def test_nan_and_infinity_are_compared(found: float, expected: float, allowed: float, *, wrong: bool) -> None:
    assert differs(*(np.array([each]) for each in (found, expected, allowed))).tolist() == [wrong]


def test_only_equal_elements_tell_which_of_them_a_tie_takes() -> None:
    prepared = Prepared(traced(CORPUS / "refuted" / "formula_arg_max_of_the_last.py"))
    first = directed(prepared.kernel)[0]
    size = {"M": 64, "N": 8}
    found = [bool(list(find_violations(prepared, size, evolve(first, draw=draw)))) for draw in range(FLOAT_DRAWS)]
    assert found == [False, False, False, True]
