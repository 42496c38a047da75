import pytest

from argus.policy.stopping import Rule, replay, roi, should_stop

RUN = (None, 100.0, 80.0, None, 60.0, 60.0, 61.0, None, 50.0, 50.0)


def test_near_the_bound() -> None:
    assert should_stop(Rule(epsilon=0.25), (None, 70.0), bound=50.0) is None
    assert should_stop(Rule(epsilon=0.25), (None, 62.5), bound=50.0) == "near the bound"


def test_stops_after_attempts_without_gain() -> None:
    rule = Rule(attempts=3)
    assert should_stop(rule, RUN[:7], bound=1.0) is None  # the last gain was the fifth trial
    assert should_stop(rule, RUN[:8], bound=1.0) == "no gain"


def test_nothing_passed_yet() -> None:
    assert should_stop(Rule(epsilon=9.0, attempts=1), (None, None, None), bound=1.0) is None


def test_the_baseline_must_be_beaten_first() -> None:
    rule = Rule(epsilon=1.0, attempts=1, to_beat=60.0)
    assert should_stop(rule, (60.0, 60.0, 60.0), bound=50.0) is None
    assert should_stop(rule, (60.0, 60.0, 59.0), bound=50.0) == "near the bound"


def test_small_gains_do_not_count() -> None:
    times = (100.0, 99.9, 99.8, 99.7)
    assert should_stop(Rule(attempts=3), times, bound=1.0) is None
    assert should_stop(Rule(attempts=3, gain=0.01), times, bound=1.0) == "no gain"


def test_replay_counts_what_was_saved_and_kept() -> None:
    found = replay(Rule(attempts=3), RUN, bound=40.0)
    assert (found.trials, found.why) == (8, "no gain")
    assert found.saved == pytest.approx(0.2)
    assert found.kept == pytest.approx(50 / 60)
    assert found.efficiency == pytest.approx(50 / 60 / 0.8)


def test_a_rule_that_never_holds_keeps_all() -> None:
    found = replay(Rule(), RUN, bound=40.0)
    assert (found.trials, found.saved, found.kept, found.why) == (10, 0.0, 1.0, None)


def test_a_run_in_which_nothing_passed_keeps_nothing() -> None:
    assert replay(Rule(epsilon=1.0), (None, None), bound=1.0).kept == 0.0


def test_an_empty_run_is_refused() -> None:
    with pytest.raises(ValueError, match="without trials"):
        replay(Rule(), (), bound=1.0)


def test_return_on_investment_is_bold_far_from_the_bound() -> None:
    assert roi(2.0, gap=5.0, implementing=1.0, risk=1.0) == 2.0
    assert roi(2.0, gap=50.0, implementing=1.0, risk=1.0) == pytest.approx(4.0)
    assert roi(2.0, gap=1.0, implementing=4.0, risk=2.0) == 0.25
    bold, careful = (2.0, 3.0), (1.2, 1.0)  # speedup and cost
    near = [roi(speedup, 1.5, cost, 1.0) for speedup, cost in (bold, careful)]
    far = [roi(speedup, 5000.0, cost, 1.0) for speedup, cost in (bold, careful)]
    assert near[0] < near[1]
    assert far[0] > far[1]


def test_return_on_investment_wants_numbers_above_0() -> None:
    with pytest.raises(ValueError, match="above 0"):
        roi(2.0, 0.0, 1.0, 1.0)
