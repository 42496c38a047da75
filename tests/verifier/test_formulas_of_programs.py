"""Programs claim formulas of what they leave, over all their launches."""

# ruff: noqa: UP037
# Reason: the name of a size is a text.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportGeneralTypeIssues=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# Reason: elements are values only while a formula is made.

from __future__ import annotations

import json

import numpy as np
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Program, program_claims
from argus.core.ir.pretty import program_text
from argus.core.query import Budget
from argus.core.serde import MalformedError, read, write
from argus.core.verdict import Proved, Refuted, Unknown
from argus.interp.programs import run_program
from argus.interp.search.schedule import Schedule
from argus.interp.values import formulas
from argus.language import (
    Tensor,
    add,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    first_lane,
    kernel,
    load,
    loop,
    program,
    registers,
    replicated,
    sm_90a,
    spread,
    sqrt,
    thread,
    total,
    where,
    workspace,
)
from argus.runtime.run import run
from argus.solvers.session.answers import Answers, OutOfTime
from argus.verifier import program as program_verifier
from argus.verifier.program import verify_program

BRIEF = evolve(Budget.about(0.5), runs=Budget().runs)


@kernel(target=sm_90a, threads=32)
def squared(X: Tensor["R N", f32], Y: Tensor["R N", f32]) -> None:
    R, N = X.shape
    assume(N % 4 == 0)
    r, n = block_id((R, ceil_div(N, 128)))
    v = load(X[r].tile((128,), (n,)), spread((128,), threads=32, vector=4), edge=0)
    copy(v * v, Y[r].tile((128,), (n,)), edge=0)


@kernel(target=sm_90a, threads=32)
def roots_of_sums(Y: Tensor["R N", f32], Z: Tensor["R", f32]) -> None:
    R, N = Y.shape
    assume(N % 4 == 0)
    (r,) = block_id((R,))
    by = spread((128,), threads=32, vector=4)
    sums = registers(f32, by.partial(0))
    sums[:] = 0.0
    for i in loop(ceil_div(N, 128)):
        sums[:] = sums + load(Y[r].tile((128,), (i,)), by, edge=0).fold(0, add, within=thread)
    copy(sqrt(sums.sum(0)), Z[r], by=first_lane, edge=0)
    assert_equals(Z, lambda i: sqrt(total(lambda j: Y[i, j], over=N)))


@program
def norms(X: Tensor["A B", f32], Z: Tensor["A", f32]) -> None:
    squares = workspace(f32, X.shape)
    squared(X, squares)
    roots_of_sums(squares, Z)
    assert_equals(Z, lambda r: sqrt(total(lambda j: X[r, j] * X[r, j], over=X.shape[1])))


@program
def norms_of_absolute_values(X: Tensor["A B", f32], Z: Tensor["A", f32]) -> None:
    squares = workspace(f32, X.shape)
    squared(X, squares)
    roots_of_sums(squares, Z)
    assert_equals(Z, lambda r: sqrt(total(lambda j: abs(X[r, j]), over=X.shape[1])))


@program
def norms_of_the_first_rows(X: Tensor["A B", f32], Z: Tensor["A", f32]) -> None:
    squares = workspace(f32, X.shape)
    squared(X, squares)
    roots_of_sums(squares, Z)
    size = X.shape[1]
    assert_equals(
        Z, lambda r: where(r < 2, sqrt(total(lambda j: X[r, j] * X[r, j], over=size)), 1), where=lambda r: r < 2
    )


CLAIM = "assert_equals(Z, lambda i0: sqrt(total(lambda j: X[i0, j] * X[i0, j], over=B)))"


def test_a_claim_is_printed_and_read_as_written() -> None:
    made = norms.trace()
    assert program_text(made).splitlines()[6].strip() == CLAIM
    document = json.loads(json.dumps(write([made])))
    (found,) = read(document)
    assert isinstance(found, Program)
    assert program_text(found) == program_text(made)
    ((_, one),), ((_, two),) = program_claims(made), program_claims(found)
    assert one.formula is two.formula


def test_a_program_without_a_claim_has_the_rows_that_it_had() -> None:
    @program
    def plain(X: Tensor["A B", f32], Y: Tensor["A B", f32]) -> None:
        squared(X, Y)

    kinds = [row[0] for row in json.loads(json.dumps(write([plain.trace()])))["rows"]]
    assert ("Program" in kinds, "ClaimedProgram" in kinds) == (True, False)
    assert not any(isinstance(kind, str) and kind.startswith("Formula") for kind in kinds)


def test_a_claim_over_a_foreign_size_is_malformed() -> None:
    document = json.loads(json.dumps(write([norms.trace()])))
    (claimed,) = (row for row in document["rows"] if row[0] == "ClaimedProgram")
    claimed[3] = claimed[3][:1]
    with pytest.raises(MalformedError):
        read(document)


def test_a_right_program_is_proved() -> None:
    report = verify_program(norms.trace(), budget=BRIEF)
    assert isinstance(report.verdict, Proved), report.verdict
    assert CLAIM in report.verdict.results
    assert report.crossings[0].holds == "lambda i0, i1: X[i0, i1] * X[i0, i1]"


def test_a_claim_of_some_elements_is_proved() -> None:
    made = norms_of_the_first_rows.trace()
    assert program_text(made).splitlines()[6].strip().endswith(", where=lambda i0: (i0 <= 1))")
    assert isinstance(verify_program(made, budget=BRIEF).verdict, Proved)
    assert run_program(made, {"A": 3, "B": 140}, None, Schedule("late", 0, "lowest"), values=False).violations == ()


@pytest.mark.share(9, among="verdicts on programs")
def test_a_wrong_program_is_refuted_only_by_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    made = norms_of_absolute_values.trace()
    report = verify_program(made, budget=BRIEF)
    assert isinstance(report.verdict, Refuted)
    found = report.verdict.counterexample
    assert (found.code, found.buffer, found.element) == ("I39", "Z", (0,))
    assert found.place.startswith(f"{__file__}:")
    monkeypatch.setattr(formulas, "differs", lambda found, *_: np.zeros(found.shape, np.bool_))
    assert isinstance(verify_program(made, budget=BRIEF).verdict, Unknown)


@pytest.mark.parametrize("draw", range(3))
def test_a_run_compares_the_whole_program(draw: int) -> None:
    schedule = Schedule("late", 0, "lowest", draw=draw)
    sizes = {"A": 3, "B": 140}
    assert run_program(norms.trace(), sizes, None, schedule, values=False).violations == ()
    wrong = run_program(norms_of_absolute_values.trace(), sizes, None, schedule, values=False).violations
    same = draw == 1  # of zeros and ones, the square is the absolute value
    assert {each.code for each in wrong} == (set() if same else {"I39"})


def test_a_run_on_arrays_is_compared_with_the_claim() -> None:
    ran = run(norms.trace(), {"A": 5, "B": 200}, on="interpreter")
    assert ran.comparison is not None
    assert (ran.comparison.right, ran.comparison.elements, ran.uncompared) == (True, 5, ())
    wrong = run(norms_of_absolute_values.trace(), {"A": 5, "B": 200}, on="interpreter")
    assert wrong.comparison is not None
    assert not wrong.comparison.right


@program
def claims_of_a_workspace(X: Tensor["A B", f32], Z: Tensor["A B", f32]) -> None:
    between = workspace(f32, X.shape)
    squared(X, between)
    squared(between, Z)
    assert_equals(between, lambda r, n: X[r, n] * X[r, n])


@program
def claims_of_an_input(X: Tensor["A B", f32], Z: Tensor["A B", f32]) -> None:
    squared(X, Z)
    assert_equals(X, lambda r, n: X[r, n])


@program
def reads_an_output(X: Tensor["A B", f32], Y: Tensor["A B", f32], Z: Tensor["A B", f32]) -> None:
    squared(X, Y)
    squared(Y, Z)
    assert_equals(Z, lambda r, n: Y[r, n] * Y[r, n])


@program
def reads_a_workspace(X: Tensor["A B", f32], Z: Tensor["A B", f32]) -> None:
    between = workspace(f32, X.shape)
    squared(X, between)
    squared(between, Z)
    assert_equals(Z, lambda r, n: between[r, n] * between[r, n])


@program
def claims_of_a_view(X: Tensor["A B", f32], Z: Tensor["A B", f32]) -> None:
    squared(X, Z)
    assert_equals(Z.T, lambda n, r: X[r, n] * X[r, n])


@pytest.mark.parametrize(
    ("faulty", "code", "words"),
    [
        (claims_of_a_workspace, "E106", "takes a parameter of the program, found `between`"),
        (claims_of_an_input, "E112", "claims a formula of `X`, which no launch writes"),
        (reads_an_output, "E112", "reads `Y`, which is written"),
        (reads_a_workspace, "E111", "reads `between`, which is no tensor of its inputs"),
        (claims_of_a_view, "E106", "claims a formula of a view of `Z`"),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_faulty_claims_of_programs(faulty: object, code: str, words: str) -> None:
    trace = getattr(faulty, "trace")  # noqa: B009 reason: a template of either kind
    with pytest.raises(ArgusError) as caught:
        trace()
    assert caught.value.diagnostic.code == code
    assert words in caught.value.diagnostic.message


def test_outside_kernels_and_programs_there_is_no_claim() -> None:
    with pytest.raises(ArgusError) as caught:
        assert_equals(None, lambda: 0)
    assert caught.value.diagnostic.code == "E105"


# -- out of time ---------------------------------------------------------------------------------------


@pytest.mark.share(4)
@pytest.mark.parametrize("questions", [0, 1, 20, "all but one"])
def test_a_proof_whose_time_ends_within_a_later_launch_is_not_known(
    questions: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches, asked, most = list[None](), list[None](), 1 << 20
    verify_launch, ask = vars(program_verifier)["_verify_launch"], Answers.asked

    def counted(*given: object) -> object:
        launches.append(None)
        return verify_launch(*given)

    def limited(answers: Answers) -> None:
        if len(launches) == 2:
            if len(asked) == most:
                raise OutOfTime
            asked.append(None)
        ask(answers)

    monkeypatch.setattr(program_verifier, "_verify_launch", counted)
    monkeypatch.setattr(Answers, "asked", limited)
    traced = norms.trace()
    assert isinstance(verify_program(traced, solver="z3").verdict, Proved)
    assert len(launches) == 2

    most = questions if isinstance(questions, int) else len(asked) - 1
    launches.clear()
    asked.clear()
    report = verify_program(traced, solver="z3")

    assert len(asked) == most
    assert isinstance(report.verdict, Unknown)
    assert "for the whole proof are spent" in report.verdict.reason
    assert [type(each.verdict) for each in report.launches] == [Proved, Unknown]


def test_launches_after_one_whose_time_ended_are_not_reported_as_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(_: Answers) -> None:
        raise OutOfTime

    monkeypatch.setattr(Answers, "asked", ended)
    report = verify_program(norms, solver="z3")

    assert isinstance(report.verdict, Unknown)
    assert len(report.launches) == 1


# -- what differs --------------------------------------------------------------------------------------


@kernel(target=sm_90a, threads=32)
def increased(X: Tensor["R", f32], T: Tensor["R", f32], Y: Tensor["R", f32]) -> None:
    (r,) = block_id(X.shape)
    copy(load(X[r], replicated(32)) + load(T[r], replicated(32)), Y[r], by=first_lane, edge=0)
    assert_equals(Y, lambda i: 2 * X[i])


@kernel(target=sm_90a, threads=32)
def halved(X: Tensor["R", f32], T: Tensor["R", f32]) -> None:
    (r,) = block_id(X.shape)
    copy(load(X[r], replicated(32)) / 2.0, T[r], by=first_lane, edge=0)


@program
def with_one_name(X: Tensor["R", f32], Y: Tensor["R", f32]) -> None:
    halves = workspace(f32, X.shape)
    halved(X, halves)
    increased(X, halves, Y)


@program
def with_two_names(X: Tensor["R", f32], Z: Tensor["R", f32]) -> None:
    halves = workspace(f32, X.shape)
    halved(X, halves)
    increased(X, halves, Z)


@pytest.mark.parametrize(("made", "causes"), [(with_one_name, True), (with_two_names, False)], ids=["one", "two"])
def test_an_output_of_a_launch_that_has_another_name_there_is_refuted_without_a_cause(
    made: ProgramTemplate, causes: bool
) -> None:
    verdict = verify_program(made, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert ("counted" in dict(verdict.counterexample.tags)) is causes
