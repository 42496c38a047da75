"""GEMM of f32 by plain FMAs: proved for each layout, its text computes the product, wrong loads are not proved."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels import gemm_fma
from argus.kernels.gemm_fma import CONFIGS, FAMILIES
from argus.runtime.cpu.validate import run_text
from argus.verifier.kernel import verify

NO_RUNS = evolve(Budget(), runs=0)
ALL = [(family, config) for family in FAMILIES for config in CONFIGS]


def proved(kernel: Kernel) -> bool:
    return isinstance(verify(kernel, solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.share(80, among="f32")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_every_configuration_is_proved(family: str, config: str) -> None:
    assert proved(FAMILIES[family].trace(config))


@pytest.mark.share(80, among="f32")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_the_text_computes_the_product(family: str, config: str) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((rows, 37)).astype(np.float32) for rows in (70, 35))
    given = {"A": a.T.copy() if family[5] == "t" else a, "B": b.T.copy() if family[6] == "n" else b}

    found = run_text(
        FAMILIES[family].trace(config),
        given | {"C": np.full((70, 35), np.nan, np.float32)},
        {"M": 70, "N": 35, "K": 37},
    )["C"]

    wide = a.astype(np.float64), b.astype(np.float64).T
    assert (np.abs(found - wide[0] @ wide[1]) <= 37 * 2.0**-24 * (np.abs(wide[0]) @ np.abs(wide[1]))).all()


EDITS = {
    "an element of K is left out": ("for j in range(bk)", "for j in range(1, bk)"),
    "an element of K comes twice": ("for j in range(bk)", "for j in (0, *range(bk))"),
    "rows of A for both": ("load(held[1][k", "load(held[0][k"),
    "the next element of B": ("held[1][k % stages][j]", "held[1][k % stages][(j + 1) % bk]"),
    "sums begin at each stage": ("for j in range(bk):", "acc[:] = 0.0\n        for j in range(bk):"),
    "garbage beyond the rows": ("via=cp_async, by=how, edge=0", "via=cp_async, by=how, edge=1"),
    "no barrier": ("        sync()\n", ""),
    "no wait": ("        cp_async.wait(stages - 2)\n", ""),
    "a stage is filled while it is read": ("start(k + stages - 1)", "start(k + stages)"),
    "the last stage is left out": ("for k in loop(depth):", "for k in loop(depth - 1):"),
}


@pytest.mark.share(80, among="f32")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    (old, new), text = EDITS[name], inspect.getsource(gemm_fma)
    assert text.count(old) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), gemm_fma.__file__, "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    assert not proved(made.FAMILIES["gemm_nt_f32"].trace("fma"))
