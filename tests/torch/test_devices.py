"""Numbers that lie on the CPU in the graph of another device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from attrs import evolve
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from argus.nests.rewrite import reads
from argus.torch.compiled import Compiled
from argus.torch.lowering import lowered
from argus.torch.steps import Constant, EagerStep, Lowered, NestStep, Tensor

T: Any = torch
Function = Callable[..., Any]


def steps_of(function: Function, *devices: str) -> Lowered:
    """The steps of a graph: of a matrix for each `cuda`, a tensor without axes for `cpu`, and a row for `cpu row`."""
    shapes = {"cuda": (4, 5), "cpu": (), "cpu row": (5,)}
    with FakeTensorMode():
        given = [torch.empty(shapes[each], device=each.split()[0]) for each in devices]
        graph = make_fx(function)(*given).graph
    return lowered(graph, {})


def below_a_half(x: Any) -> Any:  # noqa: ANN401 reason: traced
    return T.minimum(x, T.tensor(0.5))


def times(x: Any, s: Any) -> Any:  # noqa: ANN401 reason: traced
    return x * s


def plus_twice(x: Any, s: Any) -> Any:  # noqa: ANN401 reason: traced
    return x + s * 2


def times_the_copy(x: Any, v: Any) -> Any:  # noqa: ANN401 reason: traced
    return x * T.ops.aten._to_copy(v, device=x.device)


def read_by_nests(graph: Lowered) -> set[str]:
    return {each.tensor for step in graph.steps if isinstance(step, NestStep) for each in reads(step.nest.body)}


def test_a_constant_is_copied_to_the_device_once() -> None:
    graph = steps_of(below_a_half, "cuda")

    (moved,) = (each for each in graph.held if each.device is not None)
    assert moved == Constant(moved.name, "_tensor_constant0", torch.device("cuda", 0))
    assert read_by_nests(graph) == {"x_1", moved.name}


def test_a_constant_that_torch_compiles_with_fakes_is_a_tensor_when_it_is_used() -> None:
    """Copies that are made meanwhile are fake, and so they are not made before the first call."""
    graph = evolve(steps_of(below_a_half, "cuda"), outputs=(Tensor("constant"),))
    held = (Constant("constant", "_tensor_constant0", torch.device("cpu")),)
    module = torch.nn.Module()
    module.register_buffer("_tensor_constant0", T.tensor(0.5))
    with FakeTensorMode():
        made = Compiled.of(evolve(graph, steps=(), held=held, inputs=()), (), module)

    for _ in range(2):
        (found,) = made()
        assert (type(found), float(found)) == (torch.Tensor, 0.5)


def test_a_number_that_is_given_is_copied_at_each_call() -> None:
    graph = steps_of(times, "cuda", "cpu")

    copy, _ = graph.steps
    assert isinstance(copy, EagerStep)
    assert copy.allocates
    assert (copy.target, copy.args) == (T.ops.aten._to_copy.default, (Tensor("s_1"),))
    assert read_by_nests(graph) == {"x_1", *copy.results}


def test_what_is_computed_on_the_cpu_is_computed_there() -> None:
    graph = steps_of(plus_twice, "cuda", "cpu")

    eager = [each for each in graph.steps if isinstance(each, EagerStep) and each.why]
    assert [(each.operation, each.why) for each in eager] == [
        ("aten.mul.Tensor", "a tensor of the CPU in a graph of another device")
    ]


def test_a_tensor_with_axes_is_copied_by_torch() -> None:
    graph = steps_of(times_the_copy, "cuda", "cpu row")

    copy, _ = graph.steps
    assert isinstance(copy, EagerStep)
    assert (copy.operation, copy.why) == ("aten._to_copy.default", "tensors of unlike devices")
    assert read_by_nests(graph) == {"x_1", *copy.results}


def test_a_graph_of_the_cpu_takes_its_constants_as_they_are() -> None:
    x = T.linspace(-4.0, 4.0, 20).reshape(4, 5)
    assert T.equal(T.compile(below_a_half, backend="argus")(x), below_a_half(x))
