"""The client's connection: contents of its requests, key and address, and a missing package `anthropic`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.policy.llm.settings import Settings
from argus.search import llm_client
from argus.testing.messages import Endpoint
from tests.policy.llm.scripted_client import GOOD, KEY, QUICK, ask_endpoint, ask_script, expect_reply
from tests.policy.llm.searches import PLANNER, observed, start


def test_the_request_forces_the_tool_and_marks_what_is_to_be_cached() -> None:
    _, (body,) = ask_script(GOOD, settings=evolve(QUICK, model="claude-sonnet-4-6"))

    assert body["model"] == "claude-sonnet-4-6"
    assert body["tool_choice"] == {"type": "tool", "name": "propose", "disable_parallel_tool_use": True}
    assert [tool["name"] for tool in body["tools"]] == ["propose"]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    problem, now = body["messages"][0]["content"]
    assert problem["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in now
    assert "output_config" not in body


def test_a_model_that_refuses_a_forced_tool_is_asked_freely() -> None:
    _, (body,) = ask_script(GOOD, settings=evolve(QUICK, model="claude-sonnet-5-5", effort="low"))

    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert body["output_config"] == {"effort": "low"}


def test_the_prefix_stays_equal_while_the_search_goes_on() -> None:
    state = start()
    with Endpoint([GOOD, GOOD]) as endpoint:
        ask_endpoint(endpoint, state=state)
        for each in state.situation.options[:3]:
            state = PLANNER.learn(state, observed(each))
        ask_endpoint(endpoint, state=state)
        first, second = (each.body for each in endpoint.asked)

    assert first["tools"] == second["tools"]
    assert first["system"] == second["system"]
    assert first["messages"][0]["content"][0] == second["messages"][0]["content"][0]
    assert first["messages"][0]["content"][1] != second["messages"][0]["content"][1]


def test_the_key_goes_into_a_header_and_nowhere_else() -> None:
    with Endpoint([GOOD]) as endpoint, llm_client.connect(evolve(QUICK, base_url=endpoint.url), {}) as client:
        llm_client.ask(client, PLANNER, start())
        (found,) = endpoint.asked

    assert found.headers["authorization"] == f"Bearer {KEY}"
    assert found.path == "/v1/messages"
    assert KEY not in json.dumps(found.body)
    assert KEY not in repr(client)


def test_headers_may_be_added_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-api-key: elsewhere\nx-team: kernels")
    with Endpoint([GOOD]) as endpoint:
        expect_reply(ask_endpoint(endpoint))
        headers = endpoint.asked[0].headers

    assert (headers["x-api-key"], headers["x-team"]) == ("elsewhere", "kernels")


def test_the_address_and_the_key_may_come_from_the_environment() -> None:
    with Endpoint([GOOD]) as endpoint:
        environment = {"ANTHROPIC_API_KEY": "from-the-environment", "ANTHROPIC_BASE_URL": endpoint.url}
        with llm_client.connect(Settings(), environment) as client:
            expect_reply(llm_client.ask(client, PLANNER, start()))

        assert endpoint.asked[0].headers["authorization"] == "Bearer from-the-environment"


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({}, "E921"),
        ({"ANTHROPIC_API_KEY": ""}, "E921"),
        ({"ANTHROPIC_API_KEY": "schlüssel"}, "E921"),
        ({"ANTHROPIC_API_KEY": "two\nlines"}, "E921"),
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "nowhere"}, "E927"),
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://[::1"}, "E927"),
    ],
)
def test_an_impossible_connection_is_reported(environment: Mapping[str, str], code: str) -> None:
    with pytest.raises(ArgusError) as raised:
        llm_client.connect(Settings(), environment)

    assert raised.value.diagnostic.code == code
    assert raised.value.diagnostic.help


def test_argus_is_imported_without_the_package() -> None:
    program = """
import sys
for name in ("anthropic", "httpx2"):
    sys.modules[name] = None
import argus, argus.search.llm_client, argus.policy.llm.planner
from argus.core.diagnostic import ArgusError
try:
    argus.search.llm_client.connect(argus.search.llm_client.Settings(key="k"))
except ArgusError as problem:
    print(problem.diagnostic.code)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = (sys.executable, "-c", program)
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 reason: ours

    assert (found.stdout, found.stderr) == ("E920\n", "")


def test_without_the_package_the_repair_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(llm_client, "import_module", absent)
    with pytest.raises(ArgusError) as raised:
        llm_client.connect(QUICK)

    assert raised.value.diagnostic.code == "E920"
    assert "pip install 'argus[llm]'" in raised.value.diagnostic.help
