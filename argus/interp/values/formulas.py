"""Checks that outputs equal the formulas of claims, after all blocks of a run in float64 have run (I39)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from argus.core.ir import Assert, Copy, Equals, walk
from argus.core.values.bounds import Inputs, bounded
from argus.core.values.rewriting import elements as elements_of
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.state import Launch
from argus.interp.values.drawn_inputs import kind_of
from argus.interp.values.tensor_claims import ElementReports, Elements, array_of, elements

Exact = npt.NDArray[np.float64]
_UNIT, _ADDITION = 2.0**-22, 2.0**-44
"""What a program may be off in an operation and in an addition, relatively.

Operations are in float64, but constants such as log2(e) are often rounded to f32 in a program's text.
"""


def check_formulas(launch: Launch, *, complete: bool) -> None:
    """Report the first element of each claim that differs. complete: all blocks have run, so that all are written."""
    for stmt, claim in launch.prepared.formula_claims:
        if not _adds_to(launch, claim):
            _check(launch, stmt, claim, complete=complete)


def _adds_to(launch: Launch, claim: Equals) -> bool:
    """Whether the kernel adds to what the output held before: no formula says that it was 0."""
    copies = [stmt for stmt in walk(launch.prepared.kernel.body) if isinstance(stmt, Copy)]
    output = claim.view.buffer
    return any(copy.source.buffer is output or (copy.target.buffer is output and copy.combine) for copy in copies)


def _check(launch: Launch, stmt: Assert, claim: Equals, *, complete: bool) -> None:
    values = launch.tensors[claim.view.buffer].values
    assert values is not None
    every = elements(launch, claim.view)
    expected, allowed = _expected(launch, claim, every)
    found = values[every.cell].astype(np.float64)
    reports = ElementReports(launch, stmt, "I39", every)
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
            ("inputs", f"{kind_of(launch.adversary.schedule.draw)}; computed in float64"),
        )
        reports.report(wrong, f"is {shown[0]}, the formula {shown[1]}", facts)


def differs(found: Exact, expected: Exact, allowed: Exact) -> BoolArray:
    """Where a value is not within its bound; nowhere where there is no bound."""
    with np.errstate(invalid="ignore"):
        near = (found == expected) | (np.abs(found - expected) <= allowed)
    return ~near & ~np.isnan(expected) & ~np.isnan(allowed)


def _text(values: Exact, where: BoolArray) -> str:
    return f"{float(values[int(where.argmax())]):.6g}"


def _expected(launch: Launch, claim: Equals, every: Elements) -> tuple[Exact, Exact]:
    """The formula at each element, and its bounds."""
    named = {each.tensor for each in elements_of(claim.formula)}
    kernel = launch.prepared.kernel
    tensors = {b.name: array_of(launch, b).astype(np.float64) for b in kernel.parameters if b.name in named}
    integers: dict[str, npt.NDArray[Any]] = {
        b.name: array_of(launch, b) for b in kernel.parameters if b.dtype.family == "int"
    }
    mesh = cast("list[IntArray]", list(np.ogrid[tuple(slice(0, extent) for extent in every.shape)]))
    made = bounded(claim.formula, mesh, Inputs(launch.sizes, tensors, integers, _UNIT, _ADDITION))
    return made.value[every.coordinates], made.error[every.coordinates]
