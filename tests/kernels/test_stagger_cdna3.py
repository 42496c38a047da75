"""Blocks that begin at different tiles of K on MI300X: proved, right in machine code, no spills; wrong ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.interpret import interpret
from argus.kernels.config_names import name_of
from argus.kernels.gemm import CONFIGS, configuration, gemm
from argus.kernels.schedules import contraction
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.language import Template
from argus.runtime.machine.validate import validate_code
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

STARTS = 4
KINDS = (Cdna3, Cdna3Interleaved, Cdna3PingPong)
STAGGERED = {name: evolve(config, stagger=STARTS) for name, config in CONFIGS.items() if isinstance(config, KINDS)}
FAMILY: Template = evolve(gemm, configs=STAGGERED)


def of_rows(name: str, rows: int = 1) -> Kernel:
    """The kernel with super-tiles of so many rows of tiles, so that a small C has several."""
    config = STAGGERED[name]
    return gemm.instance(config if isinstance(config, Cdna3) else evolve(config, group=rows), "staggered")


@pytest.mark.share(24, among="staggered K")
@pytest.mark.parametrize("name", STAGGERED)
def test_each_product_is_summed_once(name: str) -> None:
    verdict = verify(FAMILY.trace(name), solver="z3").verdict

    assert isinstance(verdict, Proved)
    assert verdict.results in [(f"each element of `C` is bf16(sum over k of {ab})",) for ab in ("A * B", "B * A")]


@pytest.mark.nightly
@pytest.mark.parametrize("name", STAGGERED)
def test_it_is_proved_by_cvc5_and_compiled_without_spills(name: str, tmp_path: Path) -> None:
    made = FAMILY.trace(name)
    report = build(made, directory=tmp_path).report

    assert isinstance(verify(made, solver="cvc5").verdict, Proved)
    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


def test_a_design_has_a_name() -> None:
    for config in STAGGERED.values():
        assert configuration(name_of(config)) == config


@pytest.mark.parametrize("depth", [8, 72, 264])
def test_blocks_begin_at_tiles_of_k_that_are_there(depth: int) -> None:
    """Of one, two and five tiles of K, where four starts are asked for."""
    m, n = 520, 40
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (rows, depth)).astype(bfloat16) for rows in (m, n))
    given = a, b, np.zeros((m, n), bfloat16)
    found = interpret(of_rows("interleaved_128"), *given, tags=False)["C"]

    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.share(24, among="staggered K")
@pytest.mark.parametrize("name", ["cdna3", "interleaved_128"])
def test_machine_code_agrees_with_the_interpreter(name: str) -> None:
    sizes = [{"M": 136 + 128, "N": 136, "K": depth} for depth in (72, 200)]
    found = validate_code(of_rows(name), sizes, seeds=1)

    assert found.trials
    assert all(trial.right for trial in found.trials)


ROTATION = "(k + super_tile % starts) % depth"
EDITS: dict[str, str] = {
    "not wrapped around": "k + super_tile % starts",
    "wrapped around late": "(k + super_tile % starts) % (depth + 1)",
    "one tile skipped": "(k + (k + super_tile % starts) // depth + super_tile % starts) % depth",
    "every other tile": "(2 * k + super_tile % starts) % depth",
}


@pytest.mark.share(24, among="staggered K")
@pytest.mark.parametrize("edit", EDITS)
def test_another_order_is_not_proved(edit: str) -> None:
    wrong = twin(FAMILY, "interleaved_128", contraction, (ROTATION, EDITS[edit]))

    assert not isinstance(verify(wrong, solver="z3", budget=Budget.about(0.1)).verdict, Proved)
