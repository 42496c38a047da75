from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import TRUE, const, coord, sym
from argus.core.atoms import gfx942 as isa
from argus.core.diagnostic import ArgusError
from argus.core.dtype import f32
from argus.core.index import Symbol
from argus.core.ir import (
    Alloc,
    Assert,
    Assume,
    Commit,
    Copy,
    Covers,
    Fence,
    For,
    Get,
    If,
    Kernel,
    Let,
    Lit,
    Map,
    Mma,
    Op,
    Peek,
    Policy,
    Stmt,
    Sync,
    Tag,
    TagOf,
    View,
    Wait,
    bodies,
    walk,
    whole,
    with_bodies,
)
from argus.core.span import Span
from argus.core.target import sm_90a
from argus.core.tiling import TiledMma
from argus.emit.hip.prelude import PRELUDE
from argus.emit.hip.text import hip_text
from argus.kernels.gemm import gemm as family
from tests.emit.handmade import BLOCK_M, K, M, at, gemm, kernel, registers, shared, stage, tensor, tile, vector_tv

TV8 = vector_tv(256, 8, 32)
TENSOR = tensor("A", sym(M), const(32))
HELD = registers("held", TV8)


def erased(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    kept = [stmt for stmt in body if not isinstance(stmt, Tag | Assert)]
    return tuple(with_bodies(stmt, tuple(erased(part) for part in bodies(stmt))) for stmt in kept)


def text_of(*body: Stmt, threads: int = 256) -> str:
    """The statements' lines, without what is the same in every file."""
    text = hip_text(kernel("probe", (TENSOR,), body, threads))
    return text[text.index("workgroup_id_y") :].split("\n", 1)[1]


def test_gemm(golden: Callable[[str], None]) -> None:
    golden(hip_text(gemm()))


def test_shipped_gemm(golden: Callable[[str], None]) -> None:
    golden(hip_text(family.trace()).replace(PRELUDE, "// (prelude)\n"))


@pytest.mark.parametrize("made", [gemm(), family.trace()], ids=["handmade", "shipped"])
def test_tags_and_assertions_leave_no_trace(made: Kernel) -> None:
    claim = Assert(Covers(TagOf(whole(made.parameters[0]), "k"), const(0), sym(K)), span=at(99))
    tagged = evolve(made, prologue=(*made.prologue, claim))
    assert any(isinstance(stmt, Tag) for stmt in made.prologue)
    assert hip_text(tagged) == hip_text(evolve(made, prologue=erased(made.prologue))) == hip_text(made)


def test_every_statement_names_its_line() -> None:
    made = gemm()
    found = [line.strip() for line in hip_text(made).splitlines() if line.strip().startswith("// handmade.py:")]
    emitted = [stmt for stmt in walk(made.body) if not isinstance(stmt, Tag | Assume)]
    assert found == [f"// handmade.py:{stmt.span.frames[0].line}" for stmt in emitted]


def test_names_end_in_an_underscore() -> None:
    text = text_of(Alloc(registers("float", TV8)), Alloc(registers("at0", TV8)), Alloc(registers("A", TV8)))
    assert "bf16 float_[8];" in text
    assert "bf16 at0_[8];" in text
    assert "bf16 A_2_[8];" in text


def test_an_edge_is_folded_into_a_buffer_offset() -> None:
    where = tile(TENSOR, (64, 32), (sym(BLOCK_M), const(0)))
    text = text_of(Alloc(HELD), Copy(isa.buffer_load[3], where, whole(HELD), TV8, 0.0))
    assert "buffer_load_b128(&held_[0], A__buffer, guard(at0 < M_, 2u * ((unsigned)at0 * 32 + at1)));" in text


def test_an_edge_other_than_zero_is_a_branch() -> None:
    where = tile(TENSOR, (64, 32), (sym(BLOCK_M), const(0)))
    text = text_of(Alloc(HELD), Copy(isa.global_load[3], where, whole(HELD), TV8, -1.0))
    assert (
        "if (at0 < M_) load_b128(&held_[0], &A_[(long)at0 * 32 + at1]); else fill_b128(&held_[0], 0xBF80BF80u);" in text
    )
    ranged = text_of(Alloc(HELD), Copy(isa.buffer_load[3], where, whole(HELD), TV8, float("-inf")))
    assert "if (at0 < M_) buffer_load_b128(" in ranged
    assert "fill_b128(&held_[0], 0xFF80FF80u);" in ranged


def test_no_edge_no_predicate() -> None:
    where = tile(TENSOR, (64, 32), (sym(BLOCK_M), const(0)))
    assert " if (" not in text_of(Alloc(HELD), Copy(isa.global_load[3], where, whole(HELD), TV8))


def test_a_copy_by_some_threads() -> None:
    small = vector_tv(64, 8, 32)
    held = registers("held", small)
    where = tile(TENSOR, (16, 32), (sym(BLOCK_M), const(0)))
    assert "if (thread_ < 64)\n" in text_of(Alloc(held), Copy(isa.global_load[3], where, whole(held), small))


def test_policies_loops_and_conditions() -> None:
    step = Symbol("k", "loop", 0)
    downwards = For(step, const(8), const(0), -2, (Policy("priority", (1,)),), unroll=2)
    text = text_of(
        downwards,
        If(
            algebra.eq(sym(BLOCK_M), 0),
            (Sync(),),
            (Policy("sched_group_barrier", (0x100, 2)), Policy("sched_barrier", (0,))),
        ),
    )
    for expected in (
        "#pragma unroll 2\n    for (int k_ = 8; k_ > 0; k_ += -2) {",
        "__builtin_amdgcn_s_setprio(1);",
        "if (m_ == 0) {",
        "} else {",
        "__builtin_amdgcn_sched_group_barrier(256, 2, 0);",
        "__builtin_amdgcn_sched_barrier(0);",
    ):
        assert expected in text


def test_arithmetic_on_elements() -> None:
    both = (coord(0), coord(1))
    got = Get(whole(HELD), both)
    text = text_of(Alloc(HELD), Map(whole(HELD), Op("max", (Op("add", (got, got)), Lit(0.0)))))
    assert "held_[value] = (bf16)__builtin_fmaxf((f32)(bf16)((f32)held_[value] + (f32)held_[value]), 0.0f);" in text


def _view_of_part() -> View:
    return View(HELD, HELD.shape, (coord(0), algebra.sub(31, coord(1))))


@pytest.mark.parametrize(
    "stmt",
    [
        Let(Symbol("x", "fresh"), Peek(whole(TENSOR)), span=at(7)),
        Commit("bulk", span=at(7)),
        Fence("device", span=at(7)),
        Sync(threads=64, span=at(7)),
        Wait("vmem", 0, "reads", span=at(7)),
        Policy("no_pdl", span=at(7)),
        Policy("priority", (), span=at(7)),
        Copy(isa.ds_write_b128, _view_of_part(), stage(shared("s", (1, 64, 32)), const(0)), TV8, span=at(7)),
        Map(whole(HELD), Op("sinh", (Lit(1.0),)), span=at(7)),
        Copy(isa.global_load[3], whole(TENSOR), whole(HELD), TV8, cache="streaming", span=at(7)),
    ],
)
def test_what_is_not_emitted_says_so_and_where(stmt: Stmt) -> None:
    with pytest.raises(ArgusError) as caught:
        text_of(Alloc(HELD), Alloc(shared("s", (1, 64, 32))), stmt)
    found = caught.value.diagnostic
    assert (found.code, found.primary.span) == ("E501", at(7))
    assert found.message.startswith("not built yet: ")


def test_another_target() -> None:
    with pytest.raises(ArgusError, match="E301"):
        hip_text(evolve(gemm(), target=sm_90a))


def test_two_widths_of_one_accumulator() -> None:
    large = TiledMma(isa.mfma_f32_32x32x8_bf16, (2, 2), (128, 128), 8, 32)
    small = TiledMma(isa.mfma_f32_16x16x16_bf16, (2, 2), (128, 128), 8, 32)
    acc, a, b = registers("acc", large.C, f32), registers("a", large.A), registers("b", large.B)
    made = [Mma(mm.atom, mm.tiling, whole(acc), whole(a), whole(b), TRUE, span=at(3)) for mm in (large, small)]
    with pytest.raises(ArgusError, match="E501"):
        text_of(*(Alloc(buffer) for buffer in (acc, a, b)), *made)


def test_spans_without_a_file() -> None:
    assert "// no source" in text_of(Alloc(HELD, span=Span()))
