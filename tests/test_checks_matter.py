"""Each check of the verifier earns its place: with it switched off, a broken twin passes as proved."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.algebra import TRUE, add, const, sub
from argus.core.atoms.sm_90a.tma import ATOMS
from argus.core.dsl.kernel import Template
from argus.core.index import Cond
from argus.core.ir import Assert, Await, Copy, Fence, Kernel
from argus.core.mutation import named
from argus.core.proof import (
    analysis,
    boxes,
    budgets,
    carried,
    claims,
    contributions,
    elementwise,
    epochs,
    flow,
    folding,
    integers,
    maps,
    memory,
    ordering,
    outputs,
    placing,
    races,
    reads,
    relations,
    scales,
    softmax,
    sums,
    terms,
    timeline,
    vectors,
    visibility,
)
from argus.core.proof.obligation import Obligation
from argus.core.proof.roles import chains, clusters, obligations, reading, sequential, turns
from argus.core.proof.roles.events import Waited
from argus.core.proof.roles.ledger import Ledger
from argus.core.proof.roles.parsed import Parsed, Storage
from argus.core.proof.roles.uses import Reader
from argus.core.proof.timeline import Step
from argus.core.verdict import Proved, Refuted
from argus.verify import verify
from property_tests.programs import KERNELS
from property_tests.role_programs import ROLES
from tests.core.proof.rings import Drained, changed, edited, every, of_role, ring

REFUTED = Path(__file__).parent / "corpus" / "refuted"
Patch = Callable[[pytest.MonkeyPatch], None]


def load(name: str) -> Template:
    spec = importlib.util.spec_from_file_location(f"twin_{name}", REFUTED / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(value for value in vars(module).values() if isinstance(value, Template))


def nothing(*_: object, **__: object) -> Iterator[Obligation]:
    return iter(())


def always(*_: object) -> bool:
    return True


def without(module: object, name: str) -> Patch:
    return lambda patch: patch.setattr(module, name, nothing)


def loads_arrive_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow.Flow, "_arrived", always)


def any_count_will_do(patch: pytest.MonkeyPatch) -> None:
    for module in (claims, outputs):
        patch.setattr(module, "holds_once", yes)


def yes(*_: object) -> Cond:
    return TRUE


def nothing_between_executions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(relations, "_between", settled)


def settled(_: object, step: Step, stmt: Assert, *__: object) -> Obligation:
    return Obligation("I39", "switched off", stmt, TRUE, step.context)


def every_queue_is_a_counter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timeline, "_elsewhere", no_objection)


def no_objection(_: object) -> str:
    return ""


def nobody_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epochs.Epochs, "lead", never_ahead)


def never_ahead(*_: object) -> int:
    return 0


def every_wait_is_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ordering, "_by_all", always)


def never_objects(module: object, name: str) -> Patch:
    return lambda patch: patch.setattr(module, name, nothing_refused)


def nothing_refused(*_: object) -> None:
    return None


def every_phase_is_of_its_use(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reader, "named", own_use)


def own_use(reader: Reader, waited: Waited, ring: Storage, _: int) -> int:
    """The distance of the slot's own use, whatever phase is waited for."""
    assert waited.use is not None
    return -(-reader.offset(waited.use, waited.stmt) % ring.stages)


def turns_need_no_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "turned", any_turns)


def any_turns(_: Kernel, role: Parsed, __: object) -> bool:
    return any(turns.turns_of(role))


def any_reference_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(softmax, "alike", yes)
    patch.setattr(softmax, "within", yes)
    patch.setattr(carried, "agreeing", yes)
    patch.setattr(folding.Folding, "alike_in_each", always)


def every_term_is_an_element(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "within", yes)


def no_agreement(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scales, "obligations", nothing)
    patch.setattr(elementwise, "agreements", nothing)


def any_places_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(contributions, "agreeing", yes)
    patch.setattr(contributions, "same", yes)


def every_role_counts_alike(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "_same_walk", nothing)
    patch.setattr(Ledger, "equal", always)


def records_keep(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums.Accumulator, "_keeps_record", nothing)


def any_map_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(maps, "leads_to", always)


def copies_are_over_at_once(patch: pytest.MonkeyPatch) -> None:
    kept = visibility.Visibility.keep

    def hold(walk: visibility.Visibility, found: visibility.Found) -> None:
        kept(walk, evolve(found, good=True) if found.what.startswith("copies through") else found)

    patch.setattr(visibility.Visibility, "keep", hold)


def without_stages(patch: pytest.MonkeyPatch) -> None:
    def whole(_: Step, stmt: Copy, *__: object) -> Obligation:
        return Obligation("I18", "", stmt, TRUE)

    patch.setattr(memory, "_stages", whole)


def tiles_are_believed_shared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequential, "landed", what_each_reader_wants)
    patch.setattr(clusters, "_shared", nothing)


def what_each_reader_wants(kernel: Kernel, copy: Copy) -> tuple[Copy, ...]:
    """Of each sender the part of the slot that it fills, taken from the reader's own tile."""
    if copy.peers is None:
        return (copy,)
    pairs = zip(copy.source.at, copy.target.at[1:], strict=True)
    moved = tuple(sub(source, target) for source, target in pairs)
    found: list[Copy] = []
    for rank in range(kernel.peers):
        target = clusters.sent_by(kernel, copy, rank).target
        at = tuple(add(own, there) for own, there in zip(moved, target.at[1:], strict=True))
        found.append(evolve(copy, source=evolve(copy.source, at=at), target=target, peers=None))
    return tuple(found)


PROTOCOL = without(obligations, "_protocol")
SEEN = without(visibility, "obligations")

CASES: tuple[tuple[str, str, Patch], ...] = (
    ("cp_async_without_a_wait", "I31", every_queue_is_a_counter),
    ("lds_over_budget", "I22", without(budgets, "_storage")),
    ("bank_conflicts", "I33", without(budgets, "_banks")),
    ("store_without_predicate", "I37", without(memory, "_bounds")),
    ("misaligned_vector", "I19", without(memory, "_vectors")),
    ("descriptor_too_large", "I28", without(integers, "_offsets")),
    ("missing_barrier_raw", "I5", without(races, "obligations")),
    ("missing_barrier_war", "I36", without(races, "obligations")),
    ("undrained_read", "I30", without(races, "obligations")),
    ("undrained_write", "I31", without(races, "obligations")),
    ("direct_load_not_waited_for", "I31", without(races, "_of_one_wave")),
    ("direct_load_over_a_read", "I30", without(races, "_of_one_wave")),
    ("fetch_waited_for_by_one_group", "I31", every_wait_is_for_all),
    ("groups_fetch_alike", "I5", without(races, "_against_earlier")),
    ("dropped_skew", "I32", without(epochs, "obligations")),
    ("dropped_unskew", "I32", without(epochs, "obligations")),
    ("wait_after_the_licensing_barrier", "I30", nobody_leads),
    ("pingpong_missing_barrier", "I36", nobody_leads),
    ("half_stored_twice", "I4", without(claims, "written_once")),
    ("wait_dropped", "I31", loads_arrive_at_once),
    ("wait_too_weak", "I31", loads_arrive_at_once),
    ("swapped_k_order", "I1", without(claims, "products")),
    ("k_counted_twice", "I3", any_count_will_do),
    ("blocks_collide", "I4", without(claims, "written_once")),
    ("grid_too_small", "I4", without(claims, "written_once")),
    ("claim_off_by_one", "I4", without(outputs, "_holds_record")),
    ("relation_too_strong", "I39", without(relations, "relation")),
    ("swizzled_chunk_by_quarters", "I39", without(relations, "relation")),
    ("step_of_another_length", "I39", without(relations, "relation")),
    ("blocks_share_rows", "I39", nothing_between_executions),
    ("summed_backwards", "I39", without(claims, "ordered")),
    ("arrivals_of_one_consumer", "I8", PROTOCOL),
    ("arrivals_of_three_consumers", "I8", PROTOCOL),
    ("bytes_of_one_operand", "I7", PROTOCOL),
    ("half_the_bytes", "I7", PROTOCOL),
    ("too_many_bytes", "I7", PROTOCOL),
    ("release_before_the_product_ends", "I10", PROTOCOL),
    ("release_by_every_thread", "I8", PROTOCOL),
    ("release_of_the_product_under_way", "I10", PROTOCOL),
    ("producer_leaves_early", "I9", without(obligations, "_same_walk")),
    ("stale_phase", "I6", every_phase_is_of_its_use),
    ("wait_a_phase_ahead", "I6", every_phase_is_of_its_use),
    ("wait_a_phase_behind", "I6", every_phase_is_of_its_use),
    ("bytes_of_a_skipped_copy", "I7", without(reading, "judge_trips")),
    ("release_of_the_next_slot", "I8", without(reading, "judge_trips")),
    ("release_covers_the_releaser_alone", "I5", never_objects(reading, "_judge_looks")),
    ("no_bulk_wait", "I13", SEEN),
    ("no_meeting_after_the_bulk_wait", "I13", SEEN),
    ("no_meeting_before_the_store", "I12", SEEN),
    ("no_proxy_fence", "I12", SEEN),
    ("proxy_fence_before_the_writes", "I12", SEEN),
    ("proxy_fence_by_the_issuer", "I12", SEEN),
    ("store_outlives_the_block", "I13", SEEN),
    ("registers_over_the_file", "I21", without(budgets, "of_roles")),
    ("causal_one_trip_fewer", "I9", every_role_counts_alike),
    ("peeled_use_released_early", "I10", without(obligations, "flights")),
    ("two_rings_released_before_the_product", "I10", without(obligations, "flights")),
    ("turns_of_one_warpgroup_twice", "I9", never_objects(chains, "_judge")),
    ("both_consumers_the_same_rows", "I4", without(claims, "written_once")),
    ("softmax_sum_not_rescaled", "I23", any_reference_will_do),
    ("softmax_rescaled_too_late", "I23", any_reference_will_do),
    ("softmax_threads_not_rescaled", "I23", any_reference_will_do),
    ("attention_causal_one_block_clear", "I25", any_count_will_do),
    ("attention_causal_from_the_first_key", "I25", any_count_will_do),
    ("softmax_box_not_met", "I5", SEEN),
    ("slices_in_another_order", "I1", without(claims, "products")),
    ("expert_of_no_row", "I27", without(claims, "products")),
    ("sentinel_prefetched", "I27", without(terms, "_chosen")),
    ("looks_at_the_next_expert", "I37", every_term_is_an_element),
    ("rows_that_the_claim_leaves_out", "I4", without(outputs, "_meant")),
    ("rows_after_the_last_sequence", "I4", without(placing, "_has_sequence")),
    ("scales_of_half_blocks", "I35", without(relations, "_of_elements")),
    ("scale_of_another_expert", "I35", no_agreement),
    ("rows_move_with_k", "I2", records_keep),
    ("claim_before_the_wait", "I11", SEEN),
    ("swizzle_over_two_stages", "I18", without_stages),
    ("store_of_transposed_matrices", "I20", without(boxes, "of_matrices")),
    ("registers_staged_unwritten", "I38", without(reads, "_of_read")),
    ("copies_of_one_slot_overlap", "I5", without(analysis, "parts")),
    ("map_not_released", "I29", any_map_will_do),
    ("map_of_another_group", "I29", any_map_will_do),
    ("real_cutlass_2162", "I29", copies_are_over_at_once),
    ("cluster_bytes_without_the_peer", "I7", PROTOCOL),
    ("cluster_counts_its_own", "I8", PROTOCOL),
    ("cluster_releases_to_itself", "I7", PROTOCOL),
    ("cluster_met_by_each_block", "I14", without(obligations, "_initialised")),
    ("cluster_fenced_between_halves", "I14", without(obligations, "_initialised")),
    ("cluster_left_early", "I15", without(clusters, "_left")),
    ("cluster_of_two_columns", "I16", tiles_are_believed_shared),
    ("attention_values_in_opposite_order", "I24", without(claims, "products")),
    ("grouped_heads_by_remainder", "I26", without(claims, "products")),
    ("grouped_heads_in_opposite_order", "I26", without(claims, "products")),
    ("convolution_exchanges_its_axes", "I3", any_places_will_do),
    ("convolution_transposed_without_gaps", "I3", any_places_will_do),
    ("depthwise_exchanges_its_axes", "I3", any_places_will_do),
    ("convolution_of_odd_channels", "I19", without(vectors, "_wide")),
)


@pytest.mark.parametrize(("twin", "code", "switch_off"), CASES, ids=[f"{code}-{twin}" for twin, code, _ in CASES])
def test_a_twin_slips_past_without_its_check(
    twin: str, code: str, switch_off: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load(twin)
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == code

    switch_off(monkeypatch)

    assert isinstance(verify(kernel, solver="z3").verdict, Proved)


# -- faults that the language does not let anyone write ----------------------------------------------------------


def barriers_made_known_to_nobody() -> Kernel:
    kernel = ring(Drained())
    (fence,) = [stmt for stmt in every(kernel, Fence) if stmt.kind == "barrier_init"]
    return edited(kernel, fence)


def copy_of_another_swizzle() -> Kernel:
    kernel = ROLES["cooperative"]
    store = of_role(kernel, "math", Copy)[-1]
    (atom,) = [each for each in ATOMS if str(each) == "tma_store_2d_sw64"]
    return changed(kernel, store, atom=atom)


def one_box_for_both_agents() -> Kernel:
    kernel = ROLES["pingpong"]
    for stmt in of_role(kernel, "math", Copy):
        for side in ("source", "target"):
            view = getattr(stmt, side)
            if view.buffer.name == "box":
                kernel = changed(kernel, stmt, **{side: evolve(view, at=(const(0), *view.at[1:]))})
    return kernel


def turns_a_phase_ahead() -> Kernel:
    kernel = ROLES["pingpong"]
    enter = next(each for each in of_role(kernel, "math", Await) if each.event.buffer.name.startswith("turns"))
    return changed(kernel, enter, phase=add(enter.phase, 1))


def rows_that_overlap() -> Kernel:
    kernel = KERNELS["double_buffer"]
    (overlap,) = named(["overlap_rows"])
    return next(mutant.kernel for mutant in overlap(kernel) if "axis 1" in mutant.what)


def slots_that_overlap() -> Kernel:
    """The second slot begins in the middle of the first."""
    kernel = KERNELS["early_wait_for_one"]
    (overlap,) = named(["overlap_rows"])
    return next(mutant.kernel for mutant in overlap(kernel) if "lds_b" in mutant.what)


MADE: tuple[tuple[Callable[[], Kernel], str, Patch], ...] = (
    (barriers_made_known_to_nobody, "I14", without(obligations, "_initialised")),
    (copy_of_another_swizzle, "I17", without(boxes, "of_box")),
    (rows_that_overlap, "I22", without(budgets, "of_cells")),
    (slots_that_overlap, "I22", without(budgets, "of_cells")),
    (one_box_for_both_agents, "I13", without(analysis, "apart")),
    (turns_a_phase_ahead, "I6", turns_need_no_order),
)


@pytest.mark.parametrize(("made", "code", "switch_off"), MADE, ids=[f"{code}-{m.__name__}" for m, code, _ in MADE])
def test_a_made_twin_slips_past_without_its_check(
    made: Callable[[], Kernel], code: str, switch_off: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = made()
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == code

    switch_off(monkeypatch)

    assert isinstance(verify(kernel, solver="z3").verdict, Proved)
