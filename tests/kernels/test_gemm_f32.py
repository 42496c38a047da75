"""GEMM of f32 by parts in bf16: proved for all sizes, as exact as single precision, wrong sums are not proved."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from argus.core.ir import Program
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted
from argus.interp.programs import run_program
from argus.kernels import gemm_f32
from argus.kernels.gemm_f32 import FAMILIES
from argus.kernels.schedules import parts
from argus.kernels.schedules.parts import Parts
from argus.runtime.cpu.validate import run_text
from argus.verifier.program import verify_program
from tests.kernels.twins import Edit, edited, twin

ALL = [(family, config) for family, template in FAMILIES.items() for config in template.configs]
QUICK = {("gemm_nn_f32", "compensated"), ("gemm_tt_f32", "chunks_1024_any"), ("bmm_nn_shared_f32", "high")}
NO_RUNS = evolve(Budget(), runs=0)
Single = npt.NDArray[np.float32]


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize(
    ("family", "config"), [each if each in QUICK else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_every_configuration_is_proved(family: str, config: str) -> None:
    verdict = verify_program(FAMILIES[family].trace(config), solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert "assert_equals(C" in "\n".join(verdict.results)


def operands(m: int, n: int, k: int, kind: str, seed: int = 0) -> tuple[Single, Single]:
    """Matrices (M, K) and (N, K)."""
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal((rows, k)) for rows in (m, n))
    if kind == "one-sided":
        a, b = np.abs(a), np.abs(b)
    if kind == "badly scaled":
        a, b = a * 10.0 ** random.integers(-6, 7, (1, k)), b * 10.0 ** random.integers(-6, 7, (n, 1))
    return a.astype(np.float32), b.astype(np.float32)


def error(found: npt.ArrayLike, a: Single, b: Single) -> float:
    """The norm of the error over that of the product, in float64."""
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    return float(np.linalg.norm(np.asarray(found, np.float64) - exact) / np.linalg.norm(exact))


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("kind", ["normal", "one-sided", "badly scaled"])
@pytest.mark.parametrize(
    ("config", "allowed"), [("rows_256_any", 1.0), ("compensated_any", 0.5), ("high_any", 200.0), ("medium_any", 3e4)]
)
def test_six_products_are_as_exact_as_sums_in_single_precision(kind: str, config: str, allowed: float) -> None:
    a, b = operands(45, 35, 515, kind)
    given = {"A": a, "B": b.T.copy(), "C": np.full((45, 35), np.nan, np.float32)}

    found = run_program(FAMILIES["gemm_nn_f32"].trace(config), {"M": 45, "N": 35, "K": 515}, given)

    in_order = np.zeros((45, 35), np.float32)
    for k in range(515):
        in_order += np.outer(a[:, k], b[:, k])
    assert found.violations == ()
    assert error(found.arrays["C"], a, b) <= allowed * error(in_order, a, b)


@pytest.mark.share(588, among="f32")
def test_the_text_of_the_launches_computes_the_product() -> None:
    m, n, k = 40, 24, 77
    a, b = operands(m, n, k, "normal")
    program = FAMILIES["gemm_nt_f32"].trace("tiles_128_any")
    held: dict[str, npt.NDArray[np.generic]] = {}
    for launch, x, into in zip(program.launches[:2], (a, b), "PQ", strict=True):
        empty = np.full((3, len(x), 80), np.nan, np.float32).astype(launch.kernel.parameters[1].dtype.numpy)
        found = run_text(launch.kernel, {"X": x, "P": empty}, {"R": len(x), "W": k, "S": 3, "U": len(x), "V": 80})
        held[into] = found["P"]
        wide = found["P"].astype(np.float64)
        assert np.array_equal(wide.sum(0)[:, :k], x)
        assert not wide[:, :, k:].any()
        assert (np.abs(wide[1:]) <= 2.0**-8 * np.abs(wide[:-1])).all()
    given = {**held, "C": np.full((m, n), np.nan, np.float32)}
    sizes = {"S": 3, "U": m, "L": 80, "V": n, "M": m, "N": n}

    made = run_text(program.launches[2].kernel, given, sizes)

    assert error(made["C"], a, b) <= error(a @ b.T, a, b)


@pytest.mark.share(588, among="f32")
def test_the_parts_of_what_bf16_does_not_hold() -> None:
    x = np.array([[0.0, -0.0, 1.0, 2.0**-100, -(2.0**-126), 3.3e38, 1 / 3]], np.float32)
    launch = FAMILIES["gemm_nt_f32"].trace("tiles_128_any").launches[0].kernel
    empty = np.zeros((3, 1, 8), launch.parameters[1].dtype.numpy)
    made = run_text(launch, {"X": x, "P": empty}, {"R": 1, "W": 7, "S": 3, "U": 1, "V": 8})["P"].astype(np.float64)
    assert np.array_equal(made.sum(0)[0, :7], x[0])


EDITS: dict[str, tuple[str, ModuleType, Edit]] = {
    "a pair is left out": ("tiles_128_any", parts, ("((2, 0), (0, 2), (1, 1),", "((2, 0), (1, 1),")),
    "a pair comes twice": ("tiles_128_any", parts, ("((2, 0), (0, 2), (1, 1),", "((2, 0), (2, 0), (0, 2), (1, 1),")),
    "a pair in place of another": ("tiles_128_any", parts, ("((2, 0), (0, 2), (1, 1),", "((2, 0), (2, 0), (1, 1),")),
    "a pair that is dropped": ("tiles_128_any", parts, ("((2, 0), (0, 2), (1, 1),", "((2, 0), (0, 2), (2, 1),")),
    "of three, one left out": ("high_any", parts, ("3: ((1, 0), (0, 1), (0, 0))", "3: ((1, 0), (0, 0))")),
    "parts of B by the number of A's": ("tiles_128_any", parts, ('slot, f"b{of_b}")', 'slot, f"b{of_a}")')),
    "a part of A in the place of B's": (
        "tiles_128_any",
        parts,
        ("matrix_of(each, batch).tile((bn", "matrix_of(p[i], batch).tile((bn"),
    ),
    "the third part is that of the first": ("tiles_128_any", parts, ("x = x - parts[-1]", "x = x - parts[0]")),
    "nothing is subtracted": ("tiles_128_any", parts, ("x = x - parts[-1]", "pass")),
    "the sums of a stage are not added": ("tiles_128_any", parts, ("acc[:] = acc + apart", "acc[:] = apart")),
    "the sums of a stage go on": ("tiles_128_any", parts, ("init=number == 0", "init=False")),
    "the sums of a stage begin at the second product": (
        "tiles_128_any",
        parts,
        ("init=number == 0", "init=number == 1"),
    ),
    "tiles begin with what was there": ("tiles_128_any", parts, ("acc[:] = 0.0", "pass")),
    "what is lost is added twice": ("compensated_any", parts, ("apart - (sum_ - acc)", "apart + (sum_ - acc)")),
    "what is lost is that of nothing": ("compensated_any", parts, ("apart - (sum_ - acc)", "apart - (sum_ - apart)")),
    "all sums of a stage are taken for lost": ("compensated_any", parts, ("apart[:] = apart - (sum_ - acc)", "pass")),
    "what was lost before the first stage is what was there": (
        "compensated_any",
        parts,
        ("(*accs, *lost) if cfg.compensated else accs", "accs"),
    ),
    "all parts in one": ("tiles_128_any", gemm_f32, ("made[(number, *z)].tile", "made[(0, *z)].tile")),
    "a stage of each chunk is left out": ("chunks_1024_any", parts, ("loop(each * z[0], ", "loop(each * z[0] + 1, ")),
    "a stage is in two chunks": ("chunks_1024_any", parts, ("(z[0] + 1), depth", "(z[0] + 1) + 1, depth")),
    "a chunk is left out": ("chunks_1024_any", gemm_f32, ("in loop(part.shape[0])", "in loop(1, part.shape[0])")),
    "garbage behind the rows": (
        "tiles_128_any",
        gemm_f32,
        ("ld_global_b32, edge=0)\n    for number", "ld_global_b32, edge=1)\n    for number"),
    ),
    "A for both": ("tiles_128_any", gemm_f32, ("((A, P), (B, Q))", "((A, P), (A, Q))")),
    "products are summed before their stage is there": ("tiles_128_any", parts, ("wgmma.wait(0)", "wgmma.wait(1)")),
}


def wrong(name: str) -> Program:
    config, module, edit = EDITS[name]
    if module is parts:
        return twin(FAMILIES["gemm_nt_f32"], config, module, edit)
    text = inspect.getsource(module)
    assert text.count(edit[0]) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(*edit), module.__file__ or "", "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    return made.FAMILIES["gemm_nt_f32"].trace(config)


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    assert not isinstance(verify_program(wrong(name), solver="z3", budget=NO_RUNS).verdict, Proved), name


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("name", list(EDITS)[:8])
def test_a_twin_with_other_pairs_is_refuted_by_numbers(name: str) -> None:
    found = verify_program(wrong(name), solver="z3").verdict
    assert isinstance(found, Refuted)
    assert found.counterexample.code == "I39"


@pytest.mark.share(2)
def test_sums_that_stay_in_the_matrix_unit_break_the_declared_number() -> None:
    """Over the real numbers they are the same sums."""
    template, config = FAMILIES["gemm_nt_f32"], Parts(apart=False, wide=False)
    assert isinstance(verify_program(template.instance(config, "one_sum"), solver="z3").verdict, Proved)
    with edited(template, parts, (" if cfg.apart else None", "")):
        twin_ = template.instance(config, "one_sum")
    found = verify_program(twin_, solver="z3").verdict
    assert isinstance(found, Refuted)
    assert (found.counterexample.code, found.counterexample.replayed) == ("I40", "recomputed")
    assert dict(found.counterexample.sizes)["K"] > config.bk
