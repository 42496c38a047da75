"""`argus.dropout` on the CPU: which elements it keeps, by what numbers, in graphs and in gradients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import argus
from argus.core.diagnostic import ArgusError
from argus.core.philox import philox
from argus.ops import dropout as module
from argus.ops.dropout import draw, dropped
from tests.torch.operands import TORCH, normal, plain


def ones(count: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(count, dtype=kind)


def numbers(state: torch.Tensor, count: int, vector: int, threads: int) -> np.ndarray[Any, Any]:
    """The number from 0 to 1 of each element, as torch's kernel draws them for so many elements at once."""
    low, high, first = (np.full(count, each, np.int32) for each in state[:3].numpy())
    n = np.arange(count)
    if vector > 1:
        draws = 2 if vector == 8 else 1
        step, thread, word = n // vector // threads * draws + n % vector // 4, n // vector % threads, n % vector % 4
    else:
        step, thread, word = n // threads // 4, n % threads, n // threads % 4
    words = philox(first, step, thread, word, low, high).astype(np.int64) + 2**31
    return words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("count", "most"), [(2048, 8), (516, 4), (2050, 2), (1027, 1)])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_elements_are_kept_by_the_numbers_of_torch(kind: torch.dtype, count: int, most: int, p: float) -> None:
    vector = min(most, 16 // kind.itemsize)  # 16 bytes at once
    state = torch.empty(4, dtype=torch.int32)
    TORCH.manual_seed(3)
    draw(state, count, p)
    state[2] = 77  # a generator that has drawn numbers before
    found = dropped(ones(count, kind), state, p)
    threads = 256 * min(1056, -(-count // 256))
    kept = TORCH.from_numpy(numbers(state, count, vector, threads) < np.float32(1 - p))
    assert torch.equal(found, kept.to(kind) * torch.tensor(1 / (1 - p), dtype=kind))


def test_equal_seeds_keep_equal_elements_and_others_do_not() -> None:
    x = normal(4, 64, dtype=torch.float32)
    TORCH.manual_seed(1)
    first, second = argus.dropout(x, 0.5), argus.dropout(x, 0.5)
    TORCH.manual_seed(1)
    assert torch.equal(argus.dropout(x, 0.5), first)
    assert not torch.equal(first, second)
    assert torch.equal(argus.dropout(x, 0.0), x)
    assert torch.equal(argus.dropout(x, 1.0), torch.zeros_like(x))


def test_a_gradient_has_the_same_elements() -> None:
    x = normal(4, 64, dtype=torch.float32).requires_grad_()
    found: Any = argus.dropout(x, 0.25)
    found.sum().backward()
    assert x.grad is not None
    assert torch.equal(found.detach(), x.detach() * x.grad)
    assert {0.0, float(np.float32(1 / 0.75))} == set(plain(x.grad.flatten()))


def twice(x: Any) -> Any:  # noqa: ANN401 reason: torch's
    return argus.dropout(x, 0.5), argus.dropout(x, 0.5)


@pytest.mark.share(2)
@pytest.mark.parametrize("graph", ["eager", "aot_eager"])
def test_two_dropouts_of_a_graph_differ(graph: str) -> None:
    x = normal(4, 64, dtype=torch.float32).requires_grad_()
    TORCH._dynamo.reset()
    compiled = TORCH.compile(twice, backend=graph, fullgraph=True)
    TORCH.manual_seed(5)
    one, other = compiled(x)
    TORCH.manual_seed(5)
    wanted, also = twice(x)
    assert torch.equal(one, wanted)
    assert torch.equal(other, also)
    assert not torch.equal(one, other)
    (one.sum() * 2).backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, one.detach() != 0)


def test_the_generator_moves_on_as_torch_moves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads times four words are drawn at once: torch moves its offset by four for each time."""
    held = {"offset": 8}

    def moved(offset: int) -> None:
        held["offset"] = offset

    generator = SimpleNamespace(initial_seed=lambda: 5 << 32 | 7, get_offset=lambda: held["offset"], set_offset=moved)
    cuda = SimpleNamespace(is_current_stream_capturing=lambda: False, default_generators=[generator])
    monkeypatch.setattr(module, "torch", lambda: SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(module, "_at_a_time", {0: 2}.__getitem__)
    state: Any = SimpleNamespace(is_cuda=True, device=SimpleNamespace(index=0))
    assert module._drawn(state, 4096) == (7, 5, 2)  # pyright: ignore[reportPrivateUsage]  # needs no GPU
    assert held["offset"] == 8 + 8  # 2 blocks of 256 threads with four words each: two times
    module._drawn(state, 4097)  # pyright: ignore[reportPrivateUsage]  # as above
    assert held["offset"] == 16 + 12


@pytest.mark.parametrize(
    ("x", "p", "words"),
    [(ones(4), 1.5, "`p` is 1.5"), (torch.ones(4, dtype=torch.float64), 0.5, "`x` expects elements of type")],
)
def test_what_is_no_dropout_is_refused(x: torch.Tensor, p: float, words: str) -> None:
    with pytest.raises(ArgusError, match="E401") as refused:
        argus.dropout(x, p)
    assert words in refused.value.diagnostic.message
