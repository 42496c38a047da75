from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus.policy.llm.retries import is_transient, parse_retry_after, retry_delay

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("Sun, 22 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 22 Nov 2026 12:00:30 -0000", 30.0),
        ("Sun, 22 Nov 2026 11:00:00 GMT", 0.0),
        ("Sun, 99 Nov 2026 11:00:00 GMT", None),
    ],
)
def test_a_header_asks_for_seconds_or_until_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds


@pytest.mark.share(3)
@given(st.text(max_size=60))
def test_no_header_raises(header: str) -> None:
    found = parse_retry_after(header, NOW)

    assert found is None or found >= 0


@given(st.integers(1, 10**6), st.none() | st.floats(0, 1e6), st.integers(0, 2**32))
def test_a_wait_is_within_its_bounds(attempt: int, delay: float | None, seed: int) -> None:
    found = retry_delay(attempt, delay, np.random.default_rng(seed))

    if delay is None:
        assert 0.5 <= found <= 60.0
    else:
        assert delay <= found <= 1.1 * delay


def test_which_statuses_may_pass() -> None:
    assert [each for each in (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529) if is_transient(each)] == [
        408,
        409,
        429,
        500,
        503,
        529,
    ]
