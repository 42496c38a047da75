"""Layers whose first product gathers rows by token: their text agrees with the interpreter, and twins are not proved.

That they are proved, and what they compute, is tested with the other layers.
"""

from __future__ import annotations

from types import ModuleType
from typing import Literal

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.moe import FAMILIES
from argus.kernels.schedules import grouped_gathered
from argus.runtime.cpu.validate import validate
from argus.verifier.program import verify_program
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
KEY: tuple[str, Literal["silu"]] = ("bf16", "silu")
GATHERED = "tokens[minimum(first + i, last)]"
OF_GATHERED: dict[str, tuple[ModuleType, str, str]] = {
    "the row of the neighbour's token": (grouped_gathered, GATHERED, "tokens[minimum(first + i - i % 2, last)]"),
    "the row of the token after": (grouped_gathered, GATHERED, "tokens[minimum(first + i + 1, last)]"),
    "rows from the first on": (grouped_gathered, GATHERED, "tokens[minimum(i, last)]"),
    "rows of another tile": (
        grouped_gathered,
        "scalar(problem.tile_starts[t])",
        "scalar(problem.tile_starts[t - t % 2])",
    ),
    "rows beyond the last": (grouped_gathered, GATHERED, "tokens[first + i]"),
    "the step before": (grouped_gathered, "bk * k + c", "bk * k - bk * (k % 2) + c"),
    "the step after": (grouped_gathered, "bk * k + c", "bk * k + bk + c"),
    "one box on": (grouped_gathered, "boxes[k % cfg.boxes], init", "boxes[(k + 1) % cfg.boxes], init"),
    "a step too few at first": (grouped_gathered, "in range(cfg.boxes - 1)", "in range(cfg.boxes - 2)"),
    "the last steps are left out": (grouped_gathered, "with when(k < depth):", "with when(k + 1 < depth):"),
    "one more copy on its way": (grouped_gathered, "cp_async.wait(cfg.boxes - 2)", "cp_async.wait(cfg.boxes - 1)"),
    "no group of each step": (grouped_gathered, "            cp_async.commit()\n", ""),
    "no fence": (grouped_gathered, '                    fence("async proxy")\n', ""),
    "no barrier before products": (grouped_gathered, "                    sync()  # all", "                    # all"),
    "no barrier between tiles": (grouped_gathered, "                sync()  # the last", "                # the last"),
    "products on their way": (grouped_gathered, "wgmma.wait(pending=0)", "wgmma.wait(pending=2)"),
    "both factors of one matrix": (
        grouped_gathered,
        "matrices, last = cfg.bm, cfg.bk, (problem.B, up)",
        "matrices, last = cfg.bm, cfg.bk, (problem.B, problem.B)",
    ),
    "sums without their start": (grouped_gathered, "init=eq(k, 0)", "init=eq(k, 1)"),
    "stored by the tile before": (grouped_gathered, "problem.result(t)", "problem.result(t - t % 2)"),
    "columns of the tile after": (grouped_gathered, "tile((COLUMNS, bk), (n, k))", "tile((COLUMNS, bk), (n + 1, k))"),
    "tokens that there are not": (grouped_gathered, "(t >= 0) & (t < count)", "t >= 0"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", OF_GATHERED)
def test_a_twin_that_gathers_is_not_proved(name: str) -> None:
    module, old, new = OF_GATHERED[name]
    made = twin(FAMILIES[KEY], "gathered_16", module, (old, new))
    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name


@pytest.mark.share(600, among="layers of experts")
@pytest.mark.parametrize("config", ["gathered_16", "gathered_32"])
def test_the_text_of_gathered_rows_agrees_with_the_interpreter(config: str) -> None:
    (kernel,) = (
        each.kernel for each in FAMILIES[KEY].trace(config).launches if each.kernel.name == "moe_first_gathered"
    )
    sizes = (
        {"T": 3, "K": 328, "R": 5, "E": 1, "N": 72, "S": 2, "Q": 2, "P": 1},
        {"T": 3, "K": 72, "R": 7, "E": 3, "N": 16, "S": 4, "Q": 8, "P": 7},
    )
    found = validate(kernel, sizes, seeds=1)
    assert all(each.right and each.elements for each in found.trials), found
