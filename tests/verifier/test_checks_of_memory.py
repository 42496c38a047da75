"""Checks of bounds, alignment, budgets and layouts are needed: with one switched off, a wrong kernel is proved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from argus.core.algebra import TRUE
from argus.core.atoms.sm_90a.tma import ATOMS
from argus.core.index import Cond
from argus.core.ir import Copy, If, Kernel, Stmt, View, walk
from argus.core.proof import analysis
from argus.core.proof.dataflow import reads, timeline
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.limits import boxes, budgets, divisors, indirect_index, integers, memory, vectors
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles import obligations
from argus.testing.mutation import named
from property_tests.programs import KERNELS
from property_tests.role_programs import ROLES
from tests.core.proof.rings import changed, every, of_role
from tests.verifier.switched_off_checks import (
    Case,
    always,
    cases_test,
    load_edited,
    true_condition,
    without_obligations,
)


def any_lanes_may_be_chosen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timeline, "_depends_on_thread_only", always)


def every_index_is_in_bounds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(indirect_index, "index_in_bounds", true_condition)


def without_stages(patch: pytest.MonkeyPatch) -> None:
    def whole(_: Step, stmt: Copy, *__: object) -> Obligation:
        return Obligation("I18", "", stmt, TRUE)

    patch.setattr(memory, "_stage_obligation", whole)


def branches_are_taken_everywhere(patch: pytest.MonkeyPatch) -> None:
    """A divisor is taken for positive if a branch of the kernel says so, wherever it is computed."""
    surroundings = vars(divisors)["_with_surroundings"]

    def with_all_branches(body: tuple[Stmt, ...], around: tuple[Cond, ...]) -> Iterator[tuple[Stmt, tuple[Cond, ...]]]:
        taken = tuple(stmt.cond for stmt in walk(body) if isinstance(stmt, If))
        return surroundings(body, (*around, *taken))

    patch.setattr(divisors, "_with_surroundings", with_all_branches)


def divided_ahead_of_the_branch() -> Kernel:
    """The row is loaded before the branch that says that the divisor is positive."""
    guarded = "        with when(k < M):\n            copy(load(X[k % (M - k)], BY), Z[k])\n"
    ahead = "        row = load(X[k % (M - k)], BY, edge=0)\n        with when(k < M):\n            copy(row, Z[k])\n"
    return load_edited("divisors_positive_in_their_loop", (guarded, ahead)).trace()


def copy_of_another_swizzle() -> Kernel:
    kernel = ROLES["cooperative"]
    store = of_role(kernel, "math", Copy)[-1]
    (atom,) = [each for each in ATOMS if str(each) == "tma_store_2d_sw64"]
    return changed(kernel, store, atom=atom)


def rows_that_overlap() -> Kernel:
    kernel = KERNELS["double_buffer"]
    (overlap,) = named(["overlap_rows"])
    return next(mutant.kernel for mutant in overlap(kernel) if "axis 1" in mutant.what)


def lanes_that_write_outside() -> Kernel:
    """A kernel stores one lane's value, but no predicate stops the other lanes from storing beside the box."""
    kernel = KERNELS["row_softmax"]
    (dropped,) = named(["drop_edge"])
    return next(m.kernel for m in dropped(kernel) if any(t.where is not TRUE for t in _without_edge(m.kernel)))


def _without_edge(kernel: Kernel) -> list[View]:
    return [copy.target for copy in every(kernel, Copy) if copy.edge is None]


def slots_that_overlap() -> Kernel:
    """The second slot begins in the middle of the first."""
    kernel = KERNELS["early_wait_for_one"]
    (overlap,) = named(["overlap_rows"])
    return next(mutant.kernel for mutant in overlap(kernel) if "lds_b" in mutant.what)


CASES: tuple[Case, ...] = (
    ("lds_over_budget", "I22", without_obligations(budgets, "_storage_obligations")),
    ("bank_conflicts", "I33", without_obligations(budgets, "_bank_obligations")),
    ("products_added_in_one", "I40", without_obligations(budgets, "added_products_obligations")),
    ("store_without_predicate", "I37", without_obligations(memory, "_bound_obligations")),
    ("misaligned_vector", "I19", without_obligations(memory, "_vector_obligations")),
    ("box_that_begins_anywhere", "I19", without_obligations(boxes, "box_start_obligations")),
    ("box_that_begins_within_a_chunk", "I19", without_obligations(boxes, "box_start_obligations")),
    ("descriptor_too_large", "I28", without_obligations(integers, "_byte_offset_obligation")),
    ("branch_on_the_rows_after_a_tile", "I28", without_obligations(obligations, "divisor_obligations")),
    ("divisor_zero_in_the_last_iteration", "I28", without_obligations(divisors, "divisor_obligations")),
    ("table_beyond_64_bits", "I28", without_obligations(indirect_index, "read_width_obligations")),
    ("registers_over_the_file", "I21", without_obligations(budgets, "role_register_obligations")),
    ("sentinel_prefetched", "I27", without_obligations(indirect_index, "_coordinate_obligations")),
    ("looks_at_the_next_expert", "I37", every_index_is_in_bounds),
    ("rows_of_a_table_beyond_the_index", "I37", every_index_is_in_bounds),
    ("swizzle_over_two_stages", "I18", without_stages),
    ("store_of_transposed_matrices", "I20", without_obligations(boxes, "matrix_copy_obligations")),
    ("registers_staged_unwritten", "I38", without_obligations(reads, "_arrives")),
    ("copies_of_one_slot_overlap", "I5", without_obligations(analysis, "disjoint_fill_obligations")),
    ("convolution_of_odd_channels", "I19", without_obligations(vectors, "_alignment_obligations")),
)


test_a_twin_slips_past_without_its_check = cases_test(CASES)


MADE: tuple[Case, ...] = (
    (divided_ahead_of_the_branch, "I28", without_obligations(divisors, "divisor_obligations")),
    (divided_ahead_of_the_branch, "I28", branches_are_taken_everywhere),
    (copy_of_another_swizzle, "I17", without_obligations(boxes, "box_obligations")),
    (rows_that_overlap, "I22", without_obligations(budgets, "distinct_address_obligations")),
    (slots_that_overlap, "I22", without_obligations(budgets, "distinct_address_obligations")),
    (lanes_that_write_outside, "I37", any_lanes_may_be_chosen),
)
"""Edits of kernels, and faults that the DSL does not let anyone write: edits of a traced kernel."""


test_a_made_twin_slips_past_without_its_check = cases_test(MADE)
