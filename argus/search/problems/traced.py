"""Kernels and programs of several launches alike, as the gate needs them: sizes, tensors, and what they assume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import cast

from argus.core.check.reads import written_tensors
from argus.core.index import Cond
from argus.core.index_text import show
from argus.core.ir import Buffer, Kernel, Program
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.walk import evaluate
from argus.interp.memory.loading import inputs, outputs
from argus.interp.search.search import assumed, holds, sizes_in_order, work

Traced = Kernel | Program
MOST_INTERPRETED = 1 << 22
"""Largest product of all sizes at which the interpreter is run as well."""
MOST_STEPS = 1 << 11
"""Most blocks times loop trips of a kernel of constant sizes that is run in the interpreter."""


def kernels_of(traced: Traced) -> tuple[Kernel, ...]:
    """The kernel, or those that a program launches, over the program's sizes."""
    return (traced,) if isinstance(traced, Kernel) else tuple(each.kernel for each in launch_contexts(traced))


def conditions(traced: Traced) -> tuple[Cond, ...]:
    """What each kernel assumes of the sizes."""
    return tuple(assumed(each) for each in kernels_of(traced))


def admits(traced: Traced, sizes: Mapping[str, int]) -> bool:
    """Whether sizes satisfy all assumptions."""
    return all(holds(each, assumed(each), sizes) for each in kernels_of(traced))


def assumptions_text(traced: Traced) -> str:
    return " and ".join(dict.fromkeys(map(show, conditions(traced))))


def small_sizes(traced: Traced) -> Iterator[dict[str, int]]:
    """Small admissible sizes, least work first; one empty assignment for a kernel of constant sizes."""
    if isinstance(traced, Kernel):
        yield from sizes_in_order(traced)
        return
    kernels = kernels_of(traced)
    found = {tuple(sorted(each.items())): each for kernel in kernels for each in sizes_in_order(kernel)}
    names = {symbol.name for symbol in traced.sizes}
    fine = [each for each in found.values() if set(each) == names and all(holds(k, assumed(k), each) for k in kernels)]
    yield from sorted(fine, key=lambda each: (sum(work(k, each)[0] for k in kernels), sum(each.values())))


def interpretable(traced: Traced, sizes: Mapping[str, int]) -> bool:
    """Whether a run in the interpreter at these sizes takes seconds: few products, or few steps for constant sizes."""
    if traced.sizes:
        return prod(sizes.values()) <= MOST_INTERPRETED
    return sum(work(each, {})[0] for each in kernels_of(traced)) <= MOST_STEPS


def read_names(traced: Traced) -> tuple[str, ...]:
    """The parameters whose contents a call reads, in order."""
    if isinstance(traced, Kernel):
        return tuple(each.name for each in inputs(traced))
    written = {launch.arguments[each.name] for launch in traced.launches for each in written_tensors(launch.kernel)}
    return tuple(each.name for each in traced.parameters if each not in written)


def written_names(traced: Traced) -> tuple[str, ...]:
    """The parameters that a call writes, in order."""
    if isinstance(traced, Kernel):
        return tuple(each.name for each in outputs(traced))
    read = read_names(traced)
    return tuple(each.name for each in traced.parameters if each.name not in read)


def shape_at(buffer: Buffer, traced: Traced, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A parameter's shape at sizes."""
    values = {symbol: sizes[symbol.name] for symbol in traced.sizes}
    return tuple(int(cast(int, evaluate(extent, values))) for extent in buffer.shape)
