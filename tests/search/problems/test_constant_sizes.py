"""Kernels whose sizes are constants: problems without sizes, run at those they have."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError
from argus.search.evaluation.gate import Tools, evaluate
from argus.search.evaluation.numerics import disagreement
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import Gemm, display_name, problem_of
from argus.search.problems.traced import MOST_STEPS
from argus.solvers.cache import Cache
from argus.verifier.api import build, verify
from tests.search.evaluation.test_gate import TEXT, Card

REFERENCE = "\n\ndef reference(A, B):\n    return A @ B.T\n"
KERNEL = (
    TEXT.replace('"M K"', '"ROWS 32"')
    .replace('"N K"', '"32 32"')
    .replace('"M N"', '"ROWS 32"')
    .replace("    assume(K >= 1, K % 4 == 0)\n", "")
)
TOOLS = Tools(
    lambda kernel: verify(kernel, cache=Cache()), lambda kernel, folder: build(kernel, directory=folder), predict
)


def constant(folder: Path, blocks: int = 2, reference: str = REFERENCE) -> KernelFile:
    path = folder / "kernel.py"
    path.write_text((KERNEL + reference).replace("ROWS", str(32 * blocks)), encoding="utf-8")
    found = problem_of(str(path), "sm_90a")
    assert isinstance(found, KernelFile)
    return found


def test_a_file_of_constant_sizes_is_a_problem_without_sizes(tmp_path: Path) -> None:
    found = constant(tmp_path)

    assert found.sizes == {}
    assert problem_of(str(found), found.target) == found
    assert display_name(str(found)) == "kernel.py"
    assert dict(found.work.flops) == {"bf16": 2.0 * 64 * 32 * 32}
    with pytest.raises(ArgusError, match="has no sizes, found --sizes M=4"):
        problem_of(found.path, "sm_90a", "M=4")


@pytest.mark.share(3)
def test_it_is_judged_at_its_sizes(tmp_path: Path) -> None:
    found = evaluate(constant(tmp_path), "written", evolve(TOOLS, folder=tmp_path / "code"))

    assert (found.outcome, found.why) == ("timed", "")
    wrong = constant(tmp_path, reference=REFERENCE.replace("B.T", "B.T + 1"))
    assert "differ from `reference`" in disagreement(wrong, wrong.kernel("written"))


@pytest.mark.share(4)
def test_one_that_is_too_large_for_the_interpreter_needs_a_gpu(tmp_path: Path) -> None:
    large = constant(tmp_path, MOST_STEPS)
    tools = evolve(TOOLS, folder=tmp_path / "code")

    without = evaluate(large, "written", tools)
    assert (without.outcome, without.stage) == ("unknown", "interpreter")
    assert "needs a GPU" in without.why
    assert evaluate(large, "written", evolve(tools, device=Card())).outcome == "timed"
    wrong = evaluate(large, "written", evolve(tools, device=Card(wrong="rows differ")))
    assert (wrong.outcome, wrong.stage) == ("wrong", "device")


@pytest.mark.share(8)
@pytest.mark.parametrize(("extents", "large"), [((64, 64, 64), False), ((4096, 4096, 4096), True)])
def test_a_kernel_text_that_admits_only_the_problems_sizes_is_run_at_them(
    extents: tuple[int, int, int], large: bool
) -> None:
    m, n, k = extents
    asked = Gemm(m, n, k, "bf16", "gfx942")
    text = TEXT.replace("assume(K >= 1, K % 4 == 0)", f"assume(eq(M, {m}), eq(N, {n}), eq(K, {k}))")
    found = evaluate(asked, "written", TOOLS, text)

    assert (found.outcome, found.stage) == (("unknown", "interpreter") if large else ("timed", "timing")), found.why
