"""The model client connected to a scripted local endpoint: ask one question, and check the kind of response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from argus.policy.llm.memory import Memory
from argus.policy.llm.record import Response
from argus.policy.llm.reply import Reply, Trouble
from argus.policy.llm.settings import Settings
from argus.policy.llm.view import View
from argus.policy.planner import State
from argus.search import llm_client
from argus.testing.messages import Answer, Endpoint, call
from tests.policy.llm.searches import PLANNER, proposal, start

KEY = "sk-secret-of-a-test"
QUICK = Settings(key=KEY, timeout=5.0, patience=30.0)
"""Settings that end a test soon if the client does not."""
GOOD = call({"proposals": [proposal(0.8, "wide tiles", option="d100")], "lessons": ["wide is good"]})
"""An answer with one usable proposal."""


class FakeSleep:
    """A fake sleep that records its durations."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def ask_endpoint(
    endpoint: Endpoint,
    settings: Settings = QUICK,
    state: State[Memory] | None = None,
    sleep: Callable[[float], None] | None = None,
    view: View | None = None,
) -> Response:
    with llm_client.connect(evolve(settings, base_url=endpoint.url), {}, sleep=sleep or FakeSleep()) as client:
        return llm_client.ask(client, PLANNER, state or start(), view or View())


def ask_script(*script: Answer, settings: Settings = QUICK) -> tuple[Response, list[dict[str, Any]]]:
    """The response to a scripted endpoint, and the bodies of its requests."""
    with Endpoint(script) as endpoint:
        found = ask_endpoint(endpoint, settings)
        return found, [each.body for each in endpoint.asked]


def expect_reply(found: Response) -> Reply:
    assert isinstance(found, Reply), found
    return found


def expect_trouble(found: Response, code: str) -> Trouble:
    assert isinstance(found, Trouble), found
    assert found.code == code
    return found
