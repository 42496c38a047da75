from pathlib import Path

import pytest
from attrs import evolve

from argus.policy.knowledge import load_practices, records_root
from argus.policy.practice import Experiment, Practice
from argus.search.designs.practice_check import check_practice

BASE = {each.name: each for each in load_practices()}
QUOTED = BASE["attention-cluster-multicast"]
TABLED = BASE["rows-whole-rows"]
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("practice", BASE.values(), ids=lambda each: each.name)
def test_every_practice_passes_its_check(practice: Practice) -> None:
    found = check_practice(practice, ROOT)

    assert found.faults == ()
    assert found.compared == len(practice.experiments)


def test_each_family_has_pages_with_experiments() -> None:
    supported = {each.family for each in BASE.values() if each.experiments}

    assert supported == {"attention", "convolution", "decode", "experts", "rows"}
    assert records_root() == ROOT


def test_some_pages_tell_what_lost() -> None:
    assert sum(all(row.ratio <= 1 for row in each.experiments) for each in BASE.values() if each.experiments) >= 3


def test_a_practice_without_an_experiment_is_marked_as_conjecture() -> None:
    (bare,) = check_practice(evolve(QUOTED, experiments=()), ROOT).faults
    (both,) = check_practice(evolve(QUOTED, conjecture=True), ROOT).faults

    assert bare == "it has no experiment: name one, or mark the page with `conjecture = true`"
    assert both == "it is marked as conjecture, but has experiments: remove the mark"
    assert check_practice(evolve(QUOTED, experiments=(), conjecture=True), ROOT).faults == ()


def test_support_is_asked_for_without_the_records_too() -> None:
    assert check_practice(evolve(QUOTED, experiments=()), None).faults
    assert check_practice(QUOTED, None) == evolve(check_practice(QUOTED, ROOT), compared=0)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (evolve(QUOTED.experiments[0], quote="128 keys 2 to 5 % faster"), "does not have the words"),
        (evolve(QUOTED.experiments[0], ratio=0.9), "the ratio 0.9 is no figure of"),
        (evolve(QUOTED.experiments[0], record="docs/decisions/none.md"), "there is no record `docs/decisions/none.md`"),
        (evolve(QUOTED.experiments[0], record="../../etc/passwd"), "there is no record `../../etc/passwd`"),
        (evolve(QUOTED.experiments[0], command="python benchmarks/none.py"), "there is no `benchmarks/none.py`"),
        (evolve(QUOTED.experiments[0], command="make"), "`make` runs no script of benchmarks/"),
        (evolve(TABLED.experiments[0], ratio=1.3), "the ratio is 1.3, but 1.168 in"),
        (evolve(TABLED.experiments[0], design="rows_threads7"), "has no time of `rows_threads7`"),
        (evolve(TABLED.experiments[0], shape="rows:softmax:1x1:bf16"), "has no time of"),
        (
            evolve(TABLED.experiments[0], without="rows_threads512_steps8_noheld"),
            "do not differ in one part of their names",
        ),
    ],
)
def test_figures_are_those_of_the_records(row: Experiment, said: str) -> None:
    assert said in " ".join(check_practice(evolve(QUOTED, experiments=(row,)), ROOT).faults)


def test_names_in_a_file_must_exist() -> None:
    assert check_practice(evolve(QUOTED, invariants=("I99",), targets=("sm_75",)), ROOT).faults == (
        "there is no invariant I99",
        "there is no target `sm_75`",
    )
