"""What recorded problems say of a design beyond its features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.policy.bandit import CONSTANT, Bandit, WeightPrior
from argus.policy.experience import RecordedProblem
from argus.policy.nearest import REFUSED, Beyond, beyond_features, load_recorded, recorded_text, residuals
from argus.policy.planner import Choice, Observation, Situation

NAMES = ("plain", "wide", "deep", "both")
FEATURES = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
LESSON = RecordedProblem(0.0, (CONSTANT, "wide", "deep"), FEATURES, np.array([-2.0, -1.9, -1.9, -0.5]))
"""Wide and deep only pay off together, which no weight of either says."""


def test_a_residual_is_what_the_features_do_not_explain() -> None:
    found = residuals((3.0,), LESSON, NAMES, ("broken",)).values

    assert found["both"] > 0.2
    assert found["wide"] < -0.1
    assert found["broken"] == REFUSED


def test_nearer_problems_count_for_more_and_a_lone_record_for_less() -> None:
    near, far = Beyond((0.0, 0.0), {"a": 1.0, "b": 1.0}), Beyond((8.0, 0.0), {"a": -1.0})
    found = beyond_features([near, far], (0.5, 0.0))

    assert found["a"] > 0.3
    assert 0 < found["a"] < found["b"] < 1
    assert beyond_features([near, far], (7.5, 0.0))["a"] < -0.3
    assert not beyond_features([near], (1.0, 2.0, 3.0))


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    told = [Beyond((1.0, 2.5), {"a": 0.123, "b": -2.0}), Beyond((3.0, 0.0), {"b": 0.5})]
    (tmp_path / "experience").mkdir()
    path = tmp_path / "experience" / "here.recorded.json"
    path.write_text(recorded_text(told, ["a table"]), encoding="utf-8")

    assert load_recorded("here", tmp_path) == tuple(told)
    assert load_recorded("elsewhere", tmp_path) == ()


@pytest.mark.parametrize("text", ["[]", '{"designs": ["a"], "problems": [{"place": [1], "values": []}]}', "{", "null"])
def test_a_file_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "experience").mkdir()
    (tmp_path / "experience" / "here.recorded.json").write_text(text, encoding="utf-8")
    with pytest.raises(ArgusError) as raised:
        load_recorded("here", tmp_path)

    assert raised.value.diagnostic.code == "E902"


def test_the_bandit_begins_with_what_recorded_problems_say() -> None:
    options = tuple(Choice(name, (), tuple(row)) for name, row in zip(NAMES, FEATURES.tolist(), strict=True))
    before = Situation("sm_90a", "gemm", LESSON.names, 100.0, "tensor", options)
    told = {CONSTANT: WeightPrior(-2.0, 0.05), "wide": WeightPrior(0.0, 0.05), "deep": WeightPrior(0.0, 0.05)}
    knows = Bandit(told, recorded={"both": 1.0})

    for seed in range(4):
        assert knows.propose(knows.start(before, seed))[0].choice.name == "both"
    state = knows.start(before, 0)
    assert knows.expected(state, options[3]) == pytest.approx(100.0 * np.exp(1.0))
    # What is as recorded tells it nothing new of the features.
    after = knows.learn(state, Observation(options[3], "timed", 100.0 * float(np.exp(1.0))))
    assert knows.expected(after, options[0]) == pytest.approx(knows.expected(state, options[0]), rel=0.02)


def test_observations_of_earlier_runs_are_learnt_before_the_first_choice() -> None:
    options = tuple(Choice(name, (), tuple(row)) for name, row in zip(NAMES, FEATURES.tolist(), strict=True))
    seen = tuple(Observation(options[place], "timed", took) for place, took in ((1, 150.0), (0, 900.0)))
    bandit = Bandit({CONSTANT: WeightPrior(-1.0, 0.5)})
    state = bandit.start(Situation("sm_90a", "gemm", LESSON.names, 100.0, "tensor", options, earlier=seen), 0)

    assert state.step == 0
    assert bandit.expected(state, options[1]) < 250.0
    assert bandit.expected(state, options[0]) > 600.0
