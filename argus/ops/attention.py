"""`attention`: scaled dot-product attention on torch tensors; each kernel is built and verified on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import Any, Literal, Protocol, Self, overload

from attrs import frozen

from argus.core.dsl.kernel import Template
from argus.kernels.attention import FAMILIES as KERNELS
from argus.kernels.windowed_attention import FAMILIES as WINDOWED_KERNELS
from argus.language import bf16, f16
from argus.ops.attention_fp8 import Descale, attention_fp8
from argus.ops.attention_gradient import OPERATOR as GRADIENT
from argus.ops.attention_gradient import Backward, Gradient, gradients, is_wanted, with_gradient
from argus.ops.attention_options import E4M3, TYPES, Window, check_operand, ends, factors, refuse, seen
from argus.ops.call_path import Candidate, Plan, Traced, launch, load_candidate, torch
from argus.ops.constants import constant, factor
from argus.ops.operands import Tensor, copy_aligned
from argus.ops.targets import kernels_for
from argus.ops.traced import traceable
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product, store

FAMILIES: Mapping[str, Mapping[int, Template]] = {"torch.bfloat16": KERNELS[bf16], "torch.float16": KERNELS[f16]}
"""The kernel families by type and head dimension."""
WINDOWED: Mapping[str, Mapping[int, Template]] = {
    "torch.bfloat16": WINDOWED_KERNELS[bf16],
    "torch.float16": WINDOWED_KERNELS[f16],
}
"""Those with a sliding window and a soft cap."""
_NAMES = ("Q", "K", "V", "scale", "O", "LSE")
_WINDOWED_NAMES = ("Q", "K", "V", "scale", "inner", "O", "LSE")


class Heads(Tensor, Protocol):
    """The part of torch.Tensor that is used here."""

    def new_full(self, shape: tuple[int, ...], value: float, /, *, dtype: Any = None) -> Self: ...  # noqa: ANN401 reason: torch's


@overload
def attention(
    q: Heads,
    k: Heads,
    v: Heads,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: Window = None,
    softcap: float | None = None,
    descale: Descale = None,
    return_lse: Literal[False] = False,
    deterministic: bool | None = None,
    unproved: Unproved = "refuse",
) -> Heads: ...
@overload
def attention(
    q: Heads,
    k: Heads,
    v: Heads,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: Window = None,
    softcap: float | None = None,
    descale: Descale = None,
    return_lse: Literal[True],
    deterministic: bool | None = None,
    unproved: Unproved = "refuse",
) -> tuple[Heads, Heads]: ...
@traceable
def attention(
    q: Heads,
    k: Heads,
    v: Heads,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: Window = None,
    softcap: float | None = None,
    descale: Descale = None,
    return_lse: bool = False,
    deterministic: bool | None = None,
    unproved: Unproved = "refuse",
) -> Heads | tuple[Heads, Heads]:
    """softmax(scale * q @ k^T) @ v for each head; sums in fp32, a result of the type of `q`.

    q: (B, H, S, D); k and v: (B, G, T, D), where G divides H: head h of q reads head h // (H // G) of k and v. All in
    bf16, or all in f16, or all in e4m3 (see descale); D of 64, 128 or 256. Any strides that are multiples of 8
    elements, with D contiguous: `x.transpose(1, 2)` of (B, S, H, D) costs nothing, and nothing is copied. The result is
    row-major. Without window and soft cap it has a gradient; the log-sum-exp has none.

    causal: query s sees keys t <= s + T - S, the last query all. scale: by default 1 / sqrt(D); above 0. window:
    (left, right), query s sees the keys from s + T - S - left to s + T - S + right, None for no end; if causal, right
    is 0. A number n stands for (n, n). softcap: a score x becomes softcap * tanh(x / softcap), by the GPU's tanh of a
    relative error up to 2^-11. return_lse: also return the log-sum-exp of each row's scores, (B, H, S) in fp32. Where a
    query sees no key (T of 0; the first queries, if causal with S above T) the result is 0 and the log-sum-exp -inf.
    unproved: "allow" also runs a kernel that is neither proved nor refuted.

    deterministic: of the gradient; the output is, always. True: all sums are made in a fixed order, equal operands have
    equal gradients to the bit. False: with heads of 64 or 128 elements, the gradients of `q` are added up in fp32 in
    memory, of 4 bytes an element, in an order that differs from run to run, and with it the last bits: they are rounded
    to the type of `q` only after that. None: False where that is faster, unless
    `torch.use_deterministic_algorithms(True)` is set.

    descale: of e4m3, factors in fp32 of the elements of q, (B, H), k and v, (B, G); None for 1. Weights are rounded to
    e4m3, too, the result is bf16; strides are multiples of 16 elements, and v is copied unless it is row-major. It has
    neither gradient, window nor soft cap.

    It runs on the current stream and may be captured in a CUDA graph, after a first call with the same scale. It is for
    an H100 or H200; on an MI300X for bf16 and f16, without window, soft cap and gradient, and causal only if S is at
    most T; there operands that are not row-major are copied.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E405 for sizes beyond those that the kernel's proof
            assumes, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E414 for operands that no
            kernel for this GPU takes, E303 without a compiler.
    """
    pair = ends(window)
    key = _call_key(q, k, v, (causal, scale, pair, softcap, unproved), descale)
    ready = _READY.get(key)
    if ready is not None:
        product, numbers = ready
        more = numbers if descale is None else (*numbers, *descale)
        places, others = (q.data_ptr(), k.data_ptr(), v.data_ptr()), [each.data_ptr() for each in more]
        aligned = not (places[0] | places[1] | places[2]) % 16 and (descale is None or not any(n % 16 for n in others))
        if aligned and not (q.requires_grad or k.requires_grad or v.requires_grad):
            out, lse = product((q, k, v, *more), (*places, *others))
            return (out, lse) if return_lse else out
    _check(q, k, v, descale)
    mask = seen(pair, q.shape[2], k.shape[2], causal=causal)
    wanted = _Wanted(mask, factors(scale, softcap, q.shape[3]), unproved)
    if str(q.dtype) == E4M3:
        if not isinstance(mask, bool) or softcap is not None:
            refuse("8-bit operands have neither window nor soft cap", "convert them: `.bfloat16()`")
        number = partial(factor, "attention", wanted.factors[0], q.device.index)
        (out, lse), again = attention_fp8((q, k, v), descale, number, unproved, causal=mask)
        if key and again is not None:
            store(_READY, key, again)
    elif is_wanted(q, k, v):
        if not isinstance(mask, bool) or softcap is not None:
            refuse("a window and a soft cap have no gradient", "use `torch.no_grad()` or `.detach()`")
        kernels_for(GRADIENT, q)  # ahead of the output, which is of no use without it
        forward = partial(attention, causal=mask, scale=scale, return_lse=True, unproved=unproved)
        number = partial(factor, "attention", wanted.factors[0], q.device.index)
        how = Gradient(forward, partial(gradients, Backward(number, mask, unproved, deterministic)))
        out, lse = with_gradient(how, q, k, v)
    else:
        out, lse = _launched(q, k, v, wanted, key)
    return (out, lse) if return_lse else out


@frozen
class _Wanted:
    """What is computed. mask: whether it is causal, or a window. factors: as `factors` returns them."""

    mask: bool | tuple[int, int]
    factors: tuple[float, ...]
    unproved: Unproved


@frozen
class _Kernel:
    """A kernel, and what it takes besides queries, keys and values.

    names: of its tensors. strided: whether operands may have strides of their own.
    """

    template: Template
    config: str
    sizes: tuple[tuple[str, int], ...]
    factors: tuple[float, ...]
    names: tuple[str, ...]
    strided: bool


def _launched(q: Heads, k: Heads, v: Heads, wanted: _Wanted, key: tuple[object, ...]) -> tuple[Heads, Heads]:
    (batch, heads, rows, width), (_, groups, keys, _) = q.shape, k.shape
    results = (((batch, heads, rows, width), q.dtype), ((batch, heads, rows), torch().float32))
    if 0 in (batch, heads, rows, keys):
        return q.new_full(results[0][0], 0.0), q.new_full(results[1][0], -inf, dtype=results[1][1])
    kernel = _kernel(q, k, wanted)
    numbers = tuple(factor("attention", each, q.device.index) for each in kernel.factors)
    sizes = (("B", batch), ("H", heads), ("S", rows), ("G", groups), ("T", keys), *kernel.sizes)
    candidate = Candidate(kernel.template.name, kernel.config, partial(_traced, kernel.template, kernel.config))
    plan = Plan(results, sizes, (candidate,), partial(_named, kernel), ("Q", "K", "V") if kernel.strided else ())
    found, product = launch(plan, (q, k, v, *numbers), wanted.unproved)
    if key and product is not None:
        store(_READY, key, (product, numbers))
    return found


def _kernel(q: Heads, k: Heads, wanted: _Wanted) -> _Kernel:
    """The kernel for the operands: of a window only where one is wanted, or a soft cap."""
    (batch, heads, rows, width), keys, mask = q.shape, k.shape[2], wanted.mask
    if isinstance(mask, bool) and len(wanted.factors) == 1:
        kernels = kernels_for("attention", q)
        config = kernels.choose(width, rows, keys, batch * heads, causal=mask)
        return _Kernel(FAMILIES[str(q.dtype)][width], config, (), wanted.factors, _NAMES, kernels.strided)
    kernels = kernels_for("attention with a window or a soft cap", q)
    left, right = (keys, 0 if mask else rows) if isinstance(mask, bool) else mask
    config = kernels.choose(width, wide=left >= keys and right < rows, capped=len(wanted.factors) > 1)
    both = (*wanted.factors, 1.0)[:2]  # a kernel without a cap takes a second factor that it does not read
    ends_of = (("left", left), ("right", right))
    return _Kernel(WINDOWED[str(q.dtype)][width], config, ends_of, both, _WINDOWED_NAMES, kernels.strided)


def _traced(template: Template, config: str) -> Traced:
    return template.trace(config), template.function.__module__


def _named(kernel: _Kernel, *tensors: Heads) -> Mapping[str, Heads]:
    return dict(zip(kernel.names, tensors if kernel.strided else map(copy_aligned, tensors), strict=True))


# -- operands ------------------------------------------------------------------------------------------------


def _check(q: Heads, k: Heads, v: Heads, descale: Descale) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_operand(name, tensor, q, ("batch", "heads", "rows", "head dimension"), (*TYPES, E4M3))
    if tuple(k.shape) != tuple(v.shape):
        refuse(
            f"`k` is {tuple(k.shape)} and `v` {tuple(v.shape)}, expected equal shapes", "pass keys with their values"
        )
    (batch, heads, _, width), (others, groups, _, _) = q.shape, k.shape
    if others != batch or k.shape[3] != width:
        refuse(f"`q` is {tuple(q.shape)} and `k` {tuple(k.shape)}", f"pass k and v of shape ({batch}, G, T, {width})")
    if descale is not None and str(q.dtype) != E4M3:
        refuse(f"`descale` of {q.dtype}, which has no factors", "pass `torch.float8_e4m3fn` with factors")
    if width not in (widths := FAMILIES.get(str(q.dtype), FAMILIES["torch.bfloat16"])):
        refuse(f"heads of {width} elements, expected {' or '.join(map(str, widths))}", "pad the heads with zeros")
    if groups < 1 or heads % groups:
        refuse(f"{heads} heads of `q` for {groups} of `k`", "pass heads of `q` that are a multiple of those of `k`")


# -- kernels on the device -----------------------------------------------------------------------------------


_READY: dict[tuple[object, ...], tuple[Product, tuple[Heads, ...]]] = {}
"""Calls by what equal ones share: all properties of the operands but their addresses; with factors on the device."""


def clear_cache() -> None:
    """Drop the loaded kernels and the scales on devices."""
    _READY.clear()
    load_candidate.cache_clear()
    constant.cache_clear()


def _call_key(q: Heads, k: Heads, v: Heads, more: tuple[object, ...], descale: Descale) -> tuple[object, ...]:
    """All properties of a call but the operands' addresses, as a key; empty where an operand is not a tensor."""
    try:
        factors_ = () if descale is None else tuple((x.shape, x.stride(), x.dtype, x.device) for x in descale)
        return (
            *(q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride()),
            *(q.dtype, k.dtype, v.dtype, q.device, k.device, v.device, *more, factors_),
        )
    except (AttributeError, RuntimeError, TypeError):
        return ()
