"""Attention and operators along rows on tensors of an AMD GPU: each finds its kernel, proves it, and executes its
machine code on a stand-in; the results are compared with double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.rows import softmax
from argus.kernels.rows.configs_cdna3 import CONFIGS
from argus.kernels.schedules.rows import Block
from argus.language import Fragment
from argus.verifier.kernel import verify
from tests.runtime.hip.rocm_torch import RocmTorch, Tensor

Wide = np.ndarray[Any, np.dtype[np.float64]]
HALF_ULP = {"torch.bfloat16": 2.0**-8, "torch.float16": 2.0**-11, "torch.float32": 2.0**-20}
"""Relative errors of rounding to a type; of f32, of sums of some hundred elements."""
operators: Any = argus


def attended(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> tuple[Wide, Wide, Wide]:
    """Attention and the log-sum-exp, and the sums of the values' magnitudes by their weights."""
    group = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(each.wide, group, axis=1) for each in (k, v))
    scores = q.wide @ np.swapaxes(keys, -1, -2) / np.sqrt(q.shape[3])
    if causal:
        rows, columns = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
        scores = np.where(columns <= rows + k.shape[2] - q.shape[2], scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    sums = weights.sum(axis=-1, keepdims=True)
    lse = (np.log(sums) + top)[..., 0]
    return weights / sums @ values, lse, weights / sums @ np.abs(values)


def check_attention(rocm: RocmTorch, width: int, dtype: str, causal: bool) -> None:
    q = rocm.normal(1, 2, 20, width, dtype=dtype)
    k, v = (rocm.normal(1, 37, 1, width, seed=seed, dtype=dtype).transpose(1, 2) for seed in (1, 2))
    out, lse = operators.attention(q, k, v, causal=causal, return_lse=True)
    expected, logarithms, sizes = attended(q, k, v, causal=causal)
    error = HALF_ULP[dtype]
    assert np.all(np.abs(out.wide - expected) <= 2 * error * (sizes + np.abs(expected)))
    np.testing.assert_allclose(lse.wide, logarithms, rtol=0, atol=4 * error)
    family = f"attention_{width}" + ("_f16" if dtype == "torch.float16" else "")
    assert [each for each, _ in rocm.stub.launches] == [f"{family}_cdna3{'_causal' if causal else ''}_"]
    assert not rocm.stub.findings


def normalised(x: Wide, axes: tuple[int, ...] = (-1,)) -> Wide:
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + 1e-5)


def exponentials(x: Wide) -> Wide:
    return np.exp(x - x.max(axis=-1, keepdims=True))


def rms(x: Wide) -> Wide:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def log_softmax(x: Wide) -> Wide:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


ROWS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Wide], Wide]]] = {
    "softmax": (operators.softmax, lambda x: exponentials(x) / exponentials(x).sum(axis=-1, keepdims=True)),
    "log_softmax": (operators.log_softmax, log_softmax),
    "rms_norm": (operators.rms_norm, rms),
    "layer_norm": (operators.layer_norm, normalised),
    "group_norm": (
        lambda x: operators.group_norm(x, 3),
        lambda x: normalised(x.reshape(x.shape[0], 3, -1)).reshape(x.shape),
    ),
    "row_sum": (operators.row_sum, lambda x: x.sum(axis=-1)),
    "row_mean": (operators.row_mean, lambda x: x.mean(axis=-1)),
    "cumsum": (operators.cumsum, lambda x: np.cumsum(x, axis=-1)),
}
TYPES = ("torch.bfloat16", "torch.float16", "torch.float32")


def check(found: Tensor, expected: Wide, dtype: str, size: float) -> None:
    """size: of what is summed, for the errors of sums."""
    bound = HALF_ULP[dtype] * (2 * np.abs(expected) + 0.01 * size) + 2.0**-20 * size
    assert np.all(np.abs(found.wide - expected) <= bound), np.abs(found.wide - expected).max()


def check_rows(rocm: RocmTorch, name: str, dtype: str, length: int) -> None:
    call, reference = ROWS[name]
    x = rocm.normal(2, 6, length, dtype=dtype)
    check(call(x), reference(x.wide), dtype, float(np.abs(x.wide).sum(axis=-1).max()))
    assert [each.startswith(name) for each, _ in rocm.stub.launches] == [True]
    assert not rocm.stub.findings


def check_sums(rocm: RocmTorch, name: str, length: int) -> None:
    """Norms of sums, and the cross entropy."""
    dtype = "torch.float32"
    x, z = rocm.normal(3, length, dtype=dtype), rocm.normal(3, length, seed=1, dtype=dtype)
    weight = rocm.normal(length, seed=2, dtype=dtype)
    found, sums = getattr(operators, name)(x, weight, residual=z)
    np.testing.assert_array_equal(sums.array, x.array + z.array)
    check(found, ROWS[name][1](sums.wide) * weight.wide, dtype, float(length))
    target = rocm.tensor(np.array([0, length - 1, 3]), "torch.int64")
    loss = operators.cross_entropy(x, target)
    check(loss, -log_softmax(x.wide)[np.arange(3), target.array], dtype, float(length))
    assert not rocm.stub.findings


CASES: dict[str, Callable[[RocmTorch], None]] = {
    **{
        f"attention-{width}-{kind}-{'causal' if causal else 'full'}": partial(
            check_attention, width=width, dtype=f"torch.{kind}", causal=causal
        )
        for width, kind, causal in product((64, 128, 256), ("bfloat16", "float16"), (False, True))
    },
    **{
        f"{name}-{dtype.partition('.')[2]}-{length}": partial(check_rows, name=name, dtype=dtype, length=length)
        for name, dtype, length in product(ROWS, TYPES, (72, 700))
    },
    **{
        f"{name}-of-sums-{length}": partial(check_sums, name=name, length=length)
        for name, length in product(("rms_norm", "layer_norm"), (9, 8200))
    },
}


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_that_of_double_precision(rocm: RocmTorch, name: str) -> None:
    CASES[name](rocm)


REFUSED: dict[str, Callable[[RocmTorch], object]] = {
    "attention with a window or a soft cap": lambda t: operators.attention(*of_heads(t), window=3),
    "attention that is causal, with more queries than keys": lambda t: operators.attention(
        *of_heads(t, keys=2), causal=True
    ),
    "attention of 8-bit operands": lambda t: operators.attention(*of_heads(t, dtype="torch.float8_e4m3fn")),
    "the gradient of attention": lambda t: operators.attention(*of_heads(t, requires_grad=True)),
    "attention_decode": lambda t: operators.attention_decode(
        t.normal(1, 2, 1, 64),
        t.normal(3, 16, 1, 64),
        t.normal(3, 16, 1, 64),
        t.tensor(np.zeros((1, 3)), "torch.int32"),
        t.tensor(np.ones(1), "torch.int32"),
    ),
    "attention_varlen": lambda t: operators.attention_varlen(
        *(t.normal(4, 2, 64) for _ in range(3)),
        *(t.tensor(np.array([0, 4]), "torch.int32") for _ in range(2)),
        max_seqlen_q=4,
    ),
    "scaled_matmul with operands of e4m3": lambda t: scaled(t, "torch.float8_e4m3fn"),
}


def scaled(torch: RocmTorch, dtype: str) -> object:
    """A product of 16 rows with one scale for each matrix."""
    a, b = (torch.whole(16, 128, seed=seed, dtype=dtype) for seed in (0, 1))
    return operators.scaled_matmul(a, b.mT, *(torch.tensor(np.ones(1), "torch.float32") for _ in range(2)))


def of_heads(
    torch: RocmTorch, keys: int = 8, dtype: str = "torch.bfloat16", *, requires_grad: bool = False
) -> tuple[Tensor, ...]:
    made = torch.normal(1, 1, 8, 64, dtype=dtype), *(torch.normal(1, 1, keys, 64, dtype=dtype) for _ in range(2))
    for each in made:
        each.requires_grad = requires_grad
    return made


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_kernel_for_the_device_is_refused(rocm: RocmTorch, name: str) -> None:
    with pytest.raises(ArgusError) as refused:
        REFUSED[name](rocm)
    assert refused.value.diagnostic.code == "E414"
    assert refused.value.diagnostic.message == f"there is no proved kernel for gfx942 of {name}"
    assert not rocm.stub.launches


def unwaited(_block: Block, values: Fragment) -> Fragment:
    return values


def test_rows_that_do_not_wait_for_their_loads_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    config = next(name for name in CONFIGS["bf16"] if "rows4" in name)
    assert type(verify(softmax.softmax_bf16.trace(config)).verdict).__name__ == "Proved"
    monkeypatch.setattr(Block, "_arrived", unwaited)
    assert type(verify(softmax.softmax_bf16.trace(config)).verdict).__name__ == "Refuted"
