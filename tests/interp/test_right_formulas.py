"""Kernels of the corpus that are proved, with a formula of what they compute: no run refutes it.

A formula with one wrong edit is refuted in the same runs. The kernels are proved by their tags, so they are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from argus.core.ir import Kernel
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.schedule import FLOAT_DRAWS, directed
from argus.interp.search.search import sizes_in_order
from argus.interp.violation import Violation
from property_tests.programs import CORPUS
from tests.claimed_kernels import with_formula

SOFTMAX = "AL.total(lambda t: {weight} * V[e, t], over={keys}) / AL.total(lambda t: {weight}, over={keys})"
SCORE = "AL.exp2(AL.total(lambda d: Q[s, d] * K[t, d], over=16) / 4)"
_KEYS = "K.shape[0]"
PRODUCT = "lambda m, n: AL.total(lambda k: A[m, k] * B[n, k], over=A.shape[1])"
_MEAN = "AL.total(lambda j: X[r, j], over=X.shape[1]) / X.shape[1]"
_VARIANCE = f"AL.total(lambda j: (X[r, j] - {_MEAN}) ** 2, over=X.shape[1]) / X.shape[1]"
LAYER_NORM = f"lambda r, n: (X[r, n] - {_MEAN}) * AL.rsqrt({_VARIANCE} + 1e-5) * G[n] + B[n]"
_WINDOW = (
    "lambda r, s, c: X.gather(X.shape, lambda *i: i, outside=0.0)[b, 2 * p + r - 1, 2 * q + s - 1, c] * F[o, r, s, c]"
)
_SUM = "AL.total(lambda k: A[m, k] * {}[n, k], over=A.shape[1])"
CASES: dict[str, tuple[str, str, tuple[str, str]]] = {
    "attention_of_one_wave": (
        "O",
        "lambda s, e: " + SOFTMAX.format(weight=SCORE, keys="K.shape[0]"),
        ("/ 4)", "/ 3)"),
    ),
    "attention_causal": (
        "O",
        "lambda s, e: " + SOFTMAX.format(weight=SCORE, keys="AL.minimum(K.shape[0], K.shape[0] - Q.shape[0] + s + 1)"),
        ("+ s + 1)", "+ s + 2)"),
    ),
    "attention_of_grouped_heads": (
        "O",
        "lambda h, s, e: "
        + SOFTMAX.format(
            weight="AL.exp2(AL.total(lambda d: Q[h, s, d] * K[h // (Q.shape[0] // K.shape[0]), t, d], over=16) / 4)",
            keys="K.shape[1]",
        ).replace("V[e, t]", "V[h // (Q.shape[0] // K.shape[0]), e, t]"),
        ("V[h // (Q.shape[0] // K.shape[0]), e, t]", "V[0, e, t]"),
    ),
    "layer_norm_in_two_passes": ("Y", LAYER_NORM, (" + B[n]", " - B[n]")),
    "layer_norm_merged": ("Y", LAYER_NORM, ("** 2, over=X.shape[1]) / X.shape[1]", "** 2, over=X.shape[1]) / 256")),
    "rows_less_their_mean": ("Y", f"lambda r, n: X[r, n] - {_MEAN}", ("/ X.shape[1]", "/ (X.shape[1] + 1)")),
    "scan_of_rows": ("Y", "lambda r, n: AL.total(lambda j: X[r, j], over=n + 1)", ("over=n + 1", "over=n")),
    "batched": (
        "C",
        "lambda b, m, n: AL.total(lambda k: A[b, m, k] * B[b, n, k], over=A.shape[2])",
        ("B[b, n, k]", "B[0, n, k]"),
    ),
    "convolution_of_one_wave": (
        "Y",
        f"lambda b, p, q, o: AL.total({_WINDOW}, over=(F.shape[1], F.shape[2], F.shape[3]))",
        ("2 * p + r - 1", "2 * p + r"),
    ),
    "scales_of_blocks": (
        "P",
        "lambda b, m, n: SA[b, m] * SB[b, n] * AL.total(lambda k: A[m, k] * B[n, k], over=(64 * b, 64 * b + 64))",
        ("SB[b, n]", "SB[b, 0]"),
    ),
    "gated_by_its_own_columns": (
        "C",
        f"lambda m, n: {_SUM.format('W')} * {_SUM.format('V')} / (1 + AL.exp(-{_SUM.format('W')}))",
        ("AL.exp(-", "AL.exp("),
    ),
    "rows_scaled_to_e4m3": ("Z", "lambda r, n: X[r, n] / S[r]", ("/ S[r]", "* S[r]")),
    "split_k_in_a_cluster": ("C", PRODUCT, ("B[n, k]", "A[m, k]")),
    "pingpong": ("C", PRODUCT, ("over=A.shape[1]", "over=(1, A.shape[1])")),
}


def traced(name: str, formula: str) -> Kernel:
    return with_formula(CORPUS / "proved" / f"{name}.py", CASES[name][0], formula)


def violations(made: Kernel, draws: int, sizes: int) -> Iterator[Violation]:
    prepared = Prepared(made)
    for schedule in directed(made)[:draws]:
        for size in islice(sizes_in_order(made), sizes):
            yield from find_violations(prepared, size, schedule)


@pytest.mark.share(56, among="interp: right formulas")
@pytest.mark.parametrize("name", CASES)
def test_a_right_formula_is_not_refuted(name: str) -> None:
    assert next(violations(traced(name, CASES[name][1]), FLOAT_DRAWS, 6), None) is None


@pytest.mark.share(56, among="interp: right formulas")
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_formula_is(name: str) -> None:
    _, formula, (old, new) = CASES[name]
    assert old in formula
    found = next(violations(traced(name, formula.replace(old, new)), 1, 60), None)
    assert found is not None
    assert found.code == "I39"
