"""Problems of layers of experts: names, routings, lists, work, the reference, designs and the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.ops.grouped_tiles import count_of
from argus.search.designs.space import situation
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.families.experts import ROUTINGS, Array, activated, layer, lists_of, routed, shape_of_name
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.input_rules import Sizes
from argus.search.problems.problem import problem_of
from argus.search.problems.references import find_difference, random_trials
from argus.search.problems.texts import problem_view
from argus.search.problems.traced import admits

NAMES = {
    "moe:64x128x96:experts=8:topk=2": "moe:64x128x96:experts=8:topk=2:bf16",
    "moe:64x128x96:topk=2:experts=8:gelu:f16:routing=zipf": ("moe:64x128x96:experts=8:topk=2:f16:gelu:routing=zipf"),
    "moe:1x64x64:experts=4:topk=4:routing=onehot": "moe:1x64x64:experts=4:topk=4:bf16:routing=onehot",
}


def asked(text: str, target: str = "sm_90a") -> FamilyProblem:
    found = problem_of(text, target)
    assert isinstance(found, FamilyProblem)
    return found


@pytest.mark.parametrize("target", ["sm_90a", "gfx942"])
@pytest.mark.parametrize(("given", "full"), NAMES.items())
def test_a_layer_is_named_in_full_and_found_by_that_name(given: str, full: str, target: str) -> None:
    found = asked(given, target)

    assert str(found) == full
    assert asked(full, target) == found
    assert found.space.usual in found.space.designs
    assert found.kernel(found.space.usual).target.name == target
    assert found.bounds.light > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("moe:64x128", "is no layer of experts"),
        ("moe:64x128x96:experts=8", "has no numbers of experts and of choices"),
        ("moe:64x128x96:experts=8:topk=9", "9 of 8 experts for a token"),
        ("moe:64x128x96:experts=513:topk=1", "1 of 513 experts"),
        ("moe:64x100x96:experts=8:topk=2", "rows of 100 and 96 elements"),
        ("moe:64x128x96:experts=8:topk=2:routing=even", "`routing=even` is no option"),
        ("moe:64x128x96:experts=8:topk=2:f32", "`f32` is no option"),
    ],
)
def test_a_name_of_no_layer_is_refused(text: str, said: str) -> None:
    with pytest.raises(ArgusError) as raised:
        asked(text)

    assert raised.value.diagnostic.code == "E903"
    assert said in raised.value.diagnostic.message


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_routing_chooses_different_experts_for_each_token(routing: str) -> None:
    ids = routed(4000, 16, 3, routing, np.random.default_rng(1))
    counts = np.sort(np.bincount(ids.ravel(), minlength=16))[::-1]

    assert ids.shape == (4000, 3)
    assert all(len(set(row)) == 3 for row in ids.tolist())
    match routing:
        case "random":
            assert counts[0] < 1.2 * counts[-1]
        case "zipf":
            assert counts[0] > 4 * counts[-1] > 0
        case _:
            assert counts.tolist() == [4000] * 3 + [0] * 13


def test_the_lists_say_where_each_row_is() -> None:
    ids = routed(40, 4, 2, "zipf", np.random.default_rng(0))
    lists = lists_of(ids, 4, 16)

    for token, choice in np.ndindex(*ids.shape):
        row, expert = lists["inverse"][token, choice], ids[token, choice]
        assert lists["tokens"][row] == token
        assert lists["starts"][expert] <= row < lists["starts"][expert + 1]
    assert len(lists["tile_experts"]) == count_of(ids.size, 4, 16)
    assert np.diff(lists["tile_starts"]).max() <= 16


def by_loops(given: dict[str, Array]) -> Array:
    """The layer, one choice after the other."""
    X, W, V, ids, weights = (given[name] for name in ("X", "W", "V", "ids", "weights"))
    made = np.zeros_like(X)
    for token, choice in np.ndindex(*ids.shape):
        expert = int(ids[token, choice])
        gate, up = W[expert] @ X[token]
        hidden = gate / (1 + np.exp(-gate)) * up
        made[token] += weights[token, choice] * (V[expert] @ hidden)
    return made


def test_the_reference_is_the_sum_over_choices() -> None:
    random, ids = np.random.default_rng(0), routed(9, 4, 2, "zipf", np.random.default_rng(0)).astype(float)
    shapes = {"X": (9, 8), "W": (4, 2, 16, 8), "V": (4, 8, 16), "weights": (9, 2)}
    given = {name: random.standard_normal(shape) for name, shape in shapes.items()} | {"ids": ids}

    assert layer(**given, activation="silu") == pytest.approx(by_loops(given))
    assert activated(np.array([0.0, 20.0]), "gelu") == pytest.approx([0.0, 20.0])


def test_the_work_counts_the_experts_that_are_chosen() -> None:
    some = shape_of_name("moe:64x128x96:experts=8:topk=2:routing=onehot")
    every = shape_of_name("moe:64x128x96:experts=8:topk=2")

    assert dict(some.work.flops) == dict(every.work.flops) == {"bf16": 6.0 * 128 * 128 * 96}
    matrices = 3 * 2 * 128 * 96
    assert some.work.reads - 2 * matrices == every.work.reads - 8 * matrices == 2 * 64 * 128 + 8 * 128


@pytest.mark.share(3)
@pytest.mark.parametrize("target", ["sm_90a", "gfx942"])
def test_designs_take_the_problem_and_differ_in_their_features(target: str) -> None:
    found = asked("moe:256x128x96:experts=8:topk=2", target)
    names = list(found.space.designs)
    for name in names[:: max(1, len(names) // 6)]:
        assert admits(found.kernel(name), found.sizes_of(name)), name
    options = situation(found).options
    assert len({each.features for each in options}) == len(options) == len(names)
    if target == "sm_90a":
        assert found.sizes_of("moe_rows_16")["P"] == 32 + 8
        assert found.sizes_of("moe_by_rows")["P"] == 4 + 8


def test_trials_have_each_kind_of_routing() -> None:
    found = asked("moe:256x128x96:experts=8:topk=2:routing=zipf")
    kernel = found.kernel("moe_gathered_16")
    trials = list(random_trials(kernel, SEEDS, found.inputs_of(kernel.name)))

    assert found.inputs_of(kernel.name).kinds == ("zipf", "random", "onehot")
    assert len(trials) == 3 * len(SEEDS)
    assert any(len(np.unique(each.arrays["ids"])) == each.sizes["J"] for each in trials)
    own = found.inputs_of(kernel.name).given(found.sizes_of(kernel.name), "random", np.random.default_rng(5))
    assert own["ids"].tolist() == shape_of_name(str(found)).ids.tolist()


@pytest.mark.nightly
def test_a_design_passes_the_gate(tmp_path: Path) -> None:
    found = asked("moe:64x64x32:experts=4:topk=2")
    judgement = GateTask(str(found), "sm_90a", folder=tmp_path)("moe_gathered_16")

    assert (judgement.outcome, judgement.stage, judgement.why) == ("timed", "timing", "")
    assert judgement.microseconds is not None
    assert judgement.microseconds > found.bounds.least


@pytest.mark.nightly
def test_a_layer_of_another_activation_differs_from_the_reference() -> None:
    right, other = (asked(f"moe:64x64x32:experts=4:topk=2:{each}") for each in ("silu", "gelu"))
    rules = evolve(right.inputs_of("moe_gathered_16"), kinds=("random",))

    assert "elements of Y differ" in find_difference(right.reference, other.kernel("moe_gathered_16"), SEEDS[:1], rules)


@pytest.mark.nightly
def test_rows_of_another_expert_differ_from_the_reference() -> None:
    """Lists that are consistent among themselves, but not the ones of the router."""
    found = asked("moe:64x64x32:experts=4:topk=2")
    rules = found.inputs_of("moe_gathered_16")

    def shifted(sizes: Sizes, kind: str, generator: np.random.Generator) -> dict[str, Array]:
        given = dict(rules.given(sizes, kind, generator))
        return lists_of((given["ids"] + 1) % sizes["E"], sizes["E"], 16) | {"ids": given["ids"]}

    def small(generator: np.random.Generator) -> Iterator[Sizes]:
        assert rules.small is not None
        yield from (each for each in rules.small(generator) if each["E"] > 2)

    wrong = evolve(rules, integers=shifted, small=small, kinds=("random",))
    with pytest.raises(ArgusError, match="E402"):
        find_difference(found.reference, found.kernel("moe_gathered_16"), SEEDS[:1], wrong)


def test_a_model_is_shown_the_reference_and_what_is_known_of_experts() -> None:
    view = problem_view(asked("moe:64x128x96:experts=8:topk=2:gelu"))

    assert "W (E, 2, N, K) of bf16" in view.reference
    assert "activation = 'gelu'" in view.reference
    assert "def layer(" in view.reference
    assert {each.family for each in view.practices} == {"experts"}
