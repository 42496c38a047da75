"""What an edited kernel stores has a value or a reason, never an exception."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.ir import Fold, Kernel, walk
from argus.core.ir.surgery import replace_objects
from argus.core.proof.values.held.outputs import Held, interpreted
from tests.core.proof.test_held import analysed, coordinates, traced


def edited(kernel: Kernel) -> list[Kernel]:
    """Each fold as a prefix or a total, by another operation, within another group."""
    folds = [each for each in walk(kernel.body) if isinstance(each, Fold)]
    return [
        replace_objects(kernel, {id(fold): other})
        for fold in folds
        for other in (
            evolve(fold, keep="total" if fold.keep == "prefix" else "prefix"),
            evolve(fold, op="last"),
            evolve(fold, within="warp" if fold.within == "thread" else "thread"),
        )
    ]


@pytest.mark.share(6)
@pytest.mark.parametrize("name", ["rows_less_their_mean", "scan_of_rows"])
def test_folds_of_another_kind_have_a_value_or_a_reason(name: str) -> None:
    found = edited(traced(name))
    assert found
    for kernel in found:
        for flow in analysed(kernel).flows:
            for tensor in flow.timeline.kernel.parameters:
                assert isinstance(interpreted(flow, tensor, coordinates(tensor)), Held | str)
