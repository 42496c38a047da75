from collections.abc import Iterator

import pytest
from attrs import evolve

from argus.kernels.gemm import CONFIGS
from argus.kernels.schedules.staged import Staged
from argus.policy.knowledge import load_techniques
from argus.policy.technique import Lineage, Technique
from argus.search.designs.knowledge_check import CheckContext, check_technique
from argus.search.techniques import TRANSFORMATIONS
from argus.search.transformation import Design, Transformation, set_field
from argus.verifier.api import verify

BASE = {each.name: each for each in load_techniques()}
SUPER = BASE["grouped-order"]


def few(target: str) -> Iterator[Design]:
    yield from (each for each in (Staged(), CONFIGS["cooperative"]) if each.target.name == target)


@pytest.mark.share(128)
@pytest.mark.parametrize("technique", BASE.values(), ids=lambda each: each.name)
def test_every_technique_passes_its_check(technique: Technique) -> None:
    found = check_technique(technique, CheckContext())

    assert found.faults == ()
    assert {each.target for each in found.examples} == set(technique.targets)


def test_a_technique_that_does_nothing_fails() -> None:
    idle = {"grouped-order": Transformation(lambda design: (design,), lambda _: None)}

    (fault,) = check_technique(
        evolve(SUPER, lineage=(), conjecture=True), CheckContext(transformations=idle, ground=few)
    ).faults

    assert "changes no kernel" in fault


def test_a_technique_must_change_a_matching_kernel() -> None:
    (fault,) = check_technique(
        evolve(SUPER, applies="multi_buffer_epilogue", lineage=(), conjecture=True),
        CheckContext(ground=lambda _: iter([Staged()])),
    ).faults

    assert fault == "sm_90a: `grouped-order` changes no kernel of which `multi_buffer_epilogue` is true"


def test_a_technique_whose_kernels_cannot_be_traced_fails() -> None:
    broken = {"grouped-order": set_field(Staged, "swizzle", 7)}

    assert (
        "changes no kernel"
        in check_technique(
            evolve(SUPER, lineage=(), conjecture=True), CheckContext(transformations=broken, ground=few)
        ).faults[0]
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (evolve(SUPER, applies="magic"), "there is no matcher `magic`"),
        (evolve(SUPER, transformation="magic"), "there is no transformation `magic`"),
        (evolve(SUPER, preconditions=("I99",)), "there is no invariant I99"),
        (evolve(SUPER, targets=("sm_75",)), "there is no target `sm_75`"),
    ],
)
def test_names_in_a_file_must_exist(wrong: Technique, said: str) -> None:
    assert said in check_technique(wrong, CheckContext(ground=few)).faults


@pytest.mark.parametrize(
    ("without", "design", "said"),
    [
        ("cooperative", "nothing", "lineage: `nothing` is not a design"),
        ("clustered", "super_tiled", "lineage: `super_tiled` without the technique is not `clustered`"),
    ],
)
def test_lineage_names_designs_that_differ_in_the_technique(without: str, design: str, said: str) -> None:
    row = Lineage("command", "sm_90a", "1x2x3", without, design, 1.0, "time")

    assert said in check_technique(evolve(SUPER, lineage=(row,)), CheckContext(ground=few)).faults


@pytest.mark.share(16, among="techniques checked")
def test_a_proved_example_has_its_preconditions_proved() -> None:
    found = check_technique(evolve(SUPER, lineage=(), conjecture=True), CheckContext(ground=few, verify=verify))

    assert found.faults == ()
    assert [each.proved for each in found.examples] == [True]


@pytest.mark.share(16, among="techniques checked")
def test_a_precondition_that_does_not_apply_fails() -> None:
    (fault,) = check_technique(
        evolve(SUPER, preconditions=("I16",), lineage=(), conjecture=True),
        CheckContext(ground=lambda _: iter([Staged()]), verify=verify),
    ).faults

    assert fault == "sm_90a: `staged_group4`: I16 is not applicable"


@pytest.mark.share(16, among="techniques checked")
def test_a_technique_whose_kernels_are_not_proved_fails() -> None:
    odd = {"grouped-order": set_field(Staged, "bn", 72)}
    wide = {"grouped-order": set_field(Staged, "stages", 64)}
    plain = evolve(SUPER, lineage=(), applies="has_mainloop", conjecture=True)

    assert check_technique(plain, CheckContext(transformations=wide, ground=few, verify=verify)).faults == (
        "sm_90a: `staged_stages64`: it is refuted",
    )
    assert check_technique(plain, CheckContext(transformations=odd, ground=few, verify=verify)).examples[0].proved


def test_a_technique_without_an_experiment_is_marked_as_conjecture() -> None:
    (bare,) = check_technique(evolve(SUPER, lineage=()), CheckContext(ground=few)).faults
    (both,) = check_technique(evolve(SUPER, conjecture=True), CheckContext(ground=few)).faults

    assert bare == "it has no experiment: name one, or mark the page with `conjecture = true`"
    assert both == "it is marked as conjecture, but has experiments: remove the mark"


def test_every_transformation_has_a_page() -> None:
    assert {each.transformation for each in BASE.values()} == set(TRANSFORMATIONS)
