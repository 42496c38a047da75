"""Real requests, as a person can read them: a repair, and the fifth request of a search after four answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from argus.policy.llm.settings import Settings as Model
from argus.search.loop import Limits
from argus.search.run import Settings, optimize
from argus.testing.messages import Answer, Endpoint, call
from argus.testing.messages import Asked as Request
from tests.conftest import Golden
from tests.search.evaluation.test_gate import TEXT

PROBLEM = "gemm:512x512x512:bf16"
AHEAD = TEXT.replace("(n, k))", "(n, k + 1))", 1)
PLAN = {"write": "a tile of one wave, without shared memory", "invariant": "I1", "speedup": 1.5}
WRITTEN = {"kernel": AHEAD, "confidence": 0.6, "reason": "one step ahead"}
MENDED = {"kernel": TEXT, "confidence": 0.9, "reason": "B began a step late", "lesson": "A and B begin alike"}
ANSWERS = (
    call({"proposals": [{**PLAN, "confidence": 0.8, "reason": "few blocks"}], "lessons": ["one wave is enough"]}),
    call(WRITTEN, "write_kernel"),
    call(MENDED, "write_kernel"),
    call({"proposals": [{"option": "cdna3", "confidence": 0.7, "reason": "two buffers", "context": "latency"}]}),
)
MODEL = Model(key="any", every=1, grace=120.0, rounds=1, attempts=1, repairs=0)


def text_of(request: Request) -> str:
    """The parts of a request, in the order in which they are sent."""
    parts = (*request.body["system"], *request.body["messages"][0]["content"])
    titles = ("system", "problem", "now")
    return "\n\n".join(f"[{title}]\n{each['text']}" for title, each in zip(titles, parts, strict=True)) + "\n"


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    answers = iter(ANSWERS)

    def script(_: Request) -> Answer:
        return next(answers, call({"proposals": []}))

    journal = tmp_path_factory.mktemp("run") / "runs.db"
    with Endpoint(script) as endpoint:
        model = evolve(MODEL, base_url=endpoint.url)
        found = optimize(PROBLEM, "gfx942", Settings("llm", Limits(trials=3), journal=journal, model=model))
        sent = endpoint.asked

    assert [each.outcome for each in found.judged][:3] == ["refuted", "timed", "timed"]
    shown = [text_of(each) for each in sent]
    assert not any(folder in text for text in shown for folder in (str(Path.home()), str(Path(__file__).parents[2])))
    return shown


@pytest.mark.nightly
def test_a_prompt_after_four_answers(requests: list[str], golden: Golden) -> None:
    golden(requests[4])


@pytest.mark.nightly
def test_a_repair(requests: list[str], golden: Golden) -> None:
    golden(requests[2])
