"""Claims that list products, proved by what outputs hold; wrong kernels are not."""

from __future__ import annotations

import pytest

from argus.core.proof.outputs import product_formulas
from argus.core.proof.values.held import facts
from argus.core.values.expr import Expr
from argus.core.verdict import Proved
from tests.verifier.switched_off_checks import REFUTED, load, load_edited
from tests.verifier.without_runs import verdict

WAVE, TRANSPOSED, DEPTHWISE = "convolution_of_one_wave", "convolution_transposed", "depthwise_of_a_window"
IN_CLAIM = "            ((b, p * stride + r * dilation - pad, q * stride + s * dilation - pad, c), (o, r, s, c))\n"
OF_PAIR = "((b, p * 2 + r - 1, q * 2 + s - 1, c), (r, s, c)) for r in range(2) for s in range(2)"
TAPS = "    for r in range(2):\n        for s in range(2):\n\n            def"

RIGHT: dict[str, tuple[str, tuple[str, str]]] = {
    "another order of the indices": (WAVE, ("for r, s, c in every(R, S, C)", "for c, s, r in every(C, S, R)")),
    "an index in reverse": (
        WAVE,
        (IN_CLAIM, IN_CLAIM.replace(" c)", " C - 1 - c)")),
    ),
    "a row beyond the filters, which adds nothing": (WAVE, ("every(R, S, C)", "every(R + 1, S, C)")),
    "another order of the products": (DEPTHWISE, ("for r in range(2) for s in", "for s in range(2) for r in")),
    "another order of the taps": (DEPTHWISE, (TAPS, TAPS.replace("range(2)", "(1, 0)"))),
    "factors exchanged": (DEPTHWISE, ("x.to(f32) * f.to(f32)", "f.to(f32) * x.to(f32)")),
    "an empty product": (DEPTHWISE, ("x.to(f32) * f.to(f32)", "x.to(f32) * f.to(f32) + 0.0")),
}
WRONG: dict[str, tuple[str, tuple[str, str]]] = {
    "no dilation": (WAVE, ("return b, p * stride + r * dilation", "return b, p * stride + r")),
    "another padding": (WAVE, ("q * stride + s * dilation - pad, c\n", "q * stride + s * dilation, c\n")),
    "rows for columns": (
        WAVE,
        (
            "(r, s, c) = unflatten(m, (batch, P, Q)), unflatten(k, (R, S, C))",
            "(s, r, c) = unflatten(m, (batch, P, Q)), unflatten(k, (R, S, C))",
        ),
    ),
    "another extent": (WAVE, ("unflatten(k, (R, S, C))", "unflatten(k, (S, R, C))")),
    "the first block of k is lost": (WAVE, ("init=eq(k, 0)", "init=eq(k, 1)")),
    "a block of k is left out": (WAVE, ("loop(ceil_div(depth, 32))", "loop(depth // 32)")),
    "the next filters": (WAVE, ("copy(filters.tile((32, 32), (n, k))", "copy(filters.tile((32, 32), (n, k + 1))")),
    "filters turned in the claim": (WAVE, ("(o, r, s, c))", "(o, s, r, c))")),
    "fewer channels claimed": (WAVE, ("every(R, S, C)", "every(R, S, C - 8)")),
    "twice the sum": (WAVE, ("copy(acc.to(bf16)", "acc += acc\n    copy(acc.to(bf16)")),
    "no wait": (WAVE, ("        vmem.wait(0)\n", "")),
    "gaps of pixels": (TRANSPOSED, ("origin(q + pad - s), c\n", "origin(q + pad), c\n")),
    "one pixel further": (TRANSPOSED, ("return b, origin(p + pad - r)", "return b, origin(p + pad - r + 2)")),
    "taps exchanged": (DEPTHWISE, ("load(F[r, s]", "load(F[s, r]")),
    "a tap twice": (DEPTHWISE, ("load(F[r, s]", "load(F[r, 0]")),
    "a difference": (DEPTHWISE, ("total += x", "total -= x")),
    "a square": (DEPTHWISE, ("x.to(f32) * f.to(f32)", "x.to(f32) * x.to(f32)")),
    "a sum": (DEPTHWISE, ("x.to(f32) * f.to(f32)", "x.to(f32) + f.to(f32)")),
    "half of it": (DEPTHWISE, ("x.to(f32) * f.to(f32)", "x.to(f32) * f.to(f32) * 0.5")),
    "one more": (DEPTHWISE, ("x.to(f32) * f.to(f32)", "x.to(f32) * f.to(f32) + 1.0")),
    "a product that is listed twice": (DEPTHWISE, ("for r in range(2) for", "for r in (0, 1, 1) for")),
    "a product that is not listed": (DEPTHWISE, ("for r in range(2) for", "for r in range(1) for")),
    "the other coordinates": (DEPTHWISE, (OF_PAIR, OF_PAIR.replace("(r, s, c))", "(s, r, c))"))),
    "blocks without a store": (DEPTHWISE, ("block_id((ceil_div(batch * P * Q, 16)", "block_id((batch * P * Q // 16")),
    "no wait for the loads": (DEPTHWISE, ("            vmem.wait(0)\n", "")),
}


@pytest.mark.share(128, among="verifier: product claims")
@pytest.mark.parametrize("name", RIGHT)
def test_products_are_proved_by_values(name: str) -> None:
    kernel, edit = RIGHT[name]
    assert isinstance(verdict(load_edited(kernel, edit).trace()), Proved)


@pytest.mark.share(128, among="verifier: product claims")
@pytest.mark.parametrize("name", WRONG)
def test_other_products_are_not_proved(name: str) -> None:
    kernel, edit = WRONG[name]
    assert not isinstance(verdict(load_edited(kernel, edit).trace()), Proved)


@pytest.mark.share(3)
def test_the_comparison_is_what_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_formulas, "difference", equal)
    assert isinstance(verdict(load("depthwise_of_one_tap_twice").trace()), Proved)


@pytest.mark.nightly
def test_a_flattened_sum_is_compared_by_its_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "by_digits", itself)
    assert not isinstance(verdict(load(WAVE, REFUTED.parent / "proved").trace()), Proved)


def equal(*_: object) -> str:
    return ""


def itself(value: Expr, _: object) -> Expr:
    return value
