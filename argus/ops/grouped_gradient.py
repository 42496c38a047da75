"""The gradient of `grouped_matmul` for torch's autograd; torch is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from attrs import field, frozen

from argus.core.dsl.programs import ProgramTemplate
from argus.kernels.grouped_weights import FAMILIES as PROGRAMS
from argus.language import bf16, f16
from argus.ops.attention_gradient import dense_rows
from argus.ops.call_path import Candidate, Plan, Traced, launch, torch
from argus.ops.operands import operand_of
from argus.ops.targets import kernels_for
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved
from argus.solvers.base import Solver
from argus.solvers.choice import resolve, use_solver

FAMILIES: Mapping[str, ProgramTemplate] = {"torch.bfloat16": PROGRAMS[bf16], "torch.float16": PROGRAMS[f16]}
"""The programs by torch's name of the type."""
OPERATOR = "the gradient of grouped_matmul"
"""Its row in the table of kernels."""
_NAMES = ("X", "G", "starts", "D")


@frozen
class Gradient:
    """How a grouped product is computed, and its gradient. multiply: (a, b, offsets) to the product.

    solver: by which the gradient's kernels are verified, in whatever thread autograd computes it.
    """

    multiply: Callable[[Any, Any, Any], Any]
    promises: Promises
    unproved: Unproved
    solver: Solver = field(factory=partial(resolve, None))


def with_gradient(how: Gradient, a: Any, b: Any, offsets: Any) -> Any:  # noqa: ANN401 reason: torch's
    """The product, which has a gradient."""
    return _function().apply(a, b, offsets, how)


@cache
def _function() -> Any:  # noqa: ANN401 reason: a class of torch, an extra
    """The product as a function that autograd differentiates once."""
    once = torch().autograd.function.once_differentiable
    members = {"forward": staticmethod(_forward), "backward": staticmethod(once(_backward))}
    return type("GroupedMatmul", (torch().autograd.Function,), members)


def _forward(context: Any, a: Any, b: Any, offsets: Any, how: Gradient) -> Any:  # noqa: ANN401 reason: torch's
    context.save_for_backward(a, b, offsets)
    context.how = how
    return how.multiply(a.detach(), b.detach(), offsets)


def _backward(context: Any, given: Any) -> tuple[Any, ...]:  # noqa: ANN401 reason: torch's
    (a, b), offsets = (each.detach() for each in context.saved_tensors[:2]), context.saved_tensors[2]
    of_a, of_b, *_ = context.needs_input_grad
    how, dense = context.how, dense_rows(given)
    with use_solver(how.solver):
        rows = how.multiply(dense, b.mT, offsets) if of_a else None
        return rows, of_matrices(how, a, b, dense, offsets) if of_b else None, None, None


def of_matrices(how: Gradient, a: Any, b: Any, given: Any, offsets: Any) -> Any:  # noqa: ANN401 reason: torch's
    """The gradient of `b`: for each expert, the product of its rows of `a`, transposed, with those of `given`.

    It lies in memory as `b` does, row-major or column-major. Sums are made in fp32 and in a fixed order. What rows hold
    does not affect the matrices of other experts, and those of experts without rows are 0. Raises ArgusError like
    `launch`.
    """
    turned = not operand_of(b.mT).transposed  # (experts, columns, depth) in memory
    x, g = (given, a) if turned else (a, given)
    found = summed_over_rows(x, g, offsets, how.promises, how.unproved)
    return found.mT if turned else found


def summed_over_rows(x: Any, g: Any, offsets: Any, promises: Promises, unproved: Unproved) -> Any:  # noqa: ANN401 reason: torch's
    """For each expert, the product of its rows of `x`, transposed, with those of `g`: (experts, K, N), row-major.

    x, g: (M, K) and (M, N), sorted by expert; offsets: int32, one more than there are experts. Raises ArgusError like
    `launch`.
    """
    (rows, high), wide, experts = x.shape, g.shape[1], offsets.shape[0] - 1
    if 0 in (rows, high, wide):
        return x.new_empty((experts, high, wide)).zero_()
    program, config = FAMILIES[str(x.dtype)], kernels_for(OPERATOR, x).choose(rows, experts, high, wide)
    sizes = (("M", rows), ("K", high), ("R", experts + 1), ("N", wide), ("E", experts))
    candidate = Candidate(f"{program.name}_{x.dtype}", config, partial(_traced, program, config))
    plan = Plan((((experts, high, wide), x.dtype),), sizes, (candidate,), _named, promises=promises)
    return launch(plan, (dense_rows(x), dense_rows(g), offsets), unproved)[0]


def _traced(program: ProgramTemplate, config: str) -> Traced:
    return program.trace(config), program.function.__module__


def _named(*tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    return dict(zip(_NAMES, tensors, strict=True))
