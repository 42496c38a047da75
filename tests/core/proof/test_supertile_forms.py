"""Supertiles that a kernel computes by hand: rewritten without a change of any value, and only where they are found."""

from __future__ import annotations

from itertools import product

import pytest
from attrs import evolve

from argus.core.check import expressions
from argus.core.index import Node, Symbol
from argus.core.ir import Copy, Kernel, walk
from argus.core.proof import analysis
from argus.core.proof.outputs.supertile_forms import with_supertile_forms
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.core.walk import evaluate, symbols
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import PROVED, load, load_edited

NO_RUNS = evolve(Budget.about(0.5), runs=0)

BY_HAND = "tiles_in_groups_of_rows"
GROUPS = """    group = pid // (8 * columns)
    height = minimum(rows - 8 * group, 8)
    within = pid % (8 * columns)
    m, n = 8 * group + within % height, within // height
"""


def places(kernel: Kernel) -> list[Node]:
    """The expressions of the kernel's copies."""
    return [root for stmt in walk(kernel.body) if isinstance(stmt, Copy) for root in expressions(stmt)]


def values(roots: list[Node], block: Symbol, number: int, sizes: dict[str, int]) -> list[object]:
    env = {each: sizes.get(each.name, 0) for each in symbols(*roots)} | {block: number}
    return [evaluate(root, env, coords=(0, 0)) for root in roots]


@pytest.mark.parametrize(("rows", "columns"), [*product((1, 7, 8, 9, 19), (1, 2, 5))])
def test_every_place_keeps_its_value(rows: int, columns: int) -> None:
    before = load(BY_HAND, PROVED).trace()
    after = with_supertile_forms(before)
    assert after is not before
    (block,) = before.blocks
    sizes = {"M": 64 * rows - 3, "N": 64 * columns - 5, "K": 64}
    for number in range(rows * columns):
        assert values(places(after), block, number, sizes) == values(places(before), block, number, sizes)


@pytest.mark.parametrize(
    "order",
    [
        "    m, n = pid // columns, pid % columns\n",
        "    m, n = pid % rows, pid // rows\n",
        "    m, n = pid // (8 * columns), pid % (8 * columns)\n",
    ],
)
def test_other_orders_are_left_alone(order: str) -> None:
    kernel = load_edited(BY_HAND, (GROUPS, order)).trace()
    assert with_supertile_forms(kernel) is kernel


def test_groups_of_columns_are_proved_too() -> None:
    edits = (
        ("pid // (8 * columns)", "pid // (8 * rows)"),
        ("minimum(rows - 8 * group, 8)", "minimum(columns - 8 * group, 8)"),
        ("pid % (8 * columns)", "pid % (8 * rows)"),
        ("m, n = 8 * group", "n, m = 8 * group"),
    )
    assert isinstance(verify(load_edited(BY_HAND, *edits), solver="z3").verdict, Proved)


def unchanged(kernel: Kernel) -> Kernel:
    return kernel


def test_the_order_is_not_understood_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "with_supertile_forms", unchanged)
    assert isinstance(verify(load(BY_HAND, PROVED), solver="z3", budget=NO_RUNS).verdict, Unknown)
