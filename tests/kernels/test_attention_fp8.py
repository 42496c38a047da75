"""Attention of 8-bit elements: proved, right where it is run, and twins of one edit are not proved."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16, float8_e4m3fn

from argus.core.proof.values.held import rounded_integers
from argus.core.query import Budget
from argus.core.values.expr import Expr, fn
from argus.core.verdict import Proved, Refuted, Unknown
from argus.interp.interpret import interpret_program
from argus.kernels.attention_fp8 import CONFIGS, FAMILIES
from argus.kernels.schedules import attention as problem
from argus.kernels.schedules import attention_hopper as schedule
from argus.kernels.schedules import turned_values as turned
from argus.kernels.schedules.turned_values import key_at
from argus.runtime.cpu.validate import validate
from argus.verifier.program import verify_program
from tests.kernels.twins import Edit, twin

BRIEF = evolve(Budget(), runs=0)
EACH = [(width, config) for width, configs in CONFIGS.items() for config in configs]


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "config"), EACH)
def test_every_configuration_is_proved(width: int, config: str) -> None:
    verdict = verify_program(FAMILIES[width], config=config, solver="z3", budget=BRIEF).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I39"} <= dict(verdict.coverage).keys()
    assert all(any(f"assert_equals({name}" in each for each in verdict.results) for name in ("W", "O", "LSE"))


def test_each_key_has_a_place() -> None:
    assert sorted(key_at(place) for place in range(64)) == list(range(64))  # pyright: ignore[reportArgumentType]  # the same arithmetic


@pytest.mark.share(4)
@pytest.mark.parametrize("config", CONFIGS[64])
def test_the_interpreter_computes_attention(config: str) -> None:
    batch, heads, queries, groups, keys = 1, 2, 70, 1, 130
    random = np.random.default_rng(1)
    of_queries, of_keys = (batch, heads, queries, 64), (batch, groups, keys, 64)
    q, k, v = (random.standard_normal(each).astype(float8_e4m3fn) for each in (of_queries, of_keys, of_keys))
    factors = [random.uniform(0.5, 2, each[:2]).astype(np.float32) for each in (of_queries, of_keys, of_keys)]
    wide = [each.astype(np.float64) * by[..., None, None] for each, by in zip((q, k, v), factors, strict=True)]
    many = heads // groups
    scores = wide[0] @ np.repeat(wide[1], many, 1).swapaxes(2, 3) * 0.125
    row, key = np.ogrid[:queries, :keys]
    seen = key <= row + keys - queries if config != "full" else np.ones((queries, keys), bool)
    weights = np.where(seen, np.exp(scores), 0)
    sums = weights.sum(3)
    wanted = weights / np.where(sums == 0, 1, sums)[..., None] @ np.repeat(wide[2], many, 1)
    scale = np.array([0.125 / np.log(2)], np.float32)
    out, lse = np.full(of_queries, np.nan, bfloat16), np.full(of_queries[:3], np.nan, np.float32)
    found = interpret_program(FAMILIES[64].trace(config), q, k, v, scale, *factors, out, lse)

    assert np.abs(found["O"].astype(np.float64) - wanted).max() < 2**-4 * np.abs(wanted).max()
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found["LSE"], np.log(sums), atol=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("config", CONFIGS[64])
def test_the_text_agrees_with_the_interpreter(config: str) -> None:
    keys = CONFIGS[64][config].attention.bn
    sizes = {"B": 1, "H": 2, "S": 70, "G": 1, "T": 130, "P": -(-130 // keys) * keys}
    for launch in FAMILIES[64].trace(config).launches:
        own = {symbol.name: sizes[symbol.name] for symbol in launch.kernel.sizes}
        found = validate(launch.kernel, (own,), seeds=(3, 4))
        assert all(each.right and each.elements for each in found.trials), found


_OF_KEYS = "k.gather((rows,), lambda _: (b, 0 * h))"
EDITS: dict[str, tuple[str, ModuleType, Edit]] = {
    "mask off by one": ("causal", problem, ("else t <= last, x", "else t <= last + 1, x")),
    "a block too few is masked": (
        "causal",
        problem,
        ("self.visible(first) // keys", "self.visible(first) // keys + 1"),
    ),
    "keys in their own order": ("full", turned, ("(key_at(n * size + p), e)", "(n * size + p, e)")),
    "rows of other keys": ("full", turned, ("key_at(n * size + p), e)", "key_at(n * size + p + 16), e)")),
    "weights in another order": (
        "full",
        schedule,
        ("(row, key_at(place))", "(row, key_at(place // 4 * 4 + place % 2 * 2 + place % 4 // 2))"),
    ),
    "values of another head": ("full", problem, ("self.V[b, g], self.O", "self.V[b, 0 * g], self.O")),
    "factor of another head": ("full", problem, ("k.gather((rows,), lambda _: (b, h // of.group))", _OF_KEYS)),
    "no factor of queries": (
        "full",
        problem,
        ("found = found * load(q.gather((rows,), lambda _: (b, h)), by)", "found = found * 1.0"),
    ),
    "factor of keys for values": ("full", problem, ("of.descale[2].gather", "of.descale[1].gather")),
    "maximum without its factors": ("full", problem, ("most = self.high * self.scale", "most = self.high * 1.0")),
    "weights beyond the end": ("full", schedule, ("else RAISED)", "else RAISED + 1)")),
    "raised weights in the log-sum-exp": ("full", problem, ("(most - self.raised if", "(most if")),
    "weights relative to the maximum before": (
        "full",
        problem,
        ("weights = rows.weights(x, guard)", "weights = rows.weights(x, rows.high)"),
    ),
    "sums not rescaled": ("full", schedule, ("self.out[:] = self.out * rescale", "self.out[:] = self.out * 1.0")),
    "values released early": (
        "full",
        schedule,
        (
            "        wgmma.wait(0)\n        self.rings.v.release()\n        self.weights",
            "        self.rings.v.release()\n        wgmma.wait(0)\n        self.weights",
        ),
    ),
}
"""Twins of one edit."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    config, module, edit = EDITS[name]
    verdict = verify_program(twin(FAMILIES[64], config, module, edit), solver="z3", budget=BRIEF).verdict

    assert isinstance(verdict, Unknown | Refuted), verdict


def as_a_minimum(of: Expr, low: Expr, high: Expr, _: object) -> Expr:
    return fn("clamp", of, low, high)


@pytest.mark.nightly
def test_weights_stay_below_the_end_by_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounded_integers, "clamped", as_a_minimum)
    full: Any = FAMILIES[64].trace("full")
    assert isinstance(verify_program(full, solver="z3", budget=BRIEF).verdict, Unknown)
