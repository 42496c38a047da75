"""Checks of claims, stores and relations are needed: with one switched off, a wrong kernel is proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from attrs import evolve

from argus.core import hilbert_order
from argus.core.algebra import TRUE, add, sym
from argus.core.dsl.kernel import Template
from argus.core.hilbert_order import HilbertTile
from argus.core.index import Cond, Index, Node, Symbol
from argus.core.ir import Assert, Kernel
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import Loop, Step
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import claims, relations, store_coverage, tile_index, writes
from argus.core.proof.outputs.supertiles import factor_pairs
from argus.core.proof.outputs.tile_index import TileGrid, tile_grid
from argus.core.proof.sync.roles import hilbert_squares, hilbert_tiles
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.core.walk import topological
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import (
    Case,
    always,
    assert_proved,
    cases_test,
    load_edited,
    no_obligations,
    true_condition,
    without_goal,
    without_obligations,
)


def any_lanes_store_one_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writes, "replicas", always)


def nothing_between_executions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(relations, "_between", relation_holds)


def relation_holds(_: object, step: Step, stmt: Assert, *__: object) -> Obligation:
    return Obligation("I39", "switched off", stmt, TRUE, step.context)


def any_order_of_operands(patch: pytest.MonkeyPatch) -> None:
    """A sum of what does not meet counts more than is claimed."""
    patch.setattr(claims, "operand_obligations", no_obligations)
    for module in (claims, writes):
        patch.setattr(module, "holds_once", true_condition)


def operands_of_any_rows(patch: pytest.MonkeyPatch) -> None:
    """What is stored carries two tags of one name."""
    patch.setattr(claims, "operand_obligations", no_obligations)
    patch.setattr(writes, "_holds_record", no_obligations)


def stores_need_no_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writes, "_holds_record", no_obligations)
    patch.setattr(claims, "written_once_obligations", no_obligations)


def conditions_of_stores_always_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store_coverage, "tile_grid", without_condition)


def without_condition(kernel: Kernel, places: Sequence[Separable], loop: Loop | None, _guard: Cond) -> TileGrid:
    return tile_grid(kernel, places, loop)


def every_group_is_whole(patch: pytest.MonkeyPatch) -> None:
    """Take it that a quotient and a remainder of the block always name a block that exists."""
    split = vars(tile_index)["_split"]

    def whole(block: Symbol, count: Index, bases: Sequence[Index]) -> object:
        made = split(block, count, bases)
        return made and evolve(made, whole=TRUE)

    patch.setattr(tile_index, "_split", whole)


def any_grid_will_do(patch: pytest.MonkeyPatch) -> None:
    """Accept a curve through a grid of other rows and columns as a curve through the kernel's own grid."""

    def found(block: Symbol, count: Index, roots: Sequence[Node]) -> HilbertTile | None:
        said = frozenset(topological(roots))
        columns, rows = next(factor_pairs(count))
        for shown in ((rows, columns), (columns, rows), (rows, add(columns, 1))):
            made = hilbert_order.hilbert_tile(sym(block), *shown, 16)
            if made.row in said:
                return evolve(made, rows=rows, columns=columns)
        return None

    patch.setattr(hilbert_tiles, "squares", found)


@pytest.fixture
def through_some_tiles_twice(monkeypatch: pytest.MonkeyPatch) -> Iterator[Template]:
    """Tiles along a path on which row and column are equal, which therefore does not fill its square."""

    def forget() -> None:
        hilbert_order.hilbert_tile.cache_clear()
        hilbert_squares.fills.cache_clear()

    kernel = load_edited("tiles_along_a_curve", ("curved(16)", "curved(4)"))
    monkeypatch.setattr(hilbert_order, "_ROWS", vars(hilbert_order)["_COLUMNS"])
    forget()
    yield kernel
    monkeypatch.undo()
    forget()


@pytest.mark.nightly
def test_a_path_through_some_tiles_twice_slips_past_unless_squares_are_filled(
    through_some_tiles_twice: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = through_some_tiles_twice.trace()
    assert not isinstance(verify(kernel, solver="z3", budget=Budget.about(0.1)).verdict, Proved)

    monkeypatch.setattr(hilbert_squares, "fills", always)

    assert_proved(kernel)


def test_a_curve_of_too_many_tiles_slips_past_unless_its_place_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = "ceil_div(M, 64) * ceil_div(N, 16) < 1 << 24"
    kernel = load_edited("tiles_along_a_curve", (bound, bound.replace("24", "30"))).trace()
    assert not isinstance(verify(kernel, solver="z3", budget=Budget.about(0.1)).verdict, Proved)

    monkeypatch.setattr(hilbert_tiles, "hilbert_obligations", no_obligations)

    assert_proved(kernel)


CASES: tuple[Case, ...] = (
    ("curve_over_the_turned_grid", "I4", any_grid_will_do),
    ("curve_through_a_column_more", "I4", any_grid_will_do),
    ("tiles_in_groups_all_whole", "I4", every_group_is_whole),
    ("gate_of_the_first_step", "I1", any_order_of_operands),
    ("last_column_left_out_by_a_condition", "I4", conditions_of_stores_always_hold),
    ("half_stored_twice", "I4", without_obligations(claims, "written_once_obligations")),
    ("swapped_k_order", "I1", any_order_of_operands),
    ("blocks_collide", "I4", without_obligations(claims, "written_once_obligations")),
    ("grid_too_small", "I4", without_obligations(claims, "written_once_obligations")),
    ("claim_off_by_one", "I4", without_obligations(writes, "_holds_record")),
    ("relation_too_strong", "I39", without_obligations(relations, "relation_obligations")),
    ("swizzled_chunk_by_quarters", "I39", without_obligations(relations, "relation_obligations")),
    ("step_of_another_length", "I39", without_obligations(relations, "relation_obligations")),
    ("blocks_share_rows", "I39", nothing_between_executions),
    ("summed_backwards", "I39", without_obligations(claims, "sum_order_obligations")),
    ("both_consumers_the_same_rows", "I4", without_obligations(claims, "written_once_obligations")),
    ("scan_of_another_row", "I4", without_obligations(claims, "written_once_obligations")),
    ("slices_in_another_order", "I1", any_order_of_operands),
    ("expert_of_no_row", "I27", operands_of_any_rows),
    ("rows_that_the_claim_leaves_out", "I4", without_obligations(writes, "_only_claimed_elements")),
    ("rows_after_the_last_sequence", "I4", without_goal(store_coverage, "_segment_obligation")),
    ("turned_sums_of_the_other_rows", "I4", without_obligations(writes, "_holds_record")),
    ("turned_sums_stored_straight", "I4", stores_need_no_claim),
    ("attention_values_in_opposite_order", "I24", any_order_of_operands),
    ("attention_rings_in_opposite_orders", "I24", any_order_of_operands),
    ("replicas_of_two_warps", "I4", any_lanes_store_one_number),
    ("grouped_heads_by_remainder", "I26", operands_of_any_rows),
    ("grouped_heads_in_opposite_order", "I26", operands_of_any_rows),
)


test_a_twin_slips_past_without_its_check = cases_test(CASES)
