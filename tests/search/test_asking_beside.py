"""A question to a model runs beside the evaluation of candidates; without a clock, by events."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event as Flag
from typing import Any

import pytest
from attrs import define, evolve, field

from argus.policy.llm.planner import Llm
from argus.policy.llm.record import from_data
from argus.policy.llm.reply import Kernel, Reply, Trouble
from argus.policy.llm.settings import Settings
from argus.search import llm_client
from argus.search.evaluation.evaluators import InProcess
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Ended, Event, Judged, Proposed, Update
from argus.search.llm_loop import ModelSession
from argus.search.loop import Limits, Search, replay_events
from argus.testing.messages import Answer, Endpoint, call
from argus.testing.messages import Asked as Request
from tests.policy.llm.searches import proposal
from tests.search.test_search import SITUATION, judge

PLANNER = Llm()
BAD, GOOD = "from argus.language import *  # bad\n", "from argus.language import *  # good\n"
PATIENT = Settings(key="any", attempts=1, every=100, grace=60.0, rounds=1)


def judged(name: str, text: str = "") -> Judgement:
    """Texts that say so are refuted."""
    if not text:
        return judge(name)
    if "bad" in text:
        return Judgement(name, "refuted", "invariants", "I5: read too early")
    return Judgement(name, "timed", "timing", microseconds=101.0)


@define
class Judging(InProcess):
    """An evaluator that tells after each candidate. after: how many of them."""

    judge: Any = judged
    after: int = 3
    told: Flag = field(factory=Flag)
    count: int = 0

    def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
        found = super().result(name, future, left)
        self.count += 1
        if self.count >= self.after:
            self.told.set()
        return found


@contextmanager
def searching(
    endpoint: Endpoint, evaluator: InProcess, trials: int, settings: Settings
) -> Generator[tuple[Search, list[Event]]]:
    events: list[Event] = []
    with llm_client.connect(evolve(settings, base_url=endpoint.url), {}, sleep=lambda _: None) as client:
        asking = ModelSession(client, PLANNER, lambda choice: choice.text or choice.name)
        state = replay_events((), PLANNER, SITUATION, 5).state
        yield Search(PLANNER, evaluator, Limits(trials=trials), state, events.append, asking), events


def names_of(events: Sequence[Update]) -> list[str]:
    return [each.judgement.name for each in events if isinstance(each, Judged)]


def test_workers_do_not_wait_for_a_model() -> None:
    """The endpoint answers only after three candidates have been judged; a search that waits for it never ends."""
    beside: list[Search] = []

    def judge_beside(name: str, text: str = "") -> Judgement:
        question = beside[0].question
        if question is not None and evaluator.count >= evaluator.after:
            assert question.arrived.wait(60)
        return judged(name, text)

    evaluator = Judging(judge=judge_beside)

    def script(_: Request) -> Answer:
        assert evaluator.told.wait(60)
        return call({"proposals": [proposal(0.9, option="32")]})

    with Endpoint(script) as endpoint, searching(endpoint, evaluator, 12, Settings(key="any")) as (search, events):
        beside.append(search)
        list(search.go())

    answered = next(place for place, each in enumerate(events) if isinstance(each, Asked))
    assert len(names_of(events[:answered])) >= 3
    proposed = [each for each in events if isinstance(each, Proposed)]
    assert proposed[0].why == "bandit: the model has not been asked"
    assert any(each.name == "32" for each in proposed)
    assert len(names_of(events)) == 12


def test_an_endpoint_that_never_answers_costs_its_bound_and_no_candidate() -> None:
    came, never = Flag(), Flag()

    def script(_: Request) -> Answer:
        came.set()
        never.wait(60)
        return call({"proposals": []})

    def after_it_came(name: str, text: str = "") -> Judgement:
        assert came.wait(60)
        return judged(name, text)

    evaluator = Judging(judge=after_it_came)
    with Endpoint(script) as endpoint, searching(endpoint, evaluator, 8, Settings(key="any")) as (search, events):
        list(search.go())
        never.set()

    assert len(names_of(events)) == 8
    *_, asked, ended = events
    assert ended == Ended("trials spent")
    assert isinstance(asked, Asked)
    trouble = from_data(asked.reply)
    assert isinstance(trouble, Trouble)
    assert trouble.code == "E923"
    assert trouble.spent.supposed == asked.tokens > 16_000
    assert search.state.memory.spent == trouble.spent
    assert asked.cost > 0


def test_an_interrupt_during_a_question_ends_the_search_and_its_cost_is_recorded() -> None:
    came, never = Flag(), Flag()

    class Broken(Judging):
        def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
            del name, future, left
            assert came.wait(60)
            raise KeyboardInterrupt

    def script(_: Request) -> Answer:
        came.set()
        never.wait(60)
        return call({"proposals": []})

    with Endpoint(script) as endpoint, searching(endpoint, Broken(), 8, Settings(key="any")) as (search, events):
        list(search.go())
        never.set()

    *_, asked, ended = events
    assert ended == Ended("interrupted")
    assert isinstance(asked, Asked)
    assert asked.tokens > 0


def drafts(request: Request) -> Answer:
    """An author whose first kernel is bad, and who mends it."""
    tool = request.body["tools"][0]["name"]
    if tool == "write_kernel":
        return call({"kernel": GOOD, "reason": "waits first", "confidence": 0.9, "lesson": "wait first"}, tool)
    return call({"proposals": [proposal(0.9, kernel=BAD), proposal(0.5, option="32")]})


def test_a_refused_kernel_is_mended_before_it_counts() -> None:
    with Endpoint(drafts) as endpoint, searching(endpoint, Judging(), 2, PATIENT) as (search, events):
        list(search.go())
        sent = [each.body for each in endpoint.asked]

    bad, good = Kernel(BAD).name, Kernel(GOOD).name
    assert names_of(events) == [bad, good, "32"]
    assert [each.choice.name for each in search.state.situation.counted] == [good, "32"]
    assert [each["tools"][0]["name"] for each in sent] == ["propose", "write_kernel"]
    repair = sent[1]["messages"][0]["content"][1]["text"]
    assert "round 1 of 1" in repair
    assert "   1 | from argus.language import *  # bad" in repair
    assert search.state.memory.lessons == ("wait first",)


def test_a_run_with_repairs_resumes_identically_from_anywhere() -> None:
    with Endpoint(drafts) as endpoint, searching(endpoint, Judging(), 2, PATIENT) as (search, events):
        list(search.go())
    for cut in range(len(events)):
        again = list(events[:cut])
        with Endpoint(drafts) as endpoint, searching(endpoint, Judging(), 2, PATIENT) as (search, _):
            before = replay_events(again, PLANNER, SITUATION, 5)
            assert search.asking is not None
            for each in again:
                search.asking.observe(each)
            search.state, search.record = before.state, again.append
            list(search.go(before.under_way))
        assert again == events or again[:-1] == events


@pytest.mark.parametrize("kernels", [2, 3])
def test_a_model_whose_kernels_succeed_is_asked_on(kernels: int) -> None:
    """Once a run ended as soon as the model's own kernel was the best: E903, and E928 at a proposal of knobs."""
    texts = [f"from argus.language import *  # {number}\n" for number in range(kernels)]
    left = iter(texts)

    def script(_: Request) -> Answer:
        text = next(left, None)
        if text is None:
            return call({"proposals": [proposal(0.9, knobs={"wide": 3, "deep": 2})]})
        return call({"proposals": [proposal(0.9, kernel=text)]})

    def faster(name: str, text: str = "") -> Judgement:
        if not text:
            return judge(name)
        return Judgement(name, "timed", "timing", microseconds=120.0 - texts.index(text))

    once = evolve(PATIENT, every=1)
    with (
        Endpoint(script) as endpoint,
        searching(endpoint, Judging(judge=faster), kernels + 1, once) as (search, events),
    ):
        list(search.go())
        sent = [each.body["messages"][0]["content"][1]["text"] for each in endpoint.asked]

    assert names_of(events) == [*(Kernel(each).name for each in texts), "32"]
    assert search.state.situation.best is not None
    assert search.state.situation.best.choice.text == texts[-1]
    assert all(isinstance(from_data(each.reply), Reply) for each in events if isinstance(each, Asked))
    assert f"## The best kernel\n{Kernel(texts[0]).name}: passed, 120 us\n```python\n{texts[0]}" in sent[1]
