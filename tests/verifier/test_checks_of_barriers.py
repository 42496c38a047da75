"""Checks of barriers, waits, fences and tensor maps are needed: with one switched off, a wrong kernel is proved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.proof.dataflow import reaching
from argus.core.proof.sync import epochs, ordering, races, stages, tensor_maps, visibility
from tests.verifier.switched_off_checks import Case, always, cases_test, without_obligations


def loads_arrive_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reaching.Flow, "has_arrived", always)


def copies_past_registers_are_ordinary_writes(patch: pytest.MonkeyPatch) -> None:
    kind: Callable[..., str] = vars(visibility)["_kind"]

    def ordinary(*given: object) -> str:
        found = kind(*given)
        return "write" if found == "staged" else found

    patch.setattr(visibility, "_kind", ordinary)


def slots_are_never_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stages, "_different_slots", always)


def no_group_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epochs.Epochs, "lead", zero_barriers_ahead)


def zero_barriers_ahead(*_: object) -> int:
    return 0


def every_wait_is_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ordering, "_executed_by_all", always)


def any_map_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tensor_maps, "describes_target", always)


def copies_through_maps_end_at_once(patch: pytest.MonkeyPatch) -> None:
    kept = visibility.Visibility.record

    def hold(walk: visibility.Visibility, found: visibility.Check) -> None:
        kept(walk, evolve(found, good=True) if found.what.startswith("copies through") else found)

    patch.setattr(visibility.Visibility, "record", hold)


VISIBILITY = without_obligations(visibility, "visibility_obligations")


CASES: tuple[Case, ...] = (
    ("cp_async_without_a_wait", "I31", copies_past_registers_are_ordinary_writes),
    ("cp_async_one_group_too_few", "I31", copies_past_registers_are_ordinary_writes),
    ("cp_async_fenced_before_the_wait", "I12", copies_past_registers_are_ordinary_writes),
    ("cp_async_into_the_slot_in_use", "I10", slots_are_never_the_same),
    ("cp_async_prologue_in_one_group", "I31", slots_are_never_the_same),
    ("cp_async_prologue_in_reverse", "I31", slots_are_never_the_same),
    ("missing_barrier_raw", "I5", without_obligations(races, "race_obligations")),
    ("missing_barrier_war", "I36", without_obligations(races, "race_obligations")),
    ("undrained_read", "I30", without_obligations(races, "race_obligations")),
    ("undrained_write", "I31", without_obligations(races, "race_obligations")),
    ("direct_load_not_waited_for", "I31", without_obligations(races, "_same_wave_obligation")),
    ("direct_load_over_a_read", "I30", without_obligations(races, "_same_wave_obligation")),
    ("fetch_waited_for_by_one_group", "I31", every_wait_is_for_all),
    ("groups_fetch_alike", "I5", without_obligations(races, "_against_earlier")),
    ("dropped_skew", "I32", without_obligations(epochs, "barrier_balance_obligations")),
    ("dropped_unskew", "I32", without_obligations(epochs, "barrier_balance_obligations")),
    ("wait_after_the_licensing_barrier", "I30", no_group_leads),
    ("pingpong_missing_barrier", "I36", no_group_leads),
    ("wait_dropped", "I31", loads_arrive_at_once),
    ("wait_too_weak", "I31", loads_arrive_at_once),
    ("no_bulk_wait", "I13", VISIBILITY),
    ("no_meeting_after_the_bulk_wait", "I13", VISIBILITY),
    ("no_meeting_before_the_store", "I12", VISIBILITY),
    ("no_proxy_fence", "I12", VISIBILITY),
    ("proxy_fence_before_the_writes", "I12", VISIBILITY),
    ("proxy_fence_by_the_issuer", "I12", VISIBILITY),
    ("store_outlives_the_block", "I13", VISIBILITY),
    ("softmax_box_not_met", "I5", VISIBILITY),
    ("claim_before_the_wait", "I11", VISIBILITY),
    ("relation_before_the_wait", "I11", VISIBILITY),
    ("map_not_released", "I29", any_map_will_do),
    ("map_of_another_group", "I29", any_map_will_do),
    ("real_cutlass_2162", "I29", copies_through_maps_end_at_once),
)


test_a_twin_slips_past_without_its_check = cases_test(CASES)
