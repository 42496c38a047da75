"""Problems of attention and rows: names, designs, references, and the gate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError
from argus.kernels.rows.softmax import log_softmax_bf16
from argus.policy.bandit import Bandit
from argus.search.bandit_prior import feature_priors
from argus.search.designs.space import situation
from argus.search.evaluation.gate import Tools, evaluate
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.families.attention import AttentionShape, attention, sum_of_seen
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.problem import problem_of
from argus.search.problems.references import find_difference
from argus.search.problems.traced import admits, kernels_of
from argus.solvers.cache import Cache
from argus.verifier.api import build, verify

NAMES = {
    "attention:4x16x4096x128:causal": "attention:4x16x4096x128:bf16:causal",
    "attention:1x32x1024x64": "attention:1x32x1024x64:bf16",
    "attention:1x8x512x256:f16:causal:groups=2:keys=1024": "attention:1x8x512x256:f16:causal:groups=2:keys=1024",
    "rows:softmax:8192x4096": "rows:softmax:8192x4096:bf16",
    "rows:layer_norm:4096x16384:f32": "rows:layer_norm:4096x16384:f32",
    "rows:cumsum:100x1001:f16": "rows:cumsum:100x1001:f16",
}


def family(text: str) -> FamilyProblem:
    found = problem_of(text, "sm_90a")
    assert isinstance(found, FamilyProblem)
    return found


@pytest.mark.parametrize(("given", "full"), NAMES.items())
def test_a_problem_is_named_in_full_and_found_by_that_name(given: str, full: str) -> None:
    found = family(given)

    assert str(found) == full
    assert family(full) == found
    assert found.space.usual in found.space.designs
    assert found.bounds.light > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("attention:4x16x4096", "is no attention problem"),
        ("attention:4x16x4096x96", "heads have 96 elements"),
        ("attention:4x16x4096x128:groups=3", "16 heads are no multiple of 3 groups"),
        ("attention:4x16x4096x128:fast", "`fast` is no option"),
        ("rows:softmax:8192", "is no problem of rows"),
        ("rows:median:8192x4096", "`median` is no operation"),
        ("rows:softmax:8192x4096:i32", "`i32` is no element type"),
    ],
)
def test_a_name_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(ArgusError) as raised:
        family(text)

    assert raised.value.diagnostic.code == "E903"
    assert said in raised.value.diagnostic.message


def test_another_target_is_refused() -> None:
    with pytest.raises(ArgusError, match="sm_90a"):
        problem_of("rows:softmax:8192x4096", "gfx942")


@pytest.mark.parametrize(
    "text", ["rows:softmax:8192x4096", "rows:rms_norm:2048x1000:f32", "attention:1x4x512x64:causal"]
)
def test_designs_take_the_problem(text: str) -> None:
    found = family(text)
    names = list(found.space.designs)
    for name in names[:: max(1, len(names) // 6)]:
        assert admits(found.kernel(name), found.sizes), name


def test_tiles_that_a_warpgroup_has_no_registers_for_are_no_designs() -> None:
    designs = family("attention:4x16x4096x128:causal").space.designs

    assert not any("bn128" in name and "warpgroups3" in name for name in designs)
    assert all(dict(each.knobs)["warpgroups"] == 2 or dict(each.knobs)["bn"] != 128 for each in designs.values())


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 7), (5, 9), (9, 5), (64, 1)])
def test_pairs_are_those_that_a_mask_leaves(queries: int, keys: int) -> None:
    seen = np.tri(queries, keys, keys - queries)

    assert sum_of_seen(queries, keys) == int(seen.sum())
    shape = AttentionShape(2, 3, 3, queries, keys, 64, "bf16", causal=True)
    assert dict(shape.work.flops)["bf16"] == 4.0 * 2 * 3 * seen.sum() * 64


def test_the_reference_of_attention_sums_values_row_by_row() -> None:
    generator = np.random.default_rng(0)
    q, k, v = (generator.standard_normal(shape) for shape in ((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8)))
    found = attention(q, k, v, np.array([0.5 / np.log(2)]), causal=True)
    for head in range(4):
        for row in range(3):
            scores = 0.5 * k[0, head // 2, : row + 3] @ q[0, head, row]
            weights = np.exp(scores)
            assert found["O"][0, head, row] == pytest.approx(weights @ v[0, head // 2, : row + 3] / weights.sum())
            assert found["LSE"][0, head, row] == pytest.approx(np.log(weights.sum()))


def test_the_design_that_is_used_without_a_search_is_tried_first() -> None:
    asked = family("attention:4x16x4096x128:causal")
    before = situation(asked)
    bandit = Bandit(feature_priors(asked))
    for seed in range(3):
        assert bandit.propose(bandit.start(before, seed))[0].choice.name == asked.space.usual


def test_a_design_of_rows_passes_the_gate(tmp_path: Path) -> None:
    asked = family("rows:rms_norm:4096x1024")
    tools = Tools(
        lambda traced: verify(traced, cache=Cache()),
        lambda traced, folder: build(kernels_of(traced)[0], directory=folder),
        predict,
        folder=tmp_path,
    )
    found = evaluate(asked, asked.space.usual, tools)

    assert (found.outcome, found.stage, found.why) == ("timed", "timing", "")
    assert found.microseconds is not None
    assert found.microseconds > asked.bounds.least


@pytest.mark.share(4, among="attention beside its reference")
@pytest.mark.parametrize("text", ["attention:1x32x1024x128:causal", "attention:4x16x4096x64"])
def test_the_kernel_of_attention_agrees_with_the_reference(text: str) -> None:
    asked = family(text)

    assert not find_difference(asked.reference, asked.kernel(asked.space.usual), SEEDS[:1], asked.space.inputs)


def test_a_kernel_of_another_operation_differs_from_the_reference() -> None:
    asked = family("rows:softmax:4096x1024")

    assert not find_difference(asked.reference, asked.kernel(asked.space.usual), SEEDS, asked.space.inputs)
    other = log_softmax_bf16.trace(log_softmax_bf16.instances()[0])
    assert "elements of Y differ" in find_difference(asked.reference, other, SEEDS, asked.space.inputs)
