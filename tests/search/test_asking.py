"""A search with the planner `llm`, a local endpoint and a journal."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from attrs import evolve

from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import Llm
from argus.policy.llm.record import from_data
from argus.policy.llm.reply import Reply, Trouble
from argus.policy.llm.settings import Settings
from argus.policy.planner import Choice, Observation, State
from argus.search import llm_client
from argus.search.designs.space import situation
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Event, Judged, Proposed, Started
from argus.search.journal import Journal
from argus.search.llm_loop import ModelSession, with_answer
from argus.search.loop import observation
from argus.search.problems.problem import problem_of
from argus.search.problems.texts import kernel_text
from argus.testing.messages import Answer, Endpoint, call, failure
from argus.testing.messages import Asked as Request
from tests.policy.llm.searches import proposal

PROBLEM = problem_of("gemm:4096x4096x4096:bf16", "sm_90a")
NAMES = ("cooperative", "pingpong", "clustered", "split_4", "split_8", "columns_128")
PLANNER = Llm()
SETTINGS = Settings(key="any", every=2, attempts=1, rounds=0)


def script(asked: Request) -> Answer:
    """A scripted model that proposes the last option shown."""
    shown = re.findall(r'"name": "(\w+)", "techniques": ', asked.body["messages"][0]["content"][1]["text"])
    return call({"proposals": [proposal(0.9, option=shown[-1])], "lessons": [f"{len(shown)} were open"]})


def judge(name: str) -> Judgement:
    if name.startswith("split"):
        found = {"code": "I5", "message": "read too early", "thread": 7}
        return Judgement(name, "refuted", "invariants", "I5: read too early", counterexample=found)
    return Judgement(name, "timed", "timing", microseconds=200.0 + len(name))


@contextmanager
def asking(endpoint: Endpoint) -> Generator[ModelSession]:
    with llm_client.connect(evolve(SETTINGS, base_url=endpoint.url), {}, sleep=lambda _: None) as client:
        yield ModelSession(client, PLANNER, partial(kernel_text, PROBLEM))


def went(beside: ModelSession, before: list[Event]) -> tuple[list[Event], State[Memory]]:
    """Run to the end from these events; returns all events."""
    state = PLANNER.start(situation(PROBLEM, NAMES), 3)
    choices = {each.name: each for each in state.situation.options}
    events: list[Event] = []

    def happened(event: Event) -> None:
        nonlocal state
        events.append(event)
        beside.observe(event)
        match event:
            case Asked():
                state = with_answer(state, event)
            case Proposed(name):
                state = state.with_pending(name)
            case Judged(judgement):
                state = PLANNER.learn(state, observation(choices[judgement.name], judgement))
            case _:
                pass

    for event in before:
        happened(event)
    if events and isinstance(events[-1], Proposed):
        happened(Judged(judge(events[-1].name)))
    while state.open():
        if beside.should_ask(state):
            happened(beside.ask(state))
        first = PLANNER.propose(state)[0]
        happened(Proposed(first.choice.name, (), first.utility, PLANNER.name, first.why))
        happened(Judged(judge(first.choice.name)))
    return events, state


@pytest.mark.nightly
def test_a_run_cut_off_anywhere_resumes_identically(tmp_path: Path) -> None:
    with Endpoint(script) as endpoint, asking(endpoint) as beside:
        whole, last = went(beside, [])
        questions = len(endpoint.asked)
    assert questions == sum(isinstance(each, Asked) for each in whole) > 2

    first = Started(str(PROBLEM), "sm_90a", "llm", 3, 1.0, "tensor", len(NAMES))
    with Journal(tmp_path / "runs.db") as journal:
        run = journal.begin(first)
        for each in whole:
            journal.append(run, each)
        recorded = list(journal.events(run))[1:]
    for cut in range(len(whole) + 1):
        with Endpoint(script) as endpoint, asking(endpoint) as beside:
            again, state = went(beside, recorded[:cut])
            assert again == whole
            assert state == last
            assert len(endpoint.asked) == sum(isinstance(each, Asked) for each in whole[cut:])


@pytest.mark.share(3)
def test_the_model_sees_the_best_design_and_why_others_were_stopped() -> None:
    with Endpoint(script) as endpoint, asking(endpoint) as beside:
        events, _ = went(beside, [])
        last = endpoint.asked[-1].body["messages"][0]["content"][1]["text"]
    proposed = [each.name for each in events if isinstance(each, Proposed)]

    assert '"thread": 7' in last
    assert "I5: read too early" in last
    assert re.search(r"# \w+: this schedule with cfg = Hopper\(bm=\d+, ", last)
    assert "for k in loop(depth):" in last
    assert "role load" not in last
    assert sorted(proposed) == sorted(NAMES)


WRITTEN = Choice("text-690c00000000", (), (), text="from argus.language import *  # the model wrote this one")


def test_the_model_is_asked_again_when_its_own_kernel_is_the_best() -> None:
    before = PLANNER.start(situation(PROBLEM, NAMES), 3)
    tried = before.situation.with_observation(Observation(WRITTEN, "timed", 100.0))
    with Endpoint(script) as endpoint, asking(endpoint) as beside:
        event = beside.ask(evolve(before, situation=tried))
        (request,) = endpoint.asked

    assert isinstance(from_data(event.reply), Reply)
    assert (
        f"## The best kernel\n{WRITTEN.name}: passed, 100 us\n```python\n{WRITTEN.text}\n```"
        in request.body["messages"][0]["content"][1]["text"]
    )


def test_a_proposal_of_knobs_leads_to_a_design_that_has_them() -> None:
    knobs = {"kind": "Hopper", "stages": 4}
    state = PLANNER.start(situation(PROBLEM), 3)
    with Endpoint([call({"proposals": [proposal(0.9, knobs=knobs)]})]) as endpoint, asking(endpoint) as beside:
        event = beside.ask(state)
    first = PLANNER.propose(with_answer(state, event))[0]

    assert knobs.items() <= dict(first.choice.knobs).items()
    assert first.why.startswith("model, confidence 0.90")


def test_a_run_continues_without_an_endpoint() -> None:
    with Endpoint(lambda _: failure(401, "no such key")) as endpoint, asking(endpoint) as beside:
        events, state = went(beside, [])
        questions = len(endpoint.asked)
    asked = [each for each in events if isinstance(each, Asked)]
    found = from_data(json.loads(json.dumps(asked[0].reply)))

    assert isinstance(found, Trouble)
    assert (len(asked), questions) == (1, 1)
    assert len(state.situation.tried) == len(NAMES)
    assert all("E921" in each.why for each in events if isinstance(each, Proposed))


def test_costs_are_in_the_events() -> None:
    with Endpoint(script) as endpoint, asking(endpoint) as beside:
        events, state = went(beside, [])
    asked = [each for each in events if isinstance(each, Asked)]

    assert all(isinstance(from_data(each.reply), Reply) for each in asked)
    assert sum(each.tokens for each in asked) == state.memory.spent.tokens == 120 * len(asked)
    assert abs(sum(each.cost for each in asked) - state.memory.spent.dollars) < 1e-12
    assert {each.model for each in asked} == {SETTINGS.model}
