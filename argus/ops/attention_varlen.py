"""`attention_varlen`: attention of packed sequences of any lengths; each kernel is built and verified on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import Any, Literal, Protocol, Self, TypeGuard, overload

from argus.core.dsl.kernel import Template
from argus.kernels.packed_attention import FAMILIES as KERNELS
from argus.language import bf16, f16
from argus.ops.attention_gradient import Gradient, is_wanted, with_gradient
from argus.ops.attention_options import check_operand, factors, refuse
from argus.ops.attention_varlen_gradient import OPERATOR as GRADIENT
from argus.ops.attention_varlen_gradient import PackedBackward
from argus.ops.call_path import Candidate, Plan, Traced, launch, torch
from argus.ops.constants import factor
from argus.ops.offsets import check_offsets
from argus.ops.operands import Tensor
from argus.ops.targets import kernels_for
from argus.ops.traced import traceable
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved

FAMILIES: Mapping[str, Mapping[int, Template]] = {"torch.bfloat16": KERNELS[bf16], "torch.float16": KERNELS[f16]}
"""The kernels by torch's name of the type and head dimension."""


class Rows(Tensor, Protocol):
    """The part of torch.Tensor that is used here."""

    def new_full(self, shape: tuple[int, ...], value: float, /, *, dtype: Any = None) -> Self: ...  # noqa: ANN401 reason: torch's
    def transpose(self, first: int, second: int, /) -> Self: ...
    def is_contiguous(self) -> bool: ...


@overload
def attention_varlen(
    q: Rows,
    k: Rows,
    v: Rows,
    cu_seqlens_q: Rows,
    cu_seqlens_k: Rows,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_lse: Literal[False] = False,
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> Rows: ...
@overload
def attention_varlen(
    q: Rows,
    k: Rows,
    v: Rows,
    cu_seqlens_q: Rows,
    cu_seqlens_k: Rows,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_lse: Literal[True],
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> tuple[Rows, Rows]: ...
@traceable
def attention_varlen(
    q: Rows,
    k: Rows,
    v: Rows,
    cu_seqlens_q: Rows,
    cu_seqlens_k: Rows,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_lse: bool = False,
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> Rows | tuple[Rows, Rows]:
    """`argus.attention` of each of several sequences stored back to back, on an H100 or H200; sums in fp32.

    q: (S, H, D); k and v: (T, G, D), where G divides H: head h of q reads head h // (H // G) of k and v. All in bf16,
    or all in f16; D of 64, 128 or 256; strides that are multiples of 8 elements, with D contiguous. Sequence b has rows
    cu_seqlens_q[b] to cu_seqlens_q[b + 1] - 1 of q, and likewise of k and v; both are int32, of one element more than
    there are sequences, from 0 to S and to T. No sequence has more than max_seqlen_q queries. Sequences may be empty.
    The result is row-major, (S, H, D). It has a gradient, whose sums are made in a fixed order; the log-sum-exp has
    none.

    causal: query s of a sequence sees its keys t <= s + T_b - S_b, the last query all. Where a query sees no key the
    result is 0 and the log-sum-exp -inf. scale, return_lse (here (H, S)) and unproved: as for `argus.attention`. NaN
    or infinity in rows of one sequence reach no other one, nor its gradients; within a sequence, in values that a query
    does not see, they may reach it.

    max_seqlen_k: no sequence has more keys; for the gradient alone, which takes time for each 128 keys of the longest
    sequence. By default max_seqlen_q, if one tensor gives the offsets of both, else T.

    promises: how offsets are checked before they are used. "stop": on the GPU, ahead of the launch; wrong ones end the
    CUDA context, as an index out of bounds does in torch, and the next call raises E402. "fetch": on the host, which
    waits for the GPU. "tell": as "stop", but the kernel then runs on offsets that its proof does not cover.

    It runs on the current stream. Unless offsets are fetched, it may be captured in a CUDA graph, after a first call
    with the same scale, and a graph reads the offsets when it runs.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E402 for wrong offsets, E405 for sizes beyond those
            that the kernel's proof assumes, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E414
            for a GPU without kernels for it, E303 without a compiler.
    """
    _check(q, k, v, (cu_seqlens_q, cu_seqlens_k), (max_seqlen_q, max_seqlen_k))
    kernels = kernels_for("attention_varlen", q)
    (wanted,) = factors(scale, None, q.shape[2])
    if is_wanted(q, k, v):
        kernels_for(GRADIENT, q)
        options: dict[str, Any] = {"causal": causal, "scale": scale, "promises": promises, "unproved": unproved}
        again: Any = partial(attention_varlen, max_seqlen_q=max_seqlen_q, return_lse=True, **options)
        same = cu_seqlens_k is cu_seqlens_q
        longest_k = max_seqlen_k if max_seqlen_k is not None else max_seqlen_q if same else max(1, k.shape[0])
        number = partial(factor, "attention_varlen", wanted, q.device.index)
        backward = PackedBackward((max_seqlen_q, longest_k), number, causal, promises, unproved)
        out, lse = with_gradient(Gradient(again, backward.gradients), q, k, v, cu_seqlens_q, cu_seqlens_k)
        return (out, lse) if return_lse else out
    (rows, heads, width), (keys, groups, _), count = q.shape, k.shape, cu_seqlens_q.shape[0]
    results = (((rows, heads, width), q.dtype), ((heads, rows), torch().float32))
    if 0 in (rows, heads, keys):
        out, lse = q.new_full(results[0][0], 0.0), q.new_full(results[1][0], -inf, dtype=results[1][1])
        return (out, lse) if return_lse else out
    template = FAMILIES[str(q.dtype)][width]
    config = kernels.choose(width, count - 1, rows, max_seqlen_q, heads, causal=causal)
    sizes = {"H": heads, "S": rows, "G": groups, "T": keys, "N": count, "sequences": count - 1, "longest": max_seqlen_q}
    candidate = Candidate(template.name, config, partial(_traced, template, config))
    plan = Plan(results, tuple(sizes.items()), (candidate,), _named, ("Q", "K", "V"), promises)
    turned = (each.transpose(0, 1) for each in (q, k, v))
    given = (*turned, cu_seqlens_q, cu_seqlens_k, factor("attention_varlen", wanted, q.device.index))
    (out, lse), _ = launch(plan, given, unproved)
    return (out, lse) if return_lse else out


def _traced(template: Template, config: str) -> Traced:
    return template.trace(config), template.function.__module__


def _named(*tensors: Rows) -> Mapping[str, Rows]:
    return dict(zip(("Q", "K", "V", "starts_q", "starts_k", "scale", "O", "LSE"), tensors, strict=True))


# -- operands ------------------------------------------------------------------------------------------------


def _check(q: Rows, k: Rows, v: Rows, offsets: tuple[Rows, Rows], longest: tuple[int, int | None]) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_operand(name, tensor, q, ("rows", "heads", "head dimension"))
    if tuple(k.shape) != tuple(v.shape):
        refuse(
            f"`k` is {tuple(k.shape)} and `v` {tuple(v.shape)}, expected equal shapes", "pass keys with their values"
        )
    (_, heads, width), groups = q.shape, k.shape[1]
    if k.shape[2] != width or width not in FAMILIES[str(q.dtype)]:
        told = " or ".join(map(str, FAMILIES[str(q.dtype)]))
        refuse(f"heads of {width} elements of `q` and {k.shape[2]} of `k`, expected {told}", "pad the heads with zeros")
    if groups < 1 or heads % groups:
        refuse(f"{heads} heads of `q` for {groups} of `k`", "pass heads of `q` that are a multiple of those of `k`")
    for name, tensor in zip(("cu_seqlens_q", "cu_seqlens_k"), offsets, strict=True):
        check_offsets(refuse, name, tensor, ("q", q), "sequences")
    counts = offsets[0].shape[0], offsets[1].shape[0]
    if counts[0] != counts[1]:
        refuse(f"{counts[0]} offsets of queries and {counts[1]} of keys", "pass one more than there are sequences")
    for name, most in zip(("max_seqlen_q", "max_seqlen_k"), longest, strict=True):
        if not (most is None and name == "max_seqlen_k") and (not _is_number(most) or most < 1):
            refuse(f"`{name}` is {most!r}, expected a number from 1 on", "pass that of the longest sequence")


def _is_number(given: object) -> TypeGuard[int]:
    return isinstance(given, int) and not isinstance(given, bool)
