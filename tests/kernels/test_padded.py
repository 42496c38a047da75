"""GEMM by way of copies with longer rows: proved for all sizes, its text computes the product, wrong copies are not."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted
from argus.interp.programs import run_program
from argus.kernels import padded
from argus.kernels.padded import FAMILIES
from argus.language import ProgramTemplate
from argus.runtime.cpu.validate import validate
from argus.verifier.program import verify_program

ALL = [(family, config) for family, template in FAMILIES.items() for config in template.configs]
QUICK = {("gemm_nt", "skinny"), ("gemm_tn_f16", "split_2"), ("gemm_nn", "stream_128_128_4_1")}
NO_RUNS = evolve(Budget(), runs=0)


@pytest.mark.share(48, among="padded")
@pytest.mark.parametrize(
    ("family", "config"), [each if each in QUICK else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_every_configuration_is_proved(family: str, config: str) -> None:
    verdict = verify_program(FAMILIES[family].trace(config), solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert "assert_equals(C" in "\n".join(verdict.results)


SHAPES = ((13, 21, 77), (70, 8, 1), (3, 40, 264))


@pytest.mark.share(48, among="padded")
@pytest.mark.parametrize("config", ["skinny", "shares_16", "stream_64_128_1_1_2"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_interpreter_computes_the_product(family: str, config: str, shape: tuple[int, int, int]) -> None:
    (m, n, k), (a_turned, b_turned) = shape, (family[5] == "t", family[6] == "n")
    if config.startswith("stream"):
        n = 4 * n  # its second launch stores four columns at a time
    dtype = np.float16 if family.endswith("f16") else bfloat16
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (rows, k)).astype(dtype) for rows in (m, n))
    given = {"A": a.T.copy() if a_turned else a, "B": b.T.copy() if b_turned else b, "C": np.zeros((m, n), dtype)}

    found = run_program(FAMILIES[family].trace(config), {"M": m, "N": n, "K": k}, given)

    assert found.violations == ()
    assert np.array_equal(found.arrays["C"], (a.astype(np.float32) @ b.astype(np.float32).T).astype(dtype))


@pytest.mark.share(48, among="padded")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_text_of_the_copies_agrees_with_the_interpreter(family: str) -> None:
    (copies, _) = FAMILIES[family].trace("skinny").launches
    sizes = {"M": 13, "N": 21, "K": 77, "L": 80}
    sizes |= {"U": 16 if family[5] == "t" else 13, "V": 24 if family[6] == "n" else 21}
    found = validate(copies.kernel, (sizes,), seeds=2)
    assert all(each.right and each.elements for each in found.trials), found


EDITS = {
    "no zeros behind the rows": ("via=ld_global_b16, edge=0)", "via=ld_global_b16, edge=1)"),
    "a chunk too few": ("_CHUNK * ceil_div(length, _CHUNK)", "_CHUNK * (length // _CHUNK)"),
    "products of the zeros claimed": ("cfg=cfg, depth=K)", "cfg=cfg, depth=L)"),
    "a product left out": ("cfg=cfg, depth=K)", "cfg=cfg, depth=K - 1)"),
    "a copies both": ("zip((A, B), held", "zip((A, A), held"),
    "tiles of another row": ("copy(one, made.tile(cfg.tile, (i, j))", "copy(one, made.tile(cfg.tile, (i + 1, j))"),
    "the last tile of columns is left out": ("ceil_div(wide, cfg.tile[1])", "wide // cfg.tile[1]"),
    "rows of the first operand alone": (
        "maximum(P.shape[axis], Q.shape[axis]) for axis in (0, 1)",
        "P.shape[axis] for axis in (0, 1)",
    ),
}


def edited(old: str, new: str) -> ProgramTemplate:
    """The program of `gemm_nt` where the module has one edit."""
    text = inspect.getsource(padded)
    assert text.count(old) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), padded.__file__, "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    return made.FAMILIES["gemm_nt"]


@pytest.mark.share(48, among="padded")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    verdict = verify_program(edited(*EDITS[name]).trace("skinny"), solver="z3", budget=NO_RUNS).verdict
    assert not isinstance(verdict, Proved), name


@pytest.mark.share(3)
def test_the_sum_over_the_zeros_is_refuted() -> None:
    """They have no tags: nothing of them is a product."""
    found = verify_program(edited(*EDITS["products of the zeros claimed"]).trace("skinny"), solver="z3").verdict
    assert isinstance(found, Refuted)
    assert found.counterexample.code == "I3"
