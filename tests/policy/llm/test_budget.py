from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus.policy.llm.budget import (
    MODELS,
    NOTHING,
    Limits,
    Price,
    Spent,
    Usage,
    cost_of,
    known_model,
    refusal,
    worst_case,
)

PRICE = Price(2.0, 10.0, 2.5, 0.2, "a test")
COUNTS = st.integers(0, 10**6)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_call_costs_its_tokens_at_their_prices(read: int, written: int, new: int, output: int) -> None:
    found = cost_of(Usage(new, output, written, read), PRICE)

    assert found.dollars == pytest.approx((2 * new + 10 * output + 2.5 * written + 0.2 * read) / 1e6)
    assert found.tokens == new + output + written + read
    assert found.unpriced == 0


@given(st.integers(0, 10**5), st.integers(1, 10**4), st.data())
def test_no_call_costs_more_than_was_expected_of_it(size: int, answer: int, data: st.DataObject) -> None:
    tokens = data.draw(st.integers(0, size + 2000))
    written = data.draw(st.integers(0, tokens))
    read = data.draw(st.integers(0, tokens - written))
    output = data.draw(st.integers(0, answer))
    cost = cost_of(Usage(tokens - written - read, output, written, read), PRICE)
    most = worst_case(size, answer, PRICE)

    assert cost.dollars <= most.dollars * (1 + 1e-12)
    assert cost.tokens <= most.tokens


@given(st.lists(st.builds(Spent, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS), max_size=6), COUNTS)
def test_allowed_calls_stay_within_the_limit(calls: list[Spent], limit: int) -> None:
    spent = NOTHING
    for each in calls:
        if refusal(spent, each, Limits(None, limit), None, "m") is None:
            spent += each

    assert spent.tokens <= limit


def test_a_refusal_states_the_remaining_budget() -> None:
    found = refusal(Spent(dollars=4.9), Spent(dollars=0.2), Limits(5.0), PRICE, "m")

    assert found is not None
    assert found.code == "E924"
    assert "$0.2000" in found.message
    assert "$4.9000 of $5.00" in found.message
    assert refusal(Spent(dollars=4.9), Spent(dollars=0.1), Limits(5.1), PRICE, "m") is None


def test_a_dated_name_has_the_price_of_the_model() -> None:
    assert known_model("claude-haiku-4-5-20251001") is MODELS["claude-haiku-4-5"]
    assert known_model("claude-haiku-4") is None


def test_prices_have_a_source_and_a_cache_pays_off() -> None:
    for model in MODELS.values():
        assert model.price.source.startswith("https://")
        assert model.price.read < model.price.input < model.price.written < model.price.output
