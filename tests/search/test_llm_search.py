"""A search with the planner `llm` and a scripted local endpoint."""

import time
from pathlib import Path

import pytest
from attrs import evolve

from argus.cli.main import main
from argus.policy.llm.settings import Settings as Model
from argus.search import run
from argus.search.events import Asked, Asks, Judged, Proposed, Update
from argus.search.journal import Journal
from argus.search.loop import Limits
from argus.search.run import Settings, optimize
from argus.testing.messages import Endpoint, call, failure
from tests.search.evaluation.test_gate import TEXT

PROBLEM = "gemm:512x512x512:bf16"


def settings(tmp_path: Path, url: str, trials: int, resume: str = "", rounds: int = 0) -> Settings:
    return Settings(
        "llm",
        Limits(trials=trials),
        resume=resume,
        journal=tmp_path / "runs.db",
        model=Model(base_url=url, key="any", every=8, grace=60.0, rounds=rounds),
    )


@pytest.mark.share(16, among="searches of a model")
def test_a_model_chooses_designs_and_writes_kernels_that_the_gate_judges(tmp_path: Path) -> None:
    wrong = TEXT.replace("(n, k))", "(n, k + 1))", 1)
    proposals = [
        {"option": "cdna3", "confidence": 0.9, "reason": "two buffers hide the latency of loads"},
        {"kernel": TEXT, "invariants": ["I1", "I3"], "confidence": 0.8, "reason": "a small tile"},
        {"kernel": wrong, "invariants": ["I1"], "confidence": 0.7, "reason": "a step ahead"},
    ]
    with Endpoint([call({"proposals": proposals})] * 4) as endpoint:
        found = optimize(PROBLEM, "gfx942", settings(tmp_path, endpoint.url, 3))

    outcomes = {each.name: each.outcome for each in found.judged}
    texts = [name for name in outcomes if name.startswith("text-")]
    assert outcomes["cdna3"] == "timed"
    assert sorted(outcomes[name] for name in texts) == ["refuted", "timed"]
    assert found.best is not None
    assert found.best.name == "cdna3"
    with Journal(tmp_path / "runs.db") as journal:
        events = journal.events(found.run)
    asked = [each for each in events if isinstance(each, Asked)]
    assert asked[0].tokens == 120
    assert asked[0].cost > 0
    first = next(each for each in events if isinstance(each, Proposed))
    assert "two buffers hide" in first.why


@pytest.mark.nightly
def test_a_resumed_search_asks_nothing_again(tmp_path: Path) -> None:
    proposals = [
        {"option": "cdna3", "confidence": 0.9, "reason": "r"},
        {"option": "cdna3_pingpong", "confidence": 0.8, "reason": "s"},
    ]
    with Endpoint([call({"proposals": proposals})]) as endpoint:
        first = optimize(PROBLEM, "gfx942", settings(tmp_path, endpoint.url, 1))
        again = optimize(PROBLEM, "gfx942", settings(tmp_path, endpoint.url, 2, first.run))
        requests = len(endpoint.asked)

    assert requests == 1
    assert [each.name for each in again.judged] == ["cdna3", "cdna3_pingpong"]


@pytest.mark.nightly
def test_a_resumed_search_asks_without_the_option(tmp_path: Path) -> None:
    first, second = ([{"option": each, "confidence": 0.9, "reason": "r"}] for each in ("cdna3", "cdna3_pingpong"))
    with Endpoint([call({"proposals": first}), call({"proposals": second})]) as endpoint:
        begun = optimize(PROBLEM, "gfx942", settings(tmp_path, endpoint.url, 1))
        going_on = evolve(settings(tmp_path, endpoint.url, 2, begun.run), planner="bandit")
        found = optimize(PROBLEM, "gfx942", going_on)

    assert [each.name for each in found.judged] == ["cdna3", "cdna3_pingpong"]
    assert found.spent is not None
    assert (found.spent.calls, found.spent.tokens) == (2, 240)


@pytest.mark.nightly
def test_a_question_does_not_outlast_the_search(tmp_path: Path) -> None:
    slow = evolve(call({"proposals": []}), delay=60.0)
    told: list[Update] = []
    with Endpoint(lambda _: slow) as endpoint:
        asked = evolve(settings(tmp_path, endpoint.url, 9), limits=Limits(seconds=8.0))
        before = time.monotonic()
        found = optimize(PROBLEM, "gfx942", asked, told.append)
        took = time.monotonic() - before

    assert found.reason == "time spent"
    assert took < 14.0
    questions = [each for each in told if isinstance(each, Asked)]
    assert [each.reply["code"] for each in questions] == ["E923"]
    assert found.spent is not None
    assert questions[0].tokens == found.spent.supposed > 0
    assert told[1] == Asks(asked.model.model)


@pytest.mark.nightly
def test_without_an_answer_the_bandit_goes_on(tmp_path: Path) -> None:
    with Endpoint([call({"proposals": []})] * 3) as endpoint:
        found = optimize(PROBLEM, "gfx942", settings(tmp_path, endpoint.url, 1))

    assert len(found.judged) == 1
    with Journal(tmp_path / "runs.db") as journal:
        judged = [each for each in journal.events(found.run) if isinstance(each, Judged)]
    assert judged[0].judgement == found.judged[0]


def test_a_search_without_a_key_is_reported_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(Exception, match="E921"):
        optimize(PROBLEM, "gfx942", Settings("llm", journal=tmp_path / "runs.db", model=Model(base_url="http://x")))

    assert not (tmp_path / "runs.db").exists() or not Journal(tmp_path / "runs.db").runs()


ENDLESS = TEXT.replace("    for k in loop(", "    for _ in loop(1 << 60):\n        vmem.wait(0)\n    for k in loop(")


@pytest.mark.nightly
def test_a_kernel_that_is_proved_and_never_ends_does_not_hold_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "CANDIDATE_SECONDS", 30.0)
    proposals = [
        {"kernel": ENDLESS, "confidence": 0.9, "reason": "waits"},
        {"option": "cdna3", "confidence": 0.8, "reason": "r"},
    ]
    with Endpoint([call({"proposals": proposals})]) as endpoint:
        found = optimize(PROBLEM, "gfx942", settings(tmp_path, endpoint.url, 2))

    assert [each.outcome for each in found.judged] == ["lost", "timed"]
    assert "30 s" in found.judged[0].why
    assert found.best is not None
    assert found.best.name == "cdna3"


KEY = "sk-ant-0123456789-secret"


@pytest.mark.share(16, among="searches of a model")
@pytest.mark.parametrize("status", [200, 400, 401])
def test_the_key_never_leaks(
    status: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    proposals = [
        {"option": "cdna3", "confidence": 0.9, "reason": f"as {KEY} says", "needs": [KEY]},
        {"kernel": f"KEY = '{KEY}'", "confidence": 0.1, "reason": KEY, "invariants": [KEY]},
        {"option": KEY, "confidence": 0.5, "reason": "r"},
    ]
    good = call({"proposals": proposals, "lessons": [f"remember {KEY}"]})
    said = good if status == 200 else failure(status, f"not with {KEY}")
    with Endpoint([said] * 20) as endpoint:
        options = ["--planner", "llm", "--base-url", endpoint.url, "--trials", "2", "--target", "gfx942"]
        out, store = tmp_path / "out", tmp_path / "runs.db"
        assert main(["optimize", PROBLEM, *options, "--on", "model", "--journal", str(store), "--out", str(out)]) == 0
        sent = endpoint.asked

    assert KEY in "".join(sent[0].headers.values())
    assert not any(KEY in str(each.body) for each in sent)
    shown = capfd.readouterr()
    assert KEY not in shown.out + shown.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"runs.db", "certificate.json", "report.html", "load.py"}
    assert not any(KEY.encode() in path.read_bytes() for path in files)
