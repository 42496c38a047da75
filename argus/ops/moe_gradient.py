"""The gradient of `moe` for torch's autograd; torch is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from attrs import field, frozen

from argus.kernels import moe_gradient as gradients
from argus.kernels.schedules.grouped_gated import Activation
from argus.language import ProgramTemplate
from argus.ops.attention_gradient import dense_rows
from argus.ops.call_path import Candidate, Plan, Traced, launch, torch
from argus.ops.expert_order import expert_order
from argus.ops.grouped_gradient import summed_over_rows
from argus.ops.operands import KINDS, copy_aligned
from argus.ops.targets import kernels_for
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved
from argus.solvers.base import Solver
from argus.solvers.choice import resolve, use_solver

OPERATOR = "the gradient of moe"
"""Its row in the table of kernels."""
_NAMES = (
    *("X", "W", "V", "G", "ids", "weights", "starts", "tokens", "order", "inverse", "tile_starts", "tile_experts"),
    *("A", "B", "dZ", "H", "dw", "dX"),
)


@frozen
class Gradient:
    """How a layer of experts is computed, and its gradient. forward: of operands that autograd does not see.

    solver: by which the gradient's kernels are verified, in whatever thread autograd computes it.
    """

    forward: Callable[..., Any]
    activation: Activation
    promises: Promises
    unproved: Unproved
    solver: Solver = field(factory=partial(resolve, None))


def with_gradient(how: Gradient, *operands: Any) -> Any:  # noqa: ANN401 reason: torch's
    """The layer's result, which has a gradient. operands: x, w_gate_up, w_down, topk_ids, topk_weights."""
    return _function().apply(*operands, how)


@cache
def _function() -> Any:  # noqa: ANN401 reason: a class of torch, an extra
    """The layer as a function that autograd differentiates once."""
    once = torch().autograd.function.once_differentiable
    members = {"forward": staticmethod(_forward), "backward": staticmethod(once(_backward))}
    return type("Moe", (torch().autograd.Function,), members)


def _forward(context: Any, x: Any, both: Any, down: Any, ids: Any, weights: Any, how: Gradient) -> Any:  # noqa: ANN401 reason: torch's
    context.save_for_backward(x, both, down, ids, weights)
    context.how = how
    return how.forward(*(each.detach() for each in (x, both, down, ids, weights)))


def _backward(context: Any, given: Any) -> tuple[Any, ...]:  # noqa: ANN401 reason: torch's
    operands = tuple(each.detach() for each in context.saved_tensors)
    needed = context.needs_input_grad
    with use_solver(context.how.solver):
        *found, of_weights = gradients_of(context.how, operands, given, (*needed[:3], needed[4]))
        return *found, None, of_weights, None


def gradients_of(how: Gradient, operands: tuple[Any, ...], given: Any, needed: Sequence[bool]) -> tuple[Any, ...]:  # noqa: ANN401 reason: torch's
    """The gradients of x, w_gate_up, w_down and topk_weights, None where they are not needed, from all operands."""
    found, dtype = Rows.of(how, operands, given), operands[4].dtype
    of_x, of_both, of_down, of_weights = needed
    return (
        found.of_x if of_x else None,
        found.of_both() if of_both else None,
        found.of_down() if of_down else None,
        _as_type(found.of_weights, dtype) if of_weights else None,
    )


@frozen
class Rows:
    """The gradients of tokens and of choices' weights, and the rows whose products are those of matrices.

    x, given: (rows, K), of tokens and of the result's gradient, sorted by expert. products: (rows, 2, N), the gradient
    of each row's products with its first matrix. hidden: (rows, N), what is multiplied by the second one, by weight.
    """

    how: Gradient
    starts: Any
    x: Any
    given: Any
    products: Any
    hidden: Any
    of_weights: Any
    of_x: Any

    @classmethod
    def of(cls, how: Gradient, operands: tuple[Any, ...], given: Any) -> Rows:  # noqa: ANN401 reason: torch's
        """From the layer's operands and the gradient of its result. Raises ArgusError like `launch`."""
        x, both, down, ids, weights = operands
        (tokens, depth), (experts, wide, _), choices = x.shape, both.shape, ids.shape[1]
        rows, columns, single = tokens * choices, wide // 2, torch().float32
        shapes = (rows, depth), (rows, depth), (rows, 2, columns), (rows, columns)
        results = (*((each, x.dtype) for each in shapes), ((tokens, choices), single), ((tokens, depth), x.dtype))
        if 0 in (rows, depth, columns):
            starts = torch().zeros((experts + 1,), dtype=torch().int32, device=x.device)
            return cls(how, starts, *(x.new_empty(shape, dtype=kind).zero_() for shape, kind in results))
        config = kernels_for(OPERATOR, x).choose(rows, experts)
        order = expert_order(ids, experts, height=gradients.CONFIGS[config].bm)
        template = gradients.FAMILIES[KINDS[str(x.dtype)], how.activation]
        tiles = order.tile_experts.shape[0]
        sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "R": rows, "J": choices}
        sizes |= {"S": experts + 1, "Q": tiles + 1, "P": tiles}
        candidate = Candidate(f"{template.name}_{how.activation}_{x.dtype}", config, partial(_traced, template, config))
        plan = Plan(results, tuple(sizes.items()), (candidate,), _named, promises=how.promises)
        lists = order.offsets, order.tokens, order.order, order.inverse, order.tile_starts, order.tile_experts
        factors = _as_type(weights, single)
        found, _ = launch(plan, (x, both, down, dense_rows(given), order.ids, factors, *lists), how.unproved)
        return cls(how, order.offsets, *found)

    def of_both(self) -> Any:  # noqa: ANN401 reason: torch's
        """The gradient of the first matrices, row-major: (experts, 2 N, K)."""
        rows, _, columns = self.products.shape
        return self._summed(self.products.view(rows, 2 * columns), self.x)

    def of_down(self) -> Any:  # noqa: ANN401 reason: torch's
        """The gradient of the second matrices, row-major: (experts, K, N)."""
        return self._summed(self.given, self.hidden)

    def _summed(self, x: Any, g: Any) -> Any:  # noqa: ANN401 reason: torch's
        return summed_over_rows(x, g, self.starts, self.how.promises, self.how.unproved)


def _as_type(tensor: Any, dtype: Any) -> Any:  # noqa: ANN401 reason: torch's
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def _traced(template: ProgramTemplate, config: str) -> Traced:
    return template.trace(config), template.function.__module__


def _named(*tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    x, both, down, given, ids, weights, *others = tensors
    experts, rows, depth = both.shape
    halves = copy_aligned(both).view(experts, 2, rows // 2, depth)
    made = copy_aligned(x), halves, copy_aligned(down), given, ids, copy_aligned(weights).view(-1), *others
    return dict(zip(_NAMES, made, strict=True))
