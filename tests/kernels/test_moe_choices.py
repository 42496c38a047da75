"""Layers of experts for few tokens: proved as one formula, their text computes it, and twins are not proved."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.proof.outputs import program_claims
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.emit.cuda.text import cuda_text
from argus.interp.programs import run_program
from argus.kernels import moe_choices
from argus.kernels.moe_choices import CONFIGS, FAMILIES
from argus.kernels.schedules import moe_choices as schedules
from argus.runtime.cpu.validate import validate
from argus.verifier.program import verify_program
from tests.kernels.test_moe import edited_module, gelu, silu
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
KEY: tuple[str, Literal["silu"]] = ("bf16", "silu")
SHORT = "choices_768"
DRAWN = pytest.mark.share(600, among="layers of experts")
ALL = [(*key, config) for key in FAMILIES for config in CONFIGS]


@pytest.mark.parametrize(
    ("dtype", "activation", "config"),
    [pytest.param(*each, marks=DRAWN if each == (*KEY, "choices_2048") else pytest.mark.nightly) for each in ALL],
)
def test_every_configuration_is_proved(dtype: str, activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    report = verify_program(FAMILIES[dtype, activation].trace(config), solver="z3", budget=NO_RUNS)

    assert isinstance(report.verdict, Proved), report.verdict
    assert {"I4", "I27", "I37", "I39"} <= dict(report.verdict.coverage).keys()
    (claimed,) = (each for each in report.verdict.results if each.startswith("assert_equals(Y, ") and "X[" in each)
    assert "X[i0, k] * W[scalar(ids[i0, j]), 1, n, k]" in claimed
    assert any("ids[i0, i1] < E" in each for each in report.verdict.assumptions)


@DRAWN
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
@pytest.mark.parametrize("tokens", [1, 3])
def test_the_interpreter_computes_the_layer(dtype: str, activation: Any, config: str, tokens: int) -> None:  # noqa: ANN401 reason: a name
    experts, columns, depth, choices = 4, 264 if tokens == 1 else 40, 72, 3
    random, kind = np.random.default_rng(tokens), np.float16 if dtype == "f16" else bfloat16
    x, both, down = (
        (random.integers(-2, 3, shape) / 4).astype(kind)
        for shape in ((tokens, depth), (experts, 2, columns, depth), (experts, depth, columns))
    )
    ids = random.integers(0, experts, (tokens, choices)).astype(np.int32)
    weights = random.random((tokens, choices)).astype(np.float32)
    given = {"X": x, "W": both, "V": down, "ids": ids, "weights": weights, "Y": np.zeros_like(x)}
    sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "J": choices}

    found = run_program(FAMILIES[dtype, activation].trace(config), sizes, given)

    assert found.violations == ()
    wide = [each.astype(np.float64) for each in (x, both, down)]
    product = np.einsum("tk,tjink->tjin", wide[0], wide[1][ids])
    hidden = (silu if activation == "silu" else gelu)(product[:, :, 0]) * product[:, :, 1]
    wanted = np.einsum("tj,tjn,tjkn->tk", weights.astype(np.float64), hidden, wide[2][ids])
    close = 2.0**-9 if dtype == "f16" else 2.0**-6
    assert np.abs(found.arrays["Y"].astype(np.float64) - wanted).max() <= close * np.abs(wanted).max()


@DRAWN
@pytest.mark.parametrize(
    ("config", "number"), [(each, number) for each in CONFIGS for number in range(4 if CONFIGS[each].atomic else 2)]
)
@pytest.mark.parametrize(("dtype", "activation"), FAMILIES)
def test_the_text_agrees_with_the_interpreter(dtype: str, activation: Any, config: str, number: int) -> None:  # noqa: ANN401 reason: a name
    kernel = FAMILIES[dtype, activation].trace(config).launches[number].kernel
    sizes = {"T": 2, "K": 40, "E": 3, "N": 16, "J": 2}, {"T": 1, "K": 264, "E": 1, "N": 8, "J": 1}
    found = validate(kernel, sizes, seeds=1)
    assert all(each.right and each.elements for each in found.trials), found


@DRAWN
@pytest.mark.parametrize("config", CONFIGS)
def test_the_first_launch_checks_the_numbers_of_experts(config: str) -> None:
    first, *others = (cuda_text(each.kernel).text for each in launch_contexts(FAMILIES[KEY].trace(config)))

    assert "moe_choices_first__checked(" in first
    assert not any("__checked(" in each for each in others)


EDITS: dict[str, tuple[ModuleType, str, str]] = {
    "the row of the token after": (
        schedules,
        "products.add(X[t], (gate[e]",
        "products.add(X[(t + 1) % tokens], (gate[e]",
    ),
    "the row of the choice's number": (
        schedules,
        "products.add(X[t], (gate[e]",
        "products.add(X[j % tokens], (gate[e]",
    ),
    "the expert of the choice after": (
        schedules,
        "scalar(ids[t, j]), _Products",
        "scalar(ids[t, (j + 1) % choices]), _Products",
    ),
    "the expert after": (
        schedules,
        "scalar(ids[t, j]), _Products",
        "(scalar(ids[t, j]) + 1) % gate.shape[0], _Products",
    ),
    "both factors of one matrix": (schedules, "(gate[e], up[e])", "(gate[e], gate[e])"),
    "the gate and the other factor exchanged": (schedules, "of_gate, of_up = products", "of_up, of_gate = products"),
    "a product without its gate": (schedules, "ACTIVATIONS[activation](of_gate) * of_up", "of_up"),
    "a gate without its activation": (schedules, "ACTIVATIONS[activation](of_gate) * of_up", "of_gate * of_up"),
    "the last part of K is left out": (
        schedules,
        "ceil_div(X.shape[1], products.width)",
        "X.shape[1] // products.width",
    ),
    "the first part of K for all": (schedules, "(gate[e], up[e]), n, part)", "(gate[e], up[e]), n)"),
    "stored in the columns before": (
        schedules,
        "H[t, j].tile((cfg.rows,), (n,))",
        "H[t, j].tile((cfg.rows,), (n - n % 2,))",
    ),
    "stored for the choice before": (schedules, "H[t, j].tile", "H[t, j - j % 2].tile"),
    "blocks of columns left out": (
        schedules,
        "blocks = ceil_div(columns, cfg.rows)\n    n, j, t",
        "blocks = ceil_div(columns, 2 * cfg.rows)\n    n, j, t",
    ),
    "sums that are not zero at first": (schedules, "    products.clear()\n    for part", "    for part"),
    "sums of the choice before as well": (
        schedules,
        "        products.clear()\n        products.add(H",
        "        products.add(H",
    ),
    "a total that is not zero at first": (schedules, "    total_of[:] = 0.0\n", ""),
    "the last choice alone": (schedules, "total_of[:] = total_of + products", "total_of[:] = products"),
    "weights applied twice": (
        schedules,
        "total_of + products.results()[0] * factor",
        "total_of + products.results()[0] * factor * factor",
    ),
    "no weights": (schedules, "total_of + products.results()[0] * factor", "total_of + products.results()[0]"),
    "weights of the first choice": (
        schedules,
        "        factor = load(weights[t, j]",
        "        factor = load(weights[t, 0 * j]",
    ),
    "weights of the neighbour's token": (
        schedules,
        "        factor = load(weights[t, j]",
        "        factor = load(weights[t - t % 2, j]",
    ),
    "rows of the first choice": (schedules, "        products.add(H[t, j]", "        products.add(H[t, 0 * j]"),
    "matrices of the first choice": (
        schedules,
        "        products.add(H[t, j], (V[scalar(ids[t, j])]",
        "        products.add(H[t, j], (V[scalar(ids[t, 0 * j])]",
    ),
    "the last choice is left out": (schedules, "loop(cfg.ahead, choices,", "loop(cfg.ahead, choices - 1,"),
    "a choice too many": (schedules, "loop(cfg.ahead, choices,", "loop(cfg.ahead, choices + 1,"),
    "the part after": (schedules, "[part * self.cfg.steps + step for", "[part * self.cfg.steps + step + 1 for"),
    "parts of a row that overlap": (schedules, "[part * self.cfg.steps + step for", "[part + step for"),
    "longer rows than are read": (
        schedules,
        "assume(depth <= products.width, choices >= cfg.ahead)",
        "assume(choices >= cfg.ahead)",
    ),
    "elements squared": (schedules, "fma(a.to(f32), b.to(f32), acc)", "fma(a.to(f32), a.to(f32), acc)"),
    "the last product alone": (schedules, "fma(a.to(f32), b.to(f32), acc)", "a.to(f32) * b.to(f32)"),
    "stored for the token before": (schedules, "Y[t].tile", "Y[t - t % 2].tile"),
    "experts that there are not": (schedules, "(e >= 0) & (e < experts)", "e >= 0"),
    "experts below the first": (schedules, "(e >= 0) & (e < experts)", "e < experts"),
}


ADDED: dict[str, tuple[str, str]] = {
    "sums that are not zero at first": (
        "copy(zeros(S.dtype, by), part, edge=0)",
        "copy(zeros(S.dtype, by) + 1.0, part, edge=0)",
    ),
    "half of the sums are zero at first": (
        "n, r = block_id((ceil_div(length, width), rows))",
        "n, r = block_id((ceil_div(length, 2 * width), rows))",
    ),
    "added by all lanes": ("by=first_lane, edge=0, combine=add", "edge=0, combine=add"),
    "stored and not added": ("by=first_lane, edge=0, combine=add", "by=first_lane, edge=0"),
    "weights applied twice": ("results()[0] * factor, S[t]", "results()[0] * factor * factor, S[t]"),
    "no weights": ("results()[0] * factor, S[t]", "results()[0], S[t]"),
    "added to the token before": ("S[t].tile((cfg.rows,), (n,))", "S[t - t % 2].tile((cfg.rows,), (n,))"),
    "added to the columns before": ("S[t].tile((cfg.rows,), (n,))", "S[t].tile((cfg.rows,), (n - n % 2,))"),
    "the last choice is left out": (
        "cfg.rows), choices, tokens))\n    products",
        "cfg.rows), choices - 1, tokens))\n    products",
    ),
    "no choice at all": ("products.width, choices >= 1)", "products.width)"),
    "rows of another token": ("each[r].tile((width,), (n,))", "each[r - r % 2].tile((width,), (n,))"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ADDED)
def test_a_twin_that_adds_is_not_proved(name: str) -> None:
    made = twin(FAMILIES[KEY], "added_768", schedules, ADDED[name])
    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name


@DRAWN
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, *edit = EDITS[name]
    made = twin(FAMILIES[KEY], SHORT, module, (edit[0], edit[1]))
    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name


@DRAWN
@pytest.mark.parametrize(
    ("old", "new"), [("W[:, 0], W[:, 1]", "W[:, 1], W[:, 0]"), ("W[:, 0], W[:, 1]", "W[:, 0], W[:, 0]")]
)
def test_another_layer_than_claimed_is_not_proved(old: str, new: str) -> None:
    """Where each launch does what it claims, and both together another thing than the program does."""
    made = edited_module(moe_choices, old, new).FAMILIES[KEY].trace("choices_2048")
    report = verify_program(made, solver="z3", budget=NO_RUNS)
    assert isinstance(report.launches[0].verdict, Proved)
    assert not isinstance(report.verdict, Proved)


def nothing(*_: object) -> None:
    """In place of a function that finds something."""


@DRAWN
def test_what_the_second_launch_claims_is_what_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stores have eight parts of a row, each with what the first launch left: too long to compare."""
    made = FAMILIES[KEY].trace("choices_2048")
    monkeypatch.setattr(program_claims, "_left_by_claim", nothing)
    assert isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Unknown)


@DRAWN
def test_a_claim_that_does_not_hold_proves_nothing_of_the_program() -> None:
    made = twin(
        FAMILIES[KEY],
        "choices_2048",
        schedules,
        ("total_of + products.results()[0] * factor", "total_of + products.results()[0]"),
    )
    report = verify_program(made, solver="z3", budget=NO_RUNS)
    assert not isinstance(report.launches[1].verdict, Proved)
    assert not isinstance(report.verdict, Proved)
