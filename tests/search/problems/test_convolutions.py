"""Problems of convolutions: names, sizes, work, the reference, designs and the gate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.verdict import ProgramReport, Report
from argus.nests.convolution import Taps
from argus.search.designs.space import situation
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.families.convolution import convolution
from argus.search.problems.families.convolution_shape import shape_of_name
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.problem import problem_of
from argus.search.problems.problem_claim import problem_claim
from argus.search.problems.references import find_difference, random_trials
from argus.search.problems.texts import problem_view
from argus.search.problems.traced import Traced, admits
from argus.solvers.cache import Cache
from argus.verifier.api import verify

NAMES = {
    "conv:32x64x56x56:64x3x3:pad=1": "conv:32x64x56x56:64x3x3:pad=1:bf16",
    "conv:8x3x224x224:64x7x7:stride=2:pad=3:f16": "conv:8x3x224x224:64x7x7:stride=2:pad=3:f16",
    "conv:2x16x1000:32x5:dilation=2:f32": "conv:2x16x1000:32x5:dilation=2:f32",
    "conv:1x8x9x17x33:16x1x3x3:pad=0x1x1:stride=1": "conv:1x8x9x17x33:16x1x3x3:pad=0x1x1:bf16",
}
SMALL = (
    "conv:2x3x7x9:5x3x2:stride=2x1:pad=1",
    "conv:1x2x11:3x4:dilation=2:stride=3:pad=4",
    "conv:1x2x5x4x3:2x2x1x3:pad=0x0x1",
    "conv:2x4x6x4:3x1x1",
    "conv:2x4x13:3x2:stride=3",
)


def asked(text: str) -> FamilyProblem:
    found = problem_of(text, "sm_90a")
    assert isinstance(found, FamilyProblem)
    return found


@pytest.mark.parametrize(("given", "full"), NAMES.items())
def test_a_convolution_is_named_in_full_and_found_by_that_name(given: str, full: str) -> None:
    found = asked(given)

    assert str(found) == full
    assert asked(full) == found
    assert next(iter(found.space.designs)) == found.space.usual
    assert found.bounds.light > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conv:32x64x56x56:64", "is no convolution"),
        ("conv:32x64x56x56:64x3", "inputs of 2 axes of space and filters of 1"),
        ("conv:32x64x56x56:64x3x3:groups=2", "`groups=2` is no option"),
        ("conv:32x64x56x56:64x3x3:pad=1x1x1", "`pad=1x1x1` has 3 numbers for 2 axes"),
        ("conv:32x64x56x56:64x3x3:stride=0", "a stride or dilation of 0"),
        ("conv:32x64x56x56:64x3x3:pad=3", "padding of 3 for 3 taps"),
        ("conv:32x64x2x56:64x3x3", "3 taps do not fit in 2 inputs"),
        ("conv:32x64x99x99:64x65x1", "65 taps along an axis"),
    ],
)
def test_a_name_of_no_convolution_is_refused(text: str, said: str) -> None:
    with pytest.raises(ArgusError) as raised:
        asked(text)

    assert raised.value.diagnostic.code == "E903"
    assert said in raised.value.diagnostic.message


def test_another_target_is_refused() -> None:
    with pytest.raises(ArgusError, match="searched for sm_90a"):
        problem_of("conv:32x64x56x56:64x3x3", "gfx942")


def by_loops(x: np.ndarray, f: np.ndarray, axes: tuple[Taps, ...], places: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """The convolution, one product after the other, and the number of them that read an input."""
    (n, c, *extents), (k, _, *taps) = x.shape, f.shape
    made, count = np.zeros((n, k, *places)), 0
    for b, o, i in product(range(n), range(k), range(c)):
        for place, tap in product(np.ndindex(*places), np.ndindex(*taps)):
            pairs = zip(axes, place, tap, strict=True)
            at = tuple(axis.stride * p + axis.dilation * t - axis.pad for axis, p, t in pairs)
            if all(0 <= each < extent for each, extent in zip(at, extents, strict=True)):
                made[(b, o, *place)] += x[(b, i, *at)] * f[(o, i, *tap)]
                count += 1
    return made, count


@pytest.mark.parametrize("text", SMALL)
def test_the_reference_and_the_work_are_those_of_loops_over_all_products(text: str) -> None:
    shape, generator = shape_of_name(text), np.random.default_rng(0)
    x = generator.standard_normal((shape.n, shape.c, *shape.extents))
    f = generator.standard_normal((shape.k, shape.c, *(axis.taps for axis in shape.axes)))
    wanted, count = by_loops(x, f, shape.axes, shape.places)

    assert convolution(x, f, axes=shape.axes) == pytest.approx(wanted)
    assert dict(shape.work.flops)["bf16"] == pytest.approx(2 * count)
    read = len(set(_read_places(shape.axes, shape.extents, shape.places)))
    elements = shape.n * shape.c * read + f.size
    assert 0.5 * 2 * elements <= shape.work.reads <= 2 * elements
    assert shape.work.writes == 2 * wanted.size


def _read_places(axes: tuple[Taps, ...], extents: tuple[int, ...], places: tuple[int, ...]) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]] = set()
    for place, tap in product(np.ndindex(*places), np.ndindex(*(axis.taps for axis in axes))):
        pairs = zip(axes, place, tap, strict=True)
        at = tuple(axis.stride * p + axis.dilation * t - axis.pad for axis, p, t in pairs)
        if all(0 <= each < extent for each, extent in zip(at, extents, strict=True)):
            found.add(at)
    return found


@pytest.mark.parametrize(
    "text", ["conv:32x64x56x56:64x3x3:pad=1", "conv:32x64x56x56:128x1x1", "conv:8x16x100:32x5:f32"]
)
def test_designs_take_the_problem_and_differ_in_their_features(text: str) -> None:
    found = asked(text)
    names = list(found.space.designs)
    for name in names[:: max(1, len(names) // 6)]:
        assert admits(found.kernel(name), found.sizes), name
    options = situation(found).options
    assert len({each.features for each in options}) == len(options) == len(names)


def test_trials_have_as_many_outputs_as_the_convolution() -> None:
    found = asked("conv:8x3x224x224:64x7x7:stride=2:pad=3:f16")
    kernel = found.kernel(found.space.usual)
    trials = list(random_trials(kernel, SEEDS, found.inputs_of(kernel.name)))

    assert len(trials) == 4
    for each in trials:
        assert each.sizes["Y0"] == (each.sizes["I0"] + 6 - 7) // 2 + 1
        expected = found.answer(each.given)
        assert np.shape(cast("npt.ArrayLike", expected)) == each.arrays["Y"].shape


@pytest.mark.parametrize(
    "design",
    [
        pytest.param("shifted_pixels64_stages8", marks=pytest.mark.nightly),
        pytest.param("hopper_bn128_stages2", marks=pytest.mark.share(3)),
        pytest.param("direct", marks=pytest.mark.nightly),
    ],
)
def test_each_kind_of_design_passes_the_gate(design: str, tmp_path: Path) -> None:
    text = {"shifted_pixels64_stages8": "conv:4x64x28x28:64x3x3:pad=1", "direct": "conv:4x16x28x28:64x3x3:pad=1:f32"}
    found = asked(text.get(design, "conv:4x64x28x28:64x1x1"))
    name = next(each for each in found.space.designs if each.startswith(design))
    judgement = GateTask(str(found), "sm_90a", folder=tmp_path)(name)

    assert (judgement.outcome, judgement.stage, judgement.why) == ("timed", "timing", "")
    assert judgement.microseconds is not None
    assert judgement.microseconds > found.bounds.least


@pytest.mark.nightly
def test_a_kernel_of_another_convolution_differs_from_the_reference() -> None:
    found, shifted = asked("conv:4x8x12x12:8x3x3:pad=1"), asked("conv:4x8x12x12:8x3x3:pad=1:dilation=2")
    name = "shifted_pixels64_bk16_stages8_run8"

    right, other = found.kernel(name), shifted.kernel(name)
    assert not find_difference(found.reference, right, SEEDS[:1], found.inputs_of(right.name))

    def small(_: np.random.Generator) -> Iterator[dict[str, int]]:
        yield {**found.sizes, "N": 1}

    rules = evolve(found.space.inputs, small=small)
    assert "elements of Y differ" in find_difference(found.reference, other, SEEDS[:1], rules)


def verified(traced: Traced) -> Report | ProgramReport:
    return verify(traced, cache=Cache())


ZEROS = """
from argus.language import *

@kernel(target=sm_90a, threads=128)
def zeros(X: Tensor["N C Y0", bf16], F: Tensor["O C", bf16], Y: Tensor["N O Y0", bf16]) -> None:
    assume(Y.shape[0] * Y.shape[1] * Y.shape[2] < 1 << 30)
    n, o, y = block_id((Y.shape[0], Y.shape[1], ceil_div(Y.shape[2], 128)))
    by = spread((128,), threads=128, vector=1)
    held = registers(bf16, by)
    held[:] = 0.0
    copy(held, Y[n, o].tile((128,), (y,)), edge=0)
    assert_equals(Y, lambda a, b, c: 0)
"""


@pytest.mark.nightly
def test_a_written_kernel_must_prove_the_claim_of_the_problem(tmp_path: Path) -> None:
    found = asked("conv:4x64x28x28:64x1x1")
    claim = problem_claim(found, verified)
    assert claim is not None
    (formula,) = claim.formulas
    assert formula.startswith("assert_equals(Y, lambda i0, i1, i2: total(lambda c: X[i0, c, i2] * F[i1, c], over=C))")
    refused = GateTask(str(found), "sm_90a", folder=tmp_path)("text", ZEROS)

    assert (refused.outcome, refused.stage) == ("unknown", "invariants"), refused
    assert "the problem's claim is not proved" in refused.why


def test_a_model_is_shown_the_reference_and_what_is_known_of_convolutions() -> None:
    view = problem_view(asked("conv:32x64x56x56:64x3x3:pad=1"))

    assert "X (N, C, I0, I1) of bf16" in view.reference
    assert "F (O, C, 3, 3) of bf16" in view.reference
    assert "def convolution(" in view.reference
    assert {each.family for each in view.practices} == {"convolution"}
