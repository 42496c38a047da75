"""Every kind of violation, from single-edit mutants of a small GEMM, under every directed schedule."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.algebra import eq, floordiv, sym
from argus.core.diagnostic import ArgusError
from argus.core.ir import Alloc, Commit, If, Kernel, Stmt, Sync, walk
from argus.interp.run import run
from argus.interp.search.schedule import DIRECTED, Schedule
from argus.interp.violation import Violation
from argus.language import (
    Int,
    Tensor,
    assert_written_once,
    bf16,
    copy,
    gfx942,
    global_load,
    global_store,
    kernel,
    registers,
    spread,
    tag,
    vmem,
)
from tests.interp.programs import gemm, m_and_k

SCHEDULES = (*DIRECTED, Schedule("mixed", 1), Schedule("mixed", 2))
SIZES = {"M": 65, "N": 64, "K": 36}


def primary(twin: Kernel, schedule: Schedule, sizes: dict[str, int] | None = None) -> dict[str, Violation]:
    """The first violation of each code."""
    found: dict[str, Violation] = {}
    for violation in run(twin, sizes or SIZES, schedule=schedule, values=False).violations:
        found.setdefault(violation.code, violation)
    return found


@pytest.mark.share(32)
@pytest.mark.parametrize(
    ("edit", "code", "text"),
    [
        ("B backwards", "I1", "elements whose `k` differs: 0 and 32"),
        ("other rows", "I2", "the accumulator's `m` changes from 0 to 64"),
        ("first k skipped", "I3", "k = 0 is missing"),
        ("k twice", "I3", "k = 16 is counted twice"),
        ("one more k", "I3", "k = 36 is missing"),
        ("one row of tiles", "I4", "is written twice"),
        ("C transposed", "I4", "holds m=0, n=1, expected m=1, n=0"),
        ("no first barrier", "I5", "no barrier lies between"),
        ("no barrier", "I5", "no barrier lies between"),
        ("stale buffer", "I5", "is read where it was never written"),
        ("late drain", "I30", "no wait for the read lies before the barrier"),
        ("no load wait", "I31", "while the copy into it is in flight"),
        ("weak load wait", "I31", "while the copy into it is in flight"),
        ("no read wait", "I31", "while the copy into it is in flight"),
        ("weak read wait", "I31", "while the copy into it is in flight"),
        ("no store wait", "I31", "no wait for the write lies before the barrier"),
        ("one buffer", "I36", "is overwritten by one wave while another reads it"),
        ("no edge", "I37", "access outside `A`: element [0, 36] of extents [65, 36]"),
        ("no init", "I38", "`acc` is accumulated into while uninitialised"),
        ("false equality", "I39", "`acc.m` and `acc.n` differ"),
        ("false relation", "I39", "`acc.m <= acc.n` does not hold"),
        ("rows distinct", "I39", "two elements of `acc` have the components (0)"),
    ],
)
def test_twin_is_caught_on_every_schedule(edit: str, code: str, text: str) -> None:
    twin = gemm(edit)
    for schedule in SCHEDULES:
        assert text in primary(twin, schedule)[code].message


@pytest.mark.parametrize(
    ("columns", "text"), [(18, "is not a multiple of 8 bytes"), (3, "lies partly inside the tensor and partly outside")]
)
def test_vectors_need_their_alignment(columns: int, text: str) -> None:
    found = primary(gemm("no assumption"), DIRECTED[0], {"M": 1 if columns == 3 else 2, "N": 1, "K": columns})
    assert text in found["I19"].message


def test_a_mismatch_names_both_elements() -> None:
    found = primary(gemm("B backwards"), DIRECTED[0])["I1"]
    assert (found.thread, found.value, found.element) == (0, 0, (0, 0))
    assert [text for _, text in found.facts] == ["m=0, k=0", "k=32, n=0"]
    assert found.iteration == (("k", 0),)
    assert found.block == (0, 0)


def test_a_race_names_both_accesses() -> None:
    found = primary(gemm("no first barrier"), DIRECTED[0])["I5"]
    assert found.other is not None
    assert found.other.span.frame is not None
    assert found.other_thread is not None
    assert found.thread // 64 != found.other_thread // 64
    assert found.buffer == "lds_a"
    assert found.element == (0, 16, 0)
    assert [name for name, _ in found.facts] == ["write", "read"]


def test_two_writers_are_named() -> None:
    found = primary(gemm("one row of tiles"), DIRECTED[0])["I4"]
    assert found.facts == (("first write", "block [0, 0], thread 0"), ("second write", "block [1, 0], thread 0"))


def test_an_element_that_nobody_writes_is_named() -> None:
    outcome = run(gemm("one row of tiles"), {"M": 64, "N": 4, "K": 4}, values=False)
    assert outcome.violations == ()

    @kernel(target=gfx942, threads=64)
    def half(A: Tensor["64 32", bf16], B: Tensor["M 32", bf16]) -> None:
        copied(A, B)

    found = primary(half.trace(), DIRECTED[0], {"M": 65})["I4"]
    assert (found.message, found.element, found.block) == ("element [64, 0] of `B` is never written", (64, 0), ())


def copied(source: Tensor, target: Tensor) -> None:
    tag(source, m_and_k)
    held = registers(bf16, spread((64, 32), threads=64, vector=8))
    copy(source.tile((64, 32), (0, 0)), held, via=global_load, edge=0)
    vmem.wait(0)
    copy(held, target.tile((64, 32), (0, 0)), via=global_store, edge=0)
    assert_written_once(target, m_and_k)


def test_padding_that_reaches_the_output_is_named() -> None:
    @kernel(target=gfx942, threads=64)
    def longer(A: Tensor["M 32", bf16], B: Tensor["64 32", bf16]) -> None:
        copied(A, B)

    found = primary(longer.trace(), DIRECTED[0], {"M": 7})["I4"]
    assert found.message == "element [7, 0] of `B` holds padding"


def test_a_register_that_nobody_wrote_is_named() -> None:
    @kernel(target=gfx942, threads=64)
    def stores(B: Tensor["64 32", bf16]) -> None:
        held = registers(bf16, spread((64, 32), threads=64, vector=8))
        copy(held, B.tile((64, 32), (0, 0)), via=global_store)

    found = primary(stores.trace(), DIRECTED[0], {"unused": 0})["I38"]
    assert (found.message, found.thread, found.value) == ("`held` is copied while uninitialised", 0, 0)


def test_reading_an_output_before_it_is_written_is_uninitialised_only_if_it_is_an_output_alone() -> None:
    @kernel(target=gfx942, threads=64)
    def in_place(B: Tensor["64 32", bf16]) -> None:
        held = registers(bf16, spread((64, 32), threads=64, vector=8))
        copy(B.tile((64, 32), (0, 0)), held, via=global_load)
        vmem.wait(0)
        copy((held + held), B.tile((64, 32), (0, 0)), via=global_store)

    outcome = run(in_place.trace(), {})
    assert outcome.violations == ()


def row_below(m: Int, _: Int) -> dict[str, Int]:
    return {"m": m + 1}


@pytest.mark.parametrize("claimed", [True, False], ids=["claimed", "not claimed"])
def test_combining_elements_with_different_records_is_named_where_a_claim_excludes_it(*, claimed: bool) -> None:
    @kernel(target=gfx942, threads=64)
    def adds(A: Tensor["64 32", bf16], B: Tensor["64 32", bf16], C: Tensor["64 32", bf16]) -> None:
        tag(A, m_and_k)
        by = spread((64, 32), threads=64, vector=8)
        one, other = registers(bf16, by), registers(bf16, by)
        tag(B, row_below)
        copy(A.tile((64, 32), (0, 0)), one, via=global_load)
        copy(B.tile((64, 32), (0, 0)), other, via=global_load)
        vmem.wait(0)
        one += other
        copy(one, C.tile((64, 32), (0, 0)), via=global_store)
        if claimed:
            assert_written_once(C, m_and_k)

    if not claimed:
        assert primary(adds.trace(), DIRECTED[0]) == {}
        return
    found = primary(adds.trace(), DIRECTED[0])["I2"]
    assert found.message == "elements combined here disagree on tag `m`"
    assert [text for _, text in found.facts] == ["m=0, k=0", "m=1"]


def test_unequal_barrier_counts_are_named() -> None:
    whole = gemm()
    extra = If(eq(floordiv(sym(whole.thread), 64), 2), (Sync(),))
    for schedule in SCHEDULES:
        found = primary(evolve(whole, prologue=(*whole.prologue, extra)), schedule)["I32"]
        assert found.message == "wave 2 waits at barrier 5, but wave 0 ended after 4"
        assert (found.thread, found.other_thread) == (128, 0)


def test_unsupported_constructs_are_rejected() -> None:
    whole = gemm()
    acc = next(stmt.buffer for stmt in walk(whole.body) if isinstance(stmt, Alloc) and stmt.buffer.name == "acc")
    commit: Stmt = Commit("bulk", span=acc.span)
    with pytest.raises(ArgusError) as caught:
        run(evolve(whole, prologue=(*whole.prologue, commit)), SIZES)
    assert caught.value.diagnostic.code == "E501"
    assert caught.value.diagnostic.message == "not built yet: `Commit` in the interpreter"
    assert caught.value.diagnostic.primary.span == acc.span


def test_a_branch_that_divides_a_wave_is_refused() -> None:
    whole = gemm()
    split = If(eq(sym(whole.thread), 3), (Sync(),))
    with pytest.raises(ArgusError) as caught:
        run(evolve(whole, prologue=(*whole.prologue, split)), SIZES)
    assert caught.value.diagnostic.code == "E501"


def test_the_number_of_violations_is_bounded() -> None:
    assert len(run(gemm("no load wait"), SIZES, values=False, limit=2).violations) == 2
