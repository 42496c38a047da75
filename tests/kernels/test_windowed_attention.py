"""Windowed and capped attention: proved for all windows, its text computes what the interpreter does."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.verdict import Proved
from argus.kernels.windowed_attention import CONFIGS, choose
from argus.language import sm_90a
from argus.ops.attention import WINDOWED
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify

FAMILIES = {family.name: family for families in WINDOWED.values() for family in families.values()}
ALL = [(name, config) for name in FAMILIES for config in CONFIGS[64]]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), ALL)
def test_every_configuration_is_proved(name: str, config: str) -> None:
    verdict = verify(FAMILIES[name], config=config, solver="z3").verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I1", "I3", "I4", "I25", "I39"} <= dict(verdict.coverage).keys()
    assert {"left <= 268435455", "right <= 268435455"} <= set(verdict.assumptions)


def test_a_configuration_is_chosen_by_what_it_computes() -> None:
    for width, configs in CONFIGS.items():
        for wide in (False, True):
            for capped in (False, True):
                chosen = configs[choose(width, wide=wide, capped=capped)]
                assert (chosen.capped, chosen.zigzag) == (capped, wide)


SIZES = (
    {"B": 1, "H": 2, "S": 150, "G": 1, "T": 300, "left": 40, "right": 3},
    {"B": 1, "H": 1, "S": 130, "G": 1, "T": 20, "left": 7, "right": 0},
    {"B": 1, "H": 1, "S": 1, "G": 1, "T": 1, "left": 0, "right": 0},
)
"""Blocks that are left out at both ends; queries without keys."""


@pytest.mark.share(64, among="texts of attention")
@pytest.mark.parametrize("config", ["window", "capped_wide"])
@pytest.mark.parametrize("name", ["windowed_64", "windowed_128", "windowed_64_f16"])
def test_the_text_agrees_with_the_interpreter(name: str, config: str) -> None:
    few = evolve(FAMILIES[name], target=evolve(sm_90a, processors=2))  # each block takes several tiles
    found = validate(few.trace(config), SIZES, seeds=1)
    assert all(each.right and each.elements for each in found.trials), found
