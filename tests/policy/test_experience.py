from pathlib import Path

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.policy.experience import (
    NOTHING,
    Experience,
    RecordedProblem,
    Trend,
    experience_text,
    fit_experience,
    load_experience,
)

NAMES = ("1", "split")
DESIGNS = np.array([[1.0, 0.0], [1.0, 1.0]] * 20)


def lesson(size: float, split: float) -> RecordedProblem:
    """A recorded problem with a given weight of split-K."""
    return RecordedProblem(size, NAMES, DESIGNS, DESIGNS @ np.array([-1.0, split]))


SMALLER_GAIN = [lesson(size, -0.5 * size) for size in (-3.0, -1.0, 0.0, 1.0, 3.0)]


def test_a_weight_depends_on_the_size() -> None:
    found = fit_experience(SMALLER_GAIN)

    assert found.at(-2.0)["split"].mean == pytest.approx(1.0, abs=0.25)
    assert found.at(2.0)["split"].mean == pytest.approx(-1.0, abs=0.25)
    assert found.at(2.0)["1"].mean == pytest.approx(found.at(-2.0)["1"].mean, abs=0.05)


def test_a_trend_reduces_the_deviation() -> None:
    alike = fit_experience([lesson(0.0, -0.5 * size) for size in (-3.0, -1.0, 0.0, 1.0, 3.0)])

    assert fit_experience(SMALLER_GAIN).trends["split"].deviation < alike.trends["split"].deviation / 2
    assert alike.trends["split"].slope == 0.0


def test_sizes_are_clamped_to_the_training_range() -> None:
    found = fit_experience(SMALLER_GAIN)

    assert found.at(40.0) == found.at(3.0)
    assert found.at(-40.0) == found.at(-3.0)
    assert found.at(None) == found.at(found.usual)


def test_one_problem_gives_no_slope() -> None:
    found = fit_experience([lesson(2.0, 0.5)])

    assert {each.slope for each in found.trends.values()} == {0.0}
    assert found.at(-5.0) == found.at(2.0)


def test_a_problem_without_a_feature_has_weight_0() -> None:
    plain = RecordedProblem(0.0, ("1",), np.ones((10, 1)), np.full(10, -1.0))
    found = fit_experience([plain, lesson(0.0, 1.0)])

    assert found.trends["split"].mean == pytest.approx(0.5, abs=0.05)


def test_experience_round_trips(tmp_path: Path) -> None:
    kept = Experience(0.5, 1.25, -2.0, 3.0, {"1": Trend(-0.5, 0.25, 0.125), "split": Trend(0.0, 0.0, 1.0)})
    (tmp_path / "experience").mkdir()
    (tmp_path / "experience" / "sm_90a.json").write_text(experience_text(kept, ["a table"]), encoding="utf-8")

    assert load_experience("sm_90a", tmp_path) == kept
    assert load_experience("gfx942", tmp_path) == NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"weights": {}}',
        '{"sizes": {"usual": 0, "spread": 1, "least": 0, "most": 1}, "weights": {"1": [0.5, 0.25]}}',
        '{"sizes": {"usual": 0, "spread": 1, "least": 0, "most": 1}, "weights": {"1": [0.5, 0.25, 0]}}',
        '{"sizes": {"usual": 0, "spread": 1, "least": 0, "most": 1}, "weights": {"1": [NaN, 0, 1]}}',
    ],
)
def test_a_file_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "experience").mkdir()
    (tmp_path / "experience" / "sm_90a.json").write_text(text, encoding="utf-8")

    with pytest.raises(ArgusError, match="holds no weights") as caught:
        load_experience("sm_90a", tmp_path)
    assert caught.value.diagnostic.code == "E902"
