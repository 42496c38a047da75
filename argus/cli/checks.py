"""One item that `argus doctor` checks."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from attrs import frozen

State = Literal["good", "absent", "degraded"]


@frozen
class Check:
    """One item checked.

    state: "absent" means that the item is optional; "degraded" means that a feature does not work without it: `loses`
    names the feature, `repair` says how to restore it.
    """

    group: str
    name: str
    state: State
    found: str
    loses: str = ""
    repair: str = ""


def version_of(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
