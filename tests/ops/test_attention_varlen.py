"""`argus.attention_varlen` without a GPU: operands, and what is launched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from math import inf, log
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from attrs import define, evolve

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.call_path import Plan
from argus.ops.constants import constant
from tests.ops.fake_torch import Matrix, gpu

module = import_module("argus.ops.attention_varlen")
varlen: Any = argus.attention_varlen


@define
class Rows(Matrix):
    """Packed rows, or offsets."""

    def transpose(self, first: int, second: int, /) -> Self:
        return evolve(self, array=np.swapaxes(self.array, first, second))

    def new_full(self, shape: tuple[int, ...], value: float, *, dtype: object = None) -> Self:
        return evolve(self, array=np.full(shape, value), dtype=str(dtype or self.dtype))


def tensor(*shape: int, dtype: str = "torch.bfloat16") -> Rows:
    return Rows(np.zeros(shape, np.int32 if dtype == "torch.int32" else np.uint16), dtype)


def operands(rows: int = 30, keys: int = 50, width: int = 128) -> dict[str, Any]:
    k, v = (tensor(keys, 2, width) for _ in range(2))
    starts = {f"cu_seqlens_{name}": tensor(4, dtype="torch.int32") for name in "qk"}
    return {"q": tensor(rows, 8, width), "k": k, "v": v, **starts, "max_seqlen_q": 20}


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Plan, tuple[Any, ...]]]]:
    """The plans and operands of all launches, of which none is made."""
    made: list[tuple[Plan, tuple[Any, ...]]] = []

    def launch(plan: Plan, given: tuple[Any, ...], unproved: str) -> tuple[tuple[Rows, Rows], None]:
        assert unproved == "refuse"
        made.append((plan, given))
        out, lse = (tensor(*shape) for shape, _ in plan.results)
        return (out, lse), None

    def full(shape: tuple[int, ...], value: float, *, dtype: object, device: str) -> Rows:
        assert (dtype, device) == (np.float32, "cuda:0")
        return Rows(np.full(shape, value), "torch.float32")

    capturing = SimpleNamespace(is_current_stream_capturing=lambda: False, get_device_properties=gpu(9))
    fake = SimpleNamespace(cuda=capturing, is_grad_enabled=lambda: True, float32=np.float32, full=full)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(module, "launch", launch)
    constant.cache_clear()
    yield made
    constant.cache_clear()


def test_rows_are_views_and_offsets_are_checked_on_the_gpu(plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    given = operands()
    assert varlen(**given).shape == (30, 8, 128)
    assert [each.shape for each in varlen(**given, causal=True, return_lse=True, promises="fetch", scale=0.5)] == [
        (30, 8, 128),
        (8, 30),
    ]

    (plan, passed), (other, others) = plans
    assert dict(plan.sizes) == {"H": 8, "S": 30, "G": 2, "T": 50, "N": 4, "sequences": 3, "longest": 20}
    assert [each.config for each in (*plan.candidates, *other.candidates)] == ["full", "causal"]
    assert (plan.promises, other.promises, plan.strided) == ("stop", "fetch", ("Q", "K", "V"))
    named = plan.named(*passed, *(tensor(*shape) for shape, _ in plan.results))
    assert [named[name].shape for name in ("Q", "K", "V", "O", "LSE")] == [
        (8, 30, 128),
        (2, 50, 128),
        (2, 50, 128),
        (30, 8, 128),
        (8, 30),
    ]
    assert named["starts_q"] is given["cu_seqlens_q"]
    assert float(others[-1].array[0]) == 0.5 / log(2.0)


@pytest.mark.parametrize(("rows", "keys"), [(0, 50), (30, 0)])
def test_without_queries_or_keys_nothing_is_launched(plans: list[Any], rows: int, keys: int) -> None:
    out, lse = varlen(**operands(rows, keys), return_lse=True)
    assert not plans
    assert (out.shape, lse.shape) == ((rows, 8, 128), (8, rows))
    assert bool((out.array == 0).all())
    assert bool((lse.array == -inf).all())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tensor": ({"q": 3}, "`q` is not a torch tensor"),
    "other axes": ({"k": tensor(2, 50, 2, 128)}, "`k` expects 3 axes"),
    "another width": ({"q": tensor(30, 8, 64)}, "heads of 64 elements of `q` and 128 of `k`"),
    "a width without a kernel": (operands(width=96), "heads of 96 elements"),
    "other values": ({"v": tensor(49, 2, 128)}, "expected equal shapes"),
    "heads that do not divide": ({"q": tensor(30, 7, 128)}, "7 heads of `q` for 2 of `k`"),
    "offsets in 64 bits": ({"cu_seqlens_q": tensor(4, dtype="torch.int64")}, "expects torch.int32"),
    "unlike offsets": ({"cu_seqlens_k": tensor(5, dtype="torch.int32")}, "4 offsets of queries and 5 of keys"),
    "one offset": ({"cu_seqlens_q": tensor(1, dtype="torch.int32")}, "expected one axis of at least 2"),
    "no queries at most": ({"max_seqlen_q": 0}, "`max_seqlen_q` is 0"),
    "no number": ({"max_seqlen_q": 3.0}, "`max_seqlen_q` is 3.0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_operands_are_refused(plans: list[Any], name: str) -> None:
    changed, said = WRONG[name]
    with pytest.raises(ArgusError, match=said) as caught:
        varlen(**{**operands(), **changed})
    assert caught.value.diagnostic.code == "E401"
    assert not plans
