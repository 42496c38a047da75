"""A small GEMM and its single-edit mutants, and kernels with one instruction."""

from __future__ import annotations

from argus.core.atom import Atom
from argus.core.ir import Kernel
from argus.language import (
    Bool,
    Fragment,
    Int,
    Swizzle,
    Tensor,
    assert_covers,
    assert_distinct,
    assert_equal,
    assert_relation,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    ds_read_b64,
    ds_write_b64,
    eq,
    f32,
    gfx942,
    global_load,
    global_store,
    kernel,
    lds,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    shared,
    spread,
    sync,
    tag,
    vmem,
    when,
)

TILE, STEP, THREADS = 64, 16, 256


def m_and_k(m: Int, k: Int) -> dict[str, Int]:
    return {"m": m, "k": k}


def n_and_k(n: Int, k: Int) -> dict[str, Int]:
    return {"n": n, "k": k}


def m_and_n(m: Int, n: Int) -> dict[str, Int]:
    return {"m": m, "n": n}


def n_and_m(m: Int, n: Int) -> dict[str, Int]:
    return {"m": n, "n": m}


def ordered(m: Int, n: Int) -> Bool:
    return m <= n


def natural(m: Int, n: Int) -> Bool:
    return m + n >= 0


def gemm(edit: str = "") -> Kernel:
    """C = A @ B^T in tiles of 64 x 64 x 16, two LDS buffers; `edit` names the one thing that is wrong."""

    @kernel(target=gfx942, threads=THREADS)
    def small(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
        _gemm(A, B, C, edit)

    return small.trace()


def _gemm(A: Tensor, B: Tensor, C: Tensor, edit: str) -> None:  # noqa: PLR0915 reason: a kernel reads from top to bottom
    tag(A, m_and_k)
    tag(B, n_and_k)
    size_k = A.shape[1]
    if edit != "no assumption":
        assume(size_k >= 1, size_k % 4 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(TILE, TILE), k=STEP, k_run=4)
    lds_a = shared(bf16, (2, TILE, STEP), swizzle=Swizzle(2, 2, 2))
    lds_b = shared(bf16, (2, TILE, STEP), swizzle=Swizzle(2, 2, 2))
    m, n = block_id((ceil_div(C.shape[0], TILE), ceil_div(C.shape[1], TILE)))
    depth = ceil_div(size_k, STEP)
    by = spread((TILE, STEP), threads=THREADS, vector=4)
    next_a, next_b = registers(bf16, by), registers(bf16, by)
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)

    def prefetch(k: Int | int) -> None:
        edge = None if edit == "no edge" else 0
        row = m + k if edit == "other rows" else m
        column_a = 0 if edit == "other rows" else k
        column = depth - 1 - k if edit == "B backwards" else column_a
        copy(A.tile((TILE, STEP), (row, column_a)), next_a, via=global_load, edge=edge)
        copy(B.tile((TILE, STEP), (n, column)), next_b, via=global_load, edge=0)

    def stage(k: Int | int) -> None:
        slot = 0 if edit in {"one buffer", "late drain"} else k % 2
        if edit != "no load wait":
            vmem.wait(1 if edit == "weak load wait" else 0)
        copy(next_a, lds_a[slot], via=ds_write_b64)
        copy(next_b, lds_b[slot], via=ds_write_b64)
        if edit != "no store wait":
            lds.wait(0)

    first = 1 if edit == "first k skipped" else 0
    prefetch(first)
    stage(first)
    if edit != "no first barrier":
        sync()
    for k in loop(first, depth):
        slot = 0 if edit in {"one buffer", "late drain"} else k % 2
        with when(k + 1 < depth):
            prefetch(k + 1)
        copy(lds_a[1 - slot if edit == "stale buffer" else slot], a, via=ds_read_b64)
        copy(lds_b[slot], b, via=ds_read_b64)
        if edit == "late drain":
            sync()
        if edit != "no read wait":
            lds.wait(1 if edit == "weak read wait" else 0)
        for _ in range(2 if edit == "k twice" else 1):
            mma(mm, acc, a, b, init=False if edit == "no init" else eq(k, first))
        with when(k + 1 < depth):
            stage(k + 1)
        if edit != "no barrier":
            sync()
    _claims(acc, size_k, edit)
    rows = 0 if edit == "one row of tiles" else m
    copy(acc.to(bf16), C.tile((TILE, TILE), (rows, n)), via=global_store, edge=0)
    if edit == "C transposed":
        assert_written_once(C, n_and_m)
    else:
        assert_written_once(C, m_and_n)


def _claims(acc: Fragment, size_k: Int, edit: str) -> None:
    assert_covers(acc.tag.k, 0, size_k + 1 if edit == "one more k" else size_k)
    assert_distinct(*([acc.tag.m] if edit == "rows distinct" else [acc.tag.m, acc.tag.n]))
    assert_relation(acc.tag.m, acc.tag.n, ordered if edit == "false relation" else natural)
    if edit == "false equality":
        assert_equal(acc.tag.m, acc.tag.n)


def moved(load: Atom, store: Atom, through: tuple[Atom, Atom] | None = None) -> Kernel:
    """B = A, 64 rows of 32: registers filled by `load` and stored by `store`, through shared memory if asked."""

    @kernel(target=gfx942, threads=64)
    def move(A: Tensor["M 32", bf16], B: Tensor["M 32", bf16]) -> None:
        tag(A, m_and_k)
        (m,) = block_id((ceil_div(A.shape[0], 64),))
        widest = max(atom.vector_bits for atom in (load, store, *(through or ())))
        by = spread((64, 32), threads=64, vector=widest // 16)
        held = registers(bf16, by)
        copy(A.tile((64, 32), (m, 0)), held, via=load, edge=0)
        vmem.wait(0)
        if through is not None:
            staged = shared(bf16, (64, 32))
            copy(held, staged, via=through[0])
            lds.wait(0)
            again = registers(bf16, by)
            copy(staged, again, via=through[1])
            lds.wait(0)
            held = again
        copy(held, B.tile((64, 32), (m, 0)), via=store, edge=0)
        assert_written_once(B, m_and_k)

    return move.trace()


def multiplied(atom: Atom) -> Kernel:
    """C = A @ B^T with one execution of a matrix instruction by one wave."""
    assert atom.mnk is not None
    rows, columns, depth = atom.mnk

    @kernel(target=gfx942, threads=64)
    def multiply(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]) -> None:
        tag(A, m_and_k)
        tag(B, n_and_k)
        mm = mfma(atom).over(waves=(1, 1), tile=(rows, columns), k=depth)
        a, b, c = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
        copy(A.tile((rows, depth), (0, 0)), a, via=global_load[0], edge=0)
        copy(B.tile((columns, depth), (0, 0)), b, via=global_load[0], edge=0)
        vmem.wait(0)
        mma(mm, c, a, b, init=True)
        assert_covers(c.tag.k, 0, A.shape[1])
        copy(c, C.tile((rows, columns), (0, 0)), via=global_store, edge=0)
        assert_written_once(C, m_and_n)

    return multiply.trace()
