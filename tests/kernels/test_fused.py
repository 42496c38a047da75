"""The fused bias and GELU epilogue: proved with the GEMM, stated in the verdict, refuted if it uses other columns."""

from __future__ import annotations

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.
import re
from collections.abc import Callable

import numpy as np
import pytest

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.emit.cuda.text import cuda_text
from argus.interp.run import run
from argus.kernels.fused import gemm_bias_gelu
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import Deferred, TileCoord, gelu, of_each
from argus.kernels.schedules.hopper import Hopper, hopper_cooperative
from argus.language import Fragment, Tensor, bf16, copy, f32, fma, kernel, load, registers, sm_90a, spread, tag
from argus.verifier.kernel import verify


@pytest.mark.share(32)
@pytest.mark.parametrize("config", gemm_bias_gelu.instances())
def test_the_verdict_states_the_formula_of_an_element(config: str) -> None:
    verdict = verify(gemm_bias_gelu, config=config, solver="z3").verdict

    assert isinstance(verdict, Proved)
    told, claimed = verdict.results
    factors = "A * B" if gemm_bias_gelu.configs[config].target is sm_90a else "B * A"
    half = f"(((sum over k of {factors}) * 0.5) + (bias * 0.5))"
    inner = f"{half} * ((({half} * {half}) * 0.285419) + 1.59577)"
    assert told == f"each element of `C` is bf16(({half} * tanh({inner})) + {half})"
    assert claimed.startswith("assert_equals(C, ")


def with_a_bias_of_the_next_columns(of: Callable[[Fragment], Fragment]) -> Kernel:
    @kernel(target=sm_90a, threads=384)
    def shifted(A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16]) -> None:
        tag(bias, lambda n: dict(n=n))
        problem = Contraction(A, B, C)

        def fuse(acc: Fragment, at: TileCoord) -> Deferred:
            held = registers(f32, acc.layout.axis(1))
            copy(bias.tile((acc.shape[1],), (at[1] + 1,)), held, edge=0)
            return lambda: of(fma(acc, 0.5, held * 0.5))

        hopper_cooperative(problem, Hopper(bn=64, stages=2), of_each(fuse))
        problem.finish()

    return shifted.trace()


@pytest.mark.nightly
def test_a_bias_of_the_next_columns_is_refuted() -> None:
    whole = with_a_bias_of_the_next_columns(lambda half: half * 2.0)
    verdict = verify(whole, solver="z3", budget=Budget.about(10.0)).verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == "I2"


@pytest.mark.nightly
def test_a_bias_of_the_next_columns_under_gelu_is_not_proved() -> None:
    """GELU adds a multiple of what it multiplies, which might cancel: so runs do not refute the tags."""
    verdict = verify(with_a_bias_of_the_next_columns(gelu), solver="z3", budget=Budget.about(2.0)).verdict
    assert isinstance(verdict, Unknown)
    assert "a sum over `n`" in verdict.reason


def test_gelu_is_the_tanh_form() -> None:
    @kernel(target=sm_90a, threads=32)
    def apply(X: Tensor["N", f32], Y: Tensor["N", f32]) -> None:
        tag(X, lambda n: dict(n=n))
        half = load(X.tile((64,), (0,)), spread((64,), threads=32, vector=1), edge=0) * 0.5
        copy(gelu(half), Y.tile((64,), (0,)), edge=0)

    x = np.linspace(-6, 6, 64, dtype=np.float32)
    y = run(apply.trace(), {"N": 64}, {"X": x}).arrays["Y"]
    exact = x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x.astype(np.float64) ** 3)))
    assert np.allclose(y, exact, rtol=1e-5, atol=1e-6)


def test_a_vector_is_spread_over_the_registers_that_have_its_columns() -> None:
    text = cuda_text(gemm_bias_gelu.trace("by_rows")).text
    (half,) = set(re.findall(r"= __fmaf_rn\(acc_\[0\], 0\.5f, (\w+)\[0\]\);", text))

    assert f"= __fmaf_rn(acc_[2], 0.5f, {half}[0]);" in text
    assert f"= __fmaf_rn(acc_[5], 0.5f, {half}[3]);" in text
    assert "tanh.approx.f32" in text
