"""Promises on integers from memory: instances, ascending order, and control paths that depend on them."""

# ruff: noqa: UP037
# Reason: names of sizes.

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.diagnostic import ArgusError
from argus.core.dtype import i32
from argus.core.index import Cond, Index, Read, Symbol
from argus.core.ir import Buffer, Strided, ascending_condition
from argus.core.proof.dataflow.path_split import control_paths
from argus.core.proof.outputs.data_contracts import (
    PromiseProver,
    index_in_bounds,
    is_ascending,
    promise_instance,
    promise_prover,
)
from argus.core.query import Answer, Budget, Sat, Unsat
from argus.core.verdict import Proved, Unknown, Vacuous
from argus.language import (
    Int,
    Tensor,
    assert_written_once,
    assume,
    block_id,
    copy,
    f32,
    gfx942,
    kernel,
    load,
    loop,
    promise,
    scalar,
    spread,
    tag,
    vmem,
    when,
)
from argus.language import i32 as integers
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from argus.verifier.kernel import verify

SIZE, BLOCK, OTHER = (algebra.sym(Symbol(name, "size", 0)) for name in ("S", "b", "c"))
BY = spread((1024,), threads=256, vector=4)


def tensor(promise_: Cond, extent: Index = SIZE) -> Buffer:
    return Buffer("which", "global", i32, (extent,), Strided((algebra.const(1),)), promise=promise_)


def term(at: Index) -> Read:
    return algebra.read("which", (at,))


def element() -> Read:
    return algebra.read("which", (algebra.coord(0),))


def asked(buffer: Buffer, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
    """What z3 says with the instances of one tensor's promise."""
    return PromiseProver(Session(Z3()), {buffer.name: buffer}).prove(hypotheses, goal)


def test_a_promise_holds_of_elements_that_there_are() -> None:
    buffer = tensor(algebra.le(0, element()))
    inside = index_in_bounds(buffer, term(BLOCK))
    assert isinstance(asked(buffer, [inside], algebra.le(0, term(BLOCK))), Unsat)
    assert isinstance(asked(buffer, [], algebra.le(0, term(BLOCK))), Sat)


def test_elements_of_32_bits_stay_in_their_range() -> None:
    buffer = tensor(algebra.TRUE)
    assert isinstance(asked(buffer, [], algebra.lt(term(BLOCK), 1 << 31)), Unsat)
    assert isinstance(asked(buffer, [], algebra.lt(term(BLOCK), (1 << 31) - 1)), Sat)
    assert promise_instance(buffer, term(BLOCK)) is promise_instance(tensor(algebra.TRUE), term(BLOCK))


def test_a_term_is_one_value() -> None:
    buffer = tensor(algebra.TRUE)
    assert isinstance(asked(buffer, [algebra.eq(BLOCK, OTHER)], algebra.eq(term(BLOCK), term(OTHER))), Unsat)
    assert isinstance(asked(buffer, [], algebra.eq(term(BLOCK), term(OTHER))), Sat)


def test_ascending_elements_are_ordered_however_far_apart() -> None:
    plain = tensor(algebra.TRUE)
    buffer = tensor(ascending_condition(plain))
    assert is_ascending(buffer)
    assert not is_ascending(plain)
    inside = (algebra.lt(BLOCK, SIZE), algebra.lt(OTHER, SIZE), algebra.le(algebra.add(BLOCK, 7), OTHER))
    goal = algebra.le(term(BLOCK), term(OTHER))
    assert isinstance(asked(buffer, inside, goal), Unsat)
    assert isinstance(asked(plain, inside, goal), Sat)
    assert isinstance(asked(buffer, inside[2:], goal), Sat)  # beyond the tensor nothing is in order


def test_the_ends_of_ascending_elements_bound_them() -> None:
    plain = tensor(algebra.TRUE)
    at, last = algebra.coord(0), algebra.sub(SIZE, 1)
    first = algebra.any_of((algebra.le(1, at), algebra.eq(element(), 5)))
    buffer = tensor(algebra.all_of((ascending_condition(plain), first)))
    assert isinstance(asked(buffer, [algebra.lt(BLOCK, SIZE)], algebra.le(5, term(BLOCK))), Unsat)
    assert isinstance(asked(buffer, [algebra.lt(BLOCK, SIZE)], algebra.le(term(BLOCK), term(last))), Unsat)


@kernel(target=gfx942, threads=256)
def contradicted(X: Tensor["G N", f32], which: Tensor["B", integers], Y: Tensor["B N", f32]) -> None:
    promise(which, lambda e: (e < 0) & (e > 3))
    (b,) = block_id((which.shape[0],))
    held = load(X[scalar(which[b])].tile((1024,), (0,)), BY, edge=0)
    vmem.wait(0)
    copy(held, Y[b].tile((1024,), (0,)), edge=0)


def test_from_a_promise_that_nothing_keeps_nothing_is_proved() -> None:
    report = verify(contradicted.trace(), solver="z3")
    assert isinstance(report.verdict, Vacuous)
    assert any("which" in assumption for assumption in report.verdict.assumptions)


def test_the_verdict_lists_what_is_promised() -> None:
    report = verify(chosen.trace(), solver="z3")
    assert isinstance(report.verdict, Proved), report.diagnostics
    assert any("which[i0]" in each and "checked at launch" in each for each in report.verdict.assumptions)


@kernel(target=gfx942, threads=256)
def chosen(X: Tensor["G N", f32], which: Tensor["B", integers], Y: Tensor["B N", f32]) -> None:
    """Y[b] = X[which[b]] where there is one, by a loop in a branch and a branch on sizes before it."""
    (G, N), (B,) = X.shape, which.shape
    promise(which, lambda e: e < G)
    assume(N % 4 == 0)
    tag(X, lambda g, n: dict(g=g, n=n))
    b, n = block_id((B, -(-N // 1024)))
    x = scalar(which[b])
    with when(x >= 0):
        held = load(X[x].tile((1024,), (n,)), BY, edge=0)
        vmem.wait(0)
        copy(held, Y[b].tile((1024,), (n,)), edge=0)
    assert_written_once(Y, lambda b, n: dict(g=which[b], n=n), where=lambda b, _: scalar(which[b]) >= 0)


def test_a_branch_that_blocks_take_as_one_makes_two_cases() -> None:
    made = chosen.trace()
    taken, left = control_paths(made)
    decided = algebra.le(0, algebra.read("which", (algebra.sym(made.blocks[0]),)))
    assert (taken.path_condition, left.path_condition) == ((decided,), (algebra.negate(decided),))
    assert len(taken.kernel.body) > len(left.kernel.body)


def test_a_branch_decided_before_is_no_case_of_its_own() -> None:
    @kernel(target=gfx942, threads=256)
    def twice(X: Tensor["G N", f32], which: Tensor["B", integers], Y: Tensor["B N", f32]) -> None:
        (b,) = block_id((which.shape[0],))
        for _ in range(2):
            with when(scalar(which[b]) >= 0):
                copy(load(X[0].tile((1024,), (0,)), BY, edge=0), Y[b].tile((1024,), (0,)), edge=0)

    assert len(control_paths(twice.trace())) == 2


def test_too_many_branches_are_none() -> None:
    @kernel(target=gfx942, threads=256)
    def often(X: Tensor["G N", f32], which: Tensor["B", integers], Y: Tensor["B N", f32]) -> None:
        (b,) = block_id((which.shape[0],))
        for number in range(4):
            with when(scalar(which[b]) >= number):
                copy(load(X[0].tile((1024,), (0,)), BY, edge=0), Y[b].tile((1024,), (0,)), edge=0)

    (only,) = control_paths(often.trace())
    assert only.path_condition == ()


def test_a_kernel_that_reads_no_integers_is_asked_as_it_is() -> None:
    @kernel(target=gfx942, threads=256)
    def plain(X: Tensor["M N", f32], Y: Tensor["M N", f32]) -> None:
        (b,) = block_id((X.shape[0],))
        copy(load(X[b].tile((1024,), (0,)), BY, edge=0), Y[b].tile((1024,), (0,)), edge=0)

    assert promise_prover(plain.trace(), Session(Z3())) is None
    assert promise_prover(chosen.trace(), Session(Z3())) is not None


def test_a_promise_reads_parameters_before_it() -> None:
    @kernel(target=gfx942, threads=256)
    def between(which: Tensor["B", integers], other: Tensor["B", integers]) -> None:
        promise(which, lambda e: e < scalar(other[0]))

    with pytest.raises(ArgusError) as caught:
        between.trace()
    assert "reads `other`, a parameter after it" in caught.value.diagnostic.message


def test_a_promise_takes_the_element_and_its_coordinates() -> None:
    @kernel(target=gfx942, threads=256)
    def square(which: Tensor["B C", integers]) -> None:
        promise(which, lambda e, b: e <= b)

    with pytest.raises(ArgusError, match="the element and its 2 coordinates, found 2 parameters"):
        square.trace()


def linked(*, ordered: bool = True) -> PromiseProver:
    """A prover that knows: the expert of a tile has its rows, of ascending offsets; without order, if not `ordered`."""
    at, element = algebra.coord(0), algebra.read("which", (algebra.coord(0),))
    starts = evolve(tensor(algebra.TRUE), name="starts")
    if ordered:
        starts = evolve(starts, promise=ascending_condition(starts))
    owned = algebra.all_of(
        (
            algebra.le(algebra.read("starts", (element,)), at),
            algebra.lt(at, algebra.read("starts", (algebra.add(element, 1),))),
            *(algebra.le(0, element), algebra.lt(algebra.add(element, 1), SIZE)),
        )
    )
    return PromiseProver(Session(Z3()), {"starts": starts, "which": tensor(owned)})


@pytest.mark.parametrize("ordered", [True, False])
def test_a_promise_about_two_tensors_is_instantiated_in_both(*, ordered: bool) -> None:
    """Of segments that ascend, the one that has a place is the only one."""
    inside = [algebra.le(0, BLOCK), algebra.lt(BLOCK, SIZE), algebra.le(0, OTHER), algebra.lt(OTHER, SIZE)]
    other = algebra.read("starts", (OTHER,)), algebra.read("starts", (algebra.add(OTHER, 1),))
    has = [algebra.le(other[0], BLOCK), algebra.lt(BLOCK, other[1]), algebra.lt(algebra.add(OTHER, 1), SIZE)]
    prover = linked(ordered=ordered)
    assert prover.follows([*inside, *has], algebra.eq(term(BLOCK), OTHER)) == ordered


def test_a_kernel_does_not_write_what_a_promise_reads() -> None:
    @kernel(target=gfx942, threads=256)
    def written(limits: Tensor["B", integers], which: Tensor["B", integers]) -> None:
        promise(which, lambda e, b: e < scalar(limits[b]))
        (b,) = block_id((which.shape[0],))
        with when(scalar(which[b]) >= 0):
            copy(
                load(limits.tile((256,), (b,)), spread((1, 256), threads=256, vector=1).axis(1), edge=0),
                limits.tile((256,), (b,)),
                edge=0,
            )

    with pytest.raises(ArgusError, match="a promise reads `limits`, and the kernel writes it"):
        written.trace()


def test_an_order_is_of_a_row() -> None:
    @kernel(target=gfx942, threads=256)
    def square(which: Tensor["B C", integers]) -> None:
        promise(which, ascending=True)

    with pytest.raises(ArgusError) as caught:
        square.trace()
    assert caught.value.diagnostic.code == "E106"


@pytest.mark.share(4)
def test_an_integer_for_each_row_of_a_tile_is_unknown() -> None:
    @kernel(target=gfx942, threads=256)
    def gathered(X: Tensor["T N", f32], which: Tensor["B", integers], Y: Tensor["B N", f32]) -> None:
        promise(which, lambda e: (e >= 0) & (e < X.shape[0]))
        assume(X.shape[1] % 64 == 0, which.shape[0] % 64 == 0)
        tag(X, lambda t, n: dict(t=t, n=n))
        b, n = block_id((which.shape[0] // 64, X.shape[1] // 64))

        def row(i: Int, j: Int) -> tuple[Int, Int]:
            return scalar(which[64 * b + i]), 64 * n + j

        rows = spread((64, 64), threads=256, vector=4)
        held = load(X.gather((64, 64), row), rows)
        vmem.wait(0)
        copy(held, Y.tile((64, 64), (b, n)))
        assert_written_once(Y, lambda m, n: dict(t=which[m], n=n))

    report = verify(gathered.trace(), solver="z3", budget=evolve(Budget(), runs=0))
    assert isinstance(report.verdict, Unknown)
    assert "for each row" in report.verdict.reason or "mixes symbols" in report.verdict.reason


def test_an_order_that_contradicts_itself_proves_nothing() -> None:
    @kernel(target=gfx942, threads=256)
    def backwards(X: Tensor["T N", f32], starts: Tensor["S", integers], Y: Tensor["T N", f32]) -> None:
        promise(starts, ascending=True, first=5, last=3)
        (b,) = block_id((starts.shape[0] - 1,))
        for r in loop(scalar(starts[b]), scalar(starts[b + 1])):
            copy(load(X[r].tile((1024,), (0,)), BY, edge=0), Y[r].tile((1024,), (0,)), edge=0)

    assert isinstance(verify(backwards.trace(), solver="z3").verdict, Vacuous)


def test_a_promise_does_not_divide_by_a_size() -> None:
    @kernel(target=gfx942, threads=256)
    def divided(X: Tensor["G N", f32], which: Tensor["B", integers], Y: Tensor["B N", f32]) -> None:
        promise(which, lambda e: e % X.shape[0] == e)
        (b,) = block_id((which.shape[0],))
        copy(load(X[scalar(which[b])].tile((1024,), (0,)), BY, edge=0), Y[b].tile((1024,), (0,)), edge=0)

    report = verify(divided.trace(), solver="z3")
    assert isinstance(report.verdict, Unknown)
    assert "divides by a size" in report.verdict.reason


def test_an_assumption_is_not_about_integers_from_memory() -> None:
    @kernel(target=gfx942, threads=256)
    def assumed(which: Tensor["B", integers]) -> None:
        assume(scalar(which[0]) >= 0)

    with pytest.raises(ArgusError) as caught:
        assumed.trace()
    assert "it names `which[0]`" in caught.value.diagnostic.message
