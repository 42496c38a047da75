"""Tensors of the CPU in a graph of another device: torch takes one without axes beside that device's tensors."""

from __future__ import annotations

from typing import Any

import torch

from argus.torch.tables.table import NotCovered

COPIES = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
"""Operations by which a constant of a program comes into a graph."""


def device_of(graph: Any) -> torch.device | None:  # noqa: ANN401 reason: a graph of torch.fx
    """The device of a graph's tensors that is not the CPU; None if there is none."""
    each = (tensor.device for node in graph.nodes for tensor in tensors_of(node.meta.get("val")))
    return next((device for device in each if device.type != "cpu"), None)


def apart(node: Any, device: torch.device | None) -> tuple[Any, ...]:  # noqa: ANN401 reason: nodes of torch.fx
    """The operands without axes that lie on the CPU, where an operation's result lies on the graph's device.

    Raises NotCovered for other tensors of unlike devices.
    """
    if device is None:
        return ()
    if any(each.device != device for each in tensors_of(node.meta.get("val"))):
        raise NotCovered("a tensor of the CPU in a graph of another device")
    found: list[Any] = []
    for operand in node.all_input_nodes:
        others = [each for each in tensors_of(operand.meta.get("val")) if each.device != device]
        if any(each.dim() or each.device.type != "cpu" for each in others):
            raise NotCovered("tensors of unlike devices")
        found += [operand] if others else []
    return tuple(found)


def constant_of(node: Any) -> str | None:  # noqa: ANN401 reason: a node
    """The attribute of the graph that a tensor is."""
    if node.op == "call_function" and node.target in COPIES:
        node = node.args[0]
    return node.target if node.op == "get_attr" else None


def tensors_of(found: Any) -> list[Any]:  # noqa: ANN401 reason: what torch knows of a result
    results: list[Any] = list(found) if isinstance(found, list | tuple) else [found]  # pyright: ignore[reportUnknownArgumentType]  # torch's
    return [each for each in results if isinstance(each, torch.Tensor)]
