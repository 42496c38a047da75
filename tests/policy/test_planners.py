from itertools import count
from math import log
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.policy.bandit import CONSTANT, Bandit, Gaussian, WeightPrior
from argus.policy.baselines import Exhaustive, Random
from argus.policy.credit import area_under_curve, technique_credit
from argus.policy.planner import Choice, Observation, Planner, Situation, State, Step

NAMES = (CONSTANT, "wide", "staged", "broken")


def choice(wide: int, staged: int, broken: int) -> Choice:
    steps = tuple(Step(name, "") for name, on in (("wide", wide), ("staged", staged), ("broken", broken)) if on)
    return Choice(f"{wide}{staged}{broken}", steps, (1.0, float(wide), float(staged), float(broken)))


OPTIONS = tuple(choice(wide, staged, broken) for wide in (0, 1) for staged in (0, 1) for broken in (0, 1))
SITUATION = Situation("sm_90a", "gemm", NAMES, 100.0, "tensor", OPTIONS)
PLANNERS: tuple[Planner, ...] = (Random(), Exhaustive(), Bandit({CONSTANT: WeightPrior(-1.0, 0.5)}))


def observed(choice: Choice) -> Observation:
    """A fake machine: wide tiles halve the time, stages reduce it by a third, `broken` is refuted."""
    _, wide, staged, broken = choice.features
    if broken:
        return Observation(choice, "refuted")
    return Observation(choice, "timed", 400.0 * 0.5**wide * 0.67**staged)


def trials(planner: Planner, seed: int) -> int:
    """Number of trials until the fastest has been tried."""
    state = planner.start(SITUATION, seed)
    for number in count(1):
        found = planner.propose(state)[0].choice
        if found.name == "110":
            return number
        state = planner.learn(state, observed(found))
    raise AssertionError


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda each: each.name)
def test_a_search_tries_every_choice_once_and_then_none(planner: Planner) -> None:
    state = planner.start(SITUATION, 1)
    tried: list[str] = []
    while proposed := planner.propose(state):
        assert [each.utility for each in proposed] == sorted((each.utility for each in proposed), reverse=True)
        tried.append(proposed[0].choice.name)
        state = planner.learn(state, observed(proposed[0].choice))

    assert sorted(tried) == sorted(each.name for each in OPTIONS)
    assert state.situation.best is not None
    assert state.situation.best.choice.name == "110"


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda each: each.name)
def test_equal_states_make_equal_proposals(planner: Planner) -> None:
    def again() -> State[object]:
        state = planner.start(SITUATION, 7)
        for each in OPTIONS[:3]:
            state = planner.learn(state, observed(each))
        return state

    assert planner.propose(again()) == planner.propose(again())
    assert again() == again()


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda each: each.name)
def test_pending_choices_are_not_proposed_again(planner: Planner) -> None:
    state = planner.start(SITUATION, 3)
    first = planner.propose(state)[0].choice
    names = {each.choice.name for each in planner.propose(state.with_pending(first.name))}

    assert first.name not in names
    assert len(names) == len(OPTIONS) - 1
    assert planner.learn(state.with_pending(first.name), observed(first)).pending == frozenset()


def test_the_bandit_learns_what_random_does_not() -> None:
    bandit = Bandit({CONSTANT: WeightPrior(-1.0, 0.5)})
    learnt = np.mean([trials(bandit, seed) for seed in range(40)])
    random = np.mean([trials(Random(), seed) for seed in range(40)])

    assert learnt < random - 0.5


def test_a_good_prior_finds_the_fastest_at_once() -> None:
    told = {CONSTANT: WeightPrior(-1.4, 0.1), "wide": WeightPrior(0.7, 0.05), "staged": WeightPrior(0.4, 0.05)}

    assert np.mean([trials(Bandit({**told, "broken": WeightPrior(-1.0, 0.1)}), seed) for seed in range(20)]) < 1.5


def test_the_bandit_predicts_observed_times() -> None:
    bandit = Bandit({CONSTANT: WeightPrior(-1.0, 1.0)})
    state = bandit.start(SITUATION, 0)
    for _ in range(30):
        for each in OPTIONS:
            if not each.features[3]:
                state = bandit.learn(state, observed(each))

    assert bandit.expected(state, choice(1, 1, 0)) == pytest.approx(134.0, rel=0.05)
    assert bandit.expected(state, choice(0, 0, 0)) == pytest.approx(400.0, rel=0.05)


def test_the_first_trials_take_the_best_mean_and_later_ones_a_sample() -> None:
    """Candidates under way count as trials: two workers begin with the two best means."""
    bandit = Bandit({CONSTANT: WeightPrior(-1.0, 1.0), "wide": WeightPrior(0.4, 0.5)}, exploit=2)

    def firsts(state: State[Any]) -> set[str]:
        return {bandit.propose(evolve(state, seed=seed))[0].choice.name for seed in range(40)}

    state = bandit.start(SITUATION, 0)
    (first,) = firsts(state)
    wide = [each for each in OPTIONS if dict(zip(SITUATION.features, each.features, strict=True))["wide"]]
    assert first in {each.name for each in wide}
    begun = state.with_pending(first)
    (second,) = firsts(begun)
    assert len(firsts(begun.with_pending(second))) > 1
    always = evolve(bandit, exploit=0)
    assert len({always.propose(always.start(SITUATION, seed))[0].choice.name for seed in range(40)}) > 1


def test_the_posterior_of_a_normal_mean() -> None:
    belief = Gaussian.prior((WeightPrior(0.0, 1.0),)).updated(np.array([1.0]), 2.0, 1.0)

    assert belief.mean() == pytest.approx([1.0])
    drawn = [belief.sample(np.random.default_rng(seed))[0] for seed in range(4000)]
    assert np.mean(drawn) == pytest.approx(1.0, abs=0.04)
    assert np.std(drawn) == pytest.approx(0.5**0.5, abs=0.04)


def test_later_improvements_count_for_more() -> None:
    assert area_under_curve([True, False]) < area_under_curve([False, True])
    assert area_under_curve([True, True]) == 1.0
    assert area_under_curve([]) == 0.0


def test_credit_goes_to_techniques_of_improvements() -> None:
    tried = [observed(choice(0, 0, 0)), observed(choice(1, 0, 0)), observed(choice(0, 1, 0)), observed(choice(1, 1, 0))]
    found = technique_credit(tried, exploration=0.0)

    assert found["wide"] == 1.0
    assert found["staged"] == pytest.approx(2 / 3)


def test_the_gap_is_over_the_bound() -> None:
    after = SITUATION.with_observation(observed(choice(1, 1, 0)))

    assert after.gap == pytest.approx(1.34)
    assert log(after.gap or 1) > 0
    assert SITUATION.gap is None
