"""Cheats in place of a user's kernel are caught as for the GEMM family, within known error bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve, frozen

from argus.core.ir import Kernel
from argus.search.bench_harness.examine import examine
from argus.search.bench_harness.files import KernelOfFile
from argus.search.bench_harness.verdict import Caught, Check, Passed, Plan, Verdict
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import problem_of
from argus.testing.simulated import Simulated, SimulatedBench
from tests.search.bench_harness import numeric_cheats
from tests.search.bench_harness.candidates import HONEST, SHAPE, Candidate, Epilogue, same
from tests.search.bench_harness.test_cheats import CAUGHT_BY, LET_BY, PLAN, SEEDS

ROOT = Path(__file__).parents[3]
PLAIN = (ROOT / "tests" / "corpus" / "proved" / "slabs_by_ordinary_copies.py").read_text(encoding="utf-8")
POSITIVE = PLAIN.replace("acc.to(bf16)", "maximum(acc, 0.0).to(bf16)").replace(" loop, mma,", " loop, maximum, mma,")
SIZES = "M={},N={},K={}".format(*SHAPE)
DEEP = {numeric_cheats.SumsInHalfPrecision, numeric_cheats.Truncated, numeric_cheats.CornerEstimated}
"""Cheats whose errors are a few roundings of the largest element, in deep products only: detectable only if the claims
state a plain product, whose elements are rounded once.
"""


def positive(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.maximum(values, 0)


@frozen
class Kind:
    """Kernel files: a product, and one whose claims do not state it. reference: the last line."""

    text: str
    reference: str
    after: Epilogue = same


PRODUCT = Kind(PLAIN, "A @ B.T")
OTHER = Kind(POSITIVE, "np.maximum(A @ B.T, 0)", positive)


def subject_of(kind: Kind, folder: Path) -> KernelOfFile:
    path = folder / "kernel.py"
    ending = f"\n\ndef reference(A, B):\n    return {kind.reference}\n"
    path.write_text(kind.text.replace("from argus", "import numpy as np\nfrom argus", 1) + ending, encoding="utf-8")
    problem = problem_of(str(path), "sm_90a", SIZES)
    assert isinstance(problem, KernelFile)
    kernel = problem.kernel("gemm")
    assert isinstance(kernel, Kernel)
    return KernelOfFile(kernel, problem.sizes, problem.bounds_of(kernel), problem.reference)


def judged(kind: Kind, cheat: type[Candidate], plan: Plan, folder: Path, pace: float = HONEST) -> Verdict:
    device = Simulated()
    made = cheat(device, pace)
    made.after = kind.after
    return examine(made, subject_of(kind, folder), SimulatedBench(device), plan)


@pytest.mark.share(128, among="search: bench harness: cheats of files")
@pytest.mark.parametrize("cheat", CAUGHT_BY, ids=lambda cheat: cheat.__name__)
def test_of_a_product_every_cheat_is_caught(cheat: type[Candidate], tmp_path: Path) -> None:
    found = judged(PRODUCT, cheat, PLAN, tmp_path)
    assert isinstance(found, Caught)
    assert found.check in CAUGHT_BY[cheat] | {"shapes"}
    assert found.why


@pytest.mark.share(128, among="search: bench harness: cheats of files")
@pytest.mark.parametrize("cheat", CAUGHT_BY, ids=lambda cheat: cheat.__name__)
def test_other_kernels_are_caught_if_errors_exceed_the_known_bounds(cheat: type[Candidate], tmp_path: Path) -> None:
    found = judged(OTHER, cheat, PLAN, tmp_path)
    if cheat in DEEP:
        assert isinstance(found, Passed), str(found)
        return
    assert isinstance(found, Caught)
    assert found.check in CAUGHT_BY[cheat] | {"shapes", "precision"}


@pytest.mark.nightly
@pytest.mark.parametrize("check", LET_BY)
def test_without_a_check_a_cheat_of_a_file_passes(check: Check, tmp_path: Path) -> None:
    found = judged(PRODUCT, LET_BY[check], Plan(PLAN.seed, {check}, seeds=2, rounds=3, most_calls=4), tmp_path)
    assert isinstance(found, Passed), str(found)


@pytest.mark.share(128, among="search: bench harness: cheats of files")
@pytest.mark.parametrize("kind", [PRODUCT, OTHER])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_honest_kernel_of_a_file_passes(kind: Kind, seed: int, tmp_path: Path) -> None:
    found = judged(kind, Candidate, evolve(PLAN, seed=seed), tmp_path)
    assert isinstance(found, Passed), str(found)
