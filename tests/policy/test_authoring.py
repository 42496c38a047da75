import pytest
from attrs import evolve

from argus.policy.authoring import technique_text
from argus.policy.knowledge import kb_folder, load_techniques, parse_technique
from argus.policy.technique import Effect, Lineage, Technique

PLAIN = Technique(
    "larger-bn",
    "Wider tiles",
    'More products, and a "quoted" backslash \\ for each element.',
    "global",
    ("sm_90a", "gfx942"),
    "small_bn",
    ("I3",),
    "larger-bn",
    Effect(0.5, 1.0, 2.0, "static model"),
    "Few tiles.",
    "An empty round.",
    (),
    "A page.\n\nOf two parts.",
)


def test_a_technique_round_trips() -> None:
    rows = (Lineage("argus kb mine x", "sm_90a", "1x2x3", "narrow", "staged", 1.25, "time"),)
    told = evolve(PLAIN, lineage=rows, effect=Effect(1.25, 1.25, 1.25, "time"))

    assert parse_technique(technique_text(PLAIN), "larger-bn", "") == PLAIN
    assert parse_technique(technique_text(told), "larger-bn", "") == told


@pytest.mark.parametrize("technique", load_techniques(), ids=lambda each: each.name)
def test_files_are_in_normal_form(technique: Technique) -> None:
    assert (kb_folder() / f"{technique.name}.md").read_text(encoding="utf-8") == technique_text(technique)


def test_the_base_has_the_techniques_of_the_paper() -> None:
    names = {each.name for each in load_techniques()}
    paper = "software-pipelining split-k kpack stagger-k async-copy bank-conflict-mitigation vector-loads "
    paper += "loop-unrolling xcd-remap hardware-bounds-check agprs sched-barriers"

    assert len(names) >= 30
    assert set(paper.split()) <= names
    assert all(len(each.text) > 600 and "Sources:" in each.text for each in load_techniques())
