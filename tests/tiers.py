"""Which tests a tier runs: the default one a share of the cases of large tests, `all` a larger one, `every` all."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeVar

Tier = Literal["default", "all", "every"]
TIERS: tuple[Tier, ...] = ("default", "all", "every")
Case = TypeVar("Case")


LEAST = 1 / 4
"""How often a group of few cases has its turn, at least: otherwise small groups would cost more than all large ones."""


TIMES = 8
"""How many times the share of the default tier the tier `all` draws: it is to take an hour on two processors."""
FEW = 4
"""How many cases of a nightly test without a number the tier `all` draws, at most."""


def share_of(one_in: int, tier: Tier) -> tuple[int, float]:
    """Of the cases of a test with `share(one_in)`: one in how many a tier runs, and the least probability of any."""
    if tier == "default":
        return one_in, LEAST
    return (-(-one_in // TIMES) if tier == "all" else 1), 1.0


def few_of(cases: int) -> int:
    """Of a nightly test with so many cases: one in how many the tier `all` runs."""
    return -(-cases // FEW)


def drawn(cases: Sequence[tuple[str, Case]], one_in: int, seed: str, least: float = LEAST) -> Iterable[Case]:
    """One in so many of the named cases, by a hash of the seed and of their names.

    Of fewer cases than that one, with the probability that this is, and at least `least`.
    """
    ranked = sorted(((_digest(seed, name), case) for name, case in cases), key=lambda each: each[0])
    if len(cases) < one_in:
        turn = _digest(f"{seed} turn", min(name for name, _ in cases))
        if int.from_bytes(turn[:8], "big") >= 2**64 * max(least, len(cases) / one_in):
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
