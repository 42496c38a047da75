"""Public operators as torch's tracers see them: one registered operator each, without breaks of graphs and warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_leaves

import argus
from argus.core.diagnostic import ArgusError
from argus.torch.calls import REGISTERED
from tests.torch.calls import CALLS, Call, drawn, registered_name
from tests.torch.operands import TORCH, normal


def registered_calls(call: Call) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The calls of registered operators that a public one makes, with operands that require gradients."""
    found: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def keep(graph: torch.fx.GraphModule, example: list[Any]) -> Callable[..., Any]:
        given = iter(example)
        held: dict[torch.fx.Node, Any] = {}
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                held[node] = next(given)
            elif str(node.target).startswith("argus."):
                args = torch.fx.map_arg(node.args, held.__getitem__)
                found.append((node.target, args, dict(node.kwargs)))
        return graph.forward

    TORCH._dynamo.reset()
    TORCH.compile(call, backend=keep, fullgraph=True)(*call.requiring())
    return found


@pytest.mark.parametrize("name", drawn(one_in=6))
def test_operators_pass_the_checks_of_torch(name: str) -> None:
    calls = registered_calls(CALLS[name]())
    assert [str(target).removesuffix(".default") for target, *_ in calls] == [f"argus.{registered_name(name)}"]
    for target, operands, options in calls:
        # torch compares no 8-bit floats: what is left of its check of the schema is made below.
        eight = any(each.dtype == torch.float8_e4m3fn for each in operands if isinstance(each, torch.Tensor))
        checks = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        checked = TORCH.library.opcheck(target, operands, options, **({"test_utils": checks} if eight else {}))
        assert set(checked.values()) == {"SUCCESS"}


def test_operands_of_eight_bits_are_left_as_they_are() -> None:
    call = CALLS["scaled_matmul"]()
    before = [each.clone().view(torch.int8) for each in call.operands[:2]]
    call(*call.operands)
    assert same([each.view(torch.int8) for each in call.operands[:2]], before)


def same(found: Any, wanted: Any) -> bool:  # noqa: ANN401 reason: tensors in any structure
    pairs = zip(tree_leaves(found), tree_leaves(wanted), strict=True)
    return all(one.dtype == other.dtype and torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("name", drawn(one_in=6))
def test_one_graph_computes_what_eager_calls_do(name: str) -> None:
    call = CALLS[name]()
    TORCH._dynamo.reset()
    given = call.requiring()
    found = TORCH.compile(call, backend="aot_eager", fullgraph=True)(*given)
    wanted = call(*(again := call.requiring()))
    assert same(found, wanted)
    if call.differentiable:
        for each in (found, wanted):
            tree_leaves(each)[0].float().square().sum().backward()
        assert all(same(given[place].grad, again[place].grad) for place in call.differentiable)


class Module(torch.nn.Module):
    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call

    def forward(self, *operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(tree_flatten(self.call(*operands))[0])


@pytest.mark.share(6)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["matmul", "attention", "expert_order"])
def test_operators_are_exported(name: str, *, strict: bool) -> None:
    call = CALLS[name]()
    program = torch.export.export(Module(call), call.operands, strict=strict)
    operators = [str(each.target) for each in program.graph.nodes if str(each.target).startswith("argus.")]
    assert operators == [f"argus.{name}.default"]
    assert same(program.module()(*call.operands), tuple(tree_leaves(call(*call.operands))))


def test_fake_tensors_give_shapes_alone() -> None:
    with TORCH._subclasses.FakeTensorMode():
        a = torch.empty(3, 1, 8, 16, dtype=torch.bfloat16, device="cuda:1")
        found = argus.matmul(a, torch.empty(2, 16, 4, dtype=torch.bfloat16, device="cuda:1"))
    assert (found.shape, found.dtype, str(found.device)) == ((3, 2, 8, 4), torch.bfloat16, "cuda:1")
    assert torch.ops.argus.softmax(torch.empty(2, 3, device="meta")).shape == (2, 3)


def test_sizes_stay_symbols() -> None:
    sizes: list[str] = []

    def keep(graph: torch.fx.GraphModule, _example: list[Any]) -> Callable[..., Any]:
        sizes.extend(str(node.meta["example_value"].shape) for node in graph.graph.nodes if "argus" in str(node.target))
        return graph.forward

    TORCH._dynamo.reset()
    multiply = TORCH.compile(argus.matmul, backend=keep, fullgraph=True, dynamic=True)
    for rows in (8, 24, 40):
        assert multiply(normal(rows, 16), normal(16, 32)).shape == (rows, 32)
    assert len(sizes) == 1
    assert "s" in sizes[0]


def is_single(operand: object) -> bool:
    return isinstance(operand, torch.Tensor) and operand.dtype in (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("name", ["scaled_matmul", "softmax", "layer_norm", "attention with a window", "route"])
def test_a_missing_gradient_is_refused_when_it_is_recorded(name: str) -> None:
    ((target, given, options),) = registered_calls(CALLS[name]())
    operands = [each.clone().requires_grad_() if is_single(each) else each for each in given]
    with pytest.raises(ArgusError, match="requires a gradient"):
        target(*operands, **options)
    with torch.no_grad():
        target(*operands, **options)


def test_each_operator_has_a_call_here() -> None:
    derived = {"attention_backward", "attention_varlen_backward", "moe_backward", "grouped_row_sums", "rms_norm_of_sum"}
    derived |= {"dropout", "dropout_draw"}  # tests/torch/test_dropout.py
    assert set(REGISTERED) - derived == {registered_name(name) for name in CALLS}
    assert all(hasattr(torch.ops.argus, name) for name in REGISTERED)
