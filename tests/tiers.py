"""Which tests the default tier runs: all but the nightly ones, and a share of the cases of those that have many."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeVar

Tier = Literal["default", "all"]
TIERS: tuple[Tier, ...] = ("default", "all")
Case = TypeVar("Case")


def drawn(cases: Sequence[tuple[str, Case]], one_in: int, seed: str) -> Iterable[Case]:
    """One in so many of the named cases, at least one, by a hash of the seed and of their names."""
    ranked = sorted(cases, key=lambda case: sha256(f"{seed}:{case[0]}".encode()).digest())
    return [case for _, case in ranked[: -(-len(cases) // one_in)]]


def commit(root: Path) -> str:
    """The commit that is checked out: other cases are drawn at each. Empty where there is no Git."""
    try:
        done = subprocess.run(  # noqa: S603 reason: a fixed command
            ("git", "-C", str(root), "rev-parse", "HEAD"),  # noqa: S607 reason: wherever Git is
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.strip()
