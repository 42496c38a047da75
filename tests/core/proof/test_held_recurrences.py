"""Values that loops carry: each kernel of a formula holds it, and no wrong twin does."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.dsl.kernel import Template
from property_tests.programs import CORPUS, templates
from tests.core.proof.test_held import analysed

EDITS = {
    "the highest of equal places": ("arg_max_running", "v > best", "v >= best"),
    "places before the maximum is known": ("arg_max_in_two_passes", "minimum(at,", "minimum(at + 1.0,"),
    "the last one that was greater than 0": ("arg_max_running", "v > best", "v > 0.0"),
    "the place of the last record counted down": (
        "arg_max_running",
        "where(v > best, i, at)",
        "where(v > best, -i, at)",
    ),
    "a factor that is the state": ("carried_decay", "* h +", "* h * h +"),
    "a state that is not added": ("carried_decay", "h[:] = load(H.tile((64,), (m,)), BY, edge=0)", "h[:] = 0.0"),
    "another divisor": ("welford", "/ (i + 1)", "/ (i + 2)"),
    "the square of the first difference": ("welford", "d * (v - mean)", "d * d"),
    "any where all is meant": ("any_and_all", "where(v > 0.0, b, 0.0)", "where(v > 0.0, 1.0, b)"),
    "a threshold that is not reached": (
        "sum_above_a_threshold",
        "where(v >= t, c + 1.0, c)",
        "where(v > t, c + 1.0, c)",
    ),
    "padding that counts": ("row_least", "p[:] = inf", "p[:] = 0.0"),
    "a product from 0": ("row_product", "p[:] = 1.0", "p[:] = 0.0"),
    "a bias from another place": ("bias_in_place", "slope * (i - N)", "slope * (i - N + 1)"),
    "the first element left out": ("prefix_sums", "loop(N)", "loop(1, N)"),
    "lanes of their own": ("prefix_sums_of_a_warp", "lane.shift(0, 1,", "lane.shift(0, 2,"),
    "every other element": ("unrolled_by_two", "sums[:] = sums + v", "sums[:] = sums + v * part"),
    "one element twice": ("unrolled_by_two", "X.T[2 * i + part]", "X.T[2 * i]"),
    "integers that wrap around": ("integers_clamped", "maximum(v, 0)", "maximum(v + 1, 1) - 1"),
    "another bound": ("integers_clamped", "0), 255), Y", "0), 127), Y"),
    "the first place set to 1": ("arg_max_after_the_first", "at[:] = 0.0", "at[:] = 1.0"),
    "differences not squared": ("squared_distance", "fma(d, d, p)", "fma(d, 2.0, p)"),
    "ignored rows counted": ("cross_entropy_smoothed", "where(label < 0.0, 0.0, loss)", "loss"),
    "the greatest itself": ("next_greatest", "where(v < best, v, -inf)", "where(v <= best, v, -inf)"),
}


RIGHT = sorted({name for name, _, _ in EDITS.values()})
WRONG = (
    "formula_any_of_the_last",
    "formula_decay_of_the_newest",
    "formula_elements_at_the_threshold_left_out",
    "formula_mean_of_one_more",
)


def holds(template: Template) -> bool:
    """Whether what is stored equals each formula that the kernel claims."""
    found = [each for each in analysed(template.trace()).obligations if "assert_equals" in each.what]
    assert found
    return not any(each.unknown for each in found)


@pytest.mark.share(12)
@pytest.mark.parametrize("name", RIGHT)
def test_a_kernel_holds_its_formula(name: str) -> None:
    (template,) = templates(CORPUS / "proved" / f"formula_{name}.py")
    assert holds(template)


@pytest.mark.share(12)
@pytest.mark.parametrize("name", WRONG)
def test_a_refuted_kernel_does_not_hold_its_formula(name: str) -> None:
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    assert not holds(template)


@pytest.mark.share(32)
@pytest.mark.parametrize("what", EDITS)
def test_a_wrong_twin_does_not_hold_its_formula(what: str, tmp_path: Path) -> None:
    name, old, new = EDITS[what]
    text = (CORPUS / "proved" / f"formula_{name}.py").read_text(encoding="utf-8")
    assert text.count(old) == 1
    twin = tmp_path / f"{name}.py"
    twin.write_text(text.replace(old, new), encoding="utf-8")
    (template,) = templates(twin)
    assert not holds(template)
