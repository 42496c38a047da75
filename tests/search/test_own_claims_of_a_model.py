"""A claim of the model's own choice, from its text over the gate and a repair to the rank in the next request."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.policy.llm.settings import Settings as Model
from argus.search.loop import Limits
from argus.search.run import Settings, optimize
from argus.testing.messages import Answer, Endpoint, call
from argus.testing.messages import Asked as Request
from tests.search.evaluation.test_own_claims import with_claim
from tests.search.test_golden_prompt import text_of

TRUE = "assert_relation(a, lambda x: eq(x.step, k))"
AHEAD = TRUE.replace("k))", "k + 1))")
PLAN = {"write": "a tile of one wave", "invariant": "I1", "speedup": 1.5, "confidence": 0.8, "reason": "few blocks"}


def written(claim: str) -> Answer:
    return call({"kernel": with_claim(claim), "confidence": 0.9, "reason": "which step a tile is of"}, "write_kernel")


def last_request(tmp_path: Path, answers: tuple[Answer, ...], outcomes: list[str]) -> str:
    """Run a search with these answers; returns the first request for a plan after them."""
    given = iter(answers)

    def script(_: Request) -> Answer:
        return next(given, call({"proposals": []}))

    with Endpoint(script) as endpoint:
        model = Model(base_url=endpoint.url, key="any", every=1, grace=120.0, rounds=1, attempts=1, repairs=0)
        settings = Settings("llm", Limits(trials=2), journal=tmp_path / "runs.db", model=model)
        found = optimize("gemm:512x512x512:bf16", "gfx942", settings)
        requests = endpoint.asked
    assert [each.outcome for each in found.judged][: len(outcomes)] == outcomes
    return text_of(requests[len(answers)])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("repair", "outcome", "mended"),
    [(TRUE, "timed", 1), (TRUE.replace("k))", "k + 2))"), "refuted", 0)],
)
def test_a_claim_is_credited_if_its_counterexample_led_to_a_repair_that_stood(
    tmp_path: Path, repair: str, outcome: str, mended: int
) -> None:
    request = last_request(
        tmp_path, (call({"proposals": [PLAN]}), written(AHEAD), written(repair)), ["refuted", outcome]
    )

    lines = [line for line in request.splitlines() if "led to a repair that stood" in line]
    assert len(lines) == 2 - mended
    assert f"excluded 1, of which {mended} led to a repair that stood: own claim: I" in lines[0]
    assert "a.step == k + 1" in lines[0]
