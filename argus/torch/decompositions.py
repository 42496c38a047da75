"""Which operations of aten torch itself takes apart before the graph is lowered.

Those of the core set, and the further ones that Inductor takes apart too; contractions, convolutions, attention,
pooling and scans stay whole, and so do functions with an entry of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import _decomp

_TAKEN_APART = (
    "_softmax _log_softmax native_layer_norm native_group_norm _native_batch_norm_legit "
    "_native_batch_norm_legit_functional _native_batch_norm_legit_no_training native_batch_norm "
    "_softmax_backward_data _log_softmax_backward_data native_layer_norm_backward native_batch_norm_backward "
    "native_group_norm_backward mse_loss smooth_l1_loss huber_loss soft_margin_loss l1_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits nll_loss_forward nll_loss2d_forward logsumexp glu addmv addr dist norm "
    "gelu_backward silu_backward threshold_backward sigmoid_backward tanh_backward hardtanh_backward elu_backward "
    "leaky_relu_backward mish_backward hardswish_backward hardsigmoid_backward softplus_backward mse_loss_backward "
    "smooth_l1_loss_backward huber_loss_backward nll_loss_forward embedding_dense_backward unfold_backward "
    "addcmul addcdiv rsub lerp logit nan_to_num std cosine_embedding_loss hinge_embedding_loss "
    "upsample_nearest2d pixel_shuffle channel_shuffle stack unbind narrow trace frac dot vdot mv "
    "rms_norm _fused_rms_norm"
)
_WHOLE = (
    "gelu silu elu hardtanh hardsigmoid hardswish softplus mish leaky_relu triu tril addcmul addcdiv lerp mv dot std"
)
"""Of those, and of the core set: what has an entry of its own."""


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions by operation."""
    made: Any = _decomp
    packets = [getattr(torch.ops.aten, name, None) for name in _TAKEN_APART.split()]
    found: dict[Any, Callable[..., Any]] = dict(made.core_aten_decompositions())
    for packet in packets:
        if packet is not None:
            found.update(made.get_decompositions([packet]))
    whole = {getattr(torch.ops.aten, name) for name in _WHOLE.split()}
    return {op: each for op, each in found.items() if getattr(op, "overloadpacket", op) not in whole}
