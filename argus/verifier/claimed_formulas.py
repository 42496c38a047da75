"""Evaluates the formulas that a kernel claims of its outputs on a run's inputs, with bounds on its types' rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.check import formula_claims
from argus.core.dtype import DType
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Symbol
from argus.core.ir import Cast, Copy, Equals, Kernel, Map, Op, Program, axes_of, program_claims, walk
from argus.core.ir.element_walk import dtype_of, gets, nodes
from argus.core.values.bounds import Inputs, bounded
from argus.core.values.expr import Expr, Reduce
from argus.core.values.rewriting import elements, free_symbols
from argus.core.values.rewriting import nodes as values_in
from argus.core.walk import evaluate
from argus.interp.memory.loading import outputs
from argus.interp.programs import launch_sizes
from argus.verifier.reference import F32_ROUNDING, Exact, Rows, rounding_of, when_stored

Array = npt.NDArray[Any]
MOST_TERMS = 1 << 27
"""The most values that a comparison computes; of larger outputs only some rows are compared."""


@frozen(eq=False)
class ClaimedOutput:
    """What a claim says of an output at some indices of its first axis, and a bound on the rounding of each element."""

    output: str
    rows: Rows
    expected: Exact
    bound: Exact


@frozen(eq=False)
class Launched:
    """A kernel in a run. outside: the caller's name of each parameter. sizes: its own."""

    kernel: Kernel
    outside: Mapping[str, str]
    sizes: Mapping[Symbol, int]


@frozen(eq=False)
class _Claim:
    """A claim, the caller's name of its output, the sizes that it names, and the rounding of the computation.

    relative: errors of operations that the computation has and that are more than a few roundings.
    """

    stated: Equals
    output: str
    sizes: Mapping[Symbol, int]
    unit: float
    relative: Mapping[str, float]


def launched(kernel: Kernel | Program, sizes: Mapping[str, int]) -> tuple[Launched, ...]:
    """The kernels of a run in the order of their launches. sizes: those of the kernel or the program, by name."""
    given = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    if isinstance(kernel, Kernel):
        return (Launched(kernel, {buffer.name: buffer.name for buffer in kernel.parameters}, given),)
    return tuple(
        Launched(step.kernel, {name: held.name for name, held in step.arguments.items()}, launch_sizes(step, given))
        for step in kernel.launches
    )


def claimed_outputs(
    kernel: Kernel | Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], seed: int
) -> Iterator[ClaimedOutput]:
    """Each output with a claimed formula of tensors that no launch writes, by the caller's names.

    arrays: the inputs, and the outputs for their shapes. sizes: by name. seed: of the rows, if not all are compared.
    Claims about views are left out, unless these only permute the axes of the whole output.
    """
    steps = launched(kernel, sizes)
    written = [{step.outside[buffer.name] for buffer in outputs(step.kernel)} for step in steps]
    known = arrays.keys() - set[str]().union(*written)
    for number, step in enumerate(steps):
        inputs = {name: arrays[outer] for name, outer in step.outside.items() if outer in known}
        later = set[str]().union(*written[number + 1 :])
        for _, claim in formula_claims(step.kernel):
            outer = step.outside[claim.view.buffer.name]
            if outer in arrays and outer not in later and not _adds_to(step.kernel, claim.view.buffer.name):
                unit, relative = _unit(step.kernel), _relative((step.kernel,))
                yield from _claimed(_Claim(claim, outer, step.sizes, unit, relative), inputs, arrays[outer], seed)
    if isinstance(kernel, Program):
        yield from _of_program(kernel, steps, arrays, sizes, seed)


def _of_program(
    program: Program, steps: Sequence[Launched], arrays: Mapping[str, Array], sizes: Mapping[str, int], seed: int
) -> Iterator[ClaimedOutput]:
    """Those of a program about the tensors that it leaves."""
    unit = max((_unit(step.kernel) for step in steps), default=0.0)
    own = {symbol: sizes[symbol.name] for symbol in program.sizes}
    relative = _relative([step.kernel for step in steps])
    for _, claim in program_claims(program):
        name = claim.view.buffer.name
        users = [(step.kernel, inner) for step in steps for inner, outer in step.outside.items() if outer == name]
        names_itself = name in {each.tensor for each in elements(claim.formula)}
        if name in arrays and not (names_itself and any(_adds_to(kernel, inner) for kernel, inner in users)):
            yield from _claimed(_Claim(claim, name, own, unit, relative), arrays, arrays[name], seed)


def _adds_to(kernel: Kernel, output: str) -> bool:
    """Whether the kernel adds to what its output held before."""
    return any(s.target.buffer.name == output and s.combine for s in walk(kernel.body) if isinstance(s, Copy))


def _claimed(claim: _Claim, given: Mapping[str, Array], like: Array, seed: int) -> Iterator[ClaimedOutput]:
    """What the claim says of an array with this shape and type, if it is about all of it and its tensors are given."""
    view, formula, where = claim.stated.view, claim.stated.formula, claim.stated.where
    order, shape = axes_of(view), like.shape
    if order is None or not {each.tensor for each in elements(formula)} <= given.keys():
        return
    rows = _rows(formula, claim.sizes, shape, seed)
    places = [rows if axis == 0 else np.arange(extent, dtype=np.int64) for axis, extent in enumerate(shape)]
    # The claim's axis `axis` is the output's axis `order[axis]`; in front come the axes of reductions.
    mesh = np.ix_(*(places[axis] for axis in order))
    integers = {name: array for name, array in given.items() if array.dtype.kind == "i"}
    inputs = Inputs(claim.sizes, given, integers, claim.unit, F32_ROUNDING, claim.relative)
    made = bounded(formula, list(mesh), inputs)
    back = tuple(order.index(axis) for axis in range(len(order)))
    value, error = made.value.transpose(back), made.error.transpose(back)
    with np.errstate(all="ignore"):
        rounded = value.astype(like.dtype).astype(np.float64)
        bound = when_stored(value, error, like.dtype)
    open_ = np.isnan(bound) | np.isnan(value)
    if where is not TRUE:
        meant = np.asarray(evaluate(where, claim.sizes, list(mesh), integers), np.bool_)
        open_ |= ~np.broadcast_to(meant, made.value.shape).transpose(back)
    expected = np.where(open_, 0.0, np.where(np.isfinite(rounded), value, rounded))
    yield ClaimedOutput(claim.output, rows, expected, np.where(open_, np.inf, bound))


def _rows(formula: Expr, sizes: Mapping[Symbol, int], shape: tuple[int, ...], seed: int) -> Rows:
    """Indices of the first axis, sorted: all, or as many as are affordable, with the first and the last."""
    each = max(1, prod(shape[1:])) * max([1, *sizes.values()]) ** _depth(formula)
    affordable = max(2, MOST_TERMS // each)
    if shape[0] <= affordable:
        return np.arange(shape[0], dtype=np.int64)
    drawn = np.random.default_rng(seed).choice(shape[0] - 2, affordable - 2, replace=False) + 1
    return np.sort(np.array([0, *drawn.tolist(), shape[0] - 1], np.int64))


def _depth(formula: Expr) -> int:
    """How many reductions are nested at most, each over the variables of those around it."""
    found = [_depth_of(each) for each in values_in(formula) if isinstance(each, Reduce)]
    return max(found, default=0)


def _depth_of(reduction: Reduce) -> int:
    inner = [each for each in values_in(reduction.body) if isinstance(each, Reduce)]
    within = [_depth_of(each) for each in inner if reduction.variable in free_symbols(each)]
    return 1 + max(within, default=0)


def _relative(kernels: Sequence[Kernel]) -> dict[str, float]:
    """The largest relative errors of operations, by what they compute of real numbers, if more than a few roundings."""
    body = [stmt for kernel in kernels for stmt in walk(kernel.body) if isinstance(stmt, Map)]
    used = {node.name for stmt in body for node in nodes(stmt.elem) if isinstance(node, Op)}
    entries = [ELEMENT_OPS[name] for name in sorted(used)]
    return {entry.real or entry.name: entry.relative for entry in entries if entry.relative}


def _unit(kernel: Kernel) -> float:
    """The largest rounding of what the kernel computes, apart from the last conversion of what it only stores."""
    body = tuple(walk(kernel.body))
    stored = {s.source.buffer for s in body if isinstance(s, Copy) and s.target.buffer.space == "global"}
    kept = {s.source.buffer for s in body if isinstance(s, Copy) and s.target.buffer.space != "global"}
    kept |= {get.view.buffer for s in body if isinstance(s, Map) for get in gets(s.elem)}
    found = [F32_ROUNDING]
    for stmt in body:
        if isinstance(stmt, Map):
            last = stmt.target.buffer in stored - kept
            found += [rounding_of(each.numpy) for each in _rounded_to(stmt, last=last)]
    return max(found)


def _rounded_to(stmt: Map, *, last: bool) -> Iterator[DType]:
    """The types that a statement computes in or converts to. last: its target is only stored."""
    for node in nodes(stmt.elem):
        if isinstance(node, Op):
            computed = dtype_of(node) or stmt.target.buffer.dtype
            yield computed
        elif isinstance(node, Cast) and not (last and node is stmt.elem):
            yield node.dtype
