"""Failures of the endpoint: which are retried, how long the client waits, and when it gives up."""

from __future__ import annotations

import socket

import pytest
from attrs import evolve

from argus.policy.llm.planner import with_response
from argus.policy.llm.tasks import should_ask
from argus.search import llm_client
from argus.testing.messages import Answer, Endpoint, failure, message
from tests.policy.llm.scripted_client import (
    GOOD,
    KEY,
    QUICK,
    FakeSleep,
    ask_endpoint,
    ask_script,
    expect_reply,
    expect_trouble,
)
from tests.policy.llm.searches import PLANNER, start


@pytest.mark.parametrize("stop", ["refusal", "model_context_window_exceeded"])
def test_final_failures_are_not_retried(stop: str) -> None:
    found, bodies = ask_script(message([], stop), GOOD)

    expect_trouble(found, "E926")
    assert len(bodies) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_reported_and_not_retried(status: int) -> None:
    found, bodies = ask_script(failure(status, f"invalid x-api-key {KEY}"), GOOD)

    problem = expect_trouble(found, "E921")
    assert problem.lasting
    assert KEY not in problem.message
    assert "[key]" in problem.message
    assert "ANTHROPIC_API_KEY" in problem.help
    assert len(bodies) == 1
    assert not should_ask(with_response(start(), found), 1)


@pytest.mark.parametrize("status", [400, 402, 404, 413, 422])
def test_a_refused_request_is_reported_and_not_retried(status: int) -> None:
    found, bodies = ask_script(failure(status, "tool_choice forces tool use\x1b[31m"), GOOD)

    problem = expect_trouble(found, "E922")
    assert f"{status}: tool_choice forces tool use [31m" in problem.message
    assert "tool_choice" in problem.help
    assert len(bodies) == 1


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b"<html>no</html>",
        b'{"error": 5}',
        b'{"error": {"message": 5, "details": 7, "type": []}}',
        b'{"error": {"message": {"a": "' + KEY.encode() + b'"}}}',
        b'{"error": {"details": {"error_code": {}}}}',
        b"[" * 100_000,
        b'{"error": {"message": "' + b"x" * 100_000 + b'"}}',
    ],
)
@pytest.mark.parametrize(("status", "code"), [(400, "E922"), (401, "E921"), (500, "E923"), (302, "E922")])
def test_an_odd_error_is_an_error_all_the_same(body: bytes, status: int, code: str) -> None:
    found, bodies = ask_script(Answer(body, status), settings=evolve(QUICK, attempts=1))

    problem = expect_trouble(found, code)
    assert str(status) in problem.message
    assert len(problem.message) < 500
    assert KEY not in problem.message
    assert len(bodies) == 1


def test_too_many_requests_wait_as_long_as_the_endpoint_asks() -> None:
    naps = FakeSleep()
    with Endpoint([failure(429, "slow down", {"retry-after": "7"}), GOOD]) as endpoint:
        found = ask_endpoint(endpoint, sleep=naps)

    assert expect_reply(found).spent.calls == 2
    (nap,) = naps.taken
    assert 7.0 <= nap <= 7.7


def test_a_wait_beyond_the_patience_does_not_start() -> None:
    naps = FakeSleep()
    with Endpoint([failure(429, "slow down", {"retry-after": "3600"}), GOOD]) as endpoint:
        found = ask_endpoint(endpoint, sleep=naps)

    assert "429 (asks to wait 3.6e+03 s): slow down" in expect_trouble(found, "E923").message
    assert naps.taken == []


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_transient_failures_are_retried_with_backoff(status: int) -> None:
    naps = FakeSleep()
    with Endpoint([failure(status, "overloaded")] * 3 + [GOOD]) as endpoint:
        found = ask_endpoint(endpoint, sleep=naps)

    expect_reply(found)
    assert len(naps.taken) == 3
    for place, nap in enumerate(naps.taken):
        assert 2**place / 2 <= nap <= 2**place


def test_equal_seeds_wait_equally_long() -> None:
    def waits(seed: int) -> list[float]:
        naps = FakeSleep()
        with Endpoint([failure(529, "overloaded")] * 4 + [GOOD]) as endpoint:
            ask_endpoint(endpoint, state=start(seed), sleep=naps)
        return naps.taken

    assert waits(1) == waits(1)
    assert waits(1) != waits(2)


def test_an_endpoint_that_stays_overloaded_is_given_up() -> None:
    found, bodies = ask_script(*[failure(529, "overloaded")] * 9)

    problem = expect_trouble(found, "E923")
    assert "529: overloaded" in problem.message
    assert not problem.lasting
    assert len(bodies) == QUICK.attempts
    assert found.spent.dollars == 0


def test_a_slow_endpoint_times_out_and_is_charged_at_worst_case() -> None:
    hasty = evolve(QUICK, timeout=0.3, attempts=2)
    found, bodies = ask_script(evolve(GOOD, delay=20.0), evolve(GOOD, delay=20.0), settings=hasty)

    assert "did not answer within" in expect_trouble(found, "E923").message
    assert len(bodies) == 2
    assert found.spent.supposed == found.spent.tokens > 0
    assert found.spent.dollars > 0


def test_an_endpoint_that_sends_a_byte_now_and_then_is_left_too() -> None:
    hasty = evolve(QUICK, timeout=0.5, attempts=1)
    found, _ = ask_script(evolve(GOOD, drip=0.05), settings=hasty)

    assert "did not answer within 0.5 s" in expect_trouble(found, "E923").message


def test_an_endpoint_whose_header_does_not_end_is_left_too() -> None:
    hasty = evolve(QUICK, timeout=0.5, attempts=1)
    found, _ = ask_script(evolve(GOOD, creep=0.05), settings=hasty)

    assert "did not answer within 0.5 s" in expect_trouble(found, "E923").message
    assert found.spent.supposed > 0


def test_a_fault_of_ours_is_not_taken_for_the_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(llm_client, "_body", faulty)
    with Endpoint([GOOD]) as endpoint, pytest.raises(ZeroDivisionError):
        ask_endpoint(endpoint)


def test_an_endless_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "MOST_BYTES", 1000)
    found, _ = ask_script(Answer(b" " * 5000), settings=evolve(QUICK, attempts=1))

    expect_trouble(found, "E923")


@pytest.mark.parametrize("first", [evolve(GOOD, reset=True), evolve(GOOD, promised=50)], ids=["reset", "cut short"])
def test_a_connection_that_breaks_is_made_again(first: Answer) -> None:
    found, bodies = ask_script(first, GOOD)

    assert len(bodies) == 2
    assert expect_reply(found).spent.supposed > 0


def test_an_endpoint_that_is_not_there_costs_nothing() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        with llm_client.connect(evolve(QUICK, base_url=address, attempts=2), {}, sleep=FakeSleep()) as client:
            found = llm_client.ask(client, PLANNER, start())

    assert f"{address} cannot be reached" in expect_trouble(found, "E923").message
    assert found.spent.calls == 2
    assert found.spent.tokens == 0


def test_trouble_is_shown_as_a_warning_with_its_repair() -> None:
    found, _ = ask_script(failure(404, "model: no-such-model"))
    shown = expect_trouble(found, "E922").diagnostic

    assert (shown.severity, shown.code) == ("warning", "E922")
    assert "no-such-model" in shown.message
    assert "check the model's name" in shown.help
