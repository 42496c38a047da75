"""One check of a certificate, and the few ways in which it comes out."""

from __future__ import annotations

import math
from typing import Literal

from attrs import frozen

State = Literal["ok", "FAILED", "not checked"]


@frozen
class Check:
    """name: what was looked at. why: what was compared, or where it differs, in words."""

    name: str
    state: State
    why: str


def passed(name: str, why: str) -> Check:
    return Check(name, "ok", why)


def failed(name: str, why: str) -> Check:
    return Check(name, "FAILED", why)


def unchecked(name: str, why: str) -> Check:
    """What nothing here can find again."""
    return Check(name, "not checked", why)


def same(name: str, claimed: object, found: object, what: str) -> Check:
    """Whether what is claimed is what was found."""
    if claimed == found:
        return passed(name, what)
    return failed(name, f"{what}: claimed {brief(claimed)}, found {brief(found)}")


def close(name: str, claimed: float, found: float, what: str) -> Check:
    """Numbers that the same arithmetic gives, whatever the machine's last digits."""
    if math.isclose(claimed, found, rel_tol=1e-9):
        return passed(name, what)
    return failed(name, f"{what}: claimed {claimed:.6g}, found {found:.6g}")


def brief(thing: object) -> str:
    """In words short enough for a line."""
    text = str(thing)
    return text if len(text) <= 160 else f"{text[:157]}..."
