"""Diagnosis of causes: a wrong arrival count or phase is found by the edit that removes the fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.algebra import add, const
from argus.core.diagnostic import Diagnostic
from argus.core.ir import Alloc, Arrive, Await, Kernel, Stmt, bodies, walk, with_bodies
from argus.core.query import Budget
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run
from argus.interp.search.advice import advice_for
from argus.interp.search.budget import RunBudget
from argus.interp.search.diagnosis import Witness, diagnose
from argus.interp.search.protocol_repairs import repairs
from argus.interp.search.search import sizes_in_order
from argus.verifier.refute import Refutation, refute
from tests.interp.rings import Config, gemm

SIZES = {"M": 64, "N": 16, "K": 64}
SMALL = Config(stages=2, consumers=2, lag=1)


def diagnosed(kernel: Kernel) -> Witness | None:
    return diagnose(Prepared(kernel), SIZES, (SIZES,), RunBudget(1000))


def refuted(kernel: Kernel) -> Refutation:
    found = refute(kernel, (), Budget())
    assert found is not None
    return found


def edited(kernel: Kernel, change: Callable[[Stmt], Stmt]) -> Kernel:
    """The kernel with every statement changed, inner ones first."""

    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(change(with_bodies(stmt, tuple(inside(part) for part in bodies(stmt)))) for stmt in body)

    assert kernel.roles is not None
    (roles,) = inside((kernel.roles,))
    return evolve(kernel, prologue=inside(kernel.prologue), roles=roles)


def with_phase(kernel: Kernel, name: str, by: int) -> Kernel:
    """Every wait on a barrier of this name asks for another phase."""

    def change(stmt: Stmt) -> Stmt:
        mine = isinstance(stmt, Await) and stmt.event.buffer.name == name
        return evolve(stmt, phase=add(stmt.phase, const(by))) if isinstance(stmt, Await) and mine else stmt

    return edited(kernel, change)


def with_count(kernel: Kernel, name: str, count: int) -> Kernel:
    def change(stmt: Stmt) -> Stmt:
        mine = isinstance(stmt, Alloc) and stmt.buffer.name == name
        return evolve(stmt, count=count) if mine else stmt

    return edited(kernel, change)


@pytest.mark.share(20, among="correct kernels in the interpreter")
def test_a_correct_kernel_has_no_diagnosis() -> None:
    assert diagnosed(gemm(SMALL)) is None
    assert refute(gemm(Config(2, 1)), (), Budget.about(2.0)) is None


@pytest.mark.share(12, among="causes of deadlocks")
@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_count_is_the_cause_of_races_and_deadlocks(count: int) -> None:
    witness = diagnosed(with_count(gemm(SMALL), "empty", count))
    assert witness is not None
    found = witness.violation
    assert found.code == "I8"
    assert isinstance(found.stmt, Alloc)
    assert found.stmt.buffer.name == "empty"
    many = "1 arrival" if count == 1 else "3 arrivals"
    assert found.message == f"`empty` expects {many} per phase, but the 2 agents of `math` arrive 2 times"
    assert witness.help == "make `empty` expect 2 arrivals, or let as many threads arrive as it expects"
    assert found.facts[0][0] == "consequence"
    assert found.related[0] == (found.stmt, witness.help)


@pytest.mark.share(12, among="causes of deadlocks")
@pytest.mark.parametrize(("by", "where", "text"), [(-1, "before", "add 1 to"), (1, "after", "subtract 1 from")])
def test_a_wrong_phase_is_the_cause_of_races_and_deadlocks(by: int, where: str, text: str) -> None:
    witness = diagnosed(with_phase(gemm(SMALL), "full", by))
    assert witness is not None
    assert witness.violation.code == "I6"
    assert witness.violation.message == f"a wait on `full` is for the phase {where} the one of its use"
    assert witness.help == f"{text} the phase of the wait"
    assert isinstance(witness.violation.stmt, Await)


@pytest.mark.share(48)
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("no empty wait", "I5"),
        ("half the bytes", "I7"),
        ("bytes of B alone", "I7"),
        ("empty count 1", "I8"),
        ("wrong slot", "I5"),
        ("wrong parity", "I6"),
        ("phase restarted", "I6"),
        ("early release", "I10"),
        ("no final wait", "I11"),
        ("B backwards", "I1"),
        ("no init fence", "I14"),
        ("no init barrier", "I14"),
    ],
)
def test_the_search_names_the_cause_and_replays_it(fault: str, code: str) -> None:
    kernel = gemm(Config(2, fault=fault))
    found = refuted(kernel)
    assert found.counterexample.code == code, found.counterexample.message
    assert isinstance(found.diagnostic, Diagnostic)
    assert found.diagnostic.help == advice_for(kernel, code) or code in ("I1", "I6", "I8")
    assert code != "I1" or "start the tile at `16*k`" in found.diagnostic.help
    assert found.counterexample.replayed == "interpreter"


def test_repairs_are_single_changes_of_barriers_that_the_kernel_has() -> None:
    kernel = with_count(gemm(SMALL), "empty", 3)
    found = list(repairs(kernel))
    stmts = set(walk(kernel.body))
    assert all(repair.stmt in stmts for repair in found)
    assert {repair.code for repair in found} == {"I6", "I8"}
    for repair in found:
        changed = [stmt for stmt in walk(repair.kernel.body) if isinstance(stmt, Alloc | Await | Arrive)]
        before = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Alloc | Await | Arrive)]
        assert sum(one is not other for one, other in zip(before, changed, strict=True)) == 1


def test_a_deadlock_report_names_ended_agents_and_missing_arrivals() -> None:
    kernel = gemm(Config(2, fault="consumer leaves early"))
    violations = run(kernel, {"M": 64, "N": 16, "K": 96}, values=False).violations
    (found,) = (violation for violation in violations if violation.code == "I9")
    facts = dict(found.facts)
    assert facts["`math` 0"] == "has ended"
    assert facts["`load`"].startswith("waits for phase")
    assert "nobody arrives there" in found.message


def test_an_early_arrival_is_the_cause_and_not_the_wait_that_it_overtakes() -> None:
    def released_twice(stmt: Stmt) -> Stmt:
        mine = isinstance(stmt, Arrive) and stmt.event.buffer.name == "empty"
        return evolve(stmt, count=2) if mine else stmt

    kernel = with_count(edited(gemm(Config(2, 1, 0)), released_twice), "empty", 1)
    codes = {violation.code for violation in run(kernel, SIZES, values=False).violations}
    assert codes == {"I8"}


def test_sizes_of_roles_differ_in_blocks_and_trips() -> None:
    kernel = gemm(SMALL)
    sizes = list(sizes_in_order(kernel))
    assert 4 <= len(sizes) <= 16
    assert len({tuple(size.values()) for size in sizes}) == len(sizes)
    assert {-(-size["K"] // 16) for size in sizes} >= {1, 2, 3}
