"""Gradients of layers of experts: a formula of each is proved, the interpreter computes them, twins are not proved."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.ir import Program
from argus.core.ir.pretty import pretty
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.programs import run_program
from argus.kernels import moe_gradient
from argus.kernels.moe_gradient import CONFIGS, FAMILIES
from argus.kernels.schedules import grouped, grouped_gated, grouped_halves, moe_rows
from argus.kernels.schedules import moe_gradient as rows
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.test_moe import edited_module, gelu, order_of, silu
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
FIRST: tuple[str, Literal["silu"], str] = ("bf16", "silu", "columns_256")
ALL = [(*key, config) for config in CONFIGS for key in FAMILIES]
Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("solver", ["z3", pytest.param("cvc5", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("dtype", "activation", "config"),
    [
        pytest.param(
            *each, marks=pytest.mark.share(600, among="layers of experts") if each == FIRST else pytest.mark.nightly
        )
        for each in ALL
    ],
)
def test_every_configuration_is_proved(dtype: str, activation: Any, config: str, solver: Any) -> None:  # noqa: ANN401 reason: names
    report = verify_program(FAMILIES[dtype, activation].trace(config), solver=solver, budget=NO_RUNS)

    assert isinstance(report.verdict, Proved), report.verdict
    assert {"I4", "I27", "I37", "I39"} <= dict(report.verdict.coverage).keys()
    of_choices, of_tokens = (
        each
        for each in report.verdict.results
        if each.startswith(("assert_equals(dw, ", "assert_equals(dX, ")) and "X[i0, k] * W[scalar(ids" in each
    )
    assert "G[i0, k] * V[scalar(ids[i0, i1]), k, n]" in of_choices
    assert "weights[j + (J * i0)]" in of_tokens
    assert "W[scalar(ids[i0, j]), 1, n, i1]" in of_tokens
    assert any("order[inverse[i0, i1]]" in each for each in report.verdict.assumptions)
    claimed = [each for each in report.verdict.results if each.startswith("assert_equals(")]
    assert all(any(f"assert_equals({name}, " in each for each in claimed) for name in ("A", "Z", "dH", "dZ", "H", "dA"))


def slope(activation: str, x: Array) -> Array:
    """The derivative of an activation, by differences."""
    near, of = 1e-5, silu if activation == "silu" else gelu
    return (of(x + near) - of(x - near)) / (2 * near)


def case(dtype: str, activation: str, height: int) -> tuple[dict[str, int], dict[str, Array], dict[str, Array]]:
    """Sizes, arrays by name, with results that hold no numbers, and what these have to be.

    height: the most rows of a tile.
    """
    tokens, experts, columns, depth, choices = 37, 4, 24, 40, 2
    random, kind = np.random.default_rng(3), np.float16 if dtype == "f16" else bfloat16
    x, both, down, given = (
        (random.integers(-2, 3, shape) / 4).astype(kind)
        for shape in ((tokens, depth), (experts, 2, columns, depth), (experts, depth, columns), (tokens, depth))
    )
    ids, weights = random.integers(0, 3, (tokens, choices)), random.random((tokens, choices)).astype(np.float32)
    order = order_of(ids, experts, height)
    pairs = np.argsort(ids.ravel(), kind="stable").astype(np.int32)
    arrays = {"X": x, "W": both, "V": down, "G": given, "weights": weights.ravel(), **order, "order": pairs}
    made = {"A": (ids.size, depth), "B": (ids.size, depth), "dZ": (ids.size, 2, columns), "H": (ids.size, columns)}
    arrays |= {name: np.full(shape, np.nan).astype(kind) for name, shape in (*made.items(), ("dX", x.shape))}
    arrays["dw"] = np.full((tokens, choices), np.nan, np.float32)
    sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "J": choices, "S": experts + 1}
    sizes |= {"R": ids.size, "Q": order["tile_starts"].size, "P": order["tile_experts"].size}

    x, both, down, given = (each.astype(np.float64) for each in (x, both, down, given))
    product = np.einsum("tk,tjink->tjin", x, both[ids])
    gate, up = product[:, :, 0], product[:, :, 1]
    active = (silu if activation == "silu" else gelu)(gate)
    hidden = np.einsum("tk,tjkn->tjn", given, down[ids])
    wide = weights.astype(np.float64)[:, :, None]
    halves = np.stack([wide * hidden * up * slope(activation, gate), wide * hidden * active], 2)
    wanted = {
        "dw": (hidden * active * up).sum(2),
        "dX": np.einsum("tjin,tjink->tk", halves, both[ids]),
        "A": x[pairs // choices],
        "B": given[pairs // choices],
        "dZ": halves.reshape(-1, 2, columns)[pairs],
        "H": (wide * active * up).reshape(-1, columns)[pairs],
    }
    return sizes, arrays, wanted


def assert_right(found: Mapping[str, Array], wanted: dict[str, Array], dtype: str) -> None:
    close = 2.0**-9 if dtype == "f16" else 2.0**-6
    for name, each in wanted.items():
        assert np.abs(found[name].astype(np.float64) - each).max() <= close * np.abs(each).max(), name


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
def test_the_interpreter_computes_the_gradients(dtype: str, activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    sizes, arrays, wanted = case(dtype, activation, CONFIGS[config].bm)
    program = FAMILIES[dtype, activation].trace(config)
    found = run_program(program, sizes, {each.name: arrays[each.name] for each in program.parameters})
    assert found.violations == ()
    assert_right(found.arrays, wanted, dtype)


EDITS: dict[str, tuple[ModuleType, str, str]] = {
    "weights applied twice": (rows, "weighted = s * factor", "weighted = s * factor * factor"),
    "no weights": (rows, "weighted = s * factor", "weighted = s"),
    "weights of the row's own number": (rows, "self.order[block.at]", "self.order[block.at - block.at % 2]"),
    "the gate's gradient without the other factor": (rows, "weighted * u * bent", "weighted * bent"),
    "the gate's gradient without its slope": (rows, "weighted * u * bent", "weighted * u * active"),
    "the other factor's without the activation": (rows, ", weighted * active)", ", weighted * u)"),
    "halves exchanged": (rows, "(weighted * u * bent, weighted * active)", "(weighted * active, weighted * u * bent)"),
    "one half twice": (rows, "block.store(values, halves[i], chunk)", "block.store(values, halves[0 * i], chunk)"),
    "gated rows without their weights": (rows, "active * u * factor", "active * u"),
    "gated rows with the gradient": (rows, "active * u * factor", "active * s * factor"),
    "weighted products": (rows, "(active * u * s)", "(active * u * weighted)"),
    "products without the other factor": (rows, "(active * u * s)", "(active * s)"),
    "the last chunk's products alone": (rows, "sums += (active", "sums[:] = (active"),
    "the last chunk is left out": (rows, "in loop(ceil_div(length, cfg.longest))", "in loop(length // cfg.longest)"),
    "the slope of the tanh alone": (rows, "fma(bent, 0.5, 0.5))", "fma(bent, 0.0, 0.0))"),
    "the slope of twice": (rows, "1.0 - bent * bent", "1.0 - bent"),
    "the slope of another gate": (rows, "inner, slope = half, 0.5", "inner, slope = half, 1.0"),
    "the row after": (rows, "count - 1), j]),)", "count - 1), j]) + 1,)"),
    "products of the token before": (
        rows,
        "minimum(first + i, count - 1), j",
        "minimum(first + i - i % 2, count - 1), j",
    ),
    "products of the first choice": (rows, "count - 1), j])", "count - 1), 0 * j])"),
    "stored for the choice before": (rows, "made[:, j]", "made[:, j - j % 2]"),
    "any order of weights": (
        moe_rows,
        "return own & eq(scalar(self.order[r]), t * self.ids.shape[1] + j)",
        "return own",
    ),
    "weights of the choice before": (
        moe_rows,
        "t * self.ids.shape[1] + j)",
        "t * self.ids.shape[1] + j - j % 2)",
    ),
    "rows of another token allowed": (moe_rows, " & eq(scalar(self.tokens[r]), t)", ""),
    "rows of the experts after allowed": (moe_rows, "(start <= r) & (r < end) & ", "(start <= r) & "),
    "the first choice for all": (moe_rows, "inverse[t, minimum(many * g + j, choices - 1)]", "inverse[t, 0]"),
    "the token before": (moe_rows, "inverse[t, minimum(", "inverse[t - t % 2, minimum("),
    "rows of the token after": (moe_rows, "X[scalar(tokens[r])].tile", "X[(scalar(tokens[r]) + 1) % count].tile"),
    "one half of the sum twice": (
        grouped_halves,
        "slot.a1.tile((_ROWS, bk), (wg, 0)), slot.b1)",
        "slot.a0.tile((_ROWS, bk), (wg, 0)), slot.b0)",
    ),
    "the second half is left out": (
        grouped_halves,
        "                    mma(mm, acc, slot.a1.tile((_ROWS, bk), (wg, 0)), slot.b1)\n",
        "",
    ),
    "the first half is left out": (
        grouped_halves,
        "slot.b1)\n",
        "slot.b1, init=eq(k, 0))\n",
    ),
    "the last part of columns is left out": (
        grouped_halves,
        "depth = ceil_div(problem.A.shape[1], bk)",
        "depth = problem.A.shape[1] // bk",
    ),
    "a stage is released too early": (grouped_halves, "wgmma.wait(pending=2)", "wgmma.wait(pending=3)"),
    "matrices of the neighbour's expert": (
        grouped_halves,
        "problem.operands(t), other.operands(t)",
        "problem.operands(t), other.operands(t - t % 2)",
    ),
    "both products of one matrix": (
        grouped_halves,
        "hopper_grouped_pair(one, other.B, cfg, store)",
        "hopper_grouped_pair(one, one.B, cfg, store)",
    ),
    "one product stored twice": (grouped_halves, "store_until_end(second, other", "store_until_end(first, other"),
    "columns of the tile after": (grouped_gated, "(n, k)), slot.v", "(n + 1, k)), slot.v"),
    "the expert after": (
        grouped,
        "matrices[scalar(self.tile_experts[t])]",
        "matrices[(scalar(self.tile_experts[t]) + 1) % matrices.shape[0]]",
    ),
}
OWN = {
    "tokens in place of the result's gradient": ("moe_gather(G, tokens, B,", "moe_gather(X, tokens, B,"),
    "the first matrices for the second's": ("moe_hidden_gradient(B, V,", "moe_hidden_gradient(A, V,"),
    "rows in place of their gradients": ("moe_token_gradient(dA,", "moe_token_gradient(A,"),
    "halves not differentiated": ("moe_row_gradient(halves, W,", "moe_row_gradient(Z, W,"),
    "matrices of the other half": ("halves[i], W[:, i].mT", "halves[i], W[:, 1 - i].mT"),
}


def is_proved(made: Program, config: str = FIRST[2]) -> bool:
    """Whether a twin is proved: first what differs from the program's own launches."""
    own = FAMILIES[FIRST[:2]].trace(config)
    changed = [
        each.kernel
        for each, other in zip(made.launches, own.launches, strict=True)
        if pretty(each.kernel) != pretty(other.kernel)
    ]
    if not all(isinstance(verify(each, solver="z3", budget=NO_RUNS).verdict, Proved) for each in changed):
        return False
    return isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, *edit = EDITS[name]
    assert not is_proved(twin(FAMILIES[FIRST[:2]], FIRST[2], module, (edit[0], edit[1])))


@pytest.mark.nightly
@pytest.mark.parametrize("name", OWN)
def test_a_twin_of_the_program_is_not_proved(name: str) -> None:
    assert not is_proved(edited_module(moe_gradient, *OWN[name]).FAMILIES[FIRST[:2]].trace(FIRST[2]))
