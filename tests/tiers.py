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


LEAST = 1 / 4
"""How often a group of few cases has its turn, at least: otherwise small groups would cost more than all large ones."""


def drawn(cases: Sequence[tuple[str, Case]], one_in: int, seed: str) -> Iterable[Case]:
    """One in so many of the named cases, by a hash of the seed and of their names.

    Of fewer cases than that one, with the probability that this is, and at least `LEAST`.
    """
    ranked = sorted(((_digest(seed, name), case) for name, case in cases), key=lambda each: each[0])
    if len(cases) < one_in:
        turn = _digest(f"{seed} turn", min(name for name, _ in cases))
        if int.from_bytes(turn[:8], "big") >= 2**64 * max(LEAST, len(cases) / one_in):
            return []
    return [case for _, case in ranked[: -(-len(cases) // one_in)]]


def _digest(seed: str, name: str) -> bytes:
    return sha256(f"{seed}:{name}".encode()).digest()


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
