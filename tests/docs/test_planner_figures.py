"""The planner figures in documents match the recorded results, and today's bandit reproduces them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus.policy.experience import fit_experience, load_experience
from argus.policy.nearest import load_recorded
from benchmarks.arm_policies import DEFAULT
from benchmarks.arms import geometric_means, lines_of
from benchmarks.recorded import TABLES, Job, replay_search, table, training_problem, trials_to_near_best
from benchmarks.recorded_problems import recorded
from benchmarks.searches import COLUMNS, KEPT, Row, markdown_rows, stored_rows, total

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "0024-planners-are-functions.md"
TARGETS = ("gfx942", "sm_90a")
SEEDS = 20


def rows(target: str) -> list[Row]:
    return stored_rows(KEPT / f"{target}.json")


def of(target: str, planner: str) -> dict[str, Row]:
    return {str(row.shape): row for row in rows(target) if row.planner == planner and not row.teachers}


@pytest.mark.share(2)
@pytest.mark.parametrize("target", TARGETS)
def test_all_planners_searched_all_shapes_of_the_table(target: str) -> None:
    shapes = {str(shape) for shape in table(TABLES / f"{target}.json").times}

    for planner in COLUMNS:
        found = of(target, planner)
        assert set(found) == shapes
        assert all(len(row.near) >= (1 if planner == "exhaustive" else SEEDS) for row in found.values())


@pytest.mark.parametrize("target", TARGETS)
def test_the_page_shows_the_recorded_results(target: str) -> None:
    text = PAGE.read_text(encoding="utf-8")

    for line in markdown_rows(rows(target)):
        assert line in text


def test_the_guide_states_the_trials_of_the_bandit() -> None:
    took = [row.median for target in TARGETS for row in of(target, "bandit").values()]
    guide = (PAGE.parent.parent / "optimize.md").read_text(encoding="utf-8")

    assert f"after {min(took):g} to {max(took):g} trials" in guide


@pytest.mark.parametrize("target", TARGETS)
def test_the_bandit_needs_half_the_trials_of_random_and_no_more_than_tpe(target: str) -> None:
    found, chance, tpe = of(target, "bandit"), of(target, "random"), of(target, "tpe")

    assert all(row.median <= chance[shape].median / 2 for shape, row in found.items())
    assert all(row.median <= tpe[shape].median for shape, row in found.items())


@pytest.mark.parametrize("target", TARGETS)
def test_the_rejected_share_is_on_the_page(target: str) -> None:
    text = PAGE.read_text(encoding="utf-8")

    for planner in ("bandit", "random"):
        found = total(row.stopped for row in of(target, planner).values())
        assert f"{found.share:.1%}" in text
        assert f"{found.shorter:.0%}" in text


def test_savings_of_stopping_rules_are_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")

    for rule in json.loads((KEPT / "rules.json").read_text(encoding="utf-8"))["rules"]:
        assert f"{rule['saved']:.0%} | {rule['kept']:.1%} | {rule['least']:.1%} |" in text


def test_the_search_on_a_gpu_is_on_the_page() -> None:
    found = json.loads((KEPT / "whole_search.json").read_text(encoding="utf-8"))
    text, every = " ".join(PAGE.read_text(encoding="utf-8").split()), found["candidates"]
    timed = [each for each in every if each["microseconds"] is not None]
    best = min(timed, key=lambda each: each["microseconds"])
    began = [each["microseconds"] for each in timed if each["seconds"] < timed[0]["seconds"] + 1]
    ours = {row["regime"]: row for row in found["times"] if row["name"] == f"gemm_{best['name']}"}

    assert (found["device"], found["unseen"], found["seconds"]) == ("NVIDIA H200", True, 600.0)
    assert {each["outcome"] for each in every} == {"timed", "over limits"}
    assert f"{len(every)} candidates, of which {len(every) - len(timed)} were stopped before a compiler" in text
    assert (
        f"timed after {timed[0]['seconds']:.0f} s, the fastest of them {min(began) / best['microseconds'] - 1:.1%}"
        in text
    )
    assert f"came after {best['seconds']:.0f} s: `{best['name']}`" in text
    assert f"{ours['duty-cycled']['ratio']:.3f} of its speed duty-cycled" in text
    assert f"{ours['sustained']['ratio']:.3f} sustained" in text
    assert f"has it for {found['seconds'] / len(every):.1f} s" in text


@pytest.mark.nightly
def test_todays_bandit_reproduces_the_searches() -> None:
    """Two seeds of the shape of which it once was worse than chance."""
    path, shape = TABLES / "gfx942.json", (2048, 2048, 2048)
    kept = of("gfx942", "bandit")[str(shape)]
    for seed in (0, 1):
        trials = replay_search(Job(path, shape, "bandit", seed, kept.trials))
        assert trials_to_near_best([took for _, took in trials], table(path).best(shape)) == kept.near[seed]


@pytest.mark.share(4)
def test_the_prior_is_fitted_to_the_table() -> None:
    path = TABLES / "gfx942.json"
    found, kept = (
        fit_experience([training_problem(path, shape) for shape in table(path).times]),
        load_experience("gfx942"),
    )

    assert kept.usual == pytest.approx(found.usual, abs=1e-3)
    assert kept.trends.keys() == found.trends.keys()
    for name, trend in found.trends.items():
        wanted = (trend.mean, trend.slope, trend.deviation)
        assert (kept.trends[name].mean, kept.trends[name].slope, kept.trends[name].deviation) == pytest.approx(
            wanted, abs=1e-3
        )


@pytest.mark.parametrize(("name", "passed", "caught"), [("h200", 3, 4), ("files", 2, 8)])
def test_the_harness_on_a_gpu_gave_the_figures_of_the_guide(name: str, passed: int, caught: int) -> None:
    path = KEPT.parent / "examination" / f"{name}.json"
    found = list(json.loads(path.read_text(encoding="utf-8"))["verdicts"].values())

    assert all(each["expected"] for each in found)
    assert sum("microseconds" in each for each in found) == passed
    assert sum(each.get("outcome") in {"cheat", "wrong"} for each in found) == caught


ARMS_PAGE = PAGE.with_name("0086-the-best-mean-first.md")
RECORDED = sorted(path.name.removeprefix("arms.").removesuffix(".json") for path in KEPT.glob("arms.*.json"))


@pytest.mark.parametrize("family", RECORDED)
def test_the_page_shows_all_arms_of_a_family(family: str) -> None:
    text = ARMS_PAGE.read_text(encoding="utf-8")

    for line in lines_of(family):
        assert line in text


@pytest.mark.parametrize("family", RECORDED)
def test_the_default_is_the_best_arm_or_within_a_tenth_of_it(family: str) -> None:
    means = geometric_means(family)

    assert means[DEFAULT] <= 1.1 * min(means.values())
    assert means[DEFAULT] <= means["random"] / 2


@pytest.mark.share(12)
@pytest.mark.parametrize("family", RECORDED)
def test_what_a_search_is_told_of_recorded_problems_is_what_was_recorded(family: str) -> None:
    kept = load_recorded(family)

    assert [each.place for each in kept] == [pytest.approx(each.place, abs=1e-4) for each in recorded(family)]
    for told, asked in zip(kept, recorded(family), strict=True):
        made = asked.beyond.values
        assert set(told.values) == set(made)
        assert all(abs(told.values[name] - value) < 1e-3 for name, value in made.items())
