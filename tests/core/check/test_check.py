"""Well-formedness errors of hand-built kernels that the language itself cannot trace."""

from __future__ import annotations

from attrs import evolve

from argus.core.algebra import TRUE, const, coord, le, sym
from argus.core.atoms.gfx942 import ds_read_b128, mfma_f32_32x32x8_bf16
from argus.core.check import check, check_thread_count
from argus.core.dtype import bf16, f32
from argus.core.index import Symbol
from argus.core.ir import Alloc, Buffer, Copy, For, Get, If, Kernel, Map, Mma, Op, Staged, Stmt, Sync, View, whole
from argus.core.layout import row_major
from argus.core.span import NOWHERE
from argus.core.target import gfx942, sm_90a
from argus.core.tiling import TiledMma, spread
from argus.kernels.gemm import gemm
from tests.core.texts import kernel_of

BY, OTHER = spread((64, 32), 256, 8), spread((64, 32), 256, 4)
SHAPE = (const(64), const(32))
LDS = Buffer("lds", "shared", bf16, SHAPE, Staged(row_major((64, 32))))
X = Buffer("x", "register", bf16, SHAPE, BY)
Y = Buffer("y", "register", bf16, SHAPE, OTHER)
THREAD = sym(Symbol("thread", "thread", 0, 255))
K = Symbol("k", "loop")


def codes(*body: Stmt) -> list[str]:
    return [found.code for found in check(kernel_of(Alloc(LDS), Alloc(X), Alloc(Y), *body))]


def copy(shape: tuple[int, int]) -> Copy:
    extents = tuple(const(extent) for extent in shape)
    at = (coord(0), coord(1))
    return Copy(ds_read_b128, View(LDS, extents, at), View(X, extents, at), BY)


def mma(mm: TiledMma, init: bool) -> Mma:
    view = whole(X)
    return Mma(mm.atom, mm.tiling, view, view, view, le(THREAD, 3) if init else TRUE)


def test_a_well_formed_kernel_has_no_error() -> None:
    assert codes(copy((64, 32)), Sync()) == []
    assert check(gemm.trace("cdna3")) == ()


def test_each_error_has_its_code() -> None:
    wide = TiledMma(mfma_f32_32x32x8_bf16, (2, 2), (64, 64), 8, 32)
    assert codes(copy((64, 16))) == ["E203"]
    assert codes(Map(whole(X), Op("neg", (Get(whole(Y), (coord(0), coord(1))),)))) == ["E205"]
    assert codes(If(le(THREAD, 3), (Sync(),))) == ["E207"]
    assert codes(For(K, const(0), THREAD, 1, (Sync(),))) == ["E207"]
    assert "E207" in codes(mma(wide, init=True))
    assert codes(mma(wide, init=False)) == ["E206", "E206", "E206"]
    assert "E213" in codes(mma(TiledMma(wide.atom, (1, 1), (32, 32), 8, 32), init=False))
    assert codes(If(le(sym(K), 3), ())) == ["E201"]


def test_a_symbolic_extent() -> None:
    extents = (sym(Symbol("M", "size", 0, 9)), const(32))
    view = View(LDS, extents, (coord(0), coord(1)))
    assert codes(Copy(ds_read_b128, view, whole(X), BY)) == ["E209"]


def test_instructions_of_another_target() -> None:
    made: Kernel = evolve(gemm.trace("cdna3"), target=sm_90a)
    found = [(each.code, each.message) for each in check(made)]
    assert {code for code, _ in found} == {"E108"}
    assert any("mfma" in message for _, message in found)
    assert any("buffer_load" in message for _, message in found)


def test_a_buffer_is_in_scope_in_its_body_only() -> None:
    z = Buffer("z", "register", f32, SHAPE, BY)
    assign = Map(whole(z), Get(whole(z), (coord(0), coord(1))))
    loop = For(K, const(0), const(3), 1, (Alloc(z), assign))
    (found,) = check(kernel_of(loop, assign))
    assert (found.code, found.message) == ("E201", "`z` is used outside the body that declares it")
    assert [label.text for label in found.secondary] == ["made here"]


def test_the_grid_depends_on_sizes_only() -> None:
    made = evolve(kernel_of(), grid=(sym(K),))
    assert [found.code for found in check(made)] == ["E201"]


def test_threads_are_whole_waves() -> None:
    good = [threads for threads in range(-64, 1100) if not check_thread_count("probe", gfx942, threads, NOWHERE)]
    assert good == list(range(64, 1025, 64))
