"""When a call that got no answer is made again."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

import numpy as np

_FIRST = 1.0
_LONGEST = 60.0
PASSING = frozenset({408, 409, 425, 429})
"""Statuses below 500 that may be another the next time."""


def passing(status: int) -> bool:
    """Whether what a status says may be over soon: too many requests, an overload, a fault of the endpoint."""
    return status in PASSING or status >= 500


def wait(attempt: int, told: float | None, generator: np.random.Generator) -> float:
    """Seconds before the next attempt. attempt: how many have failed, from 1. told: what the endpoint asks for.

    Without a wish of the endpoint twice as long each time, and somewhere between half of that and all of it; with one
    up to a tenth longer, so that several runs do not come back at once.
    """
    drawn = float(generator.random())
    if told is not None:
        return max(0.0, told) * (1 + drawn / 10)
    return min(_LONGEST, _FIRST * 2 ** min(attempt - 1, 30)) * (1 + drawn) / 2


def asked_for(header: str | None, now: datetime) -> float | None:
    """Seconds that a header `retry-after` asks for, as a number or as a date; None where it says neither."""
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
