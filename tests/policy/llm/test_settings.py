from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from argus.core.diagnostic import ArgusError
from argus.policy.llm.budget import MODELS, Limits, Price
from argus.policy.llm.settings import DEFAULT_MODEL, Settings


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_tokens": 0}, "`max_tokens` is 0"),
        ({"attempts": 0}, "`attempts` is 0"),
        ({"repairs": -1}, "`repairs` is -1"),
        ({"every": 0}, "`every` is 0"),
        ({"spread": nan}, "`spread` is nan"),
        ({"timeout": 0.0}, "`timeout` is 0.0"),
        ({"patience": inf}, "`patience` is inf"),
        ({"limits": Limits(dollars=-1.0)}, "`limits.dollars` is -1.0"),
        ({"limits": Limits(None, -1)}, "`limits.tokens` is -1"),
        ({"price": Price(1.0, nan, 1.0, 1.0, "")}, "`price.output` is nan"),
        ({"model": " "}, "`model` is empty"),
        ({"base_url": "api.example.org"}, "expected one like"),
        ({"base_url": "ftp://host"}, "expected one like"),
        ({"base_url": "http://host:port"}, "not a URL"),
        ({"base_url": "http://host:99999"}, "not a URL"),
        ({"base_url": "http://"}, "expected one like"),
        ({"base_url": "https://me:secret@host"}, "has a user"),
        ({"base_url": "https://host/?key=1"}, "a query"),
        ({"base_url": "https://host/a b"}, "a character"),
        ({"base_url": "https://höst"}, "a character"),
    ],
)
def test_an_invalid_setting_is_reported(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgusError) as raised:
        Settings(**wrong)

    found = raised.value.diagnostic
    assert found.code == "E927"
    assert said in found.message
    assert "secret" not in found.message


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(ArgusError) as raised:
        Settings(max_tokens=0, attempts=0)

    assert "`attempts` is 0" in raised.value.diagnostic.notes[0]


def test_a_key_is_not_shown() -> None:
    assert "sk-1" not in repr(Settings(key="sk-1"))


def test_the_price_of_a_setting_goes_before_the_table() -> None:
    price = Price(1.0, 2.0, 3.0, 4.0, "mine")

    assert Settings().pricing == MODELS[DEFAULT_MODEL].price
    assert Settings(price=price).pricing is price
    assert Settings(model="unheard-of").pricing is None


@pytest.mark.parametrize(
    ("model", "choice", "forced"),
    [
        ("claude-sonnet-5-5", "by model", False),
        ("claude-sonnet-5-5", "forced", True),
        ("claude-sonnet-4-6", "by model", True),
        ("claude-sonnet-4-6", "auto", False),
        ("unheard-of", "by model", True),
    ],
)
def test_the_tool_is_forced_where_the_model_takes_it(model: str, choice: Any, forced: bool) -> None:  # noqa: ANN401 reason: a literal
    assert Settings(model=model, tool_choice=choice).forced is forced
