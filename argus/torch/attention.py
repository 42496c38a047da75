"""The registered attention: `attention`, `attention_varlen`, `attention_decode`, and their gradients."""

from __future__ import annotations

from functools import partial
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor

from argus.ops.attention import attention as own_attention
from argus.ops.attention_decode import attention_decode as own_decode
from argus.ops.attention_gradient import Backward, gradients
from argus.ops.attention_options import factors
from argus.ops.attention_varlen import attention_varlen as own_varlen
from argus.ops.attention_varlen_gradient import PackedBackward
from argus.ops.constants import factor
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved
from argus.torch.library import Options, autocast, define, differentiable, not_differentiable, prepare, refuse_gradient

_OPERATORS: Any = torch.ops.argus
_QKV = "Tensor q, Tensor k, Tensor v"
_Given = Tensor | None
Three = tuple[Tensor, Tensor, Tensor]


def _factors(name: str, q: Tensor, scale: float | None, softcap: float | None = None) -> None:
    """Make the factors that the operator keeps, ahead of its run."""
    if all(each is None or type(each) is float for each in (scale, softcap)) and type(q.shape[-1]) is int:
        for each in factors(scale, softcap, q.shape[-1]):
            prepare(partial(factor, name), q.device, each)


# -- attention -----------------------------------------------------------------------------------------------


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    descale_q: _Given = None,
    descale_k: _Given = None,
    descale_v: _Given = None,
    *,
    left: int | None = None,
    right: int | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    descale: Any = None if descale_q is None else (descale_q, descale_k, descale_v)
    return unwrap(own_attention)(q, k, v, window=(left, right), descale=descale, return_lse=True, **options)


def _attention_shape(
    q: Tensor, *_more: _Given, scale: float | None = None, softcap: float | None = None, **_options: object
) -> tuple[Tensor, Tensor]:
    _factors("attention", q, scale, softcap)
    prepare(partial(factor, "attention"), q.device, 1.0)  # of windows without a cap
    dtype = torch.bfloat16 if q.dtype == torch.float8_e4m3fn else q.dtype
    return q.new_empty(q.shape, dtype=dtype), q.new_empty(q.shape[:-1], dtype=torch.float32)


def _attention_setup(context: Any, inputs: tuple[Any, ...], options: Options, output: Any) -> None:
    if any(options[name] is not None for name in ("left", "right", "softcap")):
        refuse_gradient("attention", "a window, or a soft cap,")
    if inputs[3] is not None:
        refuse_gradient("attention", "an 8-bit operand")
    _save(context, inputs[:3], output)
    context.options = {name: options[name] for name in ("causal", "scale", "deterministic", "unproved")}


def _save(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
    out, lse = output
    context.save_for_backward(*inputs, out, lse)
    context.mark_non_differentiable(lse)
    context.set_materialize_grads(False)


def _attention_backward(context: Any, given: Tensor | None, _of_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    if given is None:
        return (None,) * 6
    q, k, v, out, lse = context.saved_tensors
    return (*_OPERATORS.attention_backward(q, k, v, out, given, lse, **context.options), None, None, None)


def _gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    given: Tensor,
    lse: Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    deterministic: bool | None = None,
    unproved: Unproved = "refuse",
) -> Three:
    (number,) = factors(scale, None, q.shape[-1])
    how = Backward(partial(factor, "attention", number, q.device.index), causal, unproved, deterministic)
    return gradients(how, (q, k, v, out, given, lse))


def _gradients_shape(q: Tensor, k: Tensor, v: Tensor, *_more: Tensor, **_options: object) -> Three:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


_OPTIONS = 'bool causal=False, float? scale=None, bool? deterministic=None, str unproved="refuse"'
_WINDOW = "SymInt? left=None, SymInt? right=None, float? softcap=None"
define(
    f"attention({_QKV}, Tensor? descale_q=None, Tensor? descale_k=None, Tensor? descale_v=None, *, "
    f"{_WINDOW}, {_OPTIONS}) -> (Tensor, Tensor)",
    _attention,
    _attention_shape,
)
differentiable("attention", _attention_setup, _attention_backward)
autocast("attention", (0, 1, 2), single=False)
define(
    f"attention_backward({_QKV}, Tensor out, Tensor given, Tensor lse, *, {_OPTIONS}) -> (Tensor, Tensor, Tensor)",
    _gradients,
    _gradients_shape,
)


# -- attention_varlen ----------------------------------------------------------------------------------------


def _varlen(*operands: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    return unwrap(own_varlen)(*operands, return_lse=True, **options)


def _varlen_shape(q: Tensor, *_more: Tensor, scale: float | None = None, **_options: object) -> tuple[Tensor, Tensor]:
    _factors("attention_varlen", q, scale)
    return q.new_empty(q.shape), q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


def _varlen_setup(context: Any, inputs: tuple[Any, ...], options: Options, output: Any) -> None:
    _save(context, inputs, output)
    longest = options["max_seqlen_k"]
    context.options = {**options, "max_seqlen_k": max(1, inputs[1].shape[0]) if longest is None else longest}


def _varlen_backward(context: Any, given: Tensor | None, _of_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    if given is None:
        return (None,) * 5
    q, k, v, *offsets, out, lse = context.saved_tensors
    found = _OPERATORS.attention_varlen_backward(q, k, v, out, given, lse, *offsets, **context.options)
    return (*found, None, None)


def _varlen_gradients(
    *tensors: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: bool = False,
    scale: float | None = None,
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> Three:
    q = tensors[0]
    (number,) = factors(scale, None, q.shape[-1])
    made = partial(factor, "attention_varlen", number, q.device.index)
    return PackedBackward((max_seqlen_q, max_seqlen_k), made, causal, promises, unproved).gradients(tensors)


_PACKED = 'bool causal=False, float? scale=None, str promises="stop", str unproved="refuse"'
_OFFSETS = "Tensor cu_seqlens_q, Tensor cu_seqlens_k"
define(
    f"attention_varlen({_QKV}, {_OFFSETS}, *, SymInt max_seqlen_q, SymInt? max_seqlen_k=None, {_PACKED}) "
    "-> (Tensor, Tensor)",
    _varlen,
    _varlen_shape,
)
differentiable("attention_varlen", _varlen_setup, _varlen_backward)
autocast("attention_varlen", (0, 1, 2), single=False)
define(
    f"attention_varlen_backward({_QKV}, Tensor out, Tensor given, Tensor lse, {_OFFSETS}, *, "
    f"SymInt max_seqlen_q, SymInt max_seqlen_k, {_PACKED}) -> (Tensor, Tensor, Tensor)",
    _varlen_gradients,
    _gradients_shape,
)


# -- attention_decode ----------------------------------------------------------------------------------------


def _decode(*operands: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    return unwrap(own_decode)(*operands, return_lse=True, **options)


def _decode_shape(q: Tensor, *_more: Tensor, scale: float | None = None, **_options: object) -> tuple[Tensor, Tensor]:
    _factors("attention_decode", q, scale)
    return q.new_empty(q.shape), q.new_empty(q.shape[:-1], dtype=torch.float32)


define(
    "attention_decode(Tensor q, Tensor k_pages, Tensor v_pages, Tensor page_table, Tensor lengths, *, "
    'float? scale=None, str unproved="refuse") -> (Tensor, Tensor)',
    _decode,
    _decode_shape,
)
not_differentiable("attention_decode", "attention_backward", "attention_varlen_backward")
REGISTERED = ("attention", "attention_backward", "attention_varlen", "attention_varlen_backward", "attention_decode")
