"""The gradient of `attention` for torch's autograd; torch is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from attrs import field, frozen

from argus.core.dsl.programs import ProgramTemplate
from argus.kernels.attention_backward import FAMILIES as PROGRAMS
from argus.language import bf16, f16
from argus.ops.call_path import Candidate, Plan, Traced, launch, torch
from argus.ops.targets import kernels_for
from argus.runtime.launch_gate import Unproved
from argus.solvers.base import Solver
from argus.solvers.choice import resolve, use_solver

FAMILIES: Mapping[str, Mapping[int, ProgramTemplate]] = {
    "torch.bfloat16": PROGRAMS[bf16],
    "torch.float16": PROGRAMS[f16],
}
"""The programs by type and head dimension."""
OPERATOR = "the gradient of attention"
"""Its row in the table of kernels."""
_FEW = 1024
"""Keys below which adding up in memory takes longer than two more products, of heads of 128 elements."""
_ALWAYS = 64
"""Heads of which it takes less for any number of keys: of at most so many elements."""
_ADDED = 128
"""The heads for which there are programs that add up the gradients of queries: of at most so many elements."""
_NAMES = ("Q", "K", "V", "O", "dO", "LSE", "scale", "dQ", "dK", "dV")


@frozen
class Gradient:
    """How attention is computed, and its gradient.

    forward: (q, k, v) and what else is given, such as offsets, to the output and the log-sum-exp. backward: (q, k, v,
    the output, its gradient, the log-sum-exp) and what else is given to the gradients of q, k and v. solver: by which
    the gradient's kernels are verified, in whatever thread autograd computes it.
    """

    forward: Callable[..., tuple[Any, Any]]
    backward: Callable[[Sequence[Any]], tuple[Any, Any, Any]]
    solver: Solver = field(factory=partial(resolve, None))


@frozen
class Backward:
    """How the gradient of dense attention is computed. scale: log2(e) times that of the scores, of one number.

    deterministic: whether the gradients of queries are summed in a fixed order; None: if that is faster, or torch asks
    for it.
    """

    scale: Callable[[], Any]
    causal: bool
    unproved: Unproved
    deterministic: bool | None = None


def is_wanted(*operands: Any) -> bool:  # noqa: ANN401 reason: torch's
    """Whether autograd records a call on these tensors."""
    return any(each.requires_grad for each in operands) and torch().is_grad_enabled()


def with_gradient(how: Gradient, q: Any, k: Any, v: Any, *more: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: torch's
    """The output and the log-sum-exp; the output has a gradient, the log-sum-exp none. more: tensors without one."""
    return _function().apply(q, k, v, how, *more)


@cache
def _function() -> Any:  # noqa: ANN401 reason: a class of torch, an extra
    """Attention as a function that autograd differentiates once."""
    function = torch().autograd.Function
    members = {"forward": staticmethod(_forward), "backward": staticmethod(_once(_backward))}
    return type("Attention", (function,), members)


def _once(backward: Callable[..., Any]) -> Callable[..., Any]:
    return torch().autograd.function.once_differentiable(backward)


def _forward(context: Any, q: Any, k: Any, v: Any, how: Gradient, *more: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: torch's
    out, lse = how.forward(q.detach(), k.detach(), v.detach(), *more)
    context.save_for_backward(q, k, v, out, lse, *more)
    context.how = how
    context.mark_non_differentiable(lse)
    return out, lse


def _backward(context: Any, given: Any, _of_lse: Any) -> tuple[Any, ...]:  # noqa: ANN401 reason: torch's
    q, k, v, out, lse, *more = context.saved_tensors
    with use_solver(context.how.solver):
        return *context.how.backward((q, k, v, out, given, lse, *more)), None, *(None for _ in more)


def gradients(how: Backward, tensors: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, each row-major, from (q, k, v, out, the gradient of out, lse).

    Sums are made in fp32, in a fixed order unless `how` allows another. Raises ArgusError like `launch`.
    """
    q, k, v, out, given, lse = tensors
    (batch, heads, rows, width), (_, groups, keys, _) = q.shape, k.shape
    kernels = kernels_for(OPERATOR, q)
    results = tuple((tuple(each.shape), each.dtype) for each in (q, k, v))
    if 0 in (batch, heads, rows, keys):
        found = (q.new_full(shape, 0.0) for shape, _ in results)
        return next(found), next(found), next(found)
    program, group = FAMILIES[str(q.dtype)][width], heads // groups
    added = width <= _ADDED and not _in_fixed_order(how, width, keys, group)
    config = kernels.choose(keys, group, causal=how.causal, added=added)
    sizes = (("B", batch), ("H", heads), ("S", rows), ("G", groups), ("T", keys))
    candidate = Candidate(f"{program.name}_{width}_{q.dtype}", config, partial(_traced, program, config))
    plan = Plan(results, sizes, (candidate,), _named, ("Q", "K", "V"))
    found, _ = launch(plan, (q, k, v, out, dense_rows(given), lse, how.scale()), how.unproved)
    return found


def _in_fixed_order(how: Backward, width: int, keys: int, group: int) -> bool:
    if how.deterministic is not None:
        return how.deterministic
    faster = width <= _ALWAYS or (width <= _ADDED and keys >= _FEW and (group == 1 or not how.causal))
    return not faster or bool(torch().are_deterministic_algorithms_enabled())


def dense_rows(given: Any) -> Any:  # noqa: ANN401 reason: torch's
    """A gradient row-major and aligned, as autograd may pass any strides."""
    dense = given.contiguous()
    return dense.clone() if dense.data_ptr() % 16 else dense


def _traced(program: ProgramTemplate, config: str) -> Traced:
    return program.trace(config), program.function.__module__


def _named(*tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    return dict(zip(_NAMES, tensors, strict=True))
