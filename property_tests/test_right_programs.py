"""Property: a random program that is right by construction is proved, and its emitted text does what it should."""

from __future__ import annotations

import random

import pytest

from benchmarks.fuzz_text import executed_batch
from property_tests.depth import examples
from property_tests.small.right import FAMILIES

COUNT = examples(2, 200)
MARKS = {
    "elements": {"elements", "buffer", "loop"},
    "staging": {"shared memory"},
    "folding": {"fold", "scan"},
    "multiplying": {"mma"},
    "boxing": {"tma", "ring", "roles"},
    "adding": {"atomic"},
    "piping": {"wgmma", "tma", "ring", "mbarrier"},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_of_right_programs_agree_with_the_interpreter(family: str) -> None:
    drawn = random.Random(family)  # noqa: S311 reason: a seed makes failures repeatable
    programs = [FAMILIES[family](drawn.choice) for _ in range(COUNT)]

    entries = executed_batch(programs, seed=0, seconds=1.0)

    assert not [each for each in entries if each.outcome == "wrong"]
    assert "right" in {each.outcome for each in entries}
    assert MARKS[family] & {mark for each in entries for mark in each.uses}
