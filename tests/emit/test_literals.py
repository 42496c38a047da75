"""Numbers in element-wise expressions mean the same in emitted text and in the interpreter: they take the type of the
other operand, rounded to it.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from argus.core.dtype import DType, bf16, f16
from argus.emit import arithmetic
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import hip_text
from argus.interp.interpret import interpret
from argus.language import Tensor, ceil_div, copy, gfx942, kernel, load, maximum, sm_90a, spread, vmem, where
from tests.emit import host

executed = pytest.mark.skipif(not host.available(), reason="runs emitted text on 64-bit Linux")
OF = {"bf16": bf16, "f16": f16}
COUNT = 1 << 16


def body(X: Tensor, Y: Tensor) -> None:
    """Four expressions, one for each slab of Y."""
    x = load(X.tile((256, 256), (0, 0)), spread((256, 256), threads=256, vector=8))
    vmem.wait(0)
    row, _ = x.index
    for place, y in enumerate(
        (
            x * 1.01,
            x * 100000.0,
            where(x <= 0.3, maximum(x, -0.7), 3.3),
            where(row <= 127, x * (row + 1) - 0.1, x / 3.0 + ceil_div(row, 3)),
        )
    ):
        copy(y, Y.tile((256, 256), (place, 0)))


@kernel(target=gfx942, threads=256)
def of_bf16(X: Tensor["256 256", bf16], Y: Tensor["1024 256", bf16]) -> None:
    body(X, Y)


@kernel(target=gfx942, threads=256)
def of_f16(X: Tensor["256 256", f16], Y: Tensor["1024 256", f16]) -> None:
    body(X, Y)


def every_number(dtype: DType) -> host.Array:
    return np.arange(COUNT, dtype=np.uint16).view(dtype.numpy).reshape(256, 256)


def bits(values: host.Array) -> host.Array:
    """The bits of the numbers, and one pattern for all NaN."""
    return np.where(np.isnan(values.astype(np.float32)), 0x7FFF, values.view(np.uint16))


@pytest.mark.share(6)
@executed
@pytest.mark.parametrize("name", list(OF))
def test_every_number_of_16_bits(name: str, tmp_path: Path) -> None:
    made = {"bf16": of_bf16, "f16": of_f16}[name].trace()
    x, y = every_number(OF[name]), np.zeros((1024, 256), OF[name].numpy)
    host.run_kernel(made, (x, y), {}, tmp_path)
    with np.errstate(all="ignore"):
        wanted = interpret(made, x, np.zeros_like(y))["Y"]
        single = (x.astype(np.float32) * np.float32(1.01)).astype(OF[name].numpy)

    for place in range(4):
        slab = slice(256 * place, 256 * place + 256)
        np.testing.assert_array_equal(bits(y[slab]), bits(wanted[slab]))
    assert (bits(single) != bits(y[:256])).any(), "1.01 as an f32 is another number"


def test_a_number_is_rounded_when_it_is_emitted() -> None:
    assert arithmetic.literal(1.01, bf16)[0] == f"{float(ml_dtypes.bfloat16(1.01))!r}f" == "1.0078125f"
    assert arithmetic.literal(100000.0, f16)[0] == "__builtin_inff()"
    assert arithmetic.literal(-0.1, f16)[0] == "(-0.099975586f)"
    assert arithmetic.literal(-0.0, bf16)[0] == "(-0.0f)"
    assert "* 1.0078125f" in hip_text(of_bf16.trace())
    assert "* __builtin_inff()" in hip_text(of_f16.trace())


def test_both_targets_have_the_same_numbers() -> None:
    @kernel(target=sm_90a, threads=256)
    def made(X: Tensor["256 256", bf16], Y: Tensor["256 256", bf16]) -> None:
        x = load(X.tile((256, 256), (0, 0)), spread((256, 256), threads=256, vector=8))
        copy(x * 1.01, Y)

    assert "(bf16)((f32)x_[value] * 1.0078125f)" in cuda_text(made.trace()).text
