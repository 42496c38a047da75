"""GEMM of f32 by plain FMAs: proved for each layout, its text computes the product, wrong loads are not proved."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve

from argus.core.ir import Kernel, Program
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.programs import run_program
from argus.kernels import gemm_fma
from argus.kernels.gemm_fma import CHUNKED, CONFIGS, FAMILIES, IN_CHUNKS
from argus.runtime.cpu.validate import run_text
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program

NO_RUNS = evolve(Budget(), runs=0)
ALL = [(family, config) for family in FAMILIES for config in CONFIGS]


def proved(made: Kernel | Program) -> bool:
    if isinstance(made, Program):
        return isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved)
    return isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_every_configuration_is_proved(family: str, config: str) -> None:
    assert proved(FAMILIES[family].trace(config))


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_the_text_computes_the_product(family: str, config: str) -> None:
    random = np.random.default_rng(0)
    m, n, k = (72, 36, 40) if CONFIGS[config].vector > 1 else (70, 35, 37)
    a, b = (random.standard_normal((rows, k)).astype(np.float32) for rows in (m, n))
    given = {"A": a.T.copy() if family[5] == "t" else a, "B": b.T.copy() if family[6] == "n" else b}

    found = run_text(
        FAMILIES[family].trace(config),
        given | {"C": np.full((m, n), np.nan, np.float32)},
        {"M": m, "N": n, "K": k},
    )["C"]

    wide = a.astype(np.float64), b.astype(np.float64).T
    assert (np.abs(found - wide[0] @ wide[1]) <= k * 2.0**-24 * (np.abs(wide[0]) @ np.abs(wide[1]))).all()


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize(("family", "config"), [(family, config) for family in CHUNKED for config in IN_CHUNKS])
def test_every_configuration_in_chunks_is_proved(family: str, config: str) -> None:
    assert proved(CHUNKED[family].trace(config))


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("config", IN_CHUNKS)
def test_sums_of_chunks_are_the_product(config: str) -> None:
    m, n, k = 68, 36, 1028
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    given = {"A": a, "B": b, "C": np.full((m, n), np.nan, np.float32)}

    found = run_program(CHUNKED["gemm_nn_f32"].trace(config), {"M": m, "N": n, "K": k}, given)

    wide = a.astype(np.float64), b.astype(np.float64)
    assert found.violations == ()
    assert (np.abs(found.arrays["C"] - wide[0] @ wide[1]) <= k * 2.0**-24 * (np.abs(wide[0]) @ np.abs(wide[1]))).all()


EDITS = {
    "an element of K is left out": ("for j in range(bk)", "for j in range(1, bk)"),
    "an element of K comes twice": ("for j in range(bk)", "for j in (0, *range(bk))"),
    "rows of A for both": ("enumerate(zip(held, high", "enumerate(zip((held[0], held[0]), high"),
    "the next element of B": ("load(each[k % stages][j]", "load(each[k % stages][(j + axis) % bk]"),
    "sums begin at each stage": ("for j in range(bk):", "acc[:] = 0.0\n        for j in range(bk):"),
    "garbage beyond the rows": ("via=cp_async, by=how, edge=0", "via=cp_async, by=how, edge=1"),
    "no barrier": ("        sync()\n", ""),
    "no wait": ("        cp_async.wait(stages - 2)\n", ""),
    "a stage is filled while it is read": ("start(k + stages - 1)", "start(k + stages)"),
    "the last stage is left out": ("for k in loop(depth):", "for k in loop(depth - 1):"),
}


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    (old, new), text = EDITS[name], inspect.getsource(gemm_fma)
    assert text.count(old) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), gemm_fma.__file__, "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    assert not proved(made.FAMILIES["gemm_nt_f32"].trace("fma"))


OF_CHUNKS = {
    "a chunk begins with the last stage of the one before": (
        "z[0] * (cfg.chunk // bk)",
        "z[0] * (cfg.chunk // bk - 1)",
    ),
    "a chunk goes on into the next": ("minimum(cfg.chunk // bk,", "minimum(cfg.chunk // bk + 1,"),
    "all chunks are the first": ("(first + k, place)", "(k, place)"),
    "sums of fewer chunks": ("ceil_div(a.shape[1], cfg.chunk), *C", "a.shape[1] // cfg.chunk, *C"),
    "each chunk is stored as the first": ("matrix_of(C, z)", "matrix_of(C, [0] if z else z)"),
}


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("name", OF_CHUNKS)
def test_a_twin_of_wrong_chunks_is_not_proved(name: str) -> None:
    (old, new), text = OF_CHUNKS[name], inspect.getsource(gemm_fma)
    assert text.count(old) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), gemm_fma.__file__, "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    assert not proved(made.CHUNKED["gemm_nt_f32"].trace("fma_chunk128"))
