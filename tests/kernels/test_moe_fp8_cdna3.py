"""Layers of experts of e4m3fnuz on MI300X: each launch is proved, machine code is right, no twin is proved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16, float8_e4m3fnuz

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.programs import run_program
from argus.kernels.moe_fp8 import CONFIGS_CDNA3 as CONFIGS
from argus.kernels.moe_fp8 import FAMILIES as BY_TYPE
from argus.kernels.schedules import moe_scaled
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.test_moe import OF_SCALES, gelu, order_of, silu, spread_out
from tests.kernels.test_moe_cdna3 import assert_in_registers, in_machine_code
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
FIRST = ("silu", "interleaved_64")
FAMILIES = {activation: each for (kind, activation), each in BY_TYPE.items() if kind == "e4m3fnuz"}
ALL = [(activation, config) for activation in FAMILIES for config in CONFIGS]
GATED = "moe_gated_fnuz"
Array = np.ndarray[Any, Any]


def case(tokens: int, height: int = 64) -> tuple[dict[str, int], dict[str, Array]]:
    """Sizes and arrays of a layer of one block of columns, and two of K, with tiles of so many rows."""
    experts, columns, depth, choices = 2, 128, 144, 2
    random = np.random.default_rng(0)
    shapes = {"X": (tokens, depth), "W": (experts, 2 * columns, depth), "V": (experts, depth, columns)}
    arrays: dict[str, Array] = {
        name: random.integers(-3, 4, each).astype(float8_e4m3fnuz) for name, each in shapes.items()
    }
    scales = {"scale_x": (tokens, 2), "scale_w": (experts, 2, 2), "scale_v": (experts, 2, 1)}
    arrays |= {name: (random.random(each) / 8 + 0.05).astype(np.float32) for name, each in scales.items()}
    ids = random.integers(0, experts, (tokens, choices))
    arrays |= {"weights": random.random((tokens, choices)).astype(np.float32), **order_of(ids, experts, height)}
    arrays["Y"] = np.full((tokens, depth), np.nan).astype(bfloat16)
    sizes = {"T": tokens, "K": depth, "E": experts, "N": columns, "U": 2 * columns, "J": choices, "S": experts + 1}
    sizes |= {"R": ids.size, "Q": arrays["tile_starts"].size, "P": arrays["tile_experts"].size}
    return sizes | {"KB": 2, "UB": 2, "NB": 1}, arrays


def is_right(found: Array, arrays: dict[str, Array], activation: str) -> bool:
    ids, columns = arrays["ids"], arrays["V"].shape[2]
    rows = spread_out(arrays["scale_x"], (1,), arrays["X"])
    both, down = (spread_out(arrays[f"scale_{name.lower()}"], (1, 2), arrays[name]) for name in "WV")
    product = np.einsum("tk,tjuk->tju", rows, both[ids])
    hidden = (silu if activation == "silu" else gelu)(product[..., :columns]) * product[..., columns:]
    wanted = np.einsum("tj,tjn,tjkn->tk", arrays["weights"].astype(np.float64), hidden, down[ids])
    apart = np.linalg.norm(found.astype(np.float64) - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    return bool(apart.max() <= 0.06)  # elements keep 4 bits


@pytest.mark.parametrize("solver", ["z3", pytest.param("cvc5", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("activation", "config"),
    [
        pytest.param(
            *each, marks=pytest.mark.share(600, among="layers of experts") if each == FIRST else pytest.mark.nightly
        )
        for each in ALL
    ],
)
def test_each_launch_is_proved(activation: Any, config: str, solver: Any) -> None:  # noqa: ANN401 reason: names
    report = verify_program(FAMILIES[activation].trace(config), solver=solver, budget=NO_RUNS)
    assert isinstance(report.verdict, Proved), report.verdict
    proofs = [each.verdict for each in report.launches if isinstance(each.verdict, Proved)]
    assert all(any(result.startswith("assert_equals(") for result in each.results) for each in proofs)
    (gated,) = (
        each.verdict.results for each in report.launches if each.kernel == GATED and isinstance(each.verdict, Proved)
    )
    assert any("240" in result for result in gated)


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize(("activation", "config"), ALL)
def test_the_interpreter_computes_the_layer(activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    sizes, arrays = case(5, CONFIGS[config].bm)
    found = run_program(FAMILIES[activation].trace(config), sizes, arrays)
    assert found.violations == ()
    assert is_right(found.arrays["Y"], arrays, activation)


@pytest.mark.nightly
@pytest.mark.parametrize("tokens", [5, 90])
@pytest.mark.parametrize(("activation", "config"), ALL)
def test_machine_code_computes_the_layer(activation: Any, config: str, tokens: int) -> None:  # noqa: ANN401 reason: a name
    sizes, arrays = case(tokens, CONFIGS[config].bm)
    found = in_machine_code(FAMILIES[activation].trace(config), sizes, arrays, 0)
    assert is_right(found["Y"], arrays, activation)


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize(("activation", "config"), ALL)
def test_sums_stay_in_registers(activation: Any, config: str, tmp_path: Path) -> None:  # noqa: ANN401 reason: a name
    assert_in_registers(FAMILIES[activation].trace(config), tmp_path)


OWN = {
    "rows read before they are there": ("arrived(each, cfg.target).to(f32)", "each.to(f32)"),
    "scales stored before they are there": (
        "held = arrived(load(scales.gather((cfg.threads,), place), by, edge=0), cfg.target)",
        "held = load(scales.gather((cfg.threads,), place), by, edge=0)",
    ),
    "the scale's inverse": ("        copy(most / limit, of_rows, edge", "        copy(limit / most, of_rows, edge"),
    "the largest number of the other format": ("limit, of_rows = made.dtype.greatest,", "limit, of_rows = 448.0,"),
}


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("name", [*OWN, *(each for each in OF_SCALES if each not in OWN)])
def test_a_twin_is_not_proved(name: str) -> None:
    made = twin(FAMILIES[FIRST[0]], FIRST[1], moe_scaled, {**OF_SCALES, **OWN}[name])
    small = [each.kernel for each in made.launches if each.kernel.name in ("moe_gather_scales", GATED)]
    assert not all(isinstance(verify(each, solver="z3", budget=NO_RUNS).verdict, Proved) for each in small), name
