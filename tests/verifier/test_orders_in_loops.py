"""`assert_order` inside a loop is about all products so far: those of earlier iterations after it, too."""

from __future__ import annotations

import pytest

from argus.core.dsl.kernel import Template
from argus.core.proof.outputs import claims
from argus.core.verdict import Refuted
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import assert_proved, load_edited, without_obligations

IN_ORDER, BACKWARDS, TWO_HALVES = ("2 * k", "2 * k + 1"), ("2 * k + 1", "2 * k"), ("k", "half + k")


def gemm(first: str, second: str) -> Template:
    """Each iteration adds two tiles of these numbers along k, with the claim between them."""
    added = f"add({first})\n        assert_order(acc.tag.k)\n        add({second})\n"
    return load_edited(
        "k_up_to_the_lesser_size",
        ("assert_covers, ", "assert_covers, assert_order, "),
        ("K % 32 == 0, L", "K % 64 == 0, L"),
        ("for k in loop(minimum(K, L) // 32):", "half, acc[:] = K // 64, 0.0\n    def add(k):"),
        ("mma(mm, acc, a, b, init=eq(k, 0))\n", f"mma(mm, acc, a, b)\n    for k in loop(half):\n        {added}"),
    )


@pytest.mark.share(3)
def test_a_sum_in_order_is_proved_to_be_so_in_each_iteration() -> None:
    assert_proved(gemm(*IN_ORDER))


@pytest.mark.share(6)
@pytest.mark.parametrize("order", [BACKWARDS, TWO_HALVES], ids=["backwards", "two halves"])
def test_what_an_earlier_iteration_added_after_the_claim_counts(
    order: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both orders the products before the claim, one an iteration, ascend by themselves."""
    kernel = gemm(*order)
    verdict = verify(kernel, solver="z3").verdict

    assert isinstance(verdict, Refuted), verdict
    assert (verdict.counterexample.code, verdict.counterexample.replayed) == ("I39", "interpreter")
    without_obligations(claims, "sum_order_obligations")(monkeypatch)
    assert_proved(kernel)
