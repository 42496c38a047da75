from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import argus
from argus import language
from argus.policy.llm.instructions import EXAMPLES, LANGUAGE
from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import with_response
from argus.policy.llm.prompt import MOST_BYTES, request, size
from argus.policy.llm.reply import Option, Proposal, Reply
from argus.policy.llm.roles import Question
from argus.policy.llm.settings import Settings
from argus.policy.llm.tasks import Plan, Task
from argus.policy.llm.view import Rejection, Shown, View
from argus.policy.planner import Choice, State, Step
from argus.policy.practice import Experiment, Practice
from argus.policy.technique import Effect, Technique
from argus.search.llm_client import ROLES
from argus.verifier.loader import load
from tests.policy.llm.searches import OPTIONS, PLANNER, SITUATION, choice, observed, start

TECHNIQUE = Technique(
    "wide",
    "Wide tiles",
    "More products for each element that is loaded.",
    "global",
    ("sm_90a",),
    "has_mainloop",
    ("I1", "I3"),
    "wide",
    Effect(1.1, 1.5, 2.0, "time"),
    "Few tiles.",
    "An empty wave.",
    (),
    "A tile of twice the columns feeds the tensor cores.",
)
PRACTICE = Practice(
    "thin",
    "Thin rows",
    "rows",
    "Few elements a thread.",
    ("sm_90a",),
    ("I39",),
    "Short rows.",
    "Long ones.",
    (Experiment("c", "r", "s", 1.25), Experiment("c", "r", "s", 0.8)),
)
REFUSED = Rejection("d001", "refuted", '{"code": "I5"}', "first\nsecond", ("error[I5]: read too early",))
BEST = Shown(
    "d100", "def kernel(): ...", "passed, 200 us", {"registers": 168.0}, {"tensor": 90.0, "launch": 2.0}, "tensor"
)
VIEW = View(BEST, BEST, (REFUSED,), (TECHNIQUE,))


def asked(state: State[Memory], view: View, faults: tuple[str, ...] = (), task: Task = Plan()) -> dict[str, Any]:  # noqa: B008 reason: frozen
    question = Question(task, state, PLANNER.bandit_ranking(state), view)
    return request(Settings(), ROLES[task.name], question, faults)


def texts(fields: dict[str, Any]) -> list[str]:
    return [each["text"] for each in (*fields["system"], *fields["messages"][0]["content"])]


def test_the_model_sees_the_search() -> None:
    state = with_response(start(), Reply((Proposal(Option("d100"), 0.9, "wide"),), ("pipelines helped",)))
    state = PLANNER.learn(state, observed(choice(1, 0, 0)))
    system, problem, now = texts(asked(state, VIEW))

    assert "More products for each element" in system
    assert "must be proved: I1, I3" in system
    assert "gemm:4096x4096x4096:bf16" in problem
    assert '"speed_of_light_us": 100.0' in problem
    assert '"bottleneck": "tensor"' in now
    assert '"gap": 2.0' in now
    assert "def kernel(): ..." in now
    assert "### d001 (refuted)\n```\n   1 | first\n   2 | second\n```\n```\nerror[I5]: read too early\n```" in now
    assert 'as JSON: {"code": "I5"}' in now
    assert "- I5: a slot is read only while it is full" in now
    assert "- I7:" not in now
    assert "resources: registers 168" in now
    assert "tensor 90, launch 2" in now
    assert "limited by: tensor" in now
    assert "expected with confidence 0.90: wide" in now
    assert "- pipelines helped" in now
    assert "A tile of twice the columns" in now
    assert '"name": "d110"' in now
    assert now.count('"name": "d100"') == 2


def test_a_technique_of_another_target_is_not_shown() -> None:
    other = evolve(TECHNIQUE, name="elsewhere", targets=("gfx942",))
    shown = texts(asked(start(), View(techniques=(other,))))

    assert "elsewhere" not in " ".join(shown)


def test_practices_are_shown_with_what_they_gave_and_where_they_lost() -> None:
    guess = evolve(PRACTICE, name="guess", experiments=(), conjecture=True)
    _, problem, _ = texts(asked(start(), View(practices=(PRACTICE, guess))))
    _, bare, _ = texts(asked(start(), View()))

    assert "- thin (0.80 to 1.25; must be proved: I39): Few elements a thread." in problem
    assert "  Gains: Short rows.\n  Lost: Long ones." in problem
    assert "- guess (a conjecture; must be proved: I39)" in problem
    assert "What was tried on this family" not in bare


@pytest.mark.share(2)
def test_a_request_is_bounded_whatever_is_shown() -> None:
    huge = tuple(
        Choice(f"{'ü' * 300}{number}", (Step("t" * 500, "c" * 500),), (1.0,) * 4, (("k" * 100, number),))
        for number in range(3000)
    )
    situation = evolve(SITUATION, options=huge, problem="p" * 100_000)
    state = PLANNER.start(situation, 0)
    for each in huge[:300]:
        state = PLANNER.learn(state, observed(each))
    state = with_response(state, Reply((), ("l" * 300,) * 12))
    techniques = tuple(evolve(TECHNIQUE, name=f"t{number}", text="tensor " * 5000) for number in range(300))
    refused = Rejection("r", "refuted", "€" * 50_000, "ü\n" * 30_000, ("I1 I2 I3 " * 10_000,))
    rejections = tuple(evolve(refused, name=f"r{number}") for number in range(50))
    kernel = Shown("k" * 99, "#" * 10**6, limiting="line " * 9)
    view = View(
        kernel, evolve(kernel, name="other"), rejections, techniques, "p" * 9999, "r" * 99999, ("e" * 300,) * 99
    )
    view = evolve(view, practices=(evolve(PRACTICE, loses="l" * 1000),) * 99)
    fields = asked(state, view, ("ü" * 400,) * 30)

    assert sum(len(each.encode("utf-8")) for each in texts(fields)) + len(json.dumps(fields["tools"])) < MOST_BYTES
    assert "[more are left out]" in texts(fields)[2]
    assert "bytes in all, the rest is left out]" in texts(fields)[2]


def test_text_that_utf8_cannot_say_does_not_break_a_request() -> None:
    odd = "a\ud800b"
    refused = Rejection(odd, "refuted", odd, odd, (odd,))
    view = View(Shown(odd, odd), None, (refused,), (evolve(TECHNIQUE, intent=odd, text=odd),))
    situation = evolve(SITUATION, problem=odd, bottleneck=odd)
    fields = asked(PLANNER.start(situation, 0), view)

    for each in texts(fields):
        each.encode("utf-8")
    assert size(fields) > 1000


def test_the_size_is_that_of_the_request() -> None:
    fields = asked(start(), VIEW)

    assert size(fields) >= sum(len(each.encode("utf-8")) for each in texts(fields))


def test_open_options_come_in_the_order_of_the_bandit() -> None:
    state = start()
    now = texts(asked(state, VIEW))[2]
    shown = re.findall(r'"name": "(d\d+)"', now)

    assert shown == [each.choice.name for each in PLANNER.bandit_ranking(state)]
    assert len(shown) == len(OPTIONS)


def test_each_name_of_the_instructions_is_in_the_language() -> None:
    quoted = " ".join(re.findall(r"`([^`]+)`", LANGUAGE))
    called = set(re.findall(r"(?<![.\w])([a-z_]\w+)(?=\(|\.wait)", quoted))
    alone = set(re.findall(r"`([a-zA-Z_]\w*)`", LANGUAGE))
    other = {"range", "dict", "k"}

    assert len(called | alone) > 30
    assert (called | alone) - other <= set(language.__all__)


@pytest.mark.share(2)
@pytest.mark.parametrize("target", EXAMPLES)
def test_the_examples_of_the_instructions_are_proved(tmp_path: Path, target: str) -> None:
    path = tmp_path / "matmul.py"
    path.write_text(EXAMPLES[target], encoding="utf-8")
    (found,) = load(str(path))

    report = argus.verify(found.trace())
    assert isinstance(report.verdict, argus.Proved)
    assert report.target == target
    assert report.exit_code == 0


@pytest.mark.parametrize("effort", [None, "high"])
def test_an_effort_is_sent_where_one_is_set(effort: Any) -> None:  # noqa: ANN401 reason: a literal
    question = Question(Plan(), start(), PLANNER.bandit_ranking(start()), VIEW)
    fields = request(Settings(effort=effort), ROLES["plan"], question)

    assert fields.get("output_config") == (None if effort is None else {"effort": effort})


def test_some_options_of_each_kind_are_shown_and_the_values_of_all_knobs() -> None:
    designs = tuple(
        Choice(f"{kind}{number}", (), (1.0,) * 4, (("kind", kind), ("stages", number), ("whole", number > 2)))
        for kind in ("Hopper", "Split")
        for number in range(1, 400)
    )
    state = PLANNER.start(evolve(SITUATION, options=designs), 0)
    ranking = sorted(PLANNER.bandit_ranking(state), key=lambda each: each.choice.name)
    _, problem, now = texts(request(Settings(), ROLES["plan"], Question(Plan(), state, ranking, VIEW)))

    assert now.index('"Hopper1"') < now.index('"Split1"') < now.index('"Hopper10"') < now.index('"Split10"')
    assert '{"kind": "Hopper", "knobs": {"stages": [1, 2, 3' in problem
    assert '"whole": [false, true]' in problem
    tried = PLANNER.learn(state, evolve(observed(choice(0, 0, 0)), choice=designs[5]))
    assert texts(asked(tried, VIEW))[1] == problem
