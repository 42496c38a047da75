from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve

from argus.policy.bandit import Bandit
from argus.policy.llm.memory import MOST_FEEDBACK, Memory, feedback
from argus.policy.llm.planner import KERNEL_TEXT, Llm, with_kernels_as_options, with_response
from argus.policy.llm.reply import Kernel, Option, Proposal, Reply, Trouble, Use, Write
from argus.policy.llm.tasks import Lower, Plan, Repair, awaiting_repair, next_task, should_ask, untried_kernels
from argus.policy.planner import Observation, Planner, State
from tests.policy.llm.searches import OPTIONS, PLANNER, SITUATION, choice, observed, start

REPLY = Reply((Proposal(Option("d100"), 0.9, "wide"), Proposal(Use("staged"), 0.5, "deep", ("wide",))), ("a lesson",))
AWAY = Trouble("E923", "no answer", "try later", lasting=False)


def names(state: State[Memory], planner: Llm = PLANNER) -> list[str]:
    return [each.choice.name for each in planner.propose(state)]


def test_without_an_answer_it_ranks_as_the_bandit_and_says_so() -> None:
    planner: Planner = PLANNER
    state = start(3)
    alone = PLANNER.bandit.propose(PLANNER.bandit.start(SITUATION, 3))

    assert names(state) == [each.choice.name for each in alone]
    assert {each.why for each in planner.propose(state)} == {"bandit: the model has not been asked"}
    why = {each.why for each in planner.propose(with_response(state, AWAY))}
    assert why == {"bandit, without an answer of the model: E923, no answer"}


def test_the_answer_comes_first_and_the_bandit_after_it() -> None:
    state = with_response(start(), REPLY)
    found = PLANNER.propose(state)
    rest = [each.choice.name for each in PLANNER.bandit_ranking(state) if each.choice.name not in (names(state)[:2])]

    assert found[0].choice.name == "d100"
    assert found[0].why == "model, confidence 0.90: wide"
    assert {"wide", "staged"} <= {step.technique for step in found[1].choice.steps}
    assert names(state)[2:] == rest
    assert found[2].why == "bandit: the model did not propose it"
    assert [each.utility for each in found] == sorted((each.utility for each in found), reverse=True)


def test_tried_and_pending_choices_are_not_proposed() -> None:
    state = with_response(start(), REPLY)

    assert "d100" not in names(PLANNER.learn(state, observed(choice(1, 0, 0))))
    assert "d100" not in names(state.with_pending("d100"))


def test_a_search_tries_every_choice_once_and_then_none() -> None:
    state = with_response(start(), REPLY)
    tried: list[str] = []
    while proposed := PLANNER.propose(state):
        tried.append(proposed[0].choice.name)
        state = PLANNER.learn(state, observed(proposed[0].choice))

    assert sorted(tried) == sorted(each.name for each in OPTIONS)
    assert tried[0] == "d100"


def test_a_proposal_waits_for_what_it_builds_on() -> None:
    later = Proposal(Option("d010"), 0.9, needs=("wide",))
    state = with_response(start(), Reply((later, Proposal(Option("d100"), 0.2))))

    assert names(state)[:2] == ["d100", "d010"]
    after = PLANNER.learn(state, observed(choice(1, 0, 0)))
    assert names(after)[0] == "d010"


def test_ranks_are_drawn_by_confidence_where_that_is_asked_for() -> None:
    planner = Llm(Bandit({}), spread=1.0)
    reply = Reply((Proposal(Option("d100"), 0.75), Proposal(Option("d010"), 0.25)))
    firsts = Counter(
        planner.propose(with_response(planner.start(SITUATION, seed), reply))[0].choice.name for seed in range(600)
    )

    assert firsts["d100"] / 600 == pytest.approx(0.75, abs=0.06)
    assert set(firsts) == {"d100", "d010"}
    state = with_response(planner.start(SITUATION, 5), reply)
    assert planner.propose(state) == planner.propose(state)


def test_the_bandit_learns_from_all_that_is_tried() -> None:
    state = with_response(start(), REPLY)
    alone = PLANNER.bandit.start(SITUATION, 0)
    for each in OPTIONS[:4]:
        state = PLANNER.learn(state, observed(each))
        alone = PLANNER.bandit.learn(alone, observed(each))

    assert state.memory.beliefs == alone.memory
    assert state.situation == alone.situation


def test_each_observation_leaves_one_sentence() -> None:
    state = with_response(start(), REPLY)
    state = PLANNER.learn(state, observed(choice(0, 0, 0)))
    state = PLANNER.learn(state, observed(choice(1, 0, 0)))
    state = PLANNER.learn(state, evolve(observed(choice(0, 0, 1)), stage="invariants", why="I5: read too early"))

    assert state.memory.feedback == (
        "passed, 400 us, reward 0.62, the first that passed: d000 (the first design)",
        (
            "passed, 200 us, reward 0.75, 2.000 times as fast as the best before: d100 (wide); expected with confidence"
            " 0.90: wide"
        ),
        "refuted at invariants, reward 0.07, I5: read too early: d001 (broken)",
    )


def test_the_memory_is_bounded() -> None:
    memory = start().memory
    for number in range(100):
        memory = memory.with_feedback(memory.beliefs, f"line {number}")

    assert len(memory.feedback) == MOST_FEEDBACK
    assert memory.feedback[-1] == "line 99"
    long = evolve(OPTIONS[0], name="x" * 5000)
    assert len(feedback(SITUATION, observed(long), None)) <= 360


def test_an_answer_without_lessons_keeps_the_present_ones() -> None:
    state = with_response(start(), REPLY)

    assert state.memory.lessons == ("a lesson",)
    assert with_response(state, evolve(REPLY, lessons=())).memory.lessons == ("a lesson",)
    assert with_response(state, evolve(REPLY, lessons=("new",))).memory.lessons == ("new",)
    assert with_response(state, AWAY).memory.lessons == ("a lesson",)


def test_the_model_is_asked_at_first_and_when_its_answer_is_used_up() -> None:
    state = start()
    assert should_ask(state, 4)
    state = with_response(state, REPLY)
    assert not should_ask(state, 4)
    state = PLANNER.learn(state, observed(choice(1, 0, 0)))
    assert not should_ask(state, 4)
    for each in (choice(1, 1, 0), choice(1, 1, 1)):
        state = PLANNER.learn(state, observed(each))
    assert should_ask(state, 4)


def test_the_model_is_asked_again_after_every_observations() -> None:
    state = with_response(start(), REPLY)
    for each in (choice(0, 0, 0), choice(0, 0, 1)):
        state = PLANNER.learn(state, observed(each))

    assert should_ask(state, 2)
    assert not should_ask(state, 3)


def test_an_answer_that_fits_nothing_is_not_asked_for_again_at_once() -> None:
    state = with_response(start(), Reply((Proposal(Option("gone"), 0.9),)))

    assert not should_ask(state, 4)
    assert should_ask(PLANNER.learn(state, observed(choice(0, 0, 0))), 4)


def test_after_trouble_the_model_is_asked_ever_more_rarely() -> None:
    state = with_response(start(), AWAY)
    asked: list[int] = []
    for each in OPTIONS[:-1]:
        state = PLANNER.learn(state, observed(each))
        if should_ask(state, 1):
            asked.append(state.step)
            state = with_response(state, AWAY)

    assert asked == [1, 3, 7]
    assert not should_ask(with_response(start(), evolve(AWAY, lasting=True)), 1)


def test_where_nothing_is_open_a_kernel_may_still_be_written() -> None:
    state = start()
    for each in OPTIONS:
        state = PLANNER.learn(state, observed(each))

    assert names(state) == []
    assert next_task(state, 1, 2) == Plan()
    assert next_task(with_response(state, AWAY), 1, 2) is None


def test_a_kernel_text_becomes_an_option() -> None:
    kernel = Kernel("from argus.language import *\n", ("I5",))
    state = PLANNER.learn(start(), observed(choice(1, 0, 0)))
    state = with_response(state, Reply((Proposal(kernel, 0.9, "fused"), Proposal(Option("d110"), 0.5))))

    assert untried_kernels(state) == (kernel,)
    assert names(state)[0] == "d110"
    more = with_kernels_as_options(state)
    assert untried_kernels(more) == ()
    assert with_kernels_as_options(more) == more
    first = PLANNER.propose(more)[0]
    assert first.choice.name == kernel.name
    assert [step.technique for step in first.choice.steps] == [KERNEL_TEXT]
    assert first.choice.features == ()
    refuted = PLANNER.learn(more, evolve(observed(choice(0, 0, 1)), choice=first.choice))
    assert untried_kernels(refuted) == ()
    assert kernel.name not in names(refuted)
    assert kernel.name in refuted.memory.feedback[-1]
    assert refuted.memory.beliefs == more.memory.beliefs


DRAFT = Kernel("from argus.language import *\n")
MENDED = Kernel("from argus.language import *  # mended\n", repairs=DRAFT.name)


def refused_draft() -> State[Memory]:
    """The first answer is one kernel, which is refuted."""
    state = with_kernels_as_options(with_response(start(), Reply((Proposal(DRAFT, 0.9),))))
    drafted = next(each for each in state.open() if each.text)
    return PLANNER.learn(state, Observation(drafted, "refuted", stage="invariants"))


def test_a_refused_kernel_is_repaired_before_it_counts() -> None:
    state = refused_draft()
    task = next_task(state, 4, 2)

    assert isinstance(task, Repair)
    assert (task.about, task.round, task.most) == (DRAFT.name, 1, 2)
    assert not isinstance(next_task(state, 4, 0), Repair)
    answered = Reply((Proposal(MENDED, 0.1),), ("wait first",), task="repair", about=DRAFT.name)
    repaired = with_kernels_as_options(with_response(state, answered))
    assert awaiting_repair(repaired, 2) == ()
    assert repaired.memory.lessons == ("wait first",)
    assert PLANNER.propose(repaired)[0].choice.repairs == DRAFT.name
    assert len(state.situation.counted) == 1
    assert repaired.situation.counted == ()


def test_a_kernel_is_repaired_at_most_so_many_times() -> None:
    answered = Reply((Proposal(MENDED, 0.1),), task="repair", about=DRAFT.name)
    state = with_kernels_as_options(with_response(refused_draft(), answered))
    mended = PLANNER.propose(state)[0].choice
    state = PLANNER.learn(state, Observation(mended, "refuted", stage="invariants"))
    second = next_task(state, 4, 2)

    assert isinstance(second, Repair)
    assert (second.about, second.round) == (MENDED.name, 2)
    assert not isinstance(next_task(state, 4, 1), Repair)
    assert [each.choice.name for each in state.situation.counted] == [MENDED.name]


def test_a_repair_without_an_answer_is_given_up() -> None:
    state = with_response(refused_draft(), evolve(AWAY, task="repair", about=DRAFT.name))
    later = PLANNER.learn(state, observed(choice(0, 0, 0)))

    assert awaiting_repair(state, 2) == ()
    assert next_task(state, 1, 2) is None
    assert next_task(later, 1, 2) == Plan()


def test_a_kernel_that_reached_a_later_stage_is_repaired_first() -> None:
    other = Kernel("from argus.language import *  # another\n")
    state = with_kernels_as_options(with_response(start(), Reply((Proposal(DRAFT, 0.9), Proposal(other, 0.8)))))
    first, second = (each for each in state.open() if each.text)
    state = PLANNER.learn(state, Observation(first, "wrong", stage="interpreter"))
    state = PLANNER.learn(state, Observation(second, "refuted", stage="invariants"))

    assert [each.choice.name for each in awaiting_repair(state, 1)] == [first.name, second.name]


def test_a_planned_kernel_is_asked_for_next() -> None:
    plan = Write("stage the tiles in shared memory", "I5")
    state = with_response(start(), Reply((Proposal(plan, 0.9, speedup=3.0), Proposal(Option("d100"), 0.8))))
    task = next_task(state, 4, 2)

    assert isinstance(task, Lower)
    assert task.plan == plan
    assert names(state)[0] == "d100"
    written = Kernel("from argus.language import *  # staged\n", plan=plan.name)
    answered = Reply((Proposal(written, 0.9),), task="lower", about=plan.name)
    state = with_kernels_as_options(with_response(state, answered))
    assert next_task(state, 4, 2) is None
    assert names(state)[:2] == [written.name, "d100"]


def test_proposals_are_ranked_by_confidence_and_expected_speedup() -> None:
    unlikely = Proposal(Option("d100"), 0.4, speedup=4.0)
    state = with_response(start(), Reply((Proposal(Option("d010"), 0.9, speedup=1.2), unlikely)))

    assert names(state)[:2] == ["d100", "d010"]
