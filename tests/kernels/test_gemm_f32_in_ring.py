"""GEMM of f32 whose tiles come by TMA and are split by those that multiply: proved, right, wrong ones not proved."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from argus.core.verdict import Proved, Refuted
from argus.kernels.gemm_f32_in_ring import CONFIGS, FAMILIES
from argus.kernels.nests.products import product
from argus.kernels.schedules import parts_in_ring
from argus.kernels.schedules.parts_in_ring import InRing
from argus.language import ProgramTemplate
from argus.runtime.cpu.validate import run_text
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.nests.test_products import of_a_square
from tests.kernels.test_gemm_f32 import NO_RUNS, error, operands
from tests.kernels.twins import twin

ALL = [(family, config) for family in FAMILIES for config in CONFIGS]
SHARE = pytest.mark.share(84, among="f32 in a ring")


@SHARE
@pytest.mark.parametrize(("family", "config"), ALL)
def test_every_configuration_is_proved(family: str, config: str) -> None:
    found = verify(FAMILIES[family].trace(config), solver="z3", budget=NO_RUNS)
    assert isinstance(found.verdict, Proved)
    assert {"I5", "I10", "I12", "I39"} <= dict(found.verdict.coverage).keys()


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_cvc5_proves_them_too(family: str) -> None:
    assert isinstance(verify(FAMILIES[family].trace("in_ring"), solver="cvc5", budget=NO_RUNS).verdict, Proved)


@SHARE
@pytest.mark.parametrize("family", ["gemm_nt_f32", "gemm_nn_f32"])
def test_the_text_computes_the_product(family: str) -> None:
    a, b = operands(140, 132, 76, "normal")
    given = {"A": a, "B": b.T.copy() if family[6] == "n" else b, "C": np.full((140, 132), np.nan, np.float32)}

    made = run_text(FAMILIES[family].trace("in_ring"), given, {"M": 140, "N": 132, "K": 76})

    assert error(made["C"], a, b) <= error(a @ b.T, a, b)


_LOADED = "    for each, tile in zip(operands, (slot.a, slot.b), strict=True):\n        each.load(tile)\n"
_RELEASED = "    ring.release()\n"
EDITS = {
    "the tile that is multiplied comes again": ("_split(ring, (a, b), k + 1)", "_split(ring, (a, b), k)"),
    "one box for all tiles": ("self.boxes[number][k % 2]", "self.boxes[number][0]"),
    "no barrier before products": (
        '                sync("both", threads=2 * _THREADS)  # the parts',
        "                # the parts",
    ),
    "no barrier between tiles": (
        '            sync("both", threads=2 * _THREADS)  # products',
        "            # products",
    ),
    "a barrier of one warpgroup": ('sync("both", threads=2 * _THREADS)  # the parts', "sync()  # the parts"),
    "no fence": ('                fence("async proxy")', "                pass"),
    "no wait for products": ("                wgmma.wait(0)\n", ""),
    "released before it is read": (_LOADED + _RELEASED, _RELEASED + _LOADED),
    "half of B twice": ("self.place = (0, number) if turned else (number, 0)", "self.place = (0, 0)"),
    "the first part for all": ("a.part(of_a, k)", "a.part(0 * of_a, k)"),
    "rows of the other warpgroup": ("2 * m + number", "2 * m + 1 - number"),
    "sums begin with the last stage's": ("init=number == 0", "init=False"),
    "the first stage is left out": ("_split(ring, (a, b), 0)", "_split(ring, (a, b), 1)"),
}


@SHARE
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    made = twin(FAMILIES["gemm_nt_f32"], "in_ring", parts_in_ring, EDITS[name])
    assert not isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)


@SHARE
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_by_a_square_matrix_is_not_proved(name: str) -> None:
    """What is stored is a product plus a number for each column, of which there are as many as K."""
    of = cast("ProgramTemplate", product(of_a_square(), InRing(products=3), "made"))

    made = twin(of, "", parts_in_ring, EDITS[name])

    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["one box for all tiles", "no wait for products", "rows of the other warpgroup"])
def test_a_twin_is_refuted_by_a_run(name: str) -> None:
    made = twin(FAMILIES["gemm_nt_f32"], "in_ring", parts_in_ring, EDITS[name])
    assert isinstance(verify(made, solver="z3").verdict, Refuted)
