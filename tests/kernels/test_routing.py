"""Kernels of routing: proved, their text computes what the interpreter does, and twins of one edit are not proved."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.routing import CONFIGS, FAMILIES, choose, choose_cdna3
from argus.kernels.schedules import routing as schedule
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
BFLOATS = [each for each in FAMILIES if each.endswith("bf16")]
BIASED = "route_sigmoid_renormalised_biased_bf16"


def is_proved(name: str, config: str, solver: str = "z3") -> bool:
    verdict = verify(FAMILIES[name], config=config, solver=solver, budget=NO_RUNS).verdict
    return isinstance(verdict, Proved) and {"I4", "I39"} <= dict(verdict.coverage).keys()


@pytest.mark.share(128, among="routing")
@pytest.mark.parametrize("experts", [8, 256])
@pytest.mark.parametrize("name", BFLOATS)
def test_a_configuration_of_each_kind_is_proved(name: str, experts: int) -> None:
    assert is_proved(name, choose("bf16", experts))


@pytest.mark.share(128, among="routing")
@pytest.mark.parametrize("name", BFLOATS)
def test_so_are_those_on_mi300x(name: str) -> None:
    assert is_proved(name, choose_cdna3("bf16", 64))


@pytest.mark.nightly
@pytest.mark.parametrize("name", BFLOATS)
def test_cvc5_proves_them_too(name: str) -> None:
    assert is_proved(name, choose("bf16", 256), "cvc5")


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAMILIES)
def test_every_configuration_is_proved(name: str) -> None:
    assert [each for each in FAMILIES[name].configs if not is_proved(name, each)] == []


def test_every_number_of_experts_has_a_configuration() -> None:
    for kind, configs in CONFIGS.items():
        for experts in range(1, schedule.EXPERTS + 1):
            for chosen in (configs[choose(kind, experts)], configs[choose_cdna3(kind, experts)]):
                assert experts % chosen.vector == 0
                assert experts <= chosen.width
                assert chosen.lanes >= schedule.MOST


@pytest.mark.share(128, among="routing")
@pytest.mark.parametrize("name", FAMILIES)
def test_the_text_agrees_with_the_interpreter(name: str) -> None:
    sizes = [{"T": 1, "E": 12, "K": 3}, {"T": 17, "E": 4, "K": 4}]
    few = FAMILIES[name].instance(schedule.Routed(64, 4, 4, 1), "few")
    found = validate(few, sizes, seeds=1)
    assert all(each.right for each in found.trials), found
    assert any(each.elements for each in found.trials)


EDITS: dict[str, tuple[str, str]] = {
    "the least of all eight places": ("where(chosen.are(own), own, inf)", "own"),
    "the greatest of the chosen": ("own, inf).min(1)", "own, -inf).max(1)"),
    "experts as large as the least count, too": ("(key > lowest) |", "(key >= lowest) |"),
    "equal ones are not counted": ("((key > lowest) | (place <= last))", "(key > lowest)"),
    "equal ones before the last alone": ("place <= last", "place < last"),
    "equal ones by the number of the choice before": ("rows - 1), choices - 1)", "rows - 1), choices - 2)"),
    "all scores of the first chunk's places": (
        "block.tile(chunk) * block.width + key.index[1], inf",
        "key.index[1] + 1, inf",
    ),
    "one expert more may be ahead": ("(places == choices) &", "(places <= choices + 1) &"),
    "whoever is ahead": ("(places == choices) & ", ""),
    "the chosen in any order": ("(rises == 0) & ", ""),
    "the last two in any order": ("chosen.are(own, 1)", "chosen.are(own, 2)"),
    "equal ones in any order": (" & (order < order_after)", ""),
    "the same one twice": ("order < order_after", "order <= order_after"),
    "numbers of no expert": (" & (outside == 0)", ""),
    "the number of experts is one": ("number < experts", "number <= experts"),
    "numbers below 0": ("(number >= 0) & ", ""),
    "no factor": ("weights * factor", "weights"),
    "the sum over all eight places": ("where(chosen.are(weights), weights, 0.0).sum(1)", "weights.sum(1)"),
    "no sum": ("weights / where(chosen.are(weights), weights, 0.0).sum(1)", "weights"),
    "the weight of the choice after": ("picked, own = self._keys(chosen, 0)", "picked, own = self._keys(chosen, 1)"),
    "biases in the weights": ("return scores, sigmoid(scores) +", "return sigmoid(scores), sigmoid(scores) +"),
    "biases of other experts": ("lambda r, j: (self.column(r, j),), step", "lambda r, j: (j,), step"),
    "scores of the row before": (
        "lambda r, j: (r, self.column(r, j)), step",
        "lambda r, j: (r - r % 2, self.column(r, j)), step",
    ),
    "no bias where scores are compared": ("sigmoid(all_scores(chunk)) + held(chunk)", "sigmoid(all_scores(chunk))"),
    "scores beyond the last expert": ("counts = block.within(key, chunk) & (", "counts = ("),
    "another sign of the exponent": ("exp2(x * -LOG2_E) + 1.0)", "exp2(x * LOG2_E) + 1.0)"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    made = twin(FAMILIES[BIASED], choose("bf16", 64), schedule, EDITS[name])
    assert not isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)
