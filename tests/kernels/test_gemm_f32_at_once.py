"""GEMM of f32 split where it is multiplied: proved, as exact as sums in f32, wrong parts are not proved."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.ir import Kernel, Program
from argus.core.verdict import Proved
from argus.interp.programs import run_program
from argus.kernels.gemm_f32_at_once import CHUNKED, CONFIGS, FAMILIES, IN_CHUNKS
from argus.kernels.schedules import parts_at_once
from argus.runtime.cpu.validate import run_text
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.test_gemm_f32 import NO_RUNS, error, operands
from tests.kernels.twins import twin

ALL = [(family, config) for family in FAMILIES for config in (*CONFIGS, *(IN_CHUNKS if family in CHUNKED else ()))]
QUICK = {("bmm_nn_shared_f32", "at_once_any"), ("gemm_tn_f32", "at_once_chunk128")}


def traced(family: str, config: str) -> Kernel | Program:
    return (CHUNKED if config in IN_CHUNKS else FAMILIES)[family].trace(config)


def proved(made: Kernel | Program) -> bool:
    if isinstance(made, Program):
        return isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved)
    return isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize(
    ("family", "config"), [each if each in QUICK else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_every_configuration_is_proved(family: str, config: str) -> None:
    assert proved(traced(family, config))


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("kind", ["normal", "one-sided", "badly scaled"])
def test_sums_of_chunks_are_as_exact_as_those_in_single_precision(kind: str) -> None:
    a, b = operands(44, 36, 516, kind)
    given = {"A": a, "B": b.T.copy(), "C": np.full((44, 36), np.nan, np.float32)}

    found = run_program(CHUNKED["gemm_nn_f32"].trace("at_once_chunk128"), {"M": 44, "N": 36, "K": 516}, given)

    in_order = np.zeros((44, 36), np.float32)
    for k in range(516):
        in_order += np.outer(a[:, k], b[:, k])
    assert found.violations == ()
    assert error(found.arrays["C"], a, b) <= 0.5 * error(in_order, a, b)


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("family", CHUNKED)
def test_the_text_computes_the_product(family: str) -> None:
    a, b = operands(70, 35, 77, "normal")
    given = {"A": a.T.copy() if family[5] == "t" else a, "B": b.T.copy() if family[6] == "n" else b}
    empty = {"C": np.full((70, 35), np.nan, np.float32)}

    made = run_text(FAMILIES[family].trace("at_once_any"), given | empty, {"M": 70, "N": 35, "K": 77})

    assert error(made["C"], a, b) <= error(a @ b.T, a, b)


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("shared", [False, True])
def test_the_text_computes_a_batch_of_products(*, shared: bool) -> None:
    (a, b), (c, d) = (operands(70, 35, 77, "normal", seed) for seed in range(2))
    given = {"A": a if shared else np.stack([a, c]), "B": np.stack([b.T, d.T])}
    empty = {"C": np.full((2, 70, 35), np.nan, np.float32)}
    family = "bmm_nn_shared_f32" if shared else "bmm_nn_f32"

    made = run_text(FAMILIES[family].trace("at_once_any"), given | empty, {"Z": 2, "M": 70, "N": 35, "K": 77})

    assert error(made["C"][0], a, b) <= error(a @ b.T, a, b)
    assert error(made["C"][1], a if shared else c, d) <= error(c @ d.T, c, d)


EDITS = {
    "the tile after the next": ("each.fetch(first + k + 2)", "each.fetch(first + k + 3)"),
    "the tile that is multiplied comes again": ("each.store(k + 1)", "each.store(k)"),
    "one box for all tiles": ("self.boxes[number][k % 2]", "self.boxes[number][0]"),
    "no barrier": ("        sync()  # the parts", "        # the parts"),
    "no fence": ('        fence("async proxy")', "        pass"),
    "no wait": ("        wgmma.wait(0)\n", ""),
    "parts of B by the number of A's": ("zip(operands, pair, strict=True)", "zip(operands, pair[:1] * 2, strict=True)"),
    "the first part for all": ("(each.part(of, k)", "(each.part(0 * of, k)"),
    "the first tile is left out": ("each.fetch(first)", "each.fetch(first + 1)"),
    "garbage beyond the rows": ("self.held, via=self.via, edge=0", "self.held, via=self.via, edge=1"),
    "sums begin with the last stage's": ("init=number == 0 and not cfg.compensated", "init=False"),
}


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    assert not proved(twin(FAMILIES["gemm_nt_f32"], "at_once_any", parts_at_once, EDITS[name]))
