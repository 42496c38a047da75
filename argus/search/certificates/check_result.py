"""Result of one check of a certificate: ok, FAILED or not checked."""

from __future__ import annotations

import math
from typing import Literal

from attrs import frozen

State = Literal["ok", "FAILED", "not checked"]


@frozen
class Check:
    """Result of a check. name: the claim. why: what was compared, or how it differs."""

    name: str
    state: State
    why: str


def passed(name: str, why: str) -> Check:
    return Check(name, "ok", why)


def failed(name: str, why: str) -> Check:
    return Check(name, "FAILED", why)


def unchecked(name: str, why: str) -> Check:
    """A claim that cannot be recomputed here."""
    return Check(name, "not checked", why)


def check_equal(name: str, claimed: object, found: object, what: str) -> Check:
    """Check that the claimed and the computed value are equal."""
    if claimed == found:
        return passed(name, what)
    return failed(name, f"{what}: claimed {brief(claimed)}, found {brief(found)}")


def check_close(name: str, claimed: float, found: float, what: str) -> Check:
    """Check that two numbers agree to a relative error of 1e-9."""
    if math.isclose(claimed, found, rel_tol=1e-9):
        return passed(name, what)
    return failed(name, f"{what}: claimed {claimed:.6g}, found {found:.6g}")


def brief(thing: object) -> str:
    """A value as text of at most 160 characters."""
    text = str(thing)
    return text if len(text) <= 160 else f"{text[:157]}..."
