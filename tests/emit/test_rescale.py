"""`rescale`: the same assignment as a product in place; on gfx942 a wave of which all factors are 1 skips it."""

# ruff: noqa: UP037
# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false
# Reason: names of sizes in annotations.

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.ir import Buffer, Get, Kernel, Map, Op, Policy
from argus.core.target import Target
from argus.core.verdict import Proved
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.skipped import unless_ones
from argus.emit.hip.text import hip_text
from argus.emit.hip.toolchain import compile_hip
from argus.emit.scope import scope_of
from argus.interp.interpret import interpret
from argus.kernels.attention import attention_64
from argus.language import (
    Tensor,
    assert_equals,
    block_id,
    ceil_div,
    copy,
    elements,
    f32,
    gfx942,
    kernel,
    load,
    registers,
    rescale,
    sm_90a,
    spread,
    vmem,
    where,
)
from argus.runtime.cpu.validate import validate
from argus.runtime.machine.validate import validate_code
from argus.verifier.kernel import verify

BY = spread((32, 64), threads=128, vector=4)
SIZES = {"M": 72}
"""Three blocks: in the first all factors are 1, in the second those of some rows."""


def scaled(target: Target) -> Kernel:
    @kernel(target=target, threads=128)
    def by_rows(X: Tensor["M 64", f32], F: Tensor["M", f32], Y: Tensor["M 64", f32]) -> None:
        (m,) = block_id((ceil_div(X.shape[0], 32),))
        held = registers(f32, BY)
        rows = load(X.tile((32, 64), (m, 0)), BY, edge=0)
        factors = load(F.tile((32,), (m,)), BY.axis(0), edge=0)
        if target is gfx942:
            vmem.wait(0)
        held[:] = rows
        (row,) = factors.index
        rescale(held, where(32 * m + row < 40, 1.0, factors))
        copy(held, Y.tile((32, 64), (m, 0)), edge=0)
        x, f = elements(X), elements(F)
        assert_equals(Y, lambda r, c: where(r < 40, x(r, c), x(r, c) * f(r)))

    return by_rows.trace()


@pytest.mark.share(2)
@pytest.mark.parametrize("target", [gfx942, sm_90a], ids=str)
def test_it_is_a_product_to_every_claim(target: Target) -> None:
    made = scaled(target)
    at = next(n for n, stmt in enumerate(made.body) if isinstance(stmt, Policy))
    product = made.body[at + 1]

    assert isinstance(product, Map)
    assert isinstance(product.elem, Op)
    assert product.elem.name == "mul"
    assert isinstance(verify(made, solver="z3").verdict, Proved)


def test_the_interpreter_multiplies() -> None:
    random = np.random.default_rng(0)
    x, f = random.standard_normal((72, 64), np.float32), random.standard_normal(72, np.float32)
    found = interpret(scaled(gfx942), x, f, np.zeros_like(x), tags=False)["Y"]

    np.testing.assert_array_equal(found, np.where(np.arange(72) < 40, 1, f).astype(np.float32)[:, None] * x)


def test_a_wave_votes_on_gfx942_alone() -> None:
    text = hip_text(scaled(gfx942))

    assert text.count("if (some_lane(") == 1
    assert "__builtin_amdgcn_ballot_w64(reason) != 0" in text
    assert "some_lane" not in cuda_text(scaled(sm_90a)).text


def test_a_product_of_other_elements_is_not_skipped() -> None:
    """To skip it would leave out that they are copied."""
    made = scaled(gfx942)
    at = next(n for n, stmt in enumerate(made.body) if isinstance(stmt, Policy))
    product = made.body[at + 1]
    assert isinstance(product, Map)
    assert isinstance(product.elem, Op)
    own, factor = product.elem.args
    assert isinstance(own, Get)
    other = evolve(product, elem=Op("mul", (evolve(own, at=(own.at[0], algebra.bit_xor(own.at[1], 1))), factor)))

    assert unless_ones(product, ["multiply;"], scope_of(made))[0].startswith("if (some_lane(")
    assert unless_ones(other, ["multiply;"], scope_of(made)) == ["multiply;"]


def test_the_text_and_the_machine_code_compute_the_same() -> None:
    made = scaled(gfx942)
    for found in (validate(made, [SIZES], seeds=2), validate_code(made, [SIZES], seeds=2)):
        assert found.trials
        assert all(each.right for each in found.trials)


@pytest.mark.share(96)
def test_sums_that_a_loop_changes_need_fewer_wait_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = attention_64.trace("cdna3")

    def wait_states() -> int:
        return compile_hip(hip_text(made), "made", tmp_path, 120).assembly_text.count("s_nop")

    written_out = wait_states()
    monkeypatch.setattr("argus.emit.hip.text._changed", unchanged)

    assert written_out < 0.9 * wait_states()


def unchanged(_kernel: Kernel) -> frozenset[Buffer]:
    return frozenset()
