"""An instruction on the CPU gives the bits that a GPU gave: digests in benchmarks/results/instructions.json."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from argus.testing.instructions import Trial, trials
from argus.testing.instructions.on_cpu import digests_on_cpu

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "instructions.json"
OF_A_GPU: dict[str, object] = json.loads(RESULTS.read_text(encoding="utf-8"))
NOT_ON_A_GPU = {f"{way}_global_b8{part}" for way in ("ld", "st") for part in ("", "_cut")}
"""Those that have not run on one yet."""


@cache
def by_name() -> dict[str, Trial]:
    return {made.name: made for made in trials()}


@pytest.mark.share(256)
@pytest.mark.parametrize("name", OF_A_GPU)
def test_the_bits_are_those_of_the_gpu(name: str) -> None:
    assert digests_on_cpu(by_name()[name]) == OF_A_GPU[name]


def test_every_instruction_has_bits_of_the_gpu() -> None:
    assert by_name().keys() - NOT_ON_A_GPU == OF_A_GPU.keys()
