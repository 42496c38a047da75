from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.verdict import Report, Unknown
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.staged import Staged
from argus.policy.authoring import technique_text
from argus.policy.knowledge import load_techniques, parse_technique
from argus.search.designs.mining import Rejected, Skill, Tools, collect, design_space, draft_technique, mine
from argus.verifier.api import verify

TECHNIQUES = load_techniques()
EXPERT = Staged(vector=8, swizzle=64)
TIMES = {"staged_vector8_swizzle64": 10.0, "staged_vector8": 12.0, "staged": 30.0}


def tools(
    judge: Callable[[Kernel], Report] = verify,
    disagrees: Callable[[Kernel], str] = lambda _: "",
    times: dict[str, float] = TIMES,
) -> Tools:
    def time(design: str, _kernel: Kernel) -> float | None:
        return times.get(design)

    return Tools(judge, disagrees, time, "time", "argus kb mine staged", "1x2x3")


def test_steps_go_back_to_the_first_design() -> None:
    mined = collect("staged_vector8_swizzle64", list(mine(EXPERT, TECHNIQUES, tools(), design_space())))

    assert mined.first == "staged"
    assert [(each.technique.name, each.without, each.design) for each in mined.skills] == [
        ("vector-loads", "staged", "staged_vector8"),
        ("bank-conflict-mitigation", "staged_vector8", "staged_vector8_swizzle64"),
    ]
    assert [each.ratio for each in mined.skills] == [2.5, 1.2]
    assert mined.rejected == ()


@pytest.mark.share(16, among="kernels mined")
def test_a_step_to_a_kernel_that_is_not_proved_is_not_taken() -> None:
    def judge(kernel: Kernel) -> Report:
        report = verify(kernel)
        return evolve(report, verdict=Unknown("tired", "")) if kernel.name == "gemm_staged_vector8" else report

    steps = list(mine(EXPERT, TECHNIQUES, tools(judge), design_space()))

    assert Rejected("bank-conflict-mitigation", "staged_vector8", "staged_vector8_swizzle64", "it is unknown") in steps
    taken = [(each.technique.name, each.without) for each in steps if isinstance(each, Skill)]
    assert taken == [("vector-loads", "staged_swizzle64"), ("bank-conflict-mitigation", "staged")]


@pytest.mark.share(3)
def test_a_step_to_a_kernel_that_computes_something_else_is_not_taken() -> None:
    wrong = {"gemm_staged_swizzle64", "gemm_staged_vector8"}

    def disagrees(kernel: Kernel) -> str:
        return "3 of 4 elements differ" if kernel.name in wrong else ""

    mined = collect("expert", list(mine(EXPERT, TECHNIQUES, tools(disagrees=disagrees), design_space())))

    assert mined.skills == ()
    assert {each.why for each in mined.rejected} == {"3 of 4 elements differ"}
    assert mined.first == "expert"


@pytest.mark.nightly
def test_an_unproved_expert_yields_no_skills() -> None:
    (step,) = mine(Hopper(bn=128, stages=1), TECHNIQUES, tools(), design_space())

    assert isinstance(step, Rejected)
    assert step.why == "it is refuted"


@pytest.mark.share(16, among="kernels mined")
def test_uses_of_one_technique_are_one_step() -> None:
    found = [each for each in mine(Staged(bn=256), TECHNIQUES, tools(), design_space()) if isinstance(each, Skill)]

    assert [(each.technique.name, each.without, each.design) for each in found] == [
        ("larger-bn", "staged", "staged_bn256")
    ]
    assert found[0].ratio is None


@pytest.mark.share(3)
def test_a_draft_page_contains_the_mined_step() -> None:
    bench = tools()
    mined = collect("staged_vector8_swizzle64", list(mine(EXPERT, TECHNIQUES, bench, design_space())))
    page = draft_technique(mined.skills[0], 1, mined, bench, "sm_90a")

    assert parse_technique(technique_text(page), "01-vector-loads", "") == page
    assert page.targets == ("sm_90a",)
    assert [(row.without, row.design, row.ratio) for row in page.lineage] == [("staged", "staged_vector8", 2.5)]
    assert page.effect.likely == 2.5
    assert set(mined.skills[0].technique.preconditions) <= set(page.preconditions)


@pytest.mark.share(16, among="kernels mined")
def test_invariants_that_only_the_expert_needs_become_preconditions() -> None:
    steps = mine(Hopper(cluster=(2, 1)), TECHNIQUES, tools(), design_space())
    first = next(each for each in steps if isinstance(each, Skill))

    assert first.technique.name == "tma-multicast"
    assert {"I15", "I16"} <= set(first.invariants)
