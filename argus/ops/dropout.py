"""`dropout`: torch's dropout in training, with its random bits, and the gradient that has the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from argus.core.philox import greatest_below
from argus.kernels.dropout import FAMILIES, WORDS
from argus.ops.attention_gradient import is_wanted
from argus.ops.call_path import Candidate, Plan, Traced, launch, refuser, torch
from argus.ops.constants import factor
from argus.ops.operand_checks import Asked, check_operands
from argus.ops.operands import copy_aligned
from argus.ops.row_calls import TYPES
from argus.ops.targets import kernels_for
from argus.ops.traced import registered, traceable
from argus.runtime.launch_gate import Unproved

_THREADS = 256
"""Of a block, as torch has it."""
_ON_CPU = 1056
"""Blocks at a time of an H200, for tensors of the CPU."""
_HALF = 0xFFFFFFFF
_CERTAIN = (0, 1)
"""Probabilities for which nothing is drawn."""


@traceable
def dropout(x: Any, p: float = 0.5, *, unproved: Unproved = "refuse") -> Any:  # noqa: ANN401 reason: torch's
    """x / (1 - p) where a random number is below 1 - p, else 0, as `torch.nn.functional.dropout` in training.

    x: of any shape, in bf16, f16 or f32; copied first unless it is row-major and 16 divides its address. p: from 0 to
    1. Random numbers are those that torch's own dropout has for the same seed and offset of the device's generator,
    which moves on as torch moves it: equal seeds keep equal elements, of a dense tensor at an address that 16 divides.
    On the CPU, where torch has another generator, the numbers are of a seed that it draws. Its gradient is a dropout
    with the same numbers.

    It is for an H100, H200 or MI300X and runs on the current stream. It may not be captured in a CUDA graph, whose
    replays would have the same numbers. unproved: "allow" also runs a kernel that is neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E405 for sizes beyond those that the kernel's proof
            assumes, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E303 without a compiler.
    """
    _check(x, p)
    if is_wanted(x):
        return registered("dropout")(x, p, unproved=unproved)
    state = x.new_empty((4,), dtype=torch().int32)
    draw(state, x.numel(), p)
    return dropped(x, state, p, unproved=unproved)


def draw(state: Any, elements: int, p: float) -> None:  # noqa: ANN401 reason: torch's
    """Write the state of the device's generator into four numbers, as kernels take it, and move the generator on.

    It does not move for probabilities of 0 and 1, as torch's. Raises ArgusError (E401) within the capture of a graph.
    """
    if p in _CERTAIN:
        state.zero_()
        return
    low, high, first = _drawn(state, elements)
    last = _greatest(p)
    words = np.array([low, high, first], np.uint32).view(np.int32).tolist()
    state.copy_(torch().tensor([*words, last], dtype=torch().int32))


def _drawn(state: Any, elements: int) -> tuple[int, int, int]:  # noqa: ANN401 reason: torch's
    """The halves of the seed, and the first counter."""
    if not state.is_cuda:
        seed = int(torch().randint(1 << 62, ()).item())
        return seed & _HALF, seed >> 32, 0
    if torch().cuda.is_current_stream_capturing():
        _refuse("random numbers are drawn in a capture", "draw them ahead of `torch.cuda.graph`")
    generator = torch().cuda.default_generators[state.device.index]
    seed, offset = generator.initial_seed() & (1 << 64) - 1, generator.get_offset()
    each = _THREADS * WORDS * _blocks(elements, state)
    generator.set_offset(offset + (max(elements - 1, 0) // each + 1) * WORDS)
    return seed & _HALF, seed >> 32, offset // WORDS & _HALF


def dropped(x: Any, state: Any, p: float, *, unproved: Unproved = "refuse") -> Any:  # noqa: ANN401 reason: torch's
    """The dropout of a state that `draw` has written for the same number of elements and `p`."""
    _check(x, p)
    elements = x.numel()
    if elements == 0 or p == 1:
        return x.new_empty(tuple(x.shape)).zero_()
    if p == 0:
        return x.clone()
    template = FAMILIES[TYPES[str(x.dtype)]]
    config = kernels_for("dropout", x).choose(elements, x.element_size())
    candidate = Candidate(template.name, config, partial(_traced, str(x.dtype), config))
    sizes = (("N", elements), ("T", _THREADS * _blocks(elements, x)))
    plan = Plan(((tuple(x.shape), x.dtype),), sizes, (candidate,), _named)
    kept = factor("dropout", float(np.float32(1) / np.float32(1 - p)), x.device.index)
    return launch(plan, (x, state, kept), unproved)[0]


def _blocks(elements: int, x: Any) -> int:  # noqa: ANN401 reason: torch's
    """Blocks of torch's kernel: at most those that the device runs at a time."""
    return min(_at_a_time(x.device.index) if x.is_cuda else _ON_CPU, -(-elements // _THREADS))


@cache
def _at_a_time(device: int) -> int:
    about = torch().cuda.get_device_properties(device)
    return about.multi_processor_count * (about.max_threads_per_multi_processor // _THREADS)


@lru_cache(maxsize=256)
def _greatest(p: float) -> int:
    return greatest_below(1 - p)


def _traced(dtype: str, config: str) -> Traced:
    template = FAMILIES[TYPES[dtype]]
    return template.trace(config), template.function.__module__


def _named(x: Any, state: Any, kept: Any, out: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    return {"X": copy_aligned(x).view(-1), "S": state, "F": kept, "Y": out.view(-1)}


def _check(x: Any, p: float) -> None:  # noqa: ANN401 reason: a user's
    check_operands(_refuse, {"x": (x, Asked(TYPES, differentiable=True))}, lacks="this kernel lacks")
    if not 0 <= p <= 1:
        _refuse(f"`p` is {p:g}, expected a probability", "pass a number from 0 to 1")


_refuse = refuser("dropout")
