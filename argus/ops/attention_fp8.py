"""Attention of e4m3 torch tensors with a factor for each head: the part of `attention` for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from operator import is_not
from typing import Any

from argus.core.dsl.programs import ProgramTemplate
from argus.kernels.attention_fp8 import FAMILIES
from argus.ops.attention_options import refuse
from argus.ops.call_path import Candidate, Plan, Traced, launch, torch
from argus.ops.targets import kernels_for
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product

Descale = tuple[Any, Any, Any] | None
"""The factors of q, k and v, each for its own heads; None for 1."""
Again = tuple[Product, tuple[Any, ...]]
"""A function of all tensors that a call reads, and those of them that come between the values and given factors."""
_NAMES = ("Q", "K", "V", "scale", "scale_q", "scale_k", "scale_v", "O", "LSE")


def attention_fp8(
    tensors: tuple[Any, Any, Any], descale: Descale, scale: Callable[[], Any], unproved: Unproved, *, causal: bool
) -> tuple[tuple[Any, Any], Again | None]:
    """The output in bf16, and the log-sum-exp. scale: log2(e) times that of the scores, as a tensor of one number.

    Beside them, what later calls with equal shapes and strides run; None where operands or factors had to be copied.

    Raises ArgusError (E401) for heads that have no program and factors that are none, and like `launch`.
    """
    q, k, _ = tensors
    (batch, heads, rows, width), (_, groups, keys, _) = q.shape, k.shape
    if any(each.requires_grad for each in tensors) and torch().is_grad_enabled():
        refuse("8-bit operands have no gradient", "use `torch.no_grad()` or `.detach()`")
    if width not in FAMILIES:
        refuse(f"heads of {width} elements, expected {' or '.join(map(str, FAMILIES))}", "pad the heads with zeros")
    kernels = kernels_for("attention of 8-bit operands", q)
    factors = _factors(q, ((batch, heads), (batch, groups), (batch, groups)), descale)
    bf16, f32 = torch().bfloat16, torch().float32
    results = (((batch, heads, rows, width), bf16), ((batch, heads, rows), f32))
    if 0 in (batch, heads, rows, keys):
        return (q.new_full(results[0][0], 0.0, dtype=bf16), q.new_full(results[1][0], -inf, dtype=f32)), None
    config = kernels.choose(width, rows, keys, batch * heads, causal=causal)
    sizes = (("B", batch), ("H", heads), ("S", rows), ("G", groups), ("T", keys))
    family = FAMILIES[width]
    candidate = Candidate(f"{family.name}_{width}", config, partial(_traced, family, config))
    plan = Plan(results, sizes, (candidate,), _named, ("Q", "K"))
    number = scale()
    found, product = launch(plan, (*tensors, number, *factors), unproved)
    if product is None or (descale is not None and any(map(is_not, factors, descale))):
        return found, None
    return found, (product, (number,) if descale is not None else (number, *factors))


def _traced(family: ProgramTemplate, config: str) -> Traced:
    return family.trace(config), family.function.__module__


def _named(q: Any, k: Any, v: Any, *rest: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    dense = v.contiguous()  # its launch reads rows as they lie in memory
    dense = dense.clone() if dense.data_ptr() % 16 else dense
    return dict(zip(_NAMES, (q, k, dense, *rest), strict=True))


def _factors(q: Any, shapes: tuple[tuple[int, int], ...], descale: Descale) -> tuple[Any, ...]:  # noqa: ANN401 reason: torch's
    """The factors, row-major. Raises ArgusError (E401) unless they are f32, one for each head."""
    if descale is None:
        return tuple(q.new_full(shape, 1.0, dtype=torch().float32) for shape in shapes)
    if not isinstance(descale, tuple) or len(descale) != len(shapes):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        refuse("`descale` is no triple of tensors", "pass the factors of q, k and v: `descale=(q, k, v)`")
    for name, factor, shape in zip("qkv", descale, shapes, strict=True):
        if not hasattr(factor, "data_ptr"):
            refuse(f"`descale` of {name} is not a torch tensor, found {type(factor).__name__}", "pass `torch.Tensor`s")
        found = tuple(factor.shape), str(factor.dtype), factor.device
        if found != (shape, "torch.float32", q.device):
            refuse(
                f"`descale` of {name} is {found[0]} of {found[1]} on {found[2]}",
                f"pass torch.float32 of shape {shape} on {q.device}",
            )
    dense = (factor.contiguous() for factor in descale)
    return tuple(factor.clone() if factor.data_ptr() % 16 else factor for factor in dense)
