"""Weights of means and squared deviations: equal to a claimed formula, or refuted; by tags alone nothing is refuted."""

from pathlib import Path

import pytest

from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.schedule import Schedule
from tests.claimed_kernels import with_formula
from tests.interp.test_right_formulas import LAYER_NORM

MERGED = Path(__file__).parents[1] / "corpus" / "proved" / "layer_norm_merged.py"
MEAN = "v.sum(0, within=thread, where=valid) / where(count == 0.0, 1.0, count)"
STEP = "        mean += delta * part\n"
WHOLE = "across_cta(mean * seen) / N"
CLAIM = "    assert_covers(center.tag.n, 0, N)\n"
AGAIN = "    each = registers(f32, by.partial(0))\n"

RIGHT = {
    "as it is": (MEAN, MEAN),
    "times the reciprocal": (MEAN, "v.sum(0, within=thread, where=valid) * (1.0 / where(count == 0.0, 1.0, count))"),
    "elements weighed first": (MEAN, "(v * 0.25).sum(0, within=thread, where=valid)"),
    "two half steps": (STEP, "        mean += delta * (part * 0.5)\n" * 2),
    "both weighed": (STEP, "        mean[:] = mean * (1.0 - part) + middle * part\n"),
    "sums merged": (STEP, "        mean[:] = (mean * seen + middle * count) / where(both == 0.0, 1.0, both)\n"),
    "the other way round": (STEP, "        mean -= -delta * part\n"),
    "weighed by thread": (WHOLE, "across_cta(mean * (seen / N))"),
    "twice the sum": (WHOLE, "across_cta(mean * (seen * 2.0)) / (N * 2)"),
    "a mean of one mean": (CLAIM, f"{AGAIN}    each[:] = center\n    center = across_cta(each) / THREADS\n{CLAIM}"),
    "parts of one mean": (
        CLAIM,
        f"{AGAIN}    each[:] = center * (1.0 / THREADS)\n    center = across_cta(each)\n{CLAIM}",
    ),
}
WRONG = {
    "a step too long": (STEP, "        mean += delta * (part * 1.5)\n"),
    "a count too many": ("both = seen + count", "both = seen + count + 1.0"),
    "means of unlike threads": (WHOLE, "across_cta(mean) / N"),
    "squares merged by one count": ("(seen * part)", "seen"),
    "threads of one more": ("m2 + seen *", "m2 + (seen + 1.0) *"),
}


def violations(tmp_path: Path, change: tuple[str, str]) -> set[str]:
    text = MERGED.read_text(encoding="utf-8")
    assert change[0] in text
    edited = tmp_path / "edited.py"
    edited.write_text(text.replace(*change), encoding="utf-8")
    prepared = Prepared(with_formula(edited, "Y", LAYER_NORM))
    sizes = [{"R": 1, "N": n} for n in (4, 132, 256, 260, 516)]
    return {each.code for size in sizes for each in find_violations(prepared, size, Schedule())}


@pytest.mark.share(32, among="interp: weights")
@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_other_formulas_break_nothing(tmp_path: Path, change: tuple[str, str]) -> None:
    assert violations(tmp_path, change) == set()


@pytest.mark.share(32, among="interp: weights")
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_weights_that_differ_are_reported(tmp_path: Path, change: tuple[str, str]) -> None:
    assert violations(tmp_path, change) == {"I39"}
