"""`moe`: a layer of experts on torch tensors, from the experts that a router has chosen for each token."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

from argus.kernels import moe as plain
from argus.kernels import moe_fp8 as scaled
from argus.kernels.schedules.grouped import BLOCK
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.language import ProgramTemplate
from argus.ops.attention_gradient import is_wanted
from argus.ops.call_path import Candidate, Plan, Traced, launch, refuser, torch
from argus.ops.element_types import element_name, no_kernel
from argus.ops.expert_order import ExpertOrder, expert_order
from argus.ops.moe_choices import ATOMIC, CHOICES, for_few, integers_of, plan_of
from argus.ops.moe_gradient import OPERATOR as GRADIENT
from argus.ops.moe_gradient import Gradient, with_gradient
from argus.ops.operand_checks import Asked, check_operands, check_same_types, check_shape
from argus.ops.operands import KINDS, Tensor, copy_aligned
from argus.ops.targets import kernels_for, target_of
from argus.ops.traced import traceable
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved

_NAMES = ("X", "W", "V", "weights", "ids", "starts", "tokens", "inverse", "tile_starts", "tile_experts", "Y")
_SHAPES = {
    "x": ("tokens", "K"),
    "w_gate_up": ("experts", "2 * N", "K"),
    "w_down": ("experts", "K", "N"),
    "topk_ids": ("tokens", "k"),
    "topk_weights": ("tokens", "k"),
}
_SCALED = ("scales of `x`", "scales of `w_gate_up`", "scales of `w_down`")
_EIGHT = {"torch.float8_e4m3fn": "sm_90a", "torch.float8_e4m3fnuz": "gfx942"}
"""The targets that multiply operands of 8 bits, by type."""
_IDS, _WEIGHTS = ("torch.int32", "torch.int64"), ("torch.float32", "torch.bfloat16", "torch.float16")
SCHEDULES: Mapping[str, Mapping[str, int]] = {
    target: {name: each.bm for name, each in plain.CONFIGS.items() if each.first.target.name == target}
    for target in ("sm_90a", "gfx942")
}
"""The schedules by target, with the most rows of a tile."""
SCALED: Mapping[str, Mapping[str, int]] = {
    target: {name: each.bm for name, each in configs.items()}
    for target, configs in (("sm_90a", scaled.CONFIGS), ("gfx942", scaled.CONFIGS_CDNA3))
}
"""Those of operands of 8 bits."""
T = TypeVar("T", bound=Tensor)


@traceable
def moe(
    x: T,
    w_gate_up: Tensor,
    w_down: Tensor,
    topk_ids: Tensor,
    topk_weights: Tensor,
    *,
    activation: Activation = "silu",
    scales: tuple[Tensor, Tensor, Tensor] | None = None,
    config: str | None = None,
    deterministic: bool = True,
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> T:
    """A layer of experts: for each token t the sum over j of topk_weights[t, j] * experts[topk_ids[t, j]](x[t]), on an
    H100, H200 or MI300X.

    An expert e computes w_down[e] @ (activation(w_gate_up[e, :N] @ x) * (w_gate_up[e, N:] @ x)).

    x: (tokens, K). w_gate_up: (experts, 2 N, K), rows of the gate first. w_down: (experts, K, N). All in bf16, or all
    in f16; the result is (tokens, K) of the same type. topk_ids: (tokens, k), int32 or int64, from 0 to experts - 1, at
    most 512 experts; a token may name an expert twice. topk_weights: (tokens, k), f32; other floats are converted.
    Matrices are read in place if they are row-major and aligned to 16 bytes, else copied. K and N are multiples of 8.

    scales: for operands in e4m3 (float8_e4m3fn, and on an MI300X float8_e4m3fnuz), factors in f32 of each 1 x 128 of
    `x`, and of each 128 x 128 of every matrix of `w_gate_up` and of `w_down`: (tokens, ceil(K / 128)),
    (experts, 2 N / 128, ceil(K / 128)) and (experts, ceil(K / 128), N / 128). The result is then bf16, K a multiple of
    16, and N of 128. What an expert computes between its products is rounded to bf16, gated, and rounded to the type of
    `x` with a scale for each 1 x 128, by which the largest magnitude becomes 448, on an MI300X 240.

    activation: "silu", or "gelu" in its tanh form. Sums are in fp32; what an expert computes between its products, and
    its result for a token, are rounded to the type of `x`. A token's results are added in the order of its choices, so
    that the sum is the same each time, and with one schedule whatever other tokens there are.

    promises: how `topk_ids`, and the order of rows that is computed from them on the GPU, are checked before they are
    used. "stop": on the GPU, ahead of the launches; wrong ones end the CUDA context, as an index out of bounds does in
    torch, and the next call raises E402. "fetch": on the host, which waits for the GPU. "tell": as "stop", but the
    kernels then run on integers that their proof does not cover.

    It runs on the current stream. Unless integers are fetched, it may be captured in a CUDA graph, which reads
    `topk_ids` when it runs. Without scales, autograd has its gradients, once: of `x`, `w_gate_up`, `w_down` and
    `topk_weights`. What the layer computes between its products is computed again for them. Sums are made in fp32 and
    in a fixed order; matrices of experts without rows have zeros.

    config: the schedule; by default the one expected to be fastest. Those for few tokens, `choices_N` of at most N
    columns between the products, have no order of rows, and round a token's result once, after the sum; they are the
    default on a Hopper GPU for at most three choices of eight experts. deterministic: if not, `added_N` is allowed too,
    whose blocks add a token's choices atomically, in any order.
    unproved: "allow" also runs kernels that are neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E402 for wrong ids, E405 for sizes beyond those that
            the kernels' proof assumes, E406 to E409 for errors on the GPU, E413 for kernels without a proof, E414 for a
            GPU without kernels for it, E303 without a compiler.
    """
    _check((x, w_gate_up, w_down, topk_ids, topk_weights), scales)
    if activation not in ACTIVATIONS:
        _refuse(f"there is no activation `{activation}`", f"choose one of {', '.join(ACTIVATIONS)}")
    (tokens, depth), (experts, both, _), choices = x.shape, w_gate_up.shape, topk_ids.shape[1]
    choice = kernels_for("moe", x).choose(tokens * choices, experts, blocks=scales is not None)
    known = _schedules(x, scaled=scales is not None)
    if config is None and scales is None and target_of(x) == "sm_90a":
        choice = for_few(tokens, choices, experts, both // 2) or choice
    chosen = choice if config is None else config
    if chosen not in known:
        _refuse(f"there is no schedule `{chosen}`", f"choose one of {', '.join(known)}")
    if deterministic and chosen in ATOMIC:
        _refuse(f"`{chosen}` adds a token's choices in any order", "pass `deterministic=False`, or another schedule")
    if scales is None and is_wanted(x, w_gate_up, w_down, topk_weights):
        kernels_for(GRADIENT, x)  # ahead of the layer, which is of no use without it
        forward = partial(moe, activation=activation, config=config, promises=promises, unproved=unproved)
        how = Gradient(forward, activation, promises, unproved)
        return with_gradient(how, x, w_gate_up, w_down, topk_ids, topk_weights)
    kind = x.dtype if scales is None else torch().bfloat16
    if 0 in (tokens, depth, both, choices):
        return x.new_empty((tokens, depth), dtype=kind).zero_()
    weights: Any = topk_weights
    weights = weights if str(weights.dtype) == _WEIGHTS[0] else weights.float()
    if chosen in CHOICES:  # rows stay where they are
        plan = plan_of((x, w_gate_up, w_down), choices, activation, chosen, promises)
        return launch(plan, (x, w_gate_up, w_down, weights, integers_of(topk_ids)), unproved)[0]
    order = expert_order(topk_ids, experts, height=known[chosen])
    sizes = sizes_of(order, experts, both // 2, depth)
    name = element_name(x.dtype)
    template = (scaled if scales else plain).FAMILIES[name, activation]
    candidate = Candidate(f"moe_{activation}_{name}", chosen, partial(_traced, template, chosen))
    lists = (order.ids, order.offsets, order.tokens, order.inverse, order.tile_starts, order.tile_experts)
    named = _named
    if scales:
        sizes |= {"KB": -(-depth // BLOCK), "U": both, "UB": -(-both // BLOCK), "NB": both // 2 // BLOCK}
        named, lists = _named_scaled, (*scales, *lists)
    plan = Plan((((tokens, depth), kind),), tuple(sizes.items()), (candidate,), named, promises=promises)
    return launch(plan, (x, w_gate_up, w_down, weights, *lists), unproved)[0]


def _schedules(x: Tensor, *, scaled: bool) -> Mapping[str, int | None]:
    """The schedules for operands, with the most rows of a tile where rows are put in order."""
    target = target_of(x)
    if scaled:
        return SCALED[target]
    return {**SCHEDULES[target], **(dict.fromkeys(CHOICES) if target == "sm_90a" else {})}


def sizes_of(order: ExpertOrder, experts: int, columns: int, depth: int) -> dict[str, int]:
    """The sizes of the program, by name."""
    (tokens, choices), tiles = order.ids.shape, order.tile_experts.shape[0]
    sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "J": choices, "S": experts + 1}
    return sizes | {"R": tokens * choices, "Q": tiles + 1, "P": tiles}


def _named(*operands: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    x, both, down, weights = map(copy_aligned, operands[:4])
    experts, rows, depth = both.shape
    made = (x, both.view(experts, 2, rows // 2, depth), down, weights)
    return dict(zip(_NAMES, (*made, *operands[4:]), strict=True))


def _named_scaled(*operands: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    names = ("X", "W", "V", "weights", "scale_x", "scale_w", "scale_v", *_NAMES[4:])
    return dict(zip(names, (*map(copy_aligned, operands[:7]), *operands[7:]), strict=True))


def _traced(template: ProgramTemplate, config: str) -> Traced:
    return template.trace(config), template.function.__module__


# -- operands ------------------------------------------------------------------------------------------------


def _check(operands: tuple[Tensor, ...], scales: tuple[Tensor, ...] | None) -> None:
    """Raises ArgusError (E401) for operands that are not of the operator."""
    x, both, down, ids, weights = operands
    elements = KINDS if scales is None else _EIGHT
    kinds = dict(zip(_SHAPES, (elements, elements, elements, _IDS, _WEIGHTS), strict=True))
    asked = {name: Asked(kinds[name], axes, differentiable=scales is None) for name, axes in _SHAPES.items()}
    given = {name: (tensor, asked[name]) for name, tensor in zip(_SHAPES, operands, strict=True)}
    check_operands(_refuse, given, lacks="layers with scales lack")
    check_same_types(_refuse, x=x, w_gate_up=both, w_down=down)
    (tokens, depth), (experts, rows, _) = x.shape, both.shape
    wanted = {"w_gate_up": (experts, rows - rows % 2, depth), "w_down": (experts, depth, rows // 2)}
    wanted |= dict.fromkeys(("topk_ids", "topk_weights"), (tokens, ids.shape[1]))
    for name, tensor in zip(wanted, (both, down, ids, weights), strict=True):
        check_shape(_refuse, name, tensor, wanted[name], f"pass ({', '.join(_SHAPES[name])}) for x of {tuple(x.shape)}")
    if str(x.dtype) in _EIGHT and _EIGHT[str(x.dtype)] != target_of(x):
        what = f"with operands of {element_name(x.dtype)}"
        raise no_kernel("moe", target_of(x), what, [_EIGHT[str(x.dtype)]])
    if scales is not None:
        _check_scales(scales, x, (experts, rows, depth))


def _check_scales(scales: tuple[Tensor, ...], x: Tensor, shape: tuple[int, int, int]) -> None:
    """Raises ArgusError (E401) for scales that are not those of blocks. shape: of `w_gate_up`."""
    experts, rows, depth = shape
    if len(scales) != len(_SCALED):
        _refuse(f"{len(scales)} scales", "pass those of x, w_gate_up and w_down")
    if rows % (2 * BLOCK):
        _refuse(f"`w_gate_up` has {rows} rows, expected a multiple of {2 * BLOCK}", "pad N to a multiple of 128")
    deep, wide = -(-depth // BLOCK), rows // BLOCK
    wanted = (x.shape[0], deep), (experts, wide, deep), (experts, deep, wide // 2)
    given = {name: (tensor, Asked(_WEIGHTS[:1])) for name, tensor in zip(_SCALED, scales, strict=True)}
    check_operands(_refuse, given, lacks="layers with scales lack", beside=("x", x))
    for name, tensor, extents in zip(_SCALED, scales, wanted, strict=True):
        if tuple(tensor.shape) != extents:
            _refuse(f"{name}: {tuple(tensor.shape)}, expected {extents}", "pass a scale for every block")


_refuse = refuser("moe")
