"""What differs where a run refutes a formula: which elements are left out, in place of others, or count otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from argus.core.ir import Kernel
from argus.core.verdict import Refuted
from argus.interp.search.influence import Counted, influence
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates
from tests.verifier.switched_off_checks import load_edited

Array = npt.NDArray[Any]
X: Array = np.random.default_rng(1).standard_normal((4, 8))


def total(of: Array) -> float:
    return float(of.sum())


CASES: dict[
    str, tuple[Callable[[Array], float], Callable[[Array], float], list[tuple[list[tuple[int, int]], float]]]
] = {
    "the same": (lambda x: float(np.exp(x).sum()), lambda x: float(np.exp(x).sum()), []),
    "one left out": (lambda x: total(x[1:2, :7]), lambda x: total(x[1:2]), [([(1, 7)], 0.0)]),
    "a tail left out": (lambda x: total(x[:3]), total, [([(3, n) for n in range(8)], 0.0)]),
    "another in its place": (lambda x: x[0, 1], lambda x: x[2, 1], [([(2, 1)], 0.0), ([(0, 1)], inf)]),
    "two more": (lambda x: total(x[0, :6]), lambda x: total(x[0, :4]), [([(0, 4), (0, 5)], inf)]),
    "one twice": (lambda x: total(x) + x[3, 3], total, [([(3, 3)], 2.0)]),
    "a factor": (lambda x: total(x[2]) / 16, lambda x: total(x[2]) / 8, [([(2, n) for n in range(8)], 0.5)]),
    "a left out factor": (lambda x: x[0, 0], lambda x: x[0, 0] * x[0, 1], [([(0, 1)], 0.0), ([(0, 0)], 1 / X[0, 1])]),
}


def same_as(of: Callable[[Array], float]) -> Callable[[Mapping[str, Array]], float]:
    return lambda arrays: of(arrays["X"])


@pytest.mark.parametrize("name", CASES)
def test_elements_are_told(name: str) -> None:
    run, formula, wanted = CASES[name]
    found = influence(same_as(run), same_as(formula), {"X": X}, ["X"], 200)
    assert found is not None
    assert found.complete
    assert sorted((list(each.elements), float(f"{each.ratio:.3g}")) for each in found.counted) == sorted(
        (places, float(f"{ratio:.3g}")) for places, ratio in wanted
    )


def test_too_few_runs_are_told() -> None:
    run, formula, _ = CASES["another in its place"]
    found = influence(same_as(run), same_as(formula), {"X": X}, ["X"], 7)
    assert found is not None
    assert not found.complete


def test_no_number_is_no_comparison() -> None:
    assert influence(lambda _: float("nan"), lambda _: 0.0, {"X": X}, ["X"], 99) is None
    assert influence(lambda _: 0.0, lambda _: inf, {"X": X}, ["X"], 99) is None


def test_a_tensor_of_one_element() -> None:
    found = influence(lambda held: 2 * float(held["S"]), lambda held: float(held["S"]), {"S": np.ones(())}, ["S"], 9)
    assert found is not None
    assert found.counted == (Counted("S", ((),), 2.0),)


# -- kernels -------------------------------------------------------------------------------------------


def wrong(name: str) -> Kernel:
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    return template.trace()


KERNELS: dict[str, tuple[Callable[[], Kernel], tuple[str, ...], str]] = {
    "another element": (
        lambda: wrong("formula_elements_of_the_first_columns"),
        ("left out: `X`[0, 64]", "also counted: `X`[0, 0]"),
        "(I1)",
    ),
    "a short set": (
        lambda: wrong("formula_mean_of_whole_chunks"),
        ("left out: `X`[0, 256], `X`[0, 257], `X`[0, 258], `X`[0, 259]",),
        "(I3)",
    ),
    "a repeated set": (
        lambda: load_edited(
            "formula_gemm_relu",
            ("A[r, j] * B[c, j]", "where(j < 1, A[r, j] * B[c, j], A[r, j] * B[c, j] / 2)"),
            ("tag, total", "tag, total, where"),
        ).trace(),
        ("counted: `A`[0, 1]", "counted: `B`[0, 1]"),
        "counted more than once (I3)",
    ),
    "another block's scale": (
        lambda: wrong("formula_scale_of_the_first_block"),
        ("left out: `S`[0, 1]", "also counted: `S`[0, 0]"),
        "(I35)",
    ),
    "a constant for a size": (
        lambda: wrong("formula_mean_by_a_constant"),
        ("counted: `X`[0, 0], `X`[0, 1], `X`[0, 2], `X`[0, 3]: 0.01562 times",),
        "a constant in place of a size",
    ),
    "a missing rescale": (lambda: wrong("formula_softmax_not_rescaled"), ("counted: `X`[0, 0]",), "(I23)"),
}


@pytest.mark.share(12)
@pytest.mark.parametrize("name", KERNELS)
def test_a_refutation_says_what_differs(name: str) -> None:
    made, lines, advice = KERNELS[name]
    verdict = verify(made()).verdict
    assert isinstance(verdict, Refuted)
    told = [f"{what}: {text}" for what, text in verdict.counterexample.tags]
    for line in lines:
        assert any(each.startswith(line) for each in told), told
    assert advice in verdict.counterexample.repair
