"""Kernels of groups of experts: proved, equal to NumPy, and twins of one edit are not proved."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels import routing_groups
from argus.kernels.routing import FAMILIES, choose, family
from argus.kernels.routing_groups import CONFIGS, KEPT, SCORES
from argus.kernels.schedules import routing
from argus.kernels.schedules import routing_groups as schedule
from argus.language import Template
from argus.runtime.cpu.validate import validate
from argus.verifier.api import interpret
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
ALL: dict[str, Template] = {each.name: each for each in (*SCORES.values(), KEPT)}
BIASED, PLAIN = SCORES["bf16", True], SCORES["bf16", False]
SMALL = "groups_of_32"
DRAWN = pytest.mark.share(128, among="routing")
Array = np.ndarray[Any, Any]


@pytest.mark.share(3)
@pytest.mark.parametrize("config", [SMALL, pytest.param("groups_of_256", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", [pytest.param(each, marks=() if each == BIASED.name else DRAWN) for each in ALL])
def test_every_kernel_is_proved(name: str, config: str) -> None:
    verdict = verify(ALL[name], config=config, solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I39"} <= dict(verdict.coverage).keys()


@pytest.mark.nightly
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", ALL)
def test_cvc5_proves_them_too(name: str, config: str) -> None:
    assert isinstance(verify(ALL[name], config=config, solver="cvc5", budget=NO_RUNS).verdict, Proved)


@DRAWN
@pytest.mark.parametrize("name", ALL)
def test_the_text_agrees_with_the_interpreter(name: str) -> None:
    sizes = [{"T": 2, "G": 5, "D": 3}, {"T": 1, "G": 2, "D": 40}]
    more = {"top": 2} if name == KEPT.name else {}
    found = validate(ALL[name].trace("groups_of_64"), [each | more for each in sizes], seeds=1)
    assert all(each.right for each in found.trials), found
    assert any(each.elements for each in found.trials)


def ranked(scores: Array, top: int) -> Array:
    """Which groups are among the first `top` of each token."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    kept: Array = np.zeros(scores.shape, np.bool_)
    np.put_along_axis(kept, order, True, axis=1)
    return kept


@DRAWN
@pytest.mark.parametrize("top", [1, 3, 6])
def test_the_best_groups_are_kept(top: int) -> None:
    scores = np.random.default_rng(top).integers(0, 4, (9, 6)).astype(np.float32)  # equal ones among them
    kept = np.full((9, 6, 3), np.nan, np.float32)
    found = interpret(KEPT.trace(SMALL), scores, kept, given_sizes={"top": top})
    assert (found["M"] == ranked(scores, top)[:, :, None]).all()


@DRAWN
@pytest.mark.parametrize("biased", [False, True])
def test_a_group_has_its_largest_score_or_the_sum_of_the_two_largest(biased: bool) -> None:
    random = np.random.default_rng(0)
    x = random.integers(-3, 4, (5, 6, 4)).astype(np.float32)
    bias = np.zeros((6, 4), np.float32)  # so that sums are equal, too
    given = (x, bias) if biased else (x,)
    found = interpret(SCORES["f32", biased].trace(SMALL), *given, np.zeros((5, 6), np.float32))
    sums = np.sort(1 / (1 + np.exp(-x)) + bias, axis=2)[:, :, -2:].sum(2)
    np.testing.assert_allclose(found["S"], sums if biased else x.max(2), rtol=1e-6)


EDITS: dict[str, tuple[Template, str, str]] = {
    "the group after": (BIASED, "load(X[t].tile(by.tile, (n, 0))", "load(X[t].tile(by.tile, (n + 1, 0))"),
    "the token before": (BIASED, "load(X[t].tile", "load(X[t - t % 2].tile"),
    "biases of the groups before": (BIASED, "load(B.tile(by.tile, (n, 0))", "load(B.tile(by.tile, (n - n % 2, 0))"),
    "no biases": (BIASED, "sigmoid(loaded) + load(B", "sigmoid(loaded) + 0.0 * load(B"),
    "scores and not their sigmoids": (BIASED, "sigmoid(loaded) + load(B", "loaded + load(B"),
    "one score too many": (BIASED, "own.index[1] < X.shape[2]", "own.index[1] <= X.shape[2]"),
    "one score too few": (BIASED, "own.index[1] < X.shape[2]", "own.index[1] < X.shape[2] - 1"),
    "the largest alone": (BIASED, "found = best + where(equal > 1.0, best, below)", "found = best"),
    "the largest twice": (BIASED, "where(equal > 1.0, best, below)", "best"),
    "equal ones are one": (BIASED, "where(equal > 1.0, best, below)", "below"),
    "the two largest below": (BIASED, "found = best + where", "found = below + where"),
    "the second is the largest": (
        BIASED,
        "where(key < best, key, -inf).max(1)",
        "where(key <= best, key, -inf).max(1)",
    ),
    "the least below": (BIASED, "where(key < best, key, -inf).max(1)", "where(key < best, key, inf).min(1)"),
    "stored one group on": (
        BIASED,
        "copy(found, S[t].tile((cfg.rows,), (n,))",
        "copy(found, S[t].tile((cfg.rows,), (n + 1,))",
    ),
    "the least of all": (PLAIN, "best = key.max(1)", "best = key.min(1)"),
    "a zero beyond the end": (PLAIN, "key = where(within, own, -inf)", "key = where(within, own, 0.0)"),
    "groups of equal scores all before": (KEPT, "((other == own) & earlier)", "(other == own)"),
    "groups of equal scores never before": (KEPT, " | ((other == own) & earlier)", ""),
    "a group before itself": (KEPT, "h < cfg.rows * n", "h <= cfg.rows * n"),
    "the number within a block": (KEPT, "h < cfg.rows * n + own.index[0]", "h < own.index[0]"),
    "the least first": (KEPT, "(other > own)", "(other < own)"),
    "one group too many": (KEPT, "where(before < top, 1.0, 0.0)", "where(before <= top, 1.0, 0.0)"),
    "all but these": (KEPT, "where(before < top, 1.0, 0.0)", "where(before < top, 0.0, 1.0)"),
    "the last group is not compared": (KEPT, "in loop(groups)", "in loop(groups - 1)"),
    "the first group alone is compared": (KEPT, "load(S[t, h]", "load(S[t, 0 * h]"),
    "groups of another token": (KEPT, "load(S[t, h]", "load(S[t - t % 2, h]"),
    "counts that are not zero at first": (KEPT, "before[:] = before + where", "before[:] = where"),
    "kept for the groups before": (KEPT, "M[t].tile(by.tile, (n, 0))", "M[t].tile(by.tile, (n - n % 2, 0))"),
    "kept for the token before": (KEPT, "M[t].tile(by.tile", "M[t - t % 2].tile(by.tile"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    of, *edit = EDITS[name]
    made = twin(of, SMALL, schedule, (edit[0], edit[1]))
    assert not isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)


FLAG = "(self.M, lambda r, j: (r, self.column(r, j)), 0)"
OF_CHOICE: dict[str, tuple[ModuleType, str, str]] = {
    "experts of any group count": (routing, "counts & (may(chunk) > 0.0)", "counts"),
    "experts of the other groups count": (routing, "counts & (may(chunk) > 0.0)", "counts & (may(chunk) <= 0.0)"),
    "scores in place of flags": (routing, "block.rows(self.M)", "block.rows(self.X)"),
    "the chosen are of any group": (routing, "known &= chosen.gather", "known |= chosen.gather"),
    "flags of the choice's number": (
        routing,
        FLAG,
        "(self.M, lambda r, j: (r, j), 0)",
    ),
    "flags of the choice after": (
        routing,
        FLAG,
        FLAG.replace(", 0)", ", 1)"),
    ),
    "flags of the token before": (
        routing,
        FLAG,
        FLAG.replace("(r, self", "(r - r % 2, self"),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", OF_CHOICE)
def test_a_twin_of_a_choice_among_groups_is_not_proved(name: str) -> None:
    module, *edit = OF_CHOICE[name]
    of = FAMILIES[family("bf16", "sigmoid", renormalised=True, biased=True, grouped=True)]
    made = twin(of, choose("bf16", 64), module, (edit[0], edit[1]))
    assert not isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)


def test_every_size_has_a_configuration() -> None:
    for size in range(1, routing.EXPERTS + 1):
        assert CONFIGS[routing_groups.choose(size)].layout.tile[1] >= size
