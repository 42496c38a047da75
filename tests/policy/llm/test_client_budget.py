"""Cost of questions: tokens and dollars are summed, and limits stop the client before they are exceeded."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.policy.llm.budget import Limits, Price, worst_case
from argus.policy.llm.planner import with_response
from argus.policy.llm.prompt import request, size
from argus.policy.llm.record import Response
from argus.policy.llm.reply import Reply
from argus.policy.llm.roles import Question
from argus.policy.llm.tasks import Plan
from argus.search import llm_client
from argus.testing.messages import Endpoint, call
from tests.policy.llm.scripted_client import GOOD, QUICK, ask_endpoint, ask_script, expect_reply, expect_trouble
from tests.policy.llm.searches import PLANNER, proposal, start


def test_tokens_are_summed_and_priced() -> None:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 200,
        "cache_creation_input_tokens": 5000,
        "cache_read_input_tokens": 7000,
    }
    data = {"proposals": [proposal(option="d100")]}
    state = start()
    with Endpoint([call(data, usage=usage)] * 2) as endpoint:
        settings = evolve(QUICK, price=Price(3.0, 15.0, 3.75, 0.3, "a test"))
        for _ in range(2):
            state = with_response(state, ask_endpoint(endpoint, settings, state))

    spent = state.memory.spent
    assert (spent.calls, spent.input, spent.output, spent.written, spent.read) == (2, 2000, 400, 10_000, 14_000)
    assert spent.dollars == pytest.approx((2000 * 3 + 400 * 15 + 10_000 * 3.75 + 14_000 * 0.3) / 1e6)
    assert spent.supposed == 0
    assert "from the cache" in str(spent)


@pytest.mark.parametrize(
    "usage", [None, {}, {"input_tokens": -1, "output_tokens": 2}, {"input_tokens": "9", "output_tokens": 2}, [1]]
)
def test_an_answer_without_usage_is_charged_at_worst_case(usage: object) -> None:
    found, (body,) = ask_script(call({"proposals": [proposal(option="d100")]}, usage=usage))

    assert expect_reply(found).spent == worst_case(size(body), QUICK.max_tokens, QUICK.pricing)


def test_the_budget_ends_a_run_before_it_is_exceeded() -> None:
    settings = evolve(QUICK, limits=Limits(dollars=None, tokens=60_000), max_tokens=1000)
    usage = {"input_tokens": 9000, "output_tokens": 1000}
    state = start()
    with Endpoint(lambda _: call({"proposals": [proposal(option="d100")]}, usage=usage)) as endpoint:
        found: Response = expect_reply(ask_endpoint(endpoint, settings, state))
        while isinstance(found, Reply):
            state = with_response(state, found)
            found = ask_endpoint(endpoint, settings, state)
        calls = len(endpoint.asked)

    problem = expect_trouble(found, "E924")
    assert problem.lasting
    assert f"{10_000 * calls:,} of 60,000 are spent" in problem.message
    assert 1 < calls < 6
    assert state.memory.spent.tokens <= 60_000


def test_the_budget_may_end_in_the_middle_of_a_question() -> None:
    question = Question(Plan(), start(), PLANNER.bandit_ranking(start()))
    fields = request(QUICK, llm_client.ROLES["plan"], question)
    once = worst_case(size(fields), QUICK.max_tokens, QUICK.pricing)
    settings = evolve(QUICK, limits=Limits(dollars=once.dollars))
    found, bodies = ask_script(call({"proposals": [proposal(option="d999")]}), GOOD, settings=settings)

    expect_trouble(found, "E924")
    assert "`d999` is not an open option" in " ".join(found.faults)
    assert len(bodies) == 1
    assert found.spent.input == 100


def test_a_limit_in_dollars_needs_a_price() -> None:
    found, bodies = ask_script(GOOD, settings=evolve(QUICK, model="my-model"))

    assert "my-model" in expect_trouble(found, "E925").message
    assert bodies == []


def test_without_a_limit_in_dollars_no_price_is_needed() -> None:
    found, _ = ask_script(GOOD, settings=evolve(QUICK, model="my-model", limits=Limits(None, 10**6)))

    assert expect_reply(found).spent.unpriced == 120
    assert found.spent.dollars == 0
    assert "120 of them of no known price" in str(found.spent)
