"""Checks that outputs equal the formulas of claims, after all blocks of a run in float64 have run (I39)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Symbol
from argus.core.ir import Assert, Buffer, Copy, Equals, walk, whole
from argus.core.values.bounds import Inputs, bounded
from argus.core.values.expr import Expr
from argus.core.values.rewriting import elements as elements_of
from argus.core.walk import evaluate
from argus.interp.memory.cells import AnyArray, BoolArray, IntArray
from argus.interp.search.schedule import Schedule
from argus.interp.state import Launch
from argus.interp.values.drawn_inputs import kind_of, rounded_kind
from argus.interp.values.precision import unit_of
from argus.interp.values.tensor_claims import ElementReports, Elements, array_of, elements

Exact = npt.NDArray[np.float64]


@frozen(eq=False)
class _Checked:
    """A claim in a run. every: the elements that it is about. sizes: those that the formula names.

    reads: the tensors that it may read.
    """

    launch: Launch
    stmt: Assert
    formula: Expr
    every: Elements
    sizes: Mapping[Symbol, int]
    reads: Mapping[str, AnyArray]


def check_formulas(launch: Launch, *, complete: bool) -> None:
    """Report the first element of each claim that differs. complete: all blocks have run, so that all are written."""
    kernel = launch.prepared.kernel
    for stmt, claim in launch.prepared.formula_claims:
        if claim.view.buffer.name in claim.before or not _adds_to(launch, claim.view.buffer):
            reads = {b.name: array_of(launch, b) for b in kernel.parameters if b is not claim.view.buffer}
            reads |= {name: launch.initial[name] for name in claim.before}
            every = elements(launch, claim.view)
            _check(_checked(launch, (stmt, claim), every, launch.sizes, reads), complete=complete)


def check_claim_of_program(
    stmt: Assert,
    claim: Equals,
    last: tuple[Launch, Buffer],
    reads: Mapping[str, AnyArray],
    sizes: Mapping[Symbol, int],
    *,
    filled: bool,
) -> None:
    """Check a claim of a program after all launches.

    last: the launch that wrote the tensor last, and its parameter. reads: the program's tensors that no launch writes.
    sizes: the program's. filled: whether an earlier launch wrote the tensor.
    """
    launch, parameter = last
    if filled or not _adds_to(launch, parameter):
        every = elements(launch, whole(parameter))
        _check(_checked(launch, (stmt, claim), every, sizes, reads), complete=True)


def _checked(
    launch: Launch,
    stated: tuple[Assert, Equals],
    every: Elements,
    sizes: Mapping[Symbol, int],
    reads: Mapping[str, AnyArray],
) -> _Checked:
    """The claim with the elements of the view that it is about."""
    stmt, claim = stated
    if claim.where is not TRUE:
        meant = evaluate(claim.where, sizes, every.coordinates, _integers(reads))
        every = every.only(np.broadcast_to(np.asarray(meant, np.bool_), every.cell.shape))
    return _Checked(launch, stmt, claim.formula, every, sizes, reads)


def _integers(reads: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {name: array for name, array in reads.items() if array.dtype.kind == "i"}


def _adds_to(launch: Launch, output: Buffer) -> bool:
    """Whether the kernel adds to what the output held before: no formula says that it was 0."""
    copies = [stmt for stmt in walk(launch.prepared.kernel.body) if isinstance(stmt, Copy)]
    return any(copy.source.buffer is output or (copy.target.buffer is output and copy.combine) for copy in copies)


def _check(claim: _Checked, *, complete: bool) -> None:
    launch, every = claim.launch, claim.every
    values = launch.tensors[every.buffer].values
    assert values is not None
    expected, allowed = _expected(claim)
    found = values[every.cell].astype(np.float64)
    if launch.adversary.schedule.rounds:
        allowed = _once_stored(found, expected, allowed, unit_of(every.buffer.dtype))
    reports = ElementReports(launch, claim.stmt, "I39", every)
    wrong = differs(found, expected, allowed)
    never = reports.writer < 0
    if complete and (wrong & never).any():
        reports.report(wrong & never, "is never written", (("expected", _text(expected, wrong & never)),))
    wrong &= ~never
    if wrong.any():
        at, shown = int(wrong.argmax()), (_text(found, wrong), _text(expected, wrong))
        facts = (
            ("found", shown[0]),
            ("expected", shown[1] + (f", where rounding explains {allowed[at]:.1g}" if allowed[at] else "")),
            ("inputs", _inputs(launch.adversary.schedule)),
        )
        reports.report(wrong, f"is {shown[0]}, the formula {shown[1]}", facts)


def _inputs(schedule: Schedule) -> str:
    if schedule.rounds:
        return f"{rounded_kind(schedule.draw)}; computed in the program's types"
    return f"{kind_of(schedule.draw)}; computed in float64"


def _once_stored(found: Exact, expected: Exact, allowed: Exact, unit: float) -> Exact:
    """The bounds of numbers that are stored in their types; none where one is infinite or not a number."""
    bound = allowed + unit * (np.abs(expected) + allowed)
    return np.where(np.isfinite(found) & np.isfinite(expected), bound, np.nan)


def differs(found: Exact, expected: Exact, allowed: Exact) -> BoolArray:
    """Where a value is not within its bound; nowhere where there is no bound."""
    with np.errstate(invalid="ignore"):
        near = (found == expected) | (np.abs(found - expected) <= allowed)
    return ~near & ~np.isnan(expected) & ~np.isnan(allowed)


def _text(values: Exact, where: BoolArray) -> str:
    return f"{float(values[int(where.argmax())]):.6g}"


def _expected(claim: _Checked) -> tuple[Exact, Exact]:
    """The formula at each element, and its bounds."""
    named = {each.tensor for each in elements_of(claim.formula)}
    tensors = {name: array.astype(np.float64) for name, array in claim.reads.items() if name in named}
    mesh = cast("list[IntArray]", list(np.ogrid[tuple(slice(0, extent) for extent in claim.every.shape)]))
    precision = claim.launch.precision
    inputs = Inputs(claim.sizes, tensors, _integers(claim.reads), precision.unit, precision.addition)
    made = bounded(claim.formula, mesh, inputs)
    return made.value[claim.every.coordinates], made.error[claim.every.coordinates]
