"""An instruction on the CPU gives the bits that a GPU gave: digests in benchmarks/results/instructions.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus.testing.instructions import Trial, trials
from argus.testing.instructions.on_cpu import digests_on_cpu

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "instructions.json"


@pytest.mark.share(64)
@pytest.mark.parametrize("made", trials(), ids=lambda made: made.name)
def test_the_bits_are_those_of_the_gpu(made: Trial) -> None:
    assert digests_on_cpu(made) == json.loads(RESULTS.read_text(encoding="utf-8"))[made.name]


def test_every_instruction_has_bits_of_the_gpu() -> None:
    assert {made.name for made in trials()} == set(json.loads(RESULTS.read_text(encoding="utf-8")))
