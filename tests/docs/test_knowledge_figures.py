"""The figures of kb/ are those that the recorded tables give."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from attrs import evolve

from argus.policy.authoring import technique_text
from argus.policy.knowledge import load_techniques, parse_technique
from argus.policy.technique import Lineage, Technique
from argus.search.designs.ablation import Table, ablation_pairs, estimate_effect, representative_rows
from argus.search.techniques import TRANSFORMATIONS
from benchmarks.conditions import TARGETS
from benchmarks.conditions import table as conditions_table
from benchmarks.lineage import RESULTS, measured_tables

ROOT = Path(__file__).parents[2]
BASE = load_techniques()
MEASURED = [each for each in BASE if each.effect.basis == "time"]


@cache
def tables() -> tuple[Table, ...]:
    return tuple(measured_tables(RESULTS))


@cache
def seen(name: str) -> tuple[Lineage, ...]:
    """What the tables say of a technique."""
    (technique,) = (each for each in BASE if each.name == name)
    chosen = [table for table in tables() if table.target in technique.targets]
    return tuple(ablation_pairs(TRANSFORMATIONS[technique.transformation], chosen))


def test_most_techniques_of_hopper_are_measured() -> None:
    hopper = [each for each in BASE if "sm_90a" in each.targets]

    assert len(tables()) > 20
    assert len([each for each in MEASURED if "sm_90a" in each.targets]) >= 0.8 * len(hopper)


@pytest.mark.share(4)
@pytest.mark.parametrize("technique", MEASURED, ids=lambda each: each.name)
def test_effects_are_those_of_the_tables(technique: Technique) -> None:
    found = seen(technique.name)
    given = parse_technique(
        technique_text(evolve(technique, effect=estimate_effect(found), lineage=representative_rows(found))),
        technique.name,
        "",
    )

    assert technique.effect == given.effect
    assert tuple(row for row in technique.lineage if row.basis == "time") == given.lineage


@pytest.mark.parametrize("technique", BASE, ids=lambda each: each.name)
def test_what_is_measured_is_not_modelled(technique: Technique) -> None:
    assert (technique.effect.basis == "time") == bool(seen(technique.name))


@pytest.mark.parametrize("technique", BASE, ids=lambda each: each.name)
def test_an_effect_has_experiments_or_is_open(technique: Technique) -> None:
    assert bool(technique.lineage) == (technique.effect != estimate_effect([]))


@pytest.mark.nightly
def test_the_page_has_the_conditions_that_are_learnt() -> None:
    page = (ROOT / "docs" / "knowledge.md").read_text(encoding="utf-8").splitlines()
    every = [line for target in TARGETS for line in conditions_table(target, [])]
    learnt = [line for line in every if "always" not in line]

    assert sum("**" in line for line in learnt) == 8
    assert [line for line in learnt if line not in page] == []
