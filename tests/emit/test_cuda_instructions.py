"""The CUDA text of each instruction: its form, that it compiles, and the refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import inf, nan

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.diagnostic import ArgusError
from argus.core.dsl.tiles.fragments import elementwise
from argus.core.dtype import DType
from argus.core.elementwise import ELEMENT_OPS
from argus.core.ir import Copy, Kernel, Mma, Stmt, View, bodies, walk, with_bodies
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.ptxas import parse_report
from argus.emit.cuda.text import cuda_text
from argus.language import (
    TV,
    Layout,
    Swizzle,
    Tensor,
    barrier,
    bf16,
    copy,
    eq,
    exp2,
    f16,
    f32,
    fence,
    kernel,
    ldmatrix,
    load,
    maximum,
    minimum,
    mma,
    registers,
    shared,
    sm_90a,
    spread,
    sync,
    wgmma,
    when,
    where,
)
from argus.testing.instructions import Trial, trials
from tests.conftest import Golden
from tests.tiers import Tier


@cache
def by_name() -> dict[str, Trial]:
    return {each.what: each for each in trials()}


def body(text: str) -> str:
    """The kernel without the head of the file, and without the numbers of lines of a program."""
    kernel_text = re.sub(r"^ *// \w+\.py:\d+\n", "", text[text.index('extern "C"') :], flags=re.MULTILINE)
    return re.sub(r"\b(load|registers|shared|value)_\d+", r"\1", kernel_text)


CHOSEN = (
    "ld_global_b32 cut",
    "cp_async_8 cut",
    "ldmatrix_x2_trans span 32",
    "stmatrix_x4 span 32",
    "tma_store_3d_sw64",
    "bulk_load_1d",
    "fused bf16",
    "mma_m16n8k16_f16",
    "wgmma_m64n8k16_f32_bf16_ss span 128 a mn",
    "wgmma_m64n32k16_f32_bf16_rs span 128 b mn adds",
    "wgmma_m64n64k32_f32_e4m3_ss span 128 steps 8 slabs 2",
)


@pytest.mark.parametrize("what", CHOSEN)
def test_text(what: str, golden: Golden) -> None:
    golden(body(cuda_text(by_name()[what].kernel).text))


FAMILIES = [
    *("bulk", "cp.async", "elements", "ld st", "ldmatrix", "mma.sync", "stmatrix", "tma"),
    *(f"wgmma {dtype} {operands}" for dtype in ("bf16", "e4m3", "f16") for operands in ("rs", "ss")),
]


def test_every_family_is_compiled() -> None:
    assert sorted({each.family for each in by_name().values()}) == FAMILIES


@pytest.mark.share(32)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_compiler_takes_every_family(family: str) -> None:
    """The largest text of each: no spills, and no remark on the matrix unit."""
    texts = [cuda_text(each.kernel) for each in by_name().values() if each.family == family]
    largest = max(texts, key=lambda made: len(made.text))
    report = parse_report(compile_cuda(largest.text, largest.symbol).log)

    assert not report.spills
    assert report.warnings == ()
    assert 0 < report.registers <= 255


@pytest.mark.share(3)
def test_every_statement_names_its_instruction(tier: Tier) -> None:
    """By a helper of its name, or one of its kind and width."""
    for each in list(by_name().values())[:: 8 if tier == "default" else 1]:
        text = cuda_text(each.kernel).text
        for stmt in walk(each.kernel.body):
            if isinstance(stmt, Copy | Mma):
                assert helper(stmt) in body(text), each.what


def helper(stmt: Copy | Mma) -> str:
    name = stmt.atom.name
    if name.startswith(("ld_", "st_")):
        return f"{'load' if name.startswith('ld_') else 'store'}_b{stmt.atom.vector_bits}("
    if name.startswith("tma_"):
        return f"{re.sub(r'_sw.*', '', name)}("
    if name.startswith("bulk_"):
        return f"{name.removesuffix('_1d')}("
    return name


# -- conditional text ----------------------------------------------------------------------------------------


def test_a_barrier_in_a_branch_counts_its_threads() -> None:
    @kernel(target=sm_90a, threads=128)
    def made(A: Tensor["64 64", bf16], B: Tensor["64 64", bf16], flag: Tensor["M 1", bf16]) -> None:
        tile, by = shared(bf16, (64, 64)), spread((64, 64), threads=128, vector=8)
        copy(load(A, by), tile)
        sync()
        with when(eq(flag.shape[0], 1)):
            sync()
        copy(load(tile, by), B)

    text = cuda_text(made.trace()).text
    assert text.count("__syncthreads();") == 1
    assert "meet(0, 128);" in text
    assert compile_cuda(text, "made").cubin[:4] == b"\x7fELF"


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [f32, bf16, f16], ids=str)
def test_the_compiler_takes_every_operation(dtype: DType) -> None:
    """Infinities among them, and literals that are no numbers."""
    by = spread((16, 16), threads=128, vector=2)

    def every(A: Tensor, B: Tensor) -> None:
        total = load(A, by)
        for name, operation in ELEMENT_OPS.items():
            total = total if operation.integers else elementwise(name, *([total] * operation.arity))
        copy(where(total.index[1] < 3, maximum(total, inf), nan) + minimum(total, -inf), B)

    every.__annotations__ = dict.fromkeys("AB", Tensor["16 16", dtype])
    text = cuda_text(kernel(target=sm_90a, threads=128)(every).trace()).text
    assert compile_cuda(text, "every").cubin[:4] == b"\x7fELF"


def test_several_arrivals_at_once() -> None:
    @kernel(target=sm_90a, threads=32)
    def made(A: Tensor["8 8", bf16], B: Tensor["8 8", bf16]) -> None:
        full = barrier(64)
        by = spread((8, 8), threads=32, vector=2)
        full.arrive(2)
        full.wait(0)
        copy(load(A, by), B)

    text = cuda_text(made.trace()).text
    assert "arrive(full_, 2);" in text
    assert compile_cuda(text, "made").cubin[:4] == b"\x7fELF"


def test_fewer_threads_than_the_block_stay_out() -> None:
    @kernel(target=sm_90a, threads=128)
    def made(A: Tensor["64 64", f32], B: Tensor["64 64", f32]) -> None:
        by = spread((64, 64), threads=128, vector=4)
        copy(load(A, by), B)

    traced = made.trace()
    half = spread((64, 64), threads=64, vector=4)
    fewer = changed(traced, lambda stmt: evolve(stmt, by=half) if isinstance(stmt, Copy) else stmt)
    with pytest.raises(ArgusError, match="other threads hold"):
        cuda_text(fewer)


def test_the_first_of_two_products_in_flight_may_be_read_after_its_wait() -> None:
    """The compiler is told that registers change at a wait, and the assembler finds no reason to serialise."""

    @kernel(target=sm_90a, threads=128)
    def made(
        A: Tensor["64 64", bf16], B: Tensor["64 64", bf16], C: Tensor["64 64", f32], D: Tensor["64 64", f32]
    ) -> None:
        scores, sums = wgmma(bf16, n=64), wgmma(bf16, n=64, a="registers", b_major="n", k=64)
        by = spread((64, 64), threads=128, vector=8)
        a, b = shared(bf16, (64, 64), swizzle=128), shared(bf16, (64, 64), swizzle=128)
        copy(load(A, by), a)
        copy(load(B, by), b)
        held = load(A, sums.A)
        first, second = registers(f32, scores.C), registers(f32, sums.C)
        fence("async proxy")
        sync()
        mma(scores, first, a, b, init=True)
        mma(sums, second, held, b, init=True)
        wgmma.wait(1)
        copy(exp2(first), C)
        wgmma.wait(0)
        copy(second, D)

    text = cuda_text(made.trace()).text
    after = body(text).partition("wgmma_wait<1>();")[2].split()
    assert [word.partition("(")[0] for word in after[:3]] == ["hold"] * 3
    report = parse_report(compile_cuda(text, "made").log)
    assert not report.serialised
    assert not report.spills


# -- refusals ------------------------------------------------------------------------------------------------


def changed(made: Kernel, edit: Callable[[Stmt], Stmt]) -> Kernel:
    def inside(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(edit(with_bodies(stmt, tuple(inside(part) for part in bodies(stmt)))) for stmt in stmts)

    return evolve(made, prologue=inside(made.prologue))


def moved_view(view: View, rows: int, columns: int) -> View:
    """The same shape, further down and across."""
    *leading, row, column = view.at
    return evolve(view, at=(*leading, algebra.add(row, rows), algebra.add(column, columns)))


def refused(what: str, edit: Callable[[Stmt], Stmt]) -> str:
    with pytest.raises(ArgusError) as found:
        cuda_text(changed(by_name()[what].kernel, edit))
    assert found.value.diagnostic.code == "E501"
    return found.value.diagnostic.message


def test_a_matrix_that_begins_within_8_rows_is_refused() -> None:
    def down(stmt: Stmt) -> Stmt:
        return evolve(stmt, b=moved_view(stmt.b, -4, 0)) if isinstance(stmt, Mma) else stmt

    message = refused("wgmma_m64n64k16_f32_bf16_ss span 128 steps 4", down)
    assert "not a multiple of 1024 bytes" in message


def test_a_matrix_that_begins_within_a_chunk_is_refused() -> None:
    def across(stmt: Stmt) -> Stmt:
        return evolve(stmt, b=moved_view(stmt.b, 0, -4)) if isinstance(stmt, Mma) else stmt

    assert "inside a chunk of 16 bytes" in refused("wgmma_m64n16k16_f32_bf16_ss span 64 adds", across)


def test_a_box_that_begins_within_a_period_is_refused() -> None:
    def down(stmt: Stmt) -> Stmt:
        boxed = isinstance(stmt, Copy) and stmt.atom.box is not None
        return evolve(stmt, target=moved_view(stmt.target, 4, 0)) if isinstance(stmt, Copy) and boxed else stmt

    assert "not a multiple of 512 bytes" in refused("tma_load_2d_sw64", down)


def test_registers_that_are_no_matrices_are_refused() -> None:
    by = spread((128, 8), threads=128, vector=8)

    def other(stmt: Stmt) -> Stmt:
        matrices = isinstance(stmt, Copy) and stmt.atom.name.startswith("ldmatrix")
        return evolve(stmt, by=by) if matrices and isinstance(stmt, Copy) else stmt

    assert "do not form 8 x 8 matrices" in refused("ldmatrix_x4 span 32", other)


def test_a_swizzle_of_smaller_chunks_is_refused() -> None:
    """It would split rows of 8 elements."""
    held = TV(Layout((4, 8, 4), (256, 1, 32)), Layout((2, 4), (128, 8)), (128, 8))

    @kernel(target=sm_90a, threads=128)
    def made(A: Tensor["128 64", bf16], B: Tensor["128 8", bf16]) -> None:
        tile, by = shared(bf16, (128, 64), swizzle=Swizzle(3, 2, 4)), spread((128, 64), threads=128, vector=2)
        copy(load(A, by), tile)
        sync()
        copy(load(tile.tile((128, 8), (0, 0)), held, via=ldmatrix.x4), B)

    with pytest.raises(ArgusError, match="`ldmatrix_x4` of 8 elements of 16 bits"):
        cuda_text(made.trace())


def test_a_copy_that_fills_with_other_than_zeros_stores_them() -> None:
    def filled(stmt: Stmt) -> Stmt:
        return evolve(stmt, edge=1.0) if isinstance(stmt, Copy) and stmt.atom.name.startswith("cp_async") else stmt

    text = cuda_text(changed(by_name()["cp_async_8 cut"].kernel, filled)).text
    lines = [line.strip() for line in text.splitlines() if "cp_async_8(" in line and line.strip().startswith("if")]
    assert lines
    assert all(
        "fill_b64(in_shared(" in line and "0x3F800000u" in line.replace("3F803F80", "3F800000") for line in lines
    )
    assert "? 8 : 0" not in text
    compile_cuda(text, "filled")
