"""Layers of experts: one formula of the whole program is proved, the interpreter computes it, twins are not proved."""

from __future__ import annotations

import inspect
from itertools import pairwise
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16, float8_e4m3fn

from argus.core.diagnostic import ArgusError
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.programs import run_program
from argus.kernels import moe, moe_fp8
from argus.kernels.moe import FAMILIES
from argus.kernels.schedules import (
    grouped,
    grouped_by_target,
    grouped_gated,
    grouped_listed,
    moe_rows,
    moe_scaled,
)
from argus.kernels.schedules.grouped_gated import ACTIVATIONS
from argus.language import ProgramTemplate, sm_90a
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.test_grouped import tiles_of
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
FIRST: tuple[str, Literal["silu"], str] = ("bf16", "silu", "columns_256")
ALL = [(*key, config) for key in FAMILIES for config, each in moe.CONFIGS.items() if each.first.target == sm_90a]
OF_8_BITS = {activation: moe_fp8.FAMILIES["e4m3", activation] for activation in ACTIVATIONS}
QUICK = {("bf16", "silu", "rows_16")}
Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("dtype", "activation", "config"),
    [
        pytest.param(
            *each, marks=pytest.mark.share(600, among="layers of experts") if each in QUICK else pytest.mark.nightly
        )
        for each in ALL
    ],
)
def test_every_configuration_is_proved(dtype: str, activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    report = verify_program(FAMILIES[dtype, activation].trace(config), solver="z3", budget=NO_RUNS)

    assert isinstance(report.verdict, Proved), report.verdict
    assert {"I4", "I27", "I37", "I39"} <= dict(report.verdict.coverage).keys()
    (claimed,) = (each for each in report.verdict.results if each.startswith("assert_equals(Y, ") and "X[" in each)
    assert "X[i0, k] * W[scalar(ids[i0, j]), 1, n, k]" in claimed
    assert any("i0 == tokens[inverse[i0, i1]]" in each for each in report.verdict.assumptions)


def order_of(ids: Array, experts: int, height: int = 128) -> dict[str, Array]:
    """Rows in the order of their experts, as `expert_order` lists them. height: the most rows of a tile."""
    flat = ids.ravel()
    order = np.argsort(flat, kind="stable")
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size)
    counts = np.bincount(flat, minlength=experts).tolist()
    lists = {"tokens": order // ids.shape[1], "inverse": inverse.reshape(ids.shape), "ids": ids}
    return {name: each.astype(np.int32) for name, each in lists.items()} | tiles_of(counts, height)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
@pytest.mark.parametrize("tokens", [3, 70])
def test_the_interpreter_computes_the_layer(dtype: str, activation: Any, config: str, tokens: int) -> None:  # noqa: ANN401 reason: a name
    experts, columns, depth, choices = 3, 24, 40, 9 if tokens == 3 else 2  # more than are loaded at once, and fewer
    random, kind = np.random.default_rng(tokens), np.float16 if dtype == "f16" else bfloat16
    x, both, down = (
        (random.integers(-2, 3, shape) / 4).astype(kind)
        for shape in ((tokens, depth), (experts, 2, columns, depth), (experts, depth, columns))
    )
    ids, weights = random.integers(0, 2, (tokens, choices)), random.random((tokens, choices)).astype(np.float32)
    given = {"X": x, "W": both, "V": down, "weights": weights, "Y": np.zeros_like(x)}
    given |= order_of(ids, experts, moe.CONFIGS[config].bm)
    sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "J": choices, "S": experts + 1}
    sizes |= {"R": ids.size, "Q": given["tile_starts"].size, "P": given["tile_experts"].size}

    found = run_program(FAMILIES[dtype, activation].trace(config), sizes, given)

    assert found.violations == ()
    wide = [each.astype(np.float64) for each in (x, both, down)]
    product = np.einsum("tk,tjink->tjin", wide[0], wide[1][ids])
    hidden = (silu if activation == "silu" else gelu)(product[:, :, 0]) * product[:, :, 1]
    wanted = np.einsum("tj,tjn,tjkn->tk", weights.astype(np.float64), hidden, wide[2][ids])
    close = 2.0**-9 if dtype == "f16" else 2.0**-6
    assert np.abs(found.arrays["Y"].astype(np.float64) - wanted).max() <= close * np.abs(wanted).max()


def test_lists_of_rows_keep_what_is_promised_of_them() -> None:
    ids = np.array([[2, 0], [2, 2], [0, 2]])
    made = order_of(ids, 4)
    assert made["starts"].tolist() == [0, 2, 2, 6, 6]
    for token, choice in np.ndindex(*ids.shape):
        row, (start, end) = made["inverse"][token, choice], list(pairwise(made["starts"]))[ids[token, choice]]
        assert made["tokens"][row] == token
        assert start <= row < end


ROW = "scalar(inverse[t, minimum(many * g + j, choices - 1)])"
EDITS: dict[str, tuple[ModuleType, str, str]] = {
    "rows of the token after": (moe_rows, "X[scalar(tokens[r])].tile", "X[(scalar(tokens[r]) + 1) % count].tile"),
    "rows by their own number": (moe_rows, "X[scalar(tokens[r])].tile", "X[r % count].tile"),
    "rows of the neighbour's token": (moe_rows, "X[scalar(tokens[r])].tile", "X[scalar(tokens[r - r % 2])].tile"),
    "rows without their last part": (
        moe_rows,
        "blocks = ceil_div(length, width)\n\n    def part",
        "blocks = length // width\n\n    def part",
    ),
    "the first choice for all": (moe_rows, ROW, "scalar(inverse[t, 0])"),
    "the token before": (moe_rows, "inverse[t, minimum", "inverse[t - t % 2, minimum"),
    "the row after": (moe_rows, ROW, f"({ROW} + 1) % D.shape[0]"),
    "rows of the choice's number": (moe_rows, ROW, "j"),
    "weights applied twice": (
        moe_rows,
        "rows = rows * own",
        "rows = rows * own * own",
    ),
    "weights of the first choices": (moe_rows, "weights[t].tile((many,), (g,))", "weights[t].tile((many,), (0,))"),
    "weights of the neighbour's token": (moe_rows, "weights[t].tile", "weights[t - t % 2].tile"),
    "no weights": (moe_rows, "rows = rows * own", "pass"),
    "the last choice is left out": (moe_rows, "rows.index[0] < choices,", "rows.index[0] < choices - 1,"),
    "the first choices alone": (moe_rows, "in loop(ceil_div(choices, many))", "in loop(minimum(1, choices))"),
    "choices after the first twice": (moe_rows, "minimum(many * g + j,", "minimum(j,"),
    "the last choices alone": (moe_rows, "acc[:] = acc + where", "acc[:] = where"),
    "stored for the token before": (moe_rows, "Y[t].tile", "Y[t - t % 2].tile"),
    "stored in the columns before": (moe_rows, "Y[t].tile((width,), (n,))", "Y[t].tile((width,), (n - n % 2,))"),
    "blocks of columns left out": (
        moe_rows,
        "blocks = ceil_div(length, width)\n    assume(blocks * count",
        "blocks = length // width\n    assume(blocks * count",
    ),
    "rows of another token allowed": (moe_rows, " & eq(scalar(self.tokens[r]), t)", ""),
    "rows of the experts after allowed": (moe_rows, "(start <= r) & (r < end) & ", "(start <= r) & "),
    "rows of the experts before allowed": (moe_rows, "(start <= r) & (r < end) & ", "(r < end) & "),
    "experts that there are not": (moe_rows, "(e >= 0) & (e < experts)", "e >= 0"),
    "tokens that there are not": (
        moe_rows,
        "    promise(tokens, lambda t: (t >= 0) & (t < count))",
        "    promise(tokens, lambda t: t >= 0)",
    ),
    "the second product without its gate": (grouped_gated, "ACTIVATIONS[activation](gated) * acc", "acc"),
    "the gate alone": (grouped_gated, "ACTIVATIONS[activation](gated) * acc", "ACTIVATIONS[activation](gated)"),
    "a gate without its activation": (grouped_gated, "ACTIVATIONS[activation](gated) * acc", "gated * acc"),
    "the other factor activated": (
        grouped_gated,
        "ACTIVATIONS[activation](gated) * acc",
        "ACTIVATIONS[activation](acc) * gated",
    ),
    "gated twice": (
        grouped_gated,
        "ACTIVATIONS[activation](gated) * acc",
        "ACTIVATIONS[activation](gated) * acc * ACTIVATIONS[activation](gated)",
    ),
    "the gate of the neighbour's expert": (grouped_gated, "of_expert(up, t)", "of_expert(up, t - t % 2)"),
    "columns of the tile after": (grouped_gated, "(n, k)), slot.v", "(n + 1, k)), slot.v"),
    "both factors of one matrix": (grouped_gated, "copy(v.tile", "copy(w.tile"),
    "the last part of K is left out": (grouped_gated, "depth = ceil_div(A.shape[1], bk)", "depth = A.shape[1] // bk"),
    "a stage is released too early": (grouped_gated, "wgmma.wait(pending=2)", "wgmma.wait(pending=3)"),
    "a factor is read before its product is done": (
        grouped_gated,
        "wgmma.wait(pending=0)\n                ring.release()\n",
        "ring.release()\n",
    ),
    "an activation of twice": (grouped_gated, '{"silu": silu,', '{"silu": lambda x: silu(x * 2.0),'),
    "both warpgroups store the first's rows": (grouped_gated, "(wg, n), boxes[wg]", "(0, n), boxes[wg]"),
    "the expert after": (
        grouped,
        "matrices[scalar(self.tile_experts[t])]",
        "matrices[(scalar(self.tile_experts[t]) + 1) % matrices.shape[0]]",
    ),
    "the padded row is stored": (
        grouped,
        "self.C.rows(*ends_of(self.tile_starts, t))",
        "self.C.rows(scalar(self.tile_starts[t]))",
    ),
    "the gate and the other factor exchanged": (
        moe,
        """GroupedContraction(A, W[:, 0], H, starts, tile_starts, tile_experts, cfg.bm)
        multiply_gated(problem, W[:, 1],""",
        """GroupedContraction(A, W[:, 1], H, starts, tile_starts, tile_experts, cfg.bm)
        multiply_gated(problem, W[:, 0],""",
    ),
    "rows without their experts added": (moe, "moe_sum(D, weights", "moe_sum(A, weights"),
}


OF_FEW: dict[str, tuple[ModuleType, str, str]] = {
    "a product without its gate": (grouped_by_target, "activated(gated) * acc, cfg)", "acc, cfg)"),
    "a gate without its activation": (grouped_by_target, "activated(gated) * acc, cfg)", "gated * acc, cfg)"),
    "both factors of one matrix": (grouped_by_target, "(ListedExperts(problem), up,", "(ListedExperts(problem), gate,"),
    "rows of the tile after": (grouped_listed, "return 0, n, t", "return 1, n, t"),
    "rows of the tile before": (
        grouped_listed,
        "return self.A.rows(scalar(self.of.tile_starts[e]))",
        "return self.A.rows(scalar(self.of.tile_starts[e - e % 2]))",
    ),
    "matrices of the tile before": (grouped_listed, "of_expert(matrices, e)", "of_expert(matrices, e - e % 2)"),
    "stored by the tile before": (grouped_listed, "self.of.result(e)", "self.of.result(e - e % 2)"),
    "the last columns are left out": (grouped_listed, "ceil_div(self.C.shape[1], cfg.bn)", "self.C.shape[1] // cfg.bn"),
    "tiles beyond 32 bits": (grouped_listed, "        assume(counts[0] * counts[1] < 1 << 24)", "        pass"),
    "an expert that there is not": (grouped, "(e >= 0) & (e < self.B.shape[0]) & ", "(e >= 0) & "),
    "rows of the expert before": (grouped, " & (start <= first)", ""),
    "rows of the expert after": (grouped, " & (last <= end)", ""),
    "tiles of any number of rows": (grouped, "first=0, last=rows, most=self.bm)", "first=0, last=rows)"),
}
ORDERS = {
    "rows are not copied": ("            moe_gather(X, tokens, A, cfg=cfg.copies)\n", ""),
    "rows that are not there yet": ("moe_first(A, W, *lists", "moe_first(D, W, *lists"),
    "no first product": ("        moe_first(A, W, *lists, H, cfg=cfg.first)\n", ""),
}


def edited_module(module: ModuleType, old: str, new: str) -> ModuleType:
    """The module of programs with one edit."""
    text = inspect.getsource(module)
    assert text.count(old) == 1, old
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), module.__file__ or "", "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    return made


def edited(module: ModuleType, old: str, new: str) -> ProgramTemplate:
    """The program where its own module has one edit."""
    return edited_module(module, old, new).FAMILIES[FIRST[:2]]


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, old, new = EDITS[name]
    own = module is moe
    made = edited(moe, old, new).trace(FIRST[2]) if own else twin(FAMILIES[FIRST[:2]], FIRST[2], module, (old, new))
    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name


@pytest.mark.nightly
@pytest.mark.parametrize("name", OF_FEW)
def test_a_twin_for_few_rows_is_not_proved(name: str) -> None:
    module, old, new = OF_FEW[name]
    made = twin(FAMILIES[FIRST[:2]], "rows_16", module, (old, new))
    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name


@pytest.mark.parametrize("name", ORDERS)
def test_launches_that_read_what_is_not_there_are_refused(name: str) -> None:
    with pytest.raises(ArgusError) as refused:
        edited(moe, *ORDERS[name]).trace(FIRST[2])
    assert refused.value.diagnostic.code == "E221"


def e4m3(random: np.random.Generator, *shape: int) -> Array:
    return random.integers(-3, 4, shape).astype(float8_e4m3fn)


def spread_out(scales: Array, axes: tuple[int, ...], like: Array) -> Array:
    """Scales of blocks as one for each element."""
    for axis in axes:
        scales = np.repeat(scales, 128, axis)
    return scales[tuple(map(slice, like.shape))] * like.astype(np.float64)


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("activation", OF_8_BITS)
@pytest.mark.parametrize("config", moe_fp8.CONFIGS)
def test_the_interpreter_computes_the_layer_of_8_bits(activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    tokens, experts, columns, depth, choices = 5, 2, 128, 144, 2
    random = np.random.default_rng(0)
    x, both, down = (
        e4m3(random, *each) for each in ((tokens, depth), (experts, 2 * columns, depth), (experts, depth, columns))
    )
    shapes = {"scale_x": (tokens, 2), "scale_w": (experts, 2, 2), "scale_v": (experts, 2, 1)}
    scales = {name: (random.random(each) / 8 + 0.05).astype(np.float32) for name, each in shapes.items()}
    ids, weights = random.integers(0, 2, (tokens, choices)), random.random((tokens, choices)).astype(np.float32)
    given = {"X": x, "W": both, "V": down, "weights": weights, **scales}
    given |= order_of(ids, experts, moe_fp8.CONFIGS[config].bm)
    given["Y"] = np.zeros((tokens, depth), bfloat16)
    sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "U": 2 * columns, "J": choices, "S": experts + 1}
    sizes |= {"R": ids.size, "Q": given["tile_starts"].size, "P": given["tile_experts"].size}
    sizes |= {"KB": 2, "UB": 2, "NB": 1}

    found = run_program(OF_8_BITS[activation].trace(config), sizes, given)

    assert found.violations == ()
    wide = spread_out(scales["scale_x"], (1,), x), spread_out(scales["scale_w"], (1, 2), both)
    product = np.einsum("tk,tjuk->tju", wide[0], wide[1][ids])
    hidden = (silu if activation == "silu" else gelu)(product[..., :columns]) * product[..., columns:]
    rows = spread_out(scales["scale_v"], (1, 2), down)
    wanted = np.einsum("tj,tjn,tjkn->tk", weights.astype(np.float64), hidden, rows[ids])
    apart = np.linalg.norm(found.arrays["Y"].astype(np.float64) - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert apart.max() <= 0.06  # elements keep 4 bits


@pytest.mark.nightly
@pytest.mark.parametrize("config", moe_fp8.CONFIGS)
@pytest.mark.parametrize("activation", OF_8_BITS)
def test_each_launch_of_8_bits_is_proved(activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    report = verify_program(OF_8_BITS[activation].trace(config), solver="z3", budget=NO_RUNS)
    assert isinstance(report.verdict, Proved), report.verdict
    proofs = [each.verdict for each in report.launches if isinstance(each.verdict, Proved)]
    assert all(any(result.startswith("assert_equals(") for result in each.results) for each in proofs)


@pytest.mark.share(2)
@pytest.mark.parametrize("activation", OF_8_BITS)
def test_gated_rows_and_their_scales_are_proved(activation: Any) -> None:  # noqa: ANN401 reason: a name
    (gated,) = (
        each.kernel for each in OF_8_BITS[activation].trace("by_rows").launches if each.kernel.name == "moe_gated_fp8"
    )
    verdict = verify(gated, solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Proved), verdict


OF_SCALES = {
    "scales of the token after": ("tokens[minimum(first + i, rows - 1)]", "tokens[minimum(first + i + 1, rows - 1)]"),
    "scales of the block after": ("b + 0 * i\n", "b + 1 + 0 * i\n"),
    "another block's gate": ("both.tile(by.tile, (m, b + half))", "both.tile(by.tile, (m, b - b % 2 + half))"),
    "the first factor twice": ("for half in (0, blocks)]", "for half in (0, 0)]"),
    "not activated": ('(silu(gate) if activation == "silu" else gelu(gate * 0.5)) * up', "gate * up"),
    "the largest and not its magnitude": ("maximum(h, h * -1.0).max(1)", "h.max(1)"),
    "stored without its scale": ("h * (limit * reciprocal(most))", "h * 1.0"),
    "the scale's inverse": ("        copy(most / limit, of_rows, by", "        copy(limit / most, of_rows, by"),
    "the scale of the block before": ("scales[b].tile((_ROWS,)", "scales[b - b % 2].tile((_ROWS,)"),
    "scales of half the rows": ("ceil_div(rows, _ROWS), blocks))", "rows // _ROWS, blocks))"),
    "a block that may be 0": (".max(1), LEAST)", ".max(1), 0.0)"),
}


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("name", OF_SCALES)
def test_a_twin_of_scales_is_not_proved(name: str) -> None:
    made = twin(OF_8_BITS["silu"], "by_rows", moe_scaled, OF_SCALES[name])
    small = [each.kernel for each in made.launches if each.kernel.name in ("moe_gather_scales", "moe_gated_fp8")]
    assert not all(isinstance(verify(each, solver="z3", budget=NO_RUNS).verdict, Proved) for each in small), name
