from random import Random

import pytest

from argus.policy.conditions import (
    MOST_RULES,
    Case,
    DecisionList,
    Rule,
    Validation,
    learn_condition,
    learn_list,
    validate_condition,
)


def case(m: float, n: float, ratio: float) -> Case:
    return Case(f"{m:.0f}x{n:.0f}", {"M": m, "N": n}, ratio)


FEW_ROWS = [case(2.0**i, 2.0 ** (i * 7 % 5), 1.2 if i < 6 else 0.9) for i in range(12)]


def test_a_threshold_is_found_and_holds_at_shapes_left_out() -> None:
    found = learn_condition(FEW_ROWS)

    assert found.learnt.rules[0].feature == "M"
    assert 32 < found.learnt.rules[0].limit < 64
    assert len(found.learnt.rules) == 1
    assert found.held_out >= 10 > found.constant == 6
    assert found.counter_examples == ()


def test_what_does_not_generalise_is_no_condition() -> None:
    random = Random(3)  # noqa: S311 reason: sizes without a meaning
    cases = [case(random.uniform(1, 9), random.uniform(1, 9), 0.9 if i in {2, 7} else 1.1) for i in range(12)]
    found = learn_condition(cases)

    assert learn_list(cases).rules
    assert found.held_out <= found.constant
    assert found.learnt == DecisionList((), otherwise=True)
    assert found.counter_examples == (cases[2], cases[7])
    assert str(found.learnt) == "always gains"


def test_the_shape_left_out_is_not_seen() -> None:
    """A list that had seen each shape would be right at all of them: a rule explains an exception at the end."""
    exception = [case(2.0**i, 1.0, 0.5 if i == 8 else 1.5) for i in range(9)]

    assert learn_list(exception).counter_examples(exception) == ()
    assert learn_condition(exception).held_out < len(exception)


def test_rules_are_asked_in_order() -> None:
    known = DecisionList((Rule("M", True, 8.0, False), Rule("N", False, 4.0, True)), otherwise=False)

    assert [known.gains(each) for each in (case(4, 8, 1), case(8, 4, 1), case(8, 2, 1))] == [False, True, False]
    assert str(known) == "M < 8: loses; N >= 4: gains; else loses"
    assert len(known.rules) == MOST_RULES


@pytest.mark.parametrize("ratio", [0.8, 1.3])
def test_equal_answers_need_no_rule(ratio: float) -> None:
    found = learn_condition([case(2.0**i, 1.0, ratio) for i in range(6)])

    assert found.learnt == DecisionList((), otherwise=ratio > 1)
    assert (found.held_out, found.constant) == (6, 6)


def test_a_condition_is_confirmed_at_shapes_that_it_was_not_chosen_by() -> None:
    found = validate_condition(FEW_ROWS)

    assert found.confirmed
    assert found.right >= 10
    assert found.constant <= 6


def test_a_condition_that_its_own_counts_have_chosen_may_not_be_confirmed() -> None:
    """Three shapes of twelve lose at the low end, and two elsewhere."""
    loses = {0, 1, 2, 6, 11}
    cases = [case(i + 1.0, 1.0, 0.9 if i in loses else 1.2) for i in range(12)]
    found = learn_condition(cases)

    assert found.learnt.rules
    assert found.held_out > found.constant
    assert validate_condition(cases) == Validation(right=6, constant=7)
