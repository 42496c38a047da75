"""`interpret`: outputs are new arrays, and arrays that do not fit are rejected."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import argus
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.interp.interpret import interpret
from argus.runtime.run import inputs_of
from argus.runtime.run_sizes import sizes_of
from argus.verifier.loader import load as load_exported
from property_tests.programs import CORPUS
from tests.interp.programs import gemm
from tests.verifier.switched_off_checks import load

BF16 = np.dtype(ml_dtypes.bfloat16)


def zeros(*shape: int, dtype: npt.DTypeLike = BF16) -> npt.NDArray[Any]:
    return np.zeros(shape, dtype)


def refused(*arrays: Any) -> Diagnostic:  # noqa: ANN401 reason: what a user may pass
    with pytest.raises(ArgusError) as caught:
        interpret(gemm(), *arrays)
    return caught.value.diagnostic


def test_outputs_are_new_arrays() -> None:
    a, b, c = np.ones((3, 8), BF16), np.ones((5, 8), BF16), zeros(3, 5)
    found = interpret(gemm(), a, b, c)
    assert set(found) == {"C"}
    assert (found["C"].astype(np.float32) == 8).all()
    assert not c.any()


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ((zeros(2, 4), zeros(2, 4)), "takes 3 arrays (A, B, C), found 2"),
        (
            (zeros(2, 4, dtype=np.float32), zeros(2, 4), zeros(2, 2)),
            "`A` expects elements of type bfloat16 (bf16), found float32",
        ),
        ((zeros(2, 4, 1), zeros(2, 4), zeros(2, 2)), "`A` expects 2 axes (M, K), found 3"),
        ((zeros(2, 4), zeros(2, 8), zeros(2, 2)), "`B` expects shape (N, K) = (2, 4), found (2, 8)"),
        (([1.0], zeros(2, 8), zeros(2, 2)), "`A` expects a NumPy array, found list"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: tuple[Any, ...], text: str) -> None:
    diagnostic = refused(*arrays)
    assert diagnostic.code == "E401"
    assert text in diagnostic.message


def test_a_broken_assumption_is_shown_with_its_values() -> None:
    diagnostic = refused(zeros(2, 6), zeros(2, 6), zeros(2, 2))
    assert diagnostic.code == "E402"
    assert "does not hold for K = 6" in diagnostic.message
    assert diagnostic.facts == (("K", "6"),)


def test_a_size_of_zero_is_an_assumption_broken_or_nothing_to_do() -> None:
    assert refused(zeros(2, 0), zeros(2, 0), zeros(2, 2)).code == "E402"
    assert interpret(gemm(), zeros(0, 4), zeros(3, 4), zeros(0, 3))["C"].shape == (0, 3)


@pytest.mark.share(2)
@pytest.mark.parametrize(("name", "code"), [("swapped_k_order", "I1"), ("direct_load_not_waited_for", "I31")])
def test_a_violation_is_raised_unless_tags_are_not_checked(name: str, code: str) -> None:
    kernel = load(name).trace()
    arrays = list(inputs_of(kernel, sizes_of(kernel, {}), 0).values())

    with pytest.raises(ArgusError) as caught:
        argus.interpret(kernel, *arrays)
    assert caught.value.diagnostic.code == code
    assert caught.value.diagnostic.primary.span.frame is not None
    assert argus.interpret(kernel, *arrays, tags=False)


def test_violations_of_a_program_are_raised_too() -> None:
    program = load_exported(str(CORPUS / "programs" / "refuted" / "parts_of_other_rows.py"))[0].program
    assert program is not None
    arrays = list(inputs_of(program, {size.name: 64 for size in program.sizes}, 0).values())

    with pytest.raises(ArgusError) as caught:
        argus.interpret(program, *arrays)
    assert caught.value.diagnostic.code.startswith("I")
    assert argus.interpret(program, *arrays, tags=False)
