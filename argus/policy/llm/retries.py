"""Retry policy of failed calls: transient statuses, exponential backoff with jitter, and the `retry-after` header."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

import numpy as np

_FIRST = 1.0
_LONGEST = 60.0
TRANSIENT = frozenset({408, 409, 425, 429})
"""HTTP statuses below 500 that are worth a retry."""


def is_transient(status: int) -> bool:
    """Whether an HTTP status is worth a retry: rate limit, overload or server error."""
    return status in TRANSIENT or status >= 500


def retry_delay(attempt: int, delay: float | None, generator: np.random.Generator) -> float:
    """Seconds until the next attempt. attempt: number of failures, from 1. delay: seconds the endpoint requests.

    Without a request: exponential backoff, uniformly jittered between half and all of it. With one: up to 10 % longer,
    so that several runs do not retry at once.
    """
    drawn = float(generator.random())
    if delay is not None:
        return max(0.0, delay) * (1 + drawn / 10)
    return min(_LONGEST, _FIRST * 2 ** min(attempt - 1, 30)) * (1 + drawn) / 2


def parse_retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds requested by a `retry-after` header, given as a number or a date; None if it is malformed or absent."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        seconds = _until(header, now)
    return max(0.0, seconds) if seconds is not None and isfinite(seconds) else None


def _until(header: str, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    zoned = date if date.tzinfo else date.replace(tzinfo=UTC)
    return (zoned - now).total_seconds()
