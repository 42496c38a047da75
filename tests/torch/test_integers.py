"""Integers in graphs: exact, modulo 2^64 or 2^32 as torch computes them, in kernels that are proved."""

# ruff: noqa: ARG005
# Reason: all functions share one signature, whatever they use of it.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from argus.core import algebra
from argus.nests.integers import in_type
from argus.nests.nest import Apply, Constant, Convert, Coordinate, Expr, Inside, Read, Select
from argus.torch.backend import argus_backend
from argus.torch.report import clear_report, report
from tests.torch.operands import TORCH

T: Any = torch
MOST = 2**63 - 1
X = torch.tensor([MOST, -MOST - 1, 0, 1, -1, 2**53 + 1, 3, 4])
Z = torch.tensor([1, -1, MOST, 5, 7, -9, 2, 2**40])
Function = Callable[[Any, Any], Any]
FUNCTIONS: dict[str, Function] = {
    "a counter": lambda x, z: x[0] + 1,
    "sums and products": lambda x, z: (x + 1) * (x - z) - x * 3,
    "a multiple subtracted": lambda x, z: T.sub(-x, z, alpha=3),
    "of 32 bits": lambda x, z: x.int() * z.int() + 7,
    "widened": lambda x, z: (x.int() + z.int()).long() * 2,
    "compared": lambda x, z: (x + 1 < z) | (x == 3),
    "chosen": lambda x, z: T.where(x < z, x + z, x - 1),
    "with truth values": lambda x, z: (x < z) * x + (x == 3),
    "with places": lambda x, z: x + T.arange(8),
    "of rows and columns": lambda x, z: x[:5, None] * z[None, :7] + 2,
    "a square": lambda x, z: x**2,
}


def compiled(function: Function) -> Any:  # noqa: ANN401 reason: torch's
    """What the function makes of both tensors, in kernels."""
    TORCH.compiler.reset()
    clear_report()
    return TORCH.compile(function, backend=argus_backend)(X, Z)


@pytest.mark.share(12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_are_computed_exactly(name: str) -> None:
    found = compiled(FUNCTIONS[name])

    assert torch.equal(found, FUNCTIONS[name](X, Z))
    (entry,) = report()
    assert entry.kernels
    assert not entry.eager


@pytest.mark.filterwarnings("ignore:argus. eager torch runs")
def test_a_number_that_nests_do_not_have_is_left_to_eager_torch() -> None:
    found = compiled(lambda x, z: x + (2**53 + 1))

    assert torch.equal(found, X + (2**53 + 1))
    ((each,),) = (entry.eager for entry in report())
    assert each.why == "the integer 9007199254740993, which float64 does not have"


I = algebra.coord(0)  # noqa: E741 reason: a coordinate
WIDE, NARROW, TRUTH = (Read("x", (I,), dtype) for dtype in ("i64", "i32", "bool"))
EXACT: tuple[tuple[str, Expr], ...] = (
    ("i64", Apply("add", (TRUTH, Constant(1.0)))),
    ("i64", Coordinate(I)),
    ("i64", Apply("mul", (Coordinate(I), Constant(2.0)))),
    ("i64", NARROW),
    ("i32", Select(Inside(algebra.TRUE), NARROW, Constant(-1.0))),
    ("i64", Convert("i32", Apply("add", (NARROW, Constant(1.0))))),
    ("f32", Apply("add", (WIDE, Constant(1.0)))),
)
CONVERTED: tuple[tuple[str, Expr], ...] = (
    ("i64", Apply("add", (WIDE, Constant(1.0)))),
    ("i64", Apply("neg", (NARROW,))),
    ("i64", Select(Inside(algebra.TRUE), Apply("add", (WIDE, Constant(1.0))), Constant(0.0))),
    ("i32", WIDE),
    ("i32", Constant(2.0**31)),
    ("i32", Apply("mul", (Coordinate(I), Constant(2.0)))),
    ("i64", Apply("pow", (WIDE, Constant(5.0)))),
)


def test_what_may_leave_its_type_is_converted() -> None:
    assert [in_type(dtype, each) for dtype, each in EXACT] == [each for _, each in EXACT]
    assert [in_type(dtype, each) for dtype, each in CONVERTED] == [Convert(dtype, each) for dtype, each in CONVERTED]
