"""Layers of experts on MI300X: a formula of the whole program is proved, machine code is right, no twin is proved."""

from __future__ import annotations

from inspect import getsource
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.index_text import show
from argus.core.ir import Program
from argus.core.ir.pretty import pretty
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.programs import launch_sizes, run_program
from argus.kernels.moe import CONFIGS as OF_BOTH
from argus.kernels.moe import FAMILIES
from argus.kernels.schedules import grouped_cdna3, moe_rows
from argus.language import gfx942
from argus.runtime.cpu.validate import emitted
from argus.runtime.machine.launch import compiled, run_code
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.test_moe import EDITS as OF_THE_LAYER
from tests.kernels.test_moe import gelu, order_of, silu
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
FIRST: tuple[str, Literal["silu"], str] = ("bf16", "silu", "interleaved_64")
CONFIGS = {name: each for name, each in OF_BOTH.items() if each.first.target == gfx942}
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
    assert {"I4", "I5", "I27", "I37", "I39"} <= dict(report.verdict.coverage).keys()
    (claimed,) = (each for each in report.verdict.results if each.startswith("assert_equals(Y, ") and "X[" in each)
    assert "X[i0, k] * W[scalar(ids[i0, j]), 1, n, k]" in claimed
    assert any("i0 == tokens[inverse[i0, i1]]" in each for each in report.verdict.assumptions)
    assert not any("E*K*N <= 4294967280" in each for each in report.verdict.assumptions)


def assert_in_registers(program: Program, directory: Path) -> None:
    """Build all launches: nothing spills."""
    for each in program.launches:
        report = build(each.kernel, directory=directory / each.kernel.name).report
        assert isinstance(report, ResourceReport)
        assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
def test_sums_stay_in_registers(dtype: str, activation: Any, config: str, tmp_path: Path) -> None:  # noqa: ANN401 reason: a name
    assert_in_registers(FAMILIES[dtype, activation].trace(config), tmp_path)


def case(dtype: str, config: str, tokens: int, seed: int) -> tuple[dict[str, int], dict[str, Array]]:
    """Sizes and arrays, with results that hold no numbers; the first expert has no tokens."""
    random, kind = np.random.default_rng(seed), np.float16 if dtype == "f16" else bfloat16
    experts, choices = int(random.integers(2, 6)), int(random.integers(1, 4))
    columns, depth = (8 * int(random.integers(1, 20)) for _ in range(2))
    x, both, down = (
        (random.integers(-2, 3, shape) / 4).astype(kind)
        for shape in ((tokens, depth), (experts, 2, columns, depth), (experts, depth, columns))
    )
    ids, weights = random.integers(1, experts, (tokens, choices)), random.random((tokens, choices)).astype(np.float32)
    arrays = {"X": x, "W": both, "V": down, "weights": weights, **order_of(ids, experts, CONFIGS[config].bm)}
    arrays["Y"] = np.full_like(x, np.nan)
    sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "J": choices, "S": experts + 1, "R": ids.size}
    return sizes | {"Q": arrays["tile_starts"].size, "P": arrays["tile_experts"].size}, arrays


def layer(arrays: dict[str, Array], activation: str) -> Array:
    x, both, down, weights = (arrays[name].astype(np.float64) for name in ("X", "W", "V", "weights"))
    product = np.einsum("tk,tjink->tjin", x, both[arrays["ids"]])
    hidden = (silu if activation == "silu" else gelu)(product[:, :, 0]) * product[:, :, 1]
    return np.einsum("tj,tjn,tjkn->tk", weights, hidden, down[arrays["ids"]])


def is_right(found: Array, wanted: Array) -> bool:
    close = 2.0**-9 if found.dtype == np.float16 else 2.0**-6
    return bool(np.abs(found.astype(np.float64) - wanted).max() <= close * np.abs(wanted).max())


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
def test_the_interpreter_computes_the_layer(dtype: str, activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    sizes, arrays = case(dtype, config, 9, 0)
    found = run_program(FAMILIES[dtype, activation].trace(config), sizes, arrays)
    assert found.violations == ()
    assert is_right(found.arrays["Y"], layer(arrays, activation))


def in_machine_code(program: Program, sizes: dict[str, int], arrays: dict[str, Array], seed: int) -> dict[str, Array]:
    """What the launches leave, each run as machine code. Workspaces hold no numbers before."""
    held = dict(arrays)
    for each in program.workspaces:
        shape = [int(sizes.get(show(extent), show(extent))) for extent in each.shape]  # a size, or a number
        held[each.name] = np.full(shape, np.nan).astype(each.dtype.numpy)
    for launch in program.launches:
        kernel, whole = launch.kernel, {name: each.name for name, each in launch.arguments.items()}
        text, own = emitted(kernel), launch_sizes(launch, {each: sizes[each.name] for each in program.sizes})
        given = {each.name: held[whole[each.name]] for each in kernel.parameters}
        code = compiled(kernel, text.text, text.info)
        found, done = run_code(code, kernel, {each.name: size for each, size in own.items()}, given, seed)
        assert not done.findings
        held |= {whole[name]: each for name, each in found.items()}
    return held


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
def test_machine_code_computes_the_layer(dtype: str, activation: Any, config: str, seed: int) -> None:  # noqa: ANN401 reason: a name
    sizes, arrays = case(dtype, config, (1, 37, 150)[seed], seed)
    found = in_machine_code(FAMILIES[dtype, activation].trace(config), sizes, arrays, seed)
    assert is_right(found["Y"], layer(arrays, activation))


OWN: dict[str, tuple[ModuleType, str, str]] = {
    "rows are stored before they are there": (moe_rows, "if target == gfx942:", "if target != gfx942:"),
    "factors exchanged": (grouped_cdna3, "gated, acc = operands.multiply", "acc, gated = operands.multiply"),
    "one factor twice": (grouped_cdna3, "(gated) * acc", "(gated) * gated"),
    "a gate without its activation": (grouped_cdna3, "ACTIVATIONS[activation](gated) * acc", "gated * acc"),
    "no gate": (grouped_cdna3, "ACTIVATIONS[activation](gated) * acc", "acc"),
    "half of the columns": (grouped_cdna3, "_tile(problem, cfg.bn // 2, cfg)", "_tile(problem, cfg.bn, cfg)"),
    "both factors of one matrix": (grouped_cdna3, "(b, problem.of_expert(up, t))", "(b, b)"),
    "the gate of the neighbour's expert": (grouped_cdna3, "of_expert(up, t)", "of_expert(up, t - t % 2)"),
    "gated columns of the tile after": (
        grouped_cdna3,
        "gated, acc = operands.multiply((0, n)",
        "gated, acc = operands.multiply((0, n + 1)",
    ),
    "gated rows of the tile after": (
        grouped_cdna3,
        "gated, acc = operands.multiply((0, n)",
        "gated, acc = operands.multiply((1, n)",
    ),
    "stored for the tile before": (
        grouped_cdna3,
        "acc, problem.result(t), n)",
        "acc, problem.result(t - t % 2), n)",
    ),
    "the first choice for all": (moe_rows, "D[scalar(inverse[t, j])]", "D[scalar(inverse[t, 0])]"),
    "the token before": (moe_rows, "D[scalar(inverse[t, j])]", "D[scalar(inverse[t - t % 2, j])]"),
    "the row after": (moe_rows, "D[scalar(inverse[t, j])]", "D[(scalar(inverse[t, j]) + 1) % D.shape[0]]"),
    "rows of the choice's number": (moe_rows, "D[scalar(inverse[t, j])]", "D[j]"),
    "weights applied twice": (
        moe_rows,
        "load(weights[t, j], by.axis())",
        "load(weights[t, j], by.axis()) * load(weights[t, j], by.axis())",
    ),
    "weights of the first choice": (moe_rows, "load(weights[t, j]", "load(weights[t, 0]"),
    "weights of the neighbour's token": (moe_rows, "load(weights[t, j]", "load(weights[t - t % 2, j]"),
    "no weights": (moe_rows, "else row.to(f32) * factor)", "else row.to(f32))"),
    "the last choice is left out": (moe_rows, "in loop(inverse.shape[1])", "in loop(inverse.shape[1] - 1)"),
    "a choice too many": (moe_rows, "in loop(inverse.shape[1])", "in loop(inverse.shape[1] + 1)"),
    "the last row alone": (moe_rows, "acc[:] = acc + (row", "acc[:] = (row"),
}
_OF_HOPPER = getsource(moe_rows._at_once)  # pyright: ignore[reportPrivateUsage]  # the sum of the other target
SHARED = {
    name: (module, old, new)
    for name, (module, old, new) in OF_THE_LAYER.items()
    if module is moe_rows and old not in _OF_HOPPER
}


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("name", [*OWN, *(each for each in SHARED if each not in OWN)])
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, old, new = {**SHARED, **OWN}[name]
    made, own = twin(FAMILIES[FIRST[:2]], FIRST[2], module, (old, new)), FAMILIES[FIRST[:2]].trace(FIRST[2])
    pairs = zip(made.launches, own.launches, strict=True)
    changed = [each.kernel for each, other in pairs if pretty(each.kernel) != pretty(other.kernel)]
    if all(isinstance(verify(each, solver="z3", budget=NO_RUNS).verdict, Proved) for each in changed):
        assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name
