"""Checks of roles and clusters are needed: with one switched off, a kernel with a faulty protocol is proved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.algebra import add, const, sub, sym
from argus.core.index import Bin, Const, Index, Node, Symbol
from argus.core.ir import Await, Buffer, Copy, Fence, For, Kernel
from argus.core.proof import analysis
from argus.core.proof.sync import cluster_exchange
from argus.core.proof.sync.roles import (
    agent_order,
    cluster_stores,
    clusters,
    extract_protocol,
    in_flight_mma,
    in_loop_order,
    obligations,
    rounds,
    sequential,
)
from argus.core.proof.sync.roles.context import ProofContext
from argus.core.proof.sync.roles.events import WaitEvent
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage
from argus.core.proof.sync.roles.uses import UseResolver
from argus.core.query import Budget
from argus.core.tile_rounds import TileRounds
from argus.core.verdict import Unknown
from argus.verifier.kernel import verify
from property_tests.role_programs import ROLES
from tests.core.proof.rings import Drained, changed, edited, every, of_role, ring
from tests.verifier.switched_off_checks import (
    NOT_KNOWN,
    Case,
    always,
    assert_proved,
    cases_test,
    load,
    never,
    no_obligations,
    without_obligations,
    without_refusal,
)

NO_RUNS = evolve(Budget(), runs=0)


def any_barrier_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster_stores, "_arrive_at_awaited_barrier", always)


def turns_may_use_other_barriers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(in_loop_order, "_same_barriers", always)


def tiles_may_depend_on_the_block(patch: pytest.MonkeyPatch) -> None:
    """A block's place in a round is taken for the block."""

    def own_block(kernel: Kernel, *_: object) -> Symbol:
        return kernel.blocks[0]

    patch.setattr(rounds, "fresh_block_symbol", own_block)
    patch.setattr(rounds, "expressions", no_expressions)


def no_expressions(_: object) -> tuple[Node, ...]:
    return ()


def rounds_may_be_counted_otherwise(patch: pytest.MonkeyPatch) -> None:
    """Tiles are numbered in the rounds of a zigzag, and the plain trip count is taken for that of one."""

    def any_count(loop: For, kernel: Kernel) -> tuple[TileRounds, Symbol, Index]:
        (block,), (blocks,) = kernel.blocks, kernel.grid
        assert isinstance(loop.stop, Bin)
        assert isinstance(blocks, Const)
        made = TileRounds(blocks.value, zigzag=True)
        return made, block, sub(add(loop.stop.left, sym(block)), made.blocks - 1)

    patch.setattr(rounds, "_zigzag", any_count)


def held_slots_are_left_to_the_protocol(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(in_flight_mma, "_reads_tile_ring", never)


def every_loop_runs(patch: pytest.MonkeyPatch) -> None:
    path: Callable[..., frozenset[Buffer]] = vars(extract_protocol)["_unsynced_after_path"]

    def once(events: object, entry: frozenset[Buffer], rings: object) -> frozenset[Buffer]:
        return path(events, path(events, entry, rings), rings)

    patch.setattr(extract_protocol, "_unsynced_after_loop", once)


def every_arrival_is_by_each_reader(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(extract_protocol, "_by_each_reader", always)


def turns_may_be_left_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(agent_order, "_leaves_early", never)


def every_phase_is_of_its_use(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UseResolver, "named", own_use)


def own_use(reader: UseResolver, waited: WaitEvent, ring: RingStorage, _: int) -> int:
    """The distance to the use of the slot itself, whatever the awaited phase."""
    assert waited.use is not None
    return -(-reader.offset(waited.use, waited.stmt) % ring.stages)


def turns_need_no_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "check_agent_order", has_order_events)


def has_order_events(_: Kernel, role: ParsedRole, __: object) -> bool:
    return any(agent_order.order_events(role))


def every_role_has_the_same_trips(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "_same_tiles_obligations", no_obligations)
    patch.setattr(ProofContext, "equal", always)


def multicast_tiles_count_as_shared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequential, "received_copies", copies_of_the_reader_s_tile)
    patch.setattr(clusters, "_multicast_tile_obligations", no_obligations)


def copies_of_the_reader_s_tile(kernel: Kernel, copy: Copy) -> tuple[Copy, ...]:
    """One copy per sender: the part of the slot that the sender fills, but read from the reader's own tile."""
    if copy.peers is None:
        return (copy,)
    pairs = zip(copy.source.at, copy.target.at[1:], strict=True)
    moved = tuple(sub(source, target) for source, target in pairs)
    found: list[Copy] = []
    for rank in range(kernel.peers):
        target = clusters.at_rank(kernel, copy, rank).target
        at = tuple(add(own, there) for own, there in zip(moved, target.at[1:], strict=True))
        found.append(evolve(copy, source=evolve(copy.source, at=at), target=target, peers=None))
    return tuple(found)


PROTOCOL = without_obligations(obligations, "_protocol_obligations")


def barriers_made_known_to_nobody() -> Kernel:
    kernel = ring(Drained())
    (fence,) = [stmt for stmt in every(kernel, Fence) if stmt.kind == "barrier_init"]
    return edited(kernel, fence)


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


CASES: tuple[Case, ...] = (
    ("arrivals_of_one_consumer", "I8", PROTOCOL),
    ("arrivals_of_three_consumers", "I8", PROTOCOL),
    ("bytes_of_one_operand", "I7", PROTOCOL),
    ("half_the_bytes", "I7", PROTOCOL),
    ("too_many_bytes", "I7", PROTOCOL),
    ("release_before_the_product_ends", "I10", PROTOCOL),
    ("release_by_every_thread", "I8", PROTOCOL),
    ("release_of_the_product_under_way", "I10", PROTOCOL),
    ("producer_leaves_early", "I9", without_obligations(obligations, "_same_tiles_obligations")),
    ("stale_phase", "I6", every_phase_is_of_its_use),
    ("wait_a_phase_ahead", "I6", every_phase_is_of_its_use),
    ("wait_a_phase_behind", "I6", every_phase_is_of_its_use),
    ("bytes_of_a_skipped_copy", "I7", without_obligations(extract_protocol, "check_trips")),
    ("release_of_the_next_slot", "I8", without_obligations(extract_protocol, "check_trips")),
    ("release_covers_the_releaser_alone", "I5", without_refusal(extract_protocol, "_check_ordinary_reads")),
    ("one_reader_arrives_for_all", "I5", every_arrival_is_by_each_reader),
    ("causal_one_trip_fewer", "I9", every_role_has_the_same_trips),
    ("peeled_use_released_early", "I10", without_obligations(obligations, "in_flight_obligations")),
    ("two_rings_released_before_the_product", "I10", without_obligations(obligations, "in_flight_obligations")),
    ("slot_unmet_where_a_loop_has_no_trips", "I5", every_loop_runs),
    ("turns_of_one_warpgroup_twice", "I9", without_refusal(in_loop_order, "_check")),
    ("turns_of_three_passed_to_a_fourth", "I9", without_refusal(in_loop_order, "_check")),
    ("zigzag_numbered_from_one_end", "I4", tiles_may_depend_on_the_block),
    ("zigzag_counted_from_one_end", "I4", rounds_may_be_counted_otherwise),
    ("slot_released_before_its_second_product_ends", "I10", without_obligations(obligations, "in_flight_obligations")),
    ("cluster_bytes_without_the_peer", "I7", PROTOCOL),
    ("cluster_counts_its_own", "I8", PROTOCOL),
    ("cluster_releases_to_itself", "I7", PROTOCOL),
    ("cluster_met_by_each_block", "I14", without_obligations(obligations, "_initialisation_obligation")),
    ("cluster_fenced_between_halves", "I14", without_obligations(obligations, "_initialisation_obligation")),
    ("cluster_left_early", "I15", without_obligations(clusters, "_lifetime_obligations")),
    ("cluster_of_two_columns", "I16", multicast_tiles_count_as_shared),
    ("cluster_laps_out_of_step", "I16", without_refusal(clusters, "check_rank_independence")),
    ("sums_of_one_block_waited_for", "I6", without_obligations(cluster_stores, "exchange_obligations")),
    ("sums_told_to_one_block", "I9", without_obligations(cluster_stores, "exchange_obligations")),
    ("held_slot_released_under_its_products", "I10", held_slots_are_left_to_the_protocol),
    ("sums_told_at_another_barrier", "I9", any_barrier_will_do),
    ("turns_at_other_barriers", "I6", turns_may_use_other_barriers),
    ("turn_left_before_the_last_use", "I6", turns_may_be_left_early),
    ("sums_stored_over_the_other_block_s", "I5", without_obligations(cluster_stores, "disjoint_store_obligations")),
    ("exchanged_sums_met_by_each_block", "I5", without_obligations(cluster_exchange, "exchange_obligations")),
    ("exchanged_sums_read_before_the_meeting", "I5", without_obligations(cluster_exchange, "exchange_obligations")),
    ("exchanged_sums_of_squares_over_sums", "I36", without_refusal(cluster_exchange, "_check_exclusive")),
)


test_a_twin_slips_past_without_its_check = cases_test(CASES)


MADE: tuple[Case, ...] = (
    (barriers_made_known_to_nobody, "I14", without_obligations(obligations, "_initialisation_obligation")),
    (one_box_for_both_agents, "I13", without_obligations(analysis, "isolation_obligations")),
    (turns_a_phase_ahead, "I6", turns_need_no_order),
)
"""Faults that the DSL does not let anyone write: edits of a traced kernel."""


def test_stores_need_a_start_of_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run of the interpreter, in which all blocks have started, shows it."""
    early = load("exchanged_sums_before_the_start", NOT_KNOWN)
    assert isinstance(verify(early, solver="z3", budget=NO_RUNS).verdict, Unknown)

    without_obligations(cluster_exchange, "exchange_obligations")(monkeypatch)

    assert_proved(early)


test_a_made_twin_slips_past_without_its_check = cases_test(MADE)
