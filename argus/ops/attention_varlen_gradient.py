"""The gradient of `attention_varlen`: three kernels, of which the first prepares what the others need of each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from argus.core.dsl.kernel import Template
from argus.kernels.packed_attention_backward import FAMILIES as KERNELS
from argus.kernels.packed_attention_backward import ROWS_CONFIGS, PackedGradients
from argus.language import bf16, f16
from argus.ops.attention_gradient import dense_rows
from argus.ops.call_path import Candidate, Plan, Traced, launch, torch
from argus.ops.targets import kernels_for
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved

FAMILIES: Mapping[str, Mapping[int, PackedGradients]] = {"torch.bfloat16": KERNELS[bf16], "torch.float16": KERNELS[f16]}
"""The kernels by torch's name of the type and head dimension."""
OPERATOR = "the gradient of attention_varlen"
"""Its row in the table of kernels."""
_OPERANDS = ("Q", "K", "V", "dO", "L", "Delta", "scale", "starts_q", "starts_k")
_ROWS = ROWS_CONFIGS["packed"].rows


@frozen
class PackedBackward:
    """How the gradient of a call is computed.

    longest: upper bounds of the numbers of queries and of keys of a sequence. scale: log2(e) times that of the scores,
    as a tensor of one number.
    """

    longest: tuple[int, int]
    scale: Callable[[], Any]
    causal: bool
    promises: Promises
    unproved: Unproved

    def gradients(self, tensors: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The gradients of q, k and v, row-major, from (q, k, v, the output, its gradient, lse, the offsets of both).

        Sums are made in fp32 and in a fixed order: equal operands have equal gradients, to the bit. Raises ArgusError
        like `launch`.
        """
        q, k, v, out, given, lse, *starts = tensors
        (rows, heads, width), (keys, groups, _), count = q.shape, k.shape, starts[0].shape[0]
        if 0 in (rows, heads, keys):
            zeros = (each.new_full(tuple(each.shape), 0.0) for each in (q, k, v))
            return next(zeros), next(zeros), next(zeros)
        kernels, config = FAMILIES[str(q.dtype)][width], kernels_for(OPERATOR, q).choose(causal=self.causal)
        given, padded = dense_rows(given), -(-rows // _ROWS) * _ROWS
        sizes = {"H": heads, "S": rows, "R": padded}
        numbers = (((heads, padded), torch().float32),) * 2
        prepare = Plan(numbers, tuple(sizes.items()), (_candidate(kernels.rows, "packed"),), _prepared)
        (sums, delta), _ = launch(prepare, (out, given, lse), self.unproved)
        sizes |= {"G": groups, "T": keys, "N": count, "sequences": count - 1}
        sizes |= dict(zip(("longest_q", "longest_k"), self.longest, strict=True))
        turned = [each.transpose(0, 1) for each in (q, k, v, given)]
        operands = (*turned, sums, delta, self.scale(), *starts)

        def launched(template: Template, outputs: tuple[str, ...], likes: Sequence[Any]) -> Any:  # noqa: ANN401 reason: torch's
            results = tuple((tuple(each.shape), each.dtype) for each in likes)
            named = partial(_named, (*_OPERANDS, *outputs))
            strided = ("Q", "K", "V", "dO")
            plan = Plan(results, tuple(sizes.items()), (_candidate(template, config),), named, strided, self.promises)
            made, _ = launch(plan, operands, self.unproved)
            return made if len(outputs) > 1 else (made,)

        found: dict[str, Any] = {}
        likes = {"dQ": q, "dK": k, "dV": v}
        for template, outputs in kernels.gradients:
            found |= zip(outputs, launched(template, outputs, [likes[name] for name in outputs]), strict=True)
        return found["dQ"], found["dK"], found["dV"]


def _candidate(template: Template, config: str) -> Candidate:
    return Candidate(template.name, config, partial(_traced, template, config))


def _traced(template: Template, config: str) -> Traced:
    return template.trace(config), template.function.__module__


def _prepared(*tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    return dict(zip(("O", "dO", "LSE", "L", "Delta"), tensors, strict=True))


def _named(names: Sequence[str], *tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    return dict(zip(names, tensors, strict=True))
