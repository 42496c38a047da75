"""Operators on tensors of the CPU, whose kernels the interpreter runs, against torch in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import argus
from argus.core.diagnostic import ArgusError
from argus.ops import call_path
from argus.runtime import launch_gate
from tests.ops.fake_torch import verified_as
from tests.torch.operands import normal, plain

Case = tuple[Callable[[], Any], Callable[[], torch.Tensor]]


def matrices(kind: torch.dtype, *batch: int) -> Case:
    a, b = normal(*batch, 24, 64, dtype=kind), normal(64, 40, dtype=kind, seed=1)
    return lambda: argus.matmul(a, b), lambda: a.double() @ b.double()


def rows(name: str, exact: Callable[[torch.Tensor], torch.Tensor], kind: torch.dtype = torch.float32) -> Case:
    x = normal(2, 3, 48, dtype=kind)
    return lambda: getattr(argus, name)(x), lambda: exact(x.double())


def heads(*, causal: bool) -> Case:
    q, k, v = (normal(1, 2, 40, 64, seed=seed) for seed in range(3))
    attend = functional.scaled_dot_product_attention
    return lambda: argus.attention(q, k, v, causal=causal), lambda: attend(
        q.double(), k.double(), v.double(), is_causal=causal
    )


def scaled() -> Case:
    a, b = normal(16, 32).to(torch.float8_e4m3fn), normal(48, 32, seed=1).to(torch.float8_e4m3fn).T
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    return lambda: argus.scaled_matmul(a, b, one, two), lambda: a.double() @ b.double() * 2


def grouped() -> Case:
    a, b = normal(6, 64), normal(3, 64, 32, seed=1)
    offsets = torch.tensor([0, 3, 3, 6], dtype=torch.int32)
    exact = [a[:3].double() @ b[0].double(), a[3:].double() @ b[2].double()]
    return lambda: argus.grouped_matmul(a, b, offsets), lambda: torch.cat(exact)


def groups() -> Case:
    x = normal(2, 6, 4, 4, dtype=torch.float32)
    return lambda: argus.group_norm(x, 3), lambda: functional.group_norm(x.double(), 3)


def losses() -> Case:
    x, target = normal(4, 48, dtype=torch.float32), torch.tensor([1, 2, 3, 47])
    exact = functional.cross_entropy
    return lambda: argus.cross_entropy(x, target), lambda: exact(x.double(), target, reduction="none")


def layer() -> Case:
    x, w, v = normal(6, 64), normal(4, 64, 64, seed=1) * 0.1, normal(4, 64, 32, seed=2) * 0.1
    ids, weights = torch.tensor([[0, 1], [1, 3], [3, 0], [0, 1], [1, 1], [3, 1]]), torch.full((6, 2), 0.5)

    def exact() -> torch.Tensor:
        both = torch.einsum("tk,tjnk->tjn", x.double(), w.double()[ids])
        held = functional.silu(both[..., :32]) * both[..., 32:]
        return torch.einsum("tjn,tjkn,tj->tk", held, v.double()[ids], weights.double())

    return lambda: argus.moe(x, w, v, ids, weights), exact


def epsilon(x: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:], eps=1e-5)


def pages() -> Case:
    keys, values = (normal(4, 16, 2, 64, seed=seed) for seed in (1, 2))
    q, table = normal(2, 4, 1, 64), torch.tensor([[0, 1], [2, 3]], dtype=torch.int32)
    lengths = torch.tensor([20, 9], dtype=torch.int32)

    def exact() -> torch.Tensor:
        found: list[torch.Tensor] = []
        for number, length in enumerate(plain(lengths)):
            k, v = (each[table[number]].flatten(0, 1)[:length].transpose(0, 1).double() for each in (keys, values))
            own = functional.scaled_dot_product_attention
            found.append(own(q[number].double(), k.repeat_interleave(2, 0), v.repeat_interleave(2, 0)))
        return torch.stack(found)

    return lambda: argus.attention_decode(q, keys, values, table, lengths), exact


CASES: dict[str, Callable[[], Case]] = {
    "matmul bf16": lambda: matrices(torch.bfloat16),
    "matmul f16, a batch": lambda: matrices(torch.float16, 3),
    "scaled_matmul": scaled,
    "grouped_matmul": grouped,
    "moe": layer,
    "attention": lambda: heads(causal=False),
    "attention, causal": lambda: heads(causal=True),
    "attention_decode": pages,
    "softmax": lambda: rows("softmax", lambda x: x.softmax(-1)),
    "softmax bf16": lambda: rows("softmax", lambda x: x.softmax(-1), torch.bfloat16),
    "log_softmax": lambda: rows("log_softmax", lambda x: x.log_softmax(-1)),
    "rms_norm": lambda: rows("rms_norm", epsilon),
    "layer_norm": lambda: rows("layer_norm", lambda x: functional.layer_norm(x, x.shape[-1:])),
    "row_sum": lambda: rows("row_sum", lambda x: x.sum(-1)),
    "row_mean": lambda: rows("row_mean", lambda x: x.mean(-1)),
    "cumsum": lambda: rows("cumsum", lambda x: x.cumsum(-1)),
    "group_norm": groups,
    "cross_entropy": losses,
}


@pytest.mark.share(8)
@pytest.mark.parametrize("case", CASES)
def test_the_interpreter_computes_what_torch_does(case: str) -> None:
    call, exact = CASES[case]()
    found, wanted = call(), exact()
    assert found.shape == wanted.shape
    scale = wanted.abs().max().item()
    bits = {torch.bfloat16: 8, torch.float16: 11, torch.float32: 18}[found.dtype]
    assert (found.double() - wanted).abs().max().item() <= 2.0**-bits * max(scale, 1.0)


def test_orders_of_rows_are_consistent() -> None:
    ids = torch.tensor([[5, 2], [6, 2], [2, 6]])
    order = argus.expert_order(ids, 8, height=2)
    flat = ids.flatten()[order.order.long()]
    assert plain(flat) == sorted(plain(flat))
    assert plain(order.order[order.inverse.flatten().long()]) == list(range(6))
    assert plain(order.counts) == [0, 0, 3, 0, 0, 1, 2, 0]
    assert plain(order.tile_starts)[:5] == [0, 2, 3, 4, 6]
    assert plain(order.tile_experts)[:4] == [2, 2, 5, 6]
    received = argus.received_order(torch.tensor([[1, 2], [2, 1]], dtype=torch.int32), 7)
    assert plain(received.order) == [0, 3, 4, 1, 2, 5, 6]
    assert plain(received.offsets) == [0, 3, 6]
    assert plain(received.inverse[received.order.long()]) == list(range(7))


@pytest.mark.parametrize("scoring", ["softmax", "sigmoid"])
def test_routing_chooses_the_largest_scores(scoring: str) -> None:
    logits, bias = normal(6, 16, dtype=torch.float32), normal(16, dtype=torch.float32, seed=1)
    own = logits.softmax(-1) if scoring == "softmax" else logits.sigmoid()
    added = own if scoring == "softmax" else own + bias
    weights, ids = argus.route(logits, 4, scoring=scoring, bias=None if scoring == "softmax" else bias)  # pyright: ignore[reportArgumentType]  # one of two
    assert plain(ids) == plain(added.topk(4).indices)
    assert torch.allclose(weights, own.gather(1, ids.long()), atol=1e-6)


@pytest.mark.parametrize("biased", [False, True])
def test_routing_among_groups_chooses_in_the_best_ones(biased: bool) -> None:
    logits, bias = normal(5, 24, dtype=torch.float32), normal(24, dtype=torch.float32, seed=1)
    own = logits.sigmoid() if biased else logits.softmax(-1)
    keys = own + bias if biased else logits
    parts = keys.view(5, 4, 6)
    scores = parts.topk(2).values.sum(-1) if biased else parts.amax(-1)
    worse = scores < scores.topk(2).values[:, -1:]
    chosen = keys.masked_fill(worse.repeat_interleave(6, 1), -torch.inf).topk(5).indices
    given = {"bias": bias, "scoring": "sigmoid"} if biased else {}
    weights, ids = argus.route(logits, 5, renormalize=True, groups=4, top_groups=2, **given)  # pyright: ignore[reportArgumentType]  # one of two
    assert plain(ids) == plain(chosen)
    held = own.gather(1, chosen)
    assert torch.allclose(weights, held / held.sum(1, keepdim=True), atol=1e-6)


@pytest.mark.parametrize(
    ("groups", "top", "what"),
    [
        (4, None, "go together"),
        (5, 2, "`groups` is 5, expected a divisor of 24"),
        (24, 4, "at least 2 experts of a group"),
        (4, 5, "`top_groups` is 5, expected at most 4"),
        (6, 1, "enough of 4 experts each for k=5"),
    ],
)
def test_groups_that_are_none_are_refused(groups: int, top: int | None, what: str) -> None:
    logits, bias = normal(5, 24, dtype=torch.float32), normal(24, dtype=torch.float32)
    with pytest.raises(ArgusError, match=what) as refused:
        argus.route(logits, 5, scoring="sigmoid", bias=bias, groups=groups, top_groups=top)
    assert refused.value.diagnostic.code == "E401"


def test_what_is_not_proved_is_not_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_gate, "verify_cached", verified_as("unknown"))
    call_path._proved.cache_clear()  # pyright: ignore[reportPrivateUsage]  # kept from other tests
    x = normal(2, 8)
    with pytest.raises(ArgusError, match="E413"):
        argus.softmax(x)
    assert argus.softmax(x, unproved="allow").shape == (2, 8)


def test_much_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_path, "MOST_INTERPRETED", 31)
    with pytest.raises(ArgusError, match="32 elements on the CPU, where kernels are interpreted, expected at most 31"):
        argus.softmax(normal(2, 8))
