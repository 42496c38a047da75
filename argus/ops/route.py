"""`route`: the experts of each token and their weights, from scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Any

from argus.kernels.routing import FAMILIES, family
from argus.kernels.schedules.routing import EXPERTS, MOST, Scoring
from argus.ops.call_path import Candidate, Plan, Traced, launch, load_candidate, refuser, torch
from argus.ops.operands import copy_aligned
from argus.ops.route_text import SYMBOL, THREADS, Selection
from argus.ops.row_calls import TYPES, constant
from argus.ops.targets import kernels_for, target_of
from argus.ops.text_kernels import TextKernel
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product, store

_AXES, _MOST_TOKENS = 2, 1 << 28
_SCORINGS = ("softmax", "sigmoid")


def route(
    logits: Any,  # noqa: ANN401 reason: torch's
    k: int,
    *,
    scoring: Scoring = "softmax",
    bias: Any = None,  # noqa: ANN401 reason: as above
    renormalize: bool = False,
    scale: float = 1.0,
    unproved: Unproved = "refuse",
) -> tuple[Any, Any]:
    """The weights, in f32, and the numbers, in int32, of the k experts of each token: (tokens, k) each.

    logits: (tokens, experts) in bf16, f16 or f32, at most 512 experts; k: 1 to 8. A token's experts are those of the
    largest scores in descending order, of equal ones the first. scoring: "softmax" over all experts, or the "sigmoid"
    of each. bias: (experts,) in f32, added to sigmoids to choose experts and not in weights, as DeepSeek-V3's
    correction. renormalize: weights are divided by their sum over the token's experts. scale: a factor of all weights.

    Two launches: one chooses, and the other, which is proved, computes weights and checks the choice, whatever it is:
    if some expert has a larger score than a chosen one, or the chosen are not all different, or not in that order, the
    token's weights are infinite. So are those of a token with logits that are not numbers. With a bias, scores are
    compared as they are rounded to f32.

    It is for an H100, H200 or MI300X, runs on the current stream and may be captured in a CUDA graph, after a first
    call. No gradients. unproved: "allow" also runs a kernel that is neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such, E406 to E409 for errors on the GPU, E413 for a kernel without a
            proof, E303 without a compiler.
    """
    _check(logits, k, scoring, bias, scale)
    x = copy_aligned(logits)
    (tokens, experts), index, used = x.shape, x.device.index, torch()
    kind = TYPES[str(x.dtype)]
    factor = constant("route", scale, 1, "float32", index)
    with used.cuda.device(index):
        ids = used.empty((tokens, k), dtype=used.int32, device=x.device)
        if tokens == 0:
            return used.empty((tokens, k), dtype=used.float32, device=x.device), ids
        biases = () if bias is None else (copy_aligned(bias),)
        key = (tokens, experts, k, kind, scoring, bias is None, renormalize, index, unproved)
        config = kernels_for("route", x).choose(kind, experts)
        name = family(kind, scoring, renormalised=renormalize, biased=bias is not None)
        stream = used.cuda.current_stream(index).cuda_stream
        _choose(name, config, x, biases, ids, target_of(x), stream)
        given = (x, *biases, ids, factor)
        ready = _READY.get(key)
        if ready is not None:
            return ready(given, tuple([each.data_ptr() for each in given])), ids
        candidate = Candidate(name, config, partial(_traced, name, config))
        sizes = (("T", tokens), ("E", experts), ("K", k))
        plan = Plan((((tokens, k), used.float32),), sizes, (candidate,), partial(_named, bias is not None))
        weights, product = launch(plan, given, unproved)
    if product is not None:
        store(_READY, key, product)
    return weights, ids


def _choose(
    name: str,
    config: str,
    x: Any,  # noqa: ANN401 reason: torch's
    biases: tuple[Any, ...],
    ids: Any,  # noqa: ANN401 reason: as above
    target: str,
    stream: int,
) -> None:
    """Launch what chooses the experts."""
    cfg = FAMILIES[name].configs[config]
    selection = Selection(TYPES[str(x.dtype)], cfg.lanes, cfg.vector * cfg.steps, cfg.vector, bool(biases))
    kernel = TextKernel(SYMBOL, selection.text, THREADS, early=True)
    (tokens, experts), choices = x.shape, ids.shape[1]
    places = (x.data_ptr(), biases[0].data_ptr() if biases else 0, ids.data_ptr())
    blocks = -(-tokens // selection.tokens)
    kernel.launch(target, x.device.index, stream, blocks, *places, tokens, experts, choices)


def _named(biased: bool, *tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's; a partial's
    return dict(zip(("X", *(("B",) if biased else ()), "ids", "F", "W"), tensors, strict=True))


def _traced(name: str, config: str) -> Traced:
    template = FAMILIES[name]
    return template.trace(config), template.function.__module__


_READY: dict[tuple[object, ...], Product] = {}
"""Launches of weights by what equal calls share."""


def clear_cache() -> None:
    """Drop the loaded kernels, and the constants on devices."""
    _READY.clear()
    load_candidate.cache_clear()
    constant.cache_clear()


# -- operands ------------------------------------------------------------------------------------------------


def _check(logits: Any, k: int, scoring: str, bias: Any, scale: float) -> None:  # noqa: ANN401 reason: a user's
    """Raises ArgusError (E401) for operands that are not of the operator."""
    _check_tensor("logits", logits, logits, tuple(TYPES))
    if len(logits.shape) != _AXES:
        _refuse(f"`logits` is {tuple(logits.shape)}, expected (tokens, experts)", "flatten the leading axes")
    tokens, experts = logits.shape
    if not 1 <= experts <= EXPERTS or tokens >= _MOST_TOKENS:
        _refuse(f"`logits` is {tuple(logits.shape)}, expected 1 to {EXPERTS} experts", "route among groups of experts")
    if not 1 <= k <= min(MOST, experts):
        _refuse(f"`k` is {k}, expected 1 to {min(MOST, experts)}", "choose that many experts of a token")
    if scoring not in _SCORINGS:
        _refuse(f"`scoring` is {scoring!r}, expected `softmax` or `sigmoid`", "pass one of them")
    if not isfinite(scale):
        _refuse(f"`scale` is {scale:g}, expected a finite number", "pass one such as 2.5")
    if bias is None:
        return
    if scoring != "sigmoid":
        _refuse("a bias with the scores of a softmax", 'pass `scoring="sigmoid"`')
    _check_tensor("bias", bias, logits, ("torch.float32",))
    if tuple(bias.shape) != (experts,):
        _refuse(f"`bias` is {tuple(bias.shape)}, expected ({experts},)", "pass a number for each expert")


def _check_tensor(name: str, tensor: Any, beside: Any, types: tuple[str, ...]) -> None:  # noqa: ANN401 reason: a user's
    if not hasattr(tensor, "data_ptr"):
        _refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass `torch.Tensor`s")
    if str(tensor.dtype) not in types:
        wanted = ", ".join(types)
        _refuse(f"`{name}` expects elements of type {wanted}, found {tensor.dtype}", "convert it: `.float()`")
    if not tensor.is_cuda or tensor.device != beside.device:
        _refuse(f"`{name}` is on {tensor.device}, expected the GPU of `logits`", "move it: `.cuda()`")
    if tensor.requires_grad and torch().is_grad_enabled():
        _refuse(f"`{name}` requires a gradient, which this kernel lacks", "use `torch.no_grad()` or `.detach()`")


_refuse = refuser("route")
