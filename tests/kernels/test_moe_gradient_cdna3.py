"""Gradients of layers of experts on MI300X: machine code is right, nothing spills, twins are not proved.

That every configuration is proved is shown beside those of an H200, of which the program is the same.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from argus.kernels.moe_gradient import CONFIGS, FAMILIES
from argus.kernels.schedules import grouped_cdna3
from argus.kernels.schedules import moe_gradient as rows
from argus.language import gfx942
from tests.kernels.test_moe_cdna3 import assert_in_registers, in_machine_code
from tests.kernels.test_moe_gradient import EDITS as OF_THE_GRADIENTS
from tests.kernels.test_moe_gradient import FIRST, assert_right, case, is_proved
from tests.kernels.twins import twin

OWN = [name for name, each in CONFIGS.items() if each.first.target == gfx942]
ALL = [(*key, config) for config in OWN for key in FAMILIES]


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
def test_sums_stay_in_registers(dtype: str, activation: Any, config: str, tmp_path: Path) -> None:  # noqa: ANN401 reason: a name
    assert_in_registers(FAMILIES[dtype, activation].trace(config), tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize(("dtype", "activation", "config"), ALL)
def test_machine_code_computes_the_gradients(dtype: str, activation: Any, config: str) -> None:  # noqa: ANN401 reason: a name
    sizes, arrays, wanted = case(dtype, activation, CONFIGS[config].bm)
    program = FAMILIES[dtype, activation].trace(config)
    found = in_machine_code(program, sizes, {each.name: arrays[each.name] for each in program.parameters}, 0)
    assert_right(found, wanted, dtype)


EDITS: dict[str, tuple[ModuleType, str, str]] = {
    "one product stored twice": (
        grouped_cdna3,
        "_store(second, other.result(t), n)",
        "_store(first, other.result(t), n)",
    ),
    "products exchanged": (grouped_cdna3, "store(gated.T, acc.T, t, n)", "store(acc.T, gated.T, t, n)"),
    "one product stored to both halves": (
        grouped_cdna3,
        "_store(second, other.result(t), n)",
        "_store(second, one.result(t), n)",
    ),
    "the second product is left out": (
        grouped_cdna3,
        "acc = operands.on(c, d).multiply((0, n), 0, depth, more=first)",
        "acc = first",
    ),
    "the first product is left out": (grouped_cdna3, "depth, more=first)", "depth)"),
    "the first product twice": (grouped_cdna3, "operands.on(c, d)", "operands.on(a, b)"),
    "rows of one half with matrices of the other": (grouped_cdna3, "operands.on(c, d)", "operands.on(c, b)"),
    "matrices of the neighbour's expert": (
        grouped_cdna3,
        "problem.operands(t), other.operands(t)",
        "problem.operands(t), other.operands(t - t % 2)",
    ),
    "the first tile of the second product overwrites the last of the first": (
        grouped_cdna3,
        "        sync()  # the last tile is in the registers of all waves\n",
        "",
    ),
    "the last part of both is left out": (
        grouped_cdna3,
        "depth = ceil_div(problem.A.shape[1], cfg.bk)",
        "depth = problem.A.shape[1] // cfg.bk",
    ),
    "halves beyond a descriptor": (
        grouped_cdna3,
        "assume_descriptors(rows, problem.C,",
        "assume_descriptors(problem.C,",
    ),
    "results beyond a descriptor": (grouped_cdna3, "    assume_descriptors(made)\n", ""),
    "factors before they are there": (
        rows,
        "held = arrived(load(rows_of, by, edge=0), cfg.target)",
        "held = load(rows_of, by, edge=0)",
    ),
}
SHARED = {name: each for name, each in OF_THE_GRADIENTS.items() if each[0] is rows}


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("name", [*EDITS, *SHARED])
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, *edit = {**SHARED, **EDITS}[name]
    config = "interleaved_64"
    assert not is_proved(twin(FAMILIES[FIRST[:2]], config, module, (edit[0], edit[1])), config)
