"""Graphs that are recorded: what is copied into them, when they are recorded again, and what is not recorded.

Launches are recorded by a stand-in for CUDA graphs, which computes the results again from the memory that was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

import pytest
import torch

from argus.torch import recorded
from argus.torch.compiled import KernelStep

pytestmark = pytest.mark.share(3, among="recorded graphs")

T: Any = torch
Result = TypeVar("Result")
randn: Any = torch.randn


class StandIn:
    """of: what has been recorded and replayed, of all of them."""

    device = "cpu"
    of: ClassVar[list[str]] = []
    fails = False
    bound = True

    def stream(self) -> int:
        return 0

    def is_bound(self, _: KernelStep) -> bool:
        return self.bound

    def record(self, call: Callable[[], Result]) -> tuple[Callable[[], None], Result]:
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        results: Any = call()
        self.of.append("record")
        for each in results:
            each.fill_(float("nan"))  # nothing has run yet

        def replay() -> None:
            self.of.append("replay")
            again: Any = call()
            for old, new in zip(results, again, strict=True):
                old.copy_(new)

        return replay, results


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was recorded and replayed."""
    T.compiler.reset()
    monkeypatch.setattr(StandIn, "of", made := list[str]())
    monkeypatch.setattr(recorded, "CudaGraphs", StandIn)
    monkeypatch.setattr(recorded, "_WARNED", set[str]())
    yield made
    T.compiler.reset()


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(randn(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * self.weight) + 1


def doubled(x: Any) -> Any:  # noqa: ANN401 reason: torch's
    return x * 2


def in_order(x: Any) -> Any:  # noqa: ANN401 reason: torch's
    return T.sort(x)[0] + 1


def dropped(x: Any) -> Any:  # noqa: ANN401 reason: torch's
    return T.nn.functional.dropout(x, 0.5, training=True)


def compiled(of: Any, **options: Any) -> Any:  # noqa: ANN401 reason: torch's
    return T.compile(of, backend="argus", **(options or {"mode": "reduce-overhead"}))


def called(function: Any, plain: Any, times: int = 3) -> None:  # noqa: ANN401 reason: torch's
    """Results for as many inputs are those of torch."""
    with torch.no_grad():
        for _ in range(times):
            x = randn(4, 16)
            assert torch.equal(function(x), plain(x))


def test_later_calls_are_replayed_on_copies_of_inputs_that_move(calls: list[str]) -> None:
    module, given = Scaled().eval(), [randn(4, 16) for _ in range(4)]
    function = compiled(module)
    with torch.no_grad():
        found = [function(each) for each in given]
        assert all(torch.equal(one, module(each)) for one, each in zip(found, given, strict=True))
        assert calls == ["record", "replay", "replay", "replay"]

        module.weight.mul_(2)  # where it was
        assert torch.equal(function(given[0]), module(given[0]))
        assert calls[-2:] == ["replay", "replay"]
        assert torch.equal(found[1], torch.relu(given[1] * module.weight / 2) + 1)  # results of before stay


def test_weights_that_lie_elsewhere_later_are_recorded_again_and_copied(calls: list[str]) -> None:
    module, x = Scaled().eval(), [randn(4, 16) for _ in range(3)]
    function = compiled(module, options={"cuda_graphs": True})
    with torch.no_grad():
        for each in x:
            function(each)
        kept = list[torch.Tensor]()
        for _ in range(3):
            kept.append(module.weight.data)
            module.weight.data = randn(16)
            assert torch.equal(function(x[0]), module(x[0]))
    assert calls.count("record") == 2


def test_shapes_have_recordings_of_their_own(calls: list[str]) -> None:
    module = Scaled().eval()
    function = T.compile(module, backend="argus", mode="reduce-overhead", dynamic=True)
    with torch.no_grad():
        for x in [randn(rows, 16) for rows in (4, 6, 4, 6, 4, 6)]:  # which all lie elsewhere
            assert torch.equal(function(x), module(x))
    assert calls.count("record") == 2
    assert calls.count("replay") == 4


def test_graphs_with_gradients_run_as_they_are(calls: list[str]) -> None:
    module = Scaled()
    function = compiled(module)
    for _ in range(3):
        x = randn(4, 16)
        found, wanted = function(x), module(x)
        assert torch.equal(found, wanted)
        (gradient,) = torch.autograd.grad(found.sum(), module.weight)
        assert torch.allclose(gradient, torch.autograd.grad(wanted.sum(), module.weight)[0])
    assert not calls


@pytest.mark.filterwarnings("ignore:argus. eager torch runs")
def test_what_eager_torch_or_a_generator_computes_is_not_recorded(calls: list[str]) -> None:
    with pytest.warns(UserWarning, match="not recorded as a CUDA graph: `aten.sort"):
        called(compiled(in_order), in_order)
    at_random, x = compiled(dropped), randn(64, 16)
    found = list[torch.Tensor]()
    with torch.no_grad(), pytest.warns(UserWarning, match="or other numbers at each call"):
        found.extend(at_random(x) for _ in range(3))
    assert not torch.equal(found[1], found[2])
    assert not calls


def test_a_call_that_cannot_be_recorded_runs_as_it_is(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "fails", True)
    module = Scaled().eval()
    with pytest.warns(UserWarning, match="not permitted when stream is capturing"):
        called(compiled(module), module)
    assert not calls


def test_tensors_elsewhere_and_those_that_repeat_elements_are_not_recorded(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = compiled(doubled)
    with torch.no_grad():
        for _ in range(3):
            x = randn(16).expand(4, 16)
            assert torch.equal(function(x), x * 2)
    monkeypatch.setattr(StandIn, "device", "cuda")
    called(function, doubled)
    assert not calls


@pytest.mark.parametrize(
    ("given", "said"),
    [({"mode": "max-autotune"}, "there is no mode"), ({"options": {"cuda_graphs": 1}}, "`cuda_graphs` is 1")],
)
def test_other_modes_and_options_are_refused(given: dict[str, Any], said: str) -> None:
    function = compiled(doubled, **given)
    with torch.no_grad(), pytest.raises(Exception, match=said):
        function(randn(4))


def test_launches_that_check_integers_on_the_host_are_not_recorded(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StandIn, "bound", False)
    with pytest.warns(UserWarning, match="`pointwise` checks what it reads on the host"):
        called(compiled(doubled), doubled)
    assert not calls
