"""Epochs of waves that run barriers apart: groups, leads, balance, and what is refused."""

from __future__ import annotations

import pytest

from argus.core.algebra import TRUE
from argus.core.index_text import show
from argus.core.ir import Sync
from argus.core.proof.dataflow.timeline import Timeline, timeline
from argus.core.proof.sync.epochs import Epochs, barrier_balance_obligations, check_divergence, epochs_of
from argus.core.verdict import Unknown
from argus.interp.search.search import sizes_in_order
from argus.language import Tensor, bf16, eq, gfx942, kernel, loop, sync, wave, when
from argus.verifier.kernel import verify
from property_tests.barriers import program


def line_of(before: str, body: str, after: str) -> Timeline:
    return timeline(program(before, body, after))


def leads(epochs: Epochs) -> list[int | None]:
    """By how many barriers waves 2 and 3 are ahead of waves 0 and 1 before each barrier of the line."""
    return [epochs.lead(step, (0, 1)) for step in epochs.timeline.steps if isinstance(step.stmt, Sync)]


def test_without_conditions_on_waves_all_are_one_group() -> None:
    epochs = epochs_of(line_of("s", "s", ""))
    assert epochs.groups == (0b1111,)
    assert epochs.pairs == ((0, 0),)
    assert list(barrier_balance_obligations(epochs.timeline)) == []


def test_waves_with_an_extra_barrier_lead_until_the_others_pass_one() -> None:
    epochs = epochs_of(line_of("p", "ss", "qs"))
    assert epochs.groups == (0b0011, 0b1100)
    assert leads(epochs) == [0, 0, 1, 1, 1, 0]


def test_a_balanced_loop_body_preserves_the_lead() -> None:
    assert leads(epochs_of(line_of("p", "qsp", "q"))) == [0, 0, 1, 0, 0, 1]


def test_a_lead_that_grows_is_not_counted() -> None:
    epochs = epochs_of(line_of("", "sp", "s"))
    assert leads(epochs) == [0, None, None, None]
    verdict = verify(program("", "sp1d", "qw"), solver="z3").verdict
    assert not isinstance(verdict, Unknown)


@pytest.mark.parametrize(
    ("words", "balanced"),
    [(("p", "s", "q"), True), (("p", "s", ""), False), (("", "pq", ""), True), (("", "p", ""), False)],
)
def test_balance_is_an_equality_over_the_trip_count(words: tuple[str, str, str], balanced: bool) -> None:
    (found,) = barrier_balance_obligations(line_of(*words))
    assert found.invariant == "I32"
    assert found.what == "waves 2, 3 and waves 0, 1 pass equally many barriers"
    assert (found.goal is TRUE) is balanced


def test_one_missing_barrier_may_come_from_a_loop_of_one_trip() -> None:
    @kernel(target=gfx942, threads=256)
    def once(A: Tensor["K 8", bf16]) -> None:
        with when(eq(wave, 3)):
            sync()
        for _ in loop(A.shape[0]):
            with when(wave < 3):
                sync()

    (found,) = barrier_balance_obligations(timeline(once.trace()))
    assert found.what == "wave 3 and waves 0 to 2 pass equally many barriers"
    assert show(found.goal) == "K == 1"


def test_a_barrier_under_a_condition_on_waves_and_sizes_is_refused() -> None:
    @kernel(target=gfx942, threads=256)
    def mixed(A: Tensor["K 8", bf16]) -> None:
        for own in (wave == 1, wave != 1):
            with when(own & (A.shape[0] >= 2)):
                sync()

    found, _ = check_divergence(timeline(mixed.trace())).unmodelled
    assert found.reason == "a barrier under a condition that depends on more than the wave"
    assert isinstance(verify(mixed, solver="z3").verdict, Unknown)


def test_a_size_that_counts_may_be_zero_in_the_search_for_a_run() -> None:
    sizes = list(sizes_in_order(program("", "", "")))
    assert {"M": 1, "K": 0} in sizes
    assert all(size["M"] >= 1 for size in sizes)
