"""The comparison of solvers: faults of backends are detected, classified and counted, in all output formats."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from attrs import frozen

from argus.cli.bench.plot import cactus
from argus.cli.bench.queries import Question, checkout, collect, narrowed, shipped
from argus.cli.bench.runs import Disagreement, Measured, Outcome, Tally, ask, disagreements, measure
from argus.cli.bench.text import Comparison, as_data, contradictions, rows, table
from argus.core.algebra import eq, le, lt, mul, sym
from argus.core.index import Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities
from argus.solvers.registry import get
from argus.solvers.z3_backend import Z3

x = sym(Symbol("x", "size", 1, 9))
free = sym(Symbol("y", "size", 1, None))
POSSIBLE = Question(Query((lt(3, x),)), ("here",), 2, "sat")
IMPOSSIBLE = Question(Query((lt(9, mul(x, 9)), le(x, 1))), ("there",), 1, "unknown")
EVERYTHING = Capabilities(unbounded=True, nonlinear=True, bitwise=True, reads=True)


@frozen
class Told:
    """Answers as it is told to."""

    answer: Callable[[Query], Answer]
    name: str = "told"
    capabilities: Capabilities = EVERYTHING

    def check(self, query: Query, budget: Budget) -> Answer:
        assert budget.seconds > 0
        return self.answer(query)


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (Unsat("told"), "unsat", ""),
        (Sat("told", {x.symbol: 4}), "sat", ""),
        (Sat("told", {x.symbol: 3}), "wrong model", "x >= 4 does not hold"),
        (Sat("told", {}), "wrong model", "x has no value"),
        (GaveUp("told", "tired"), "gave up", "tired"),
    ],
)
def test_outcomes_of_a_backend(answer: Answer, outcome: str, reason: str) -> None:
    measured, _ = ask(POSSIBLE.query, "told", Told(lambda _: answer), Budget())

    assert (measured.outcome, measured.reason) == (outcome, reason)
    assert measured.key == POSSIBLE.query.key


def test_a_backend_that_raises_gives_no_answer() -> None:
    def stumble(_: Query) -> Answer:
        raise RuntimeError("out of luck")

    measured, answer = ask(POSSIBLE.query, "told", Told(stumble), Budget())

    assert answer is None
    assert (measured.outcome, measured.reason) == ("raised", "RuntimeError: out of luck")


def test_giving_up_at_the_end_of_the_budget_is_a_timeout() -> None:
    measured, _ = ask(POSSIBLE.query, "told", Told(lambda _: GaveUp("told", "late", exhausted=True)), Budget())

    assert measured.outcome == "timed out"


def tally(name: str, of_possible: Outcome, of_impossible: Outcome) -> Tally:
    pairs: list[tuple[Question, Outcome]] = [(POSSIBLE, of_possible), (IMPOSSIBLE, of_impossible)]
    return Tally(name, tuple(Measured(q.query.key, name, outcome, 0.01) for q, outcome in pairs), 1, 0.5)


def test_contradicting_answers_are_found_and_reported() -> None:
    right, wrong = tally("right", "sat", "unsat"), tally("wrong", "unsat", "gave up")

    found = list(disagreements((POSSIBLE, IMPOSSIBLE), [right, wrong]))

    assert found == [Disagreement(POSSIBLE, (("right", "sat"), ("wrong", "unsat"), ("stated", "sat")))]
    comparison = Comparison("a test", (POSSIBLE, IMPOSSIBLE), (right, wrong))
    assert not comparison.right
    (diagnostic,) = contradictions(comparison)
    assert diagnostic.code == "E604"
    assert "right sat, wrong unsat, expected sat" in diagnostic.message


def test_an_answer_other_than_the_stated_one_is_a_contradiction() -> None:
    assert list(disagreements((POSSIBLE, IMPOSSIBLE), [tally("one", "unsat", "unsat")])) == [
        Disagreement(POSSIBLE, (("one", "unsat"), ("stated", "sat")))
    ]
    assert list(disagreements((POSSIBLE, IMPOSSIBLE), [tally("one", "sat", "sat")])) == []


def test_faults_make_a_comparison_wrong() -> None:
    assert Comparison("", (POSSIBLE, IMPOSSIBLE), (tally("one", "sat", "gave up"),)).right
    assert not Comparison("", (POSSIBLE, IMPOSSIBLE), (tally("one", "wrong model", "unsat"),)).right
    assert not Comparison("", (POSSIBLE, IMPOSSIBLE), (tally("one", "sat", "raised"),)).right


def test_answers_are_found_again_in_the_cache() -> None:
    found = measure((POSSIBLE, IMPOSSIBLE, Question(Query((eq(free, 3),)), ("x",))), "enumerate", Budget())

    assert [result.outcome for result in found.results] == ["sat", "unsat", "gave up"]
    assert found.hits == 2
    assert len(found.times()) == 2


def test_table_csv_and_json_agree() -> None:
    comparison = Comparison(
        "a test", (POSSIBLE, IMPOSSIBLE), (tally("one", "sat", "unsat"), tally("two", "sat", "timed out"))
    )

    lines = list(table(comparison))
    assert lines[0] == "a test: 2 queries"
    assert lines[2].split() == ["one", "1", "1", "0", "0", "0", "0", "10.00", "10.0", "0.02", "1", "0.50"]
    assert lines[-1] == "  1 queries are answered by two or more backends: no disagreements"
    parsed = list(csv.DictReader(io.StringIO(rows([comparison]))))
    assert [(row["backend"], row["outcome"], row["times asked"]) for row in parsed] == [
        ("one", "sat", "2"),
        ("one", "unsat", "1"),
        ("two", "sat", "2"),
        ("two", "timed out", "1"),
    ]
    data = as_data(comparison)
    assert data["answered_by_two_or_more"] == 1
    assert data["disagreements"] == []


def test_the_plot_has_a_line_for_each_backend_that_answers() -> None:
    svg = cactus({"quick": [1e-4 * (n + 1) for n in range(1000)], "slow": [0.5], "mute": []}, 1000)

    root = ET.fromstring(svg)  # noqa: S314 reason: our own text
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"quick (1,000)", "slow (1)", "mute (0)", "1 ms", "100 ms", "0", "1,000"} <= set(texts)
    lines = [each for each in root.iter("{http://www.w3.org/2000/svg}polyline") if each.get("stroke-width") == "2"]
    assert sorted(len(line.attrib["points"].split()) for line in lines) == [1, 2, 2, 2, 501]
    assert cactus({}, 0).startswith("<svg")


def looks(svg: str) -> dict[str, tuple[str | None, str | None]]:
    """Colour and dashes of each backend in a plot's legend, where its line comes before its name."""
    drawn = list(ET.fromstring(svg))  # noqa: S314 reason: our own text
    named = [(line, (text.text or "").split(" (")[0]) for line, text in pairwise(drawn) if text.tag.endswith("text")]
    return {
        name: (line.get("stroke"), line.get("stroke-dasharray"))
        for line, name in named
        if line.get("stroke-width") == "2"
    }


def test_a_backend_has_one_colour_whatever_its_rank() -> None:
    first = looks(cactus({"z3": [0.1, 0.2], "cvc5": [0.3]}, 2))
    last = looks(cactus({"own": [0.1, 0.2, 0.3], "cvc5": [0.1, 0.2], "z3": [0.3]}, 3))

    assert list(first) == ["z3", "cvc5"]
    assert list(last) == ["own", "cvc5", "z3"]
    assert {name: last[name] for name in first} == first
    assert len(set(last.values())) == 3


def test_narrowing_keeps_a_model_near_and_impossible_queries_impossible() -> None:
    far = Question(
        Query((lt(1000, free), lt(free, mul(x, 500)))), ("here",), 1, "sat", {free.symbol: 1001, x.symbol: 3}
    )

    assert isinstance(Z3().check(narrowed(far, Z3(), Budget()).query, Budget()), Sat)
    assert isinstance(Z3().check(narrowed(IMPOSSIBLE, Z3(), Budget()).query, Budget()), Unsat)
    near = narrowed(Question(Query((lt(1000, free), lt(free, 900))), ("here",), 1, "unsat"), Z3(), Budget(), points=4)
    (symbol,) = near.query.symbols or (None,)
    assert symbol is None or (symbol.low or 0) > 900
    assert near.status == "unsat"


def test_what_is_compared_by_default() -> None:
    assert "argus.kernels.gemm" in shipped()
    assert [path.rsplit("/", 1)[1] for path in checkout()] == ["proved", "refuted", "unknown", "traced"]


def test_files_without_kernels_have_no_queries_and_broken_ones_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "broken.py").write_text("raise ValueError('no')\n", encoding="utf-8")

    corpus = collect([str(tmp_path)], get("portfolio"), Budget())

    assert (corpus.questions, corpus.kernels) == ((), 0)
    ((name, reason),) = corpus.skipped
    assert name.endswith("broken.py")
    assert reason.startswith("E003")
