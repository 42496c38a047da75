"""The table of kernels: for each operator, the targets that have kernels, and what chooses among them.

A new operator, or an operator's kernels for another target, are one row more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from argus.kernels import (
    attention,
    attention_backward,
    attention_fp8,
    decode,
    dropout,
    packed_attention,
    routing,
    routing_groups,
    windowed_attention,
)
from argus.kernels.rows import configs, configs_cdna3
from argus.ops import choice, choice_f32, choice_gfx942
from argus.ops.call_path import torch
from argus.ops.element_types import no_kernel
from argus.runtime.gpu.device import architecture


@frozen
class Kernels:
    """The kernels of an operator on one target.

    choose: names the configuration of a call, from what the operator's own module says; raises ArgusError (E414) for a
    call that has no kernel. strided: whether kernels read operands with strides of their own, as tensor maps do;
    otherwise operands are copied unless they are row-major.
    """

    choose: Callable[..., Any]
    strided: bool = True


KERNELS: Mapping[str, Mapping[str, Kernels]] = {
    "matmul": {"sm_90a": Kernels(choice.candidates), "gfx942": Kernels(choice_gfx942.candidates, strided=False)},
    "matmul of f32": {"sm_90a": Kernels(choice_f32.candidates, strided=False)},
    "scaled_matmul": {"sm_90a": Kernels(choice.select_scaled), "gfx942": Kernels(choice_gfx942.scaled)},
    "grouped_matmul": {
        "sm_90a": Kernels(choice.select_grouped),
        "gfx942": Kernels(choice_gfx942.grouped, strided=False),
    },
    "grouped_matmul with scales of rows": {"sm_90a": Kernels(choice.select_grouped_rows)},
    "the gradient of grouped_matmul": {
        "sm_90a": Kernels(choice.select_grouped_weights),
        "gfx942": Kernels(choice_gfx942.grouped_weights),
    },
    "grouped_matmul of counts": {"sm_90a": Kernels(choice.select_masked)},
    "moe": {"sm_90a": Kernels(choice.select_moe), "gfx942": Kernels(choice_gfx942.moe, strided=False)},
    "the gradient of moe": {
        "sm_90a": Kernels(choice.select_moe_gradient),
        "gfx942": Kernels(choice_gfx942.moe_gradient),
    },
    "attention": {"sm_90a": Kernels(attention.choose), "gfx942": Kernels(choice_gfx942.attention, strided=False)},
    "attention with a window or a soft cap": {"sm_90a": Kernels(windowed_attention.choose)},
    "attention of 8-bit operands": {"sm_90a": Kernels(attention_fp8.choose)},
    "the gradient of attention": {"sm_90a": Kernels(attention_backward.choose)},
    "attention_decode": {"sm_90a": Kernels(decode.choose)},
    "attention_varlen": {"sm_90a": Kernels(packed_attention.choose)},
    "the gradient of attention_varlen": {"sm_90a": Kernels(choice.select_by_mask)},
    "route": {"sm_90a": Kernels(routing.choose), "gfx942": Kernels(routing.choose_cdna3)},
    "route among groups": {"sm_90a": Kernels(routing_groups.choose)},
    "dropout": {"sm_90a": Kernels(dropout.choose), "gfx942": Kernels(dropout.choose_cdna3, strided=False)},
    "operators along rows": {"sm_90a": Kernels(configs.choose), "gfx942": Kernels(configs_cdna3.choose)},
}
"""By operator and target."""


_ON_CPU = "sm_90a"
"""The target whose kernels are interpreted for tensors of the CPU."""


def name_of(tensor: Any) -> str:  # noqa: ANN401 reason: torch's
    """The name of a tensor's GPU; empty for the CPU."""
    return torch().cuda.get_device_name(tensor.device.index) if tensor.is_cuda else ""


def target_of(tensor: Any) -> str:  # noqa: ANN401 reason: torch's
    """The target of a tensor's device. That its GPU runs the target's code is checked ahead of the launch (E407)."""
    if not tensor.is_cuda:
        return _ON_CPU
    about = torch().cuda.get_device_properties(tensor.device.index)
    return "gfx942" if architecture(about).startswith("gfx") else "sm_90a"


def kernels_for(operator: str, tensor: Any) -> Kernels:  # noqa: ANN401 reason: torch's
    """The kernels of an operator for a tensor's device. Raises ArgusError (E414) where it has none."""
    target, known = target_of(tensor), KERNELS[operator]
    if target not in known:
        raise no_kernel(operator, target, known=known)
    return known[target]
