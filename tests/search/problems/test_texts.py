"""What a model is shown of a problem."""

from pathlib import Path

import pytest

from argus.policy.llm.examples import retrieved
from argus.policy.llm.planner import Llm
from argus.policy.llm.roles import Question
from argus.policy.llm.tasks import Plan
from argus.policy.llm.view import View
from argus.search.designs.space import situation
from argus.search.problems.problem import problem_of
from argus.search.problems.shipped_kernels import shipped_kernels
from argus.search.problems.texts import kernel_text, local_folders, practices_of, reference_text, shown_name

JOURNEYS = Path(__file__).parents[2] / "corpus" / "journeys"
ROWS = problem_of(str(JOURNEYS / "rows" / "start.py"), "sm_90a", "R=64,N=64")


def test_a_file_is_shown_by_its_text_and_its_reference_alone() -> None:
    (own, *_) = situation(ROWS).options
    reference = reference_text(ROWS)

    assert kernel_text(ROWS, own).startswith("# softmax: the kernel softmax of this file\n")
    assert "def softmax(X: Tensor" in kernel_text(ROWS, own)
    assert reference.startswith("X (R, N) of f32\nY (R, N) of f32\nR=64, N=64\ndef reference(X):")
    assert "import" not in reference
    assert shown_name(ROWS) == "start.py at R=64,N=64"
    assert str(JOURNEYS / "rows") in local_folders(ROWS)


@pytest.mark.parametrize(
    ("reference", "target", "name"),
    [
        ("def reference(X): the softmax of each row", "sm_90a", "rows"),
        ("def reference(Q, K, V): attention, a softmax of scores", "sm_90a", "attention_hopper"),
        ("def reference(Q, K, V): attention", "gfx942", "attention_cdna3"),
        ("the experts of a routing", "sm_90a", "grouped"),
        ("conv2d with padding", "sm_90a", "shifted"),
        (reference_text(problem_of("gemm:8x8x8", "sm_90a")), "sm_90a", ""),
    ],
)
def test_the_nearest_shipped_kernel_is_retrieved(reference: str, target: str, name: str) -> None:
    planner = Llm()
    product = problem_of("gemm:512x512x512", target)
    state = planner.start(situation(product, ()), 0)
    found = retrieved(Question(Plan(), state, (), View(reference=reference, examples=shipped_kernels())), 9_000)

    assert "def matmul(" in found
    assert (f"`{name}`" in found) == bool(name)
    assert ("A shipped kernel" in found) == bool(name)
    assert len(found.encode()) < 9_200


def test_a_family_is_shown_its_practices() -> None:
    rows = practices_of(problem_of("rows:softmax:8192x4096:bf16", "sm_90a"))
    attention = practices_of(problem_of("attention:4x16x4096x128:bf16:causal", "sm_90a"))

    assert {each.family for each in rows} == {"rows"}
    assert "attention-two-stages" in {each.name for each in attention}
    assert all("sm_90a" in each.targets for each in attention)
    assert practices_of(problem_of("gemm:64x64x64", "sm_90a")) == ()
