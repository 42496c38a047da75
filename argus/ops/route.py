"""`route`: the experts of each token and their weights, from scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Any

from attrs import frozen

from argus.kernels.routing import FAMILIES, family
from argus.kernels.schedules.routing import EXPERTS, MOST, Scoring
from argus.ops import lists_on_cpu
from argus.ops.call_path import Candidate, Plan, Traced, launch, load_candidate, refuser, torch
from argus.ops.constants import constant
from argus.ops.grouped_tiles import int32_of
from argus.ops.operand_checks import Asked, check_operands, check_shape
from argus.ops.operands import copy_aligned
from argus.ops.route_groups import experts_of_best_groups
from argus.ops.route_text import SYMBOL, THREADS, Selection
from argus.ops.row_calls import TYPES
from argus.ops.targets import kernels_for, target_of
from argus.ops.text_kernels import TextKernel
from argus.ops.traced import traceable
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product, store

_AXES, _MOST_TOKENS = 2, 1 << 28
_SCORINGS = ("softmax", "sigmoid")


@traceable
def route(
    logits: Any,  # noqa: ANN401 reason: torch's
    k: int,
    *,
    scoring: Scoring = "softmax",
    bias: Any = None,  # noqa: ANN401 reason: as above
    renormalize: bool = False,
    scale: float = 1.0,
    groups: int | None = None,
    top_groups: int | None = None,
    unproved: Unproved = "refuse",
) -> tuple[Any, Any]:
    """The weights, in f32, and the numbers, in int32, of the k experts of each token: (tokens, k) each.

    logits: (tokens, experts) in bf16, f16 or f32, at most 512 experts; k: 1 to 8. A token's experts are those of the
    largest scores in descending order, of equal ones the first. scoring: "softmax" over all experts, or the "sigmoid"
    of each. bias: (experts,) in f32, added to sigmoids to choose experts and not in weights, as DeepSeek-V3's
    correction. renormalize: weights are divided by their sum over the token's experts. scale: a factor of all weights.

    groups: if given, experts are in so many groups of equal size, and a token chooses among those of its `top_groups`
    best groups alone, of equal groups the first. A group's score is its largest, or with a bias the sum of its two
    largest sums of sigmoid and bias, as in DeepSeek-V3; weights of a softmax are over all experts. On an H100 or H200.

    Two launches: one chooses, and the other, which is proved, computes weights and checks the choice, whatever it is:
    if the chosen are not those, in that order, the token's weights are infinite. Logits that are not numbers count as
    the largest, and give weights that are infinite or not numbers. With a bias, scores are compared as they are rounded
    to f32. Groups take two more, which are proved to find the experts of the best ones.

    It is for an H100, H200 or MI300X, runs on the current stream and may be captured in a CUDA graph, after a first
    call. No gradients. unproved: "allow" also runs a kernel that is neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such, E406 to E409 for errors on the GPU, E413 for a kernel without a
            proof, E303 without a compiler.
    """
    _check(logits, k, scoring, bias, scale)
    _check_groups(logits.shape[1], k, (groups, top_groups), paired=bias is not None)
    x = copy_aligned(logits)
    (tokens, experts), index, used = x.shape, x.device.index, torch()
    if tokens == 0:
        return x.new_empty((0, k), dtype=used.float32), x.new_empty((0, k), dtype=used.int32)
    among: tuple[Any, ...] = () if bias is None else (copy_aligned(bias),)
    if groups is not None and top_groups is not None:
        among = (*among, experts_of_best_groups(x, among, groups, top_groups, unproved))
    own = (str(x.dtype), experts, scoring, renormalize, bias is not None, groups is not None, index)
    if not x.is_cuda:
        return _on_cpu(x, k, own, among, scale, unproved)
    routing = _ROUTINGS.get(own) or _routing(own, x)
    factor = constant("route", scale, 1, "float32", index)
    with used.cuda.device(index):
        ids = used.empty((tokens, k), dtype=used.int32, device=x.device)
        given = (x, *among, ids, factor)
        places = tuple([each.data_ptr() for each in given])
        routing.choose(places, used.cuda.current_stream(index).cuda_stream, tokens, experts, k)
        key = (*own, tokens, k, unproved)
        ready = _READY.get(key)
        if ready is not None:
            return ready(given, places), ids
        sizes = (("T", tokens), ("E", experts), ("K", k))
        result = ((tokens, k), used.float32)
        plan = Plan((result,), sizes, (routing.candidate,), partial(_named, routing.among))
        weights, product = launch(plan, given, unproved)
    if product is not None:
        store(_READY, key, product)
    return weights, ids


def _on_cpu(
    x: Any,  # noqa: ANN401 reason: torch's
    k: int,
    own: _Own,
    among: tuple[Any, ...],
    scale: float,
    unproved: Unproved,
) -> tuple[Any, Any]:
    """Weights and numbers, on the CPU. among: any biases, and any flags of experts that may be chosen."""
    routing, (tokens, experts) = _routing(own, x), x.shape
    held = {name: tensor.numpy() for name, tensor in zip(routing.among, among, strict=True)}
    ids = int32_of(lists_on_cpu.chosen(x.float().numpy(), held.get("B"), k, held.get("M")))
    given = (x, *among, ids, constant("route", scale, 1, "float32", None))
    sizes = (("T", tokens), ("E", experts), ("K", k))
    result = ((tokens, k), torch().float32)
    plan = Plan((result,), sizes, (routing.candidate,), partial(_named, routing.among))
    return launch(plan, given, unproved)[0], ids


_Own = tuple[str, int, Scoring, bool, bool, bool, int | None]
"""What calls with equal options share: the type, the experts, the scoring, whether weights are renormalised, biases are
given, and experts are in groups, and the device.
"""


@frozen
class _Routing:
    """What calls with equal options share. chooses: the kernel that chooses, with its tokens of a block.

    among: which tensors there are of biases (B) and of flags (M).
    """

    candidate: Candidate
    chooses: TextKernel
    block: int
    among: tuple[str, ...]
    target: str
    device: int | None

    def choose(self, places: tuple[int, ...], stream: int, tokens: int, experts: int, k: int) -> None:
        """Launch what chooses the experts. places: of scores, any biases, any flags, and numbers."""
        held = dict(zip(("X", *self.among, "ids"), places, strict=False))
        numbers = (held["X"], held.get("B", 0), held.get("M", 0), held["ids"], tokens, experts, k)
        assert self.device is not None, "of the CPU"
        self.chooses.launch(self.target, self.device, stream, -(-tokens // self.block), *numbers)


def _routing(own: _Own, x: Any) -> _Routing:  # noqa: ANN401 reason: torch's
    dtype, experts, scoring, renormalised, biased, grouped, index = own
    kind = TYPES[dtype]
    config = kernels_for("route", x).choose(kind, experts)
    name = family(kind, scoring, renormalised=renormalised, biased=biased, grouped=grouped)
    cfg = FAMILIES[name].configs[config]
    selection = Selection(kind, cfg.lanes, cfg.vector * cfg.steps, cfg.vector, biased, grouped)
    chooses = TextKernel(SYMBOL, selection.text, THREADS, early=True)
    candidate = Candidate(name, config, partial(_traced, name, config))
    among = (*(("B",) if biased else ()), *(("M",) if grouped else ()))
    made = _Routing(candidate, chooses, selection.tokens, among, target_of(x), index)
    store(_ROUTINGS, own, made)
    return made


def _named(among: tuple[str, ...], *tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's; a partial's
    return dict(zip(("X", *among, "ids", "F", "W"), tensors, strict=True))


def _traced(name: str, config: str) -> Traced:
    template = FAMILIES[name]
    return template.trace(config), template.function.__module__


_READY: dict[tuple[object, ...], Product] = {}
"""Launches of weights by what equal calls share."""
_ROUTINGS: dict[tuple[object, ...], _Routing] = {}


def clear_cache() -> None:
    """Drop the loaded kernels, and the constants on devices."""
    _READY.clear()
    _ROUTINGS.clear()
    load_candidate.cache_clear()
    constant.cache_clear()


# -- operands ------------------------------------------------------------------------------------------------


def _check(logits: Any, k: int, scoring: str, bias: Any, scale: float) -> None:  # noqa: ANN401 reason: a user's
    """Raises ArgusError (E401) for operands that are not of the operator."""
    check_operands(_refuse, {"logits": (logits, Asked(TYPES))}, lacks="this kernel lacks")
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
    check_operands(
        _refuse, {"bias": (bias, Asked(("torch.float32",)))}, lacks="this kernel lacks", beside=("logits", logits)
    )
    check_shape(_refuse, "bias", bias, (experts,), "pass a number for each expert")


def _check_groups(experts: int, k: int, given: tuple[int | None, int | None], *, paired: bool) -> None:
    """Raises ArgusError (E401) for groups that are none. paired: two experts of each are compared."""
    groups, top = given
    if groups is None and top is None:
        return
    if groups is None or top is None:
        _refuse("`groups` and `top_groups` go together", "pass both, as `groups=8, top_groups=4`")
    least = 2 if paired else 1
    if groups < 1 or experts % groups or experts // groups < least:
        what = f"a divisor of {experts} that leaves at least {least} experts of a group"
        _refuse(f"`groups` is {groups}, expected {what}", "pass the number of groups")
    if not 1 <= top <= groups or top * (experts // groups) < k:
        enough = f"at most {groups}, and enough of {experts // groups} experts each for k={k}"
        _refuse(f"`top_groups` is {top}, expected {enough}", "let tokens choose among more groups")


_refuse = refuser("route")
