"""Fused epilogues: proved with the GEMM, stated in the verdict, refuted if they use other elements."""

from __future__ import annotations

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.
import re
from itertools import count
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.run import run
from argus.kernels.epilogues import gemm_bias, gemm_bias_relu, gemm_bias_silu, gemm_scaled
from argus.kernels.gated import gemm_gated_silu
from argus.kernels.residual import gemm_residual
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import Deferred, TileCoord, of_each, silu, with_bias
from argus.kernels.schedules.hopper import Fetch, Hopper, hopper_cooperative
from argus.language import (
    Fragment,
    Int,
    Ring,
    Slot,
    Template,
    Tensor,
    bf16,
    copy,
    f32,
    kernel,
    ldmatrix,
    load,
    shared,
    sm_90a,
    spread,
    tag,
    tma,
)
from argus.verifier.kernel import verify

GATE = "(sum over k of A * W)"
SUM = "(sum over k of A * B)"
FORMULAS = (
    (gemm_bias, f"{SUM} + bias)"),
    (gemm_bias_relu, f"max(({SUM} + bias), 0))"),
    (gemm_bias_silu, f"((({SUM} + bias) * 0.5) * tanh(({SUM} + bias) * 0.5)) + (({SUM} + bias) * 0.5))"),
    (gemm_scaled, f"{SUM} * alpha)"),
    (gemm_residual, f"{SUM} + R)"),
    (gemm_gated_silu, f"((({GATE} * 0.5) * tanh({GATE} * 0.5)) + ({GATE} * 0.5)) * (sum over k of A * V))"),
)
SMALL = Hopper(bn=64, stages=2)
SIZES = {"M": 72, "N": 72, "K": 40}


@pytest.mark.share(80)
@pytest.mark.parametrize(
    ("template", "formula", "config"),
    [(template, formula, config) for template, formula in FORMULAS for config in template.instances()],
    ids=[f"{template.name}-{config}" for template, _ in FORMULAS for config in template.instances()],
)
def test_the_verdict_states_the_formula_of_an_element(template: Template, formula: str, config: str) -> None:
    verdict = verify(template, config=config, solver="z3").verdict

    assert isinstance(verdict, Proved)
    told, claimed = verdict.results
    assert told == f"each element of `C` is bf16({formula if of_hopper(template, config) else turned(formula)}"
    assert claimed.startswith("assert_equals(C, ")


def of_hopper(template: Template, config: str) -> bool:
    return template.configs[config].target is sm_90a


def turned(formula: str) -> str:
    """With the factors of products as MI300X takes them, which multiplies C^T."""
    return re.sub(r"A \* ([BWV])", r"\1 * A", formula)


# -- twins ---------------------------------------------------------------------------------------------------


def proved(traced: Kernel) -> bool:
    """Whether it is, without a search for a run that fails: `tests/corpus` has smaller ones that are refuted."""
    return isinstance(verify(traced, solver="z3", budget=Budget.about(0.1)).verdict, Proved)


def residual(*, columns: int = 0, early: bool = False) -> Kernel:
    """The shipped one, small: so many columns of boxes off, or with the tile of R given back before it is read."""

    @kernel(target=sm_90a, threads=384)
    def added(A: Tensor["M K", bf16], B: Tensor["N K", bf16], R: Tensor["M N", bf16], C: Tensor["M N", bf16]) -> None:
        tag(R, lambda m, n: dict(m=m, n=n))
        problem = Contraction(A, B, C)
        held = Ring(2, r=shared(bf16, (2, 128, 64), swizzle=128))
        slots, seen = list[Slot](), count()

        def fetch(m: Int, n: Int) -> None:
            with held.fill() as slot:
                for j in range(2):
                    copy(R.tile((128, 64), (m, 2 * n + j + columns)), slot.r[j], via=tma, edge=0)

        def fuse(acc: Fragment, at: TileCoord) -> Deferred:
            def made() -> Fragment:
                j = next(seen)
                if early and j == 0:
                    held.release()
                part = load(slots[0].r[j].tile((64, 64), (at[0] % 2, 0)), acc.layout, via=ldmatrix.x4)
                if j == 1 and not early:
                    held.release()
                return acc + part.to(f32)

            return made

        also = Fetch(fetch, lambda: slots.append(held.wait()), held.finish)
        hopper_cooperative(problem, Hopper(bn=128, stages=2), of_each(fuse), also)
        problem.finish()

    return added.trace()


@pytest.mark.nightly
def test_a_residual_of_other_columns_or_released_early_is_not_proved() -> None:
    assert proved(residual())
    assert not proved(residual(columns=1))
    assert not proved(residual(early=True))


@pytest.mark.nightly
def test_a_bias_of_the_next_columns_is_not_proved() -> None:
    @kernel(target=sm_90a, threads=384)
    def shifted(A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16]) -> None:
        tag(bias, lambda n: dict(n=n))
        problem = Contraction(A, B, C)
        own = with_bias(bias, silu)
        hopper_cooperative(problem, SMALL, lambda _: lambda acc, at: own(acc, (at[0], at[1] + 1)))
        problem.finish()

    assert not proved(shifted.trace())


# -- numbers -------------------------------------------------------------------------------------------------


def drawn(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(bfloat16)


def test_a_gate_multiplies_by_silu() -> None:
    m, n, k = SIZES.values()
    a, w, v = drawn(m, k), drawn(n, k, seed=1), drawn(n, k, seed=2)

    found = run(gemm_gated_silu.instance(SMALL, "small"), SIZES, {"A": a, "W": w, "V": v}).arrays["C"]

    gate, value = (a.astype(np.float64) @ each.astype(np.float64).T for each in (w, v))
    exact = gate / (1 + np.exp(-gate)) * value
    assert np.allclose(found.astype(np.float64), exact, rtol=2.0**-7, atol=2.0**-8)


def test_a_residual_is_added_to_every_element() -> None:
    m, n, k = SIZES.values()
    a, b, r = drawn(m, k), drawn(n, k, seed=1), drawn(m, n, seed=2)

    found = run(residual(), SIZES, {"A": a, "B": b, "R": r}).arrays["C"]

    exact = a.astype(np.float64) @ b.astype(np.float64).T + r.astype(np.float64)
    assert np.allclose(found.astype(np.float64), exact, rtol=2.0**-8, atol=2.0**-10)


def test_silu_is_its_logistic_form() -> None:
    @kernel(target=sm_90a, threads=32)
    def apply(X: Tensor["N", f32], Y: Tensor["N", f32]) -> None:
        tag(X, lambda n: dict(n=n))
        copy(silu(load(X.tile((64,), (0,)), spread((64,), threads=32, vector=1), edge=0)), Y.tile((64,), (0,)), edge=0)

    x = np.linspace(-9, 9, 64, dtype=np.float32)
    y = run(apply.trace(), {"N": 64}, {"X": x}).arrays["Y"]
    assert np.allclose(y, x / (1 + np.exp(-x.astype(np.float64))), rtol=1e-5, atol=1e-6)
