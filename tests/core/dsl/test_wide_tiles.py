"""Shared tiles wider than the swizzle span: layout, TMA boxes, and tensors of more than two axes."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.algebra import const
from argus.core.check import check
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dtype import bf16
from argus.core.ir import Alloc, Arrive, Buffer, Commit, Copy, Fence, Kernel, Mma, Staged, walk
from argus.core.ir.pretty import pretty
from argus.core.layout import Layout, Swizzle, row_major
from argus.core.memory.swizzle_tiles import swizzle_tiled, tile_columns
from argus.emit.cuda.text import cuda_text
from argus.language import (
    Ring,
    Tensor,
    assume,
    block_id,
    bulk,
    copy,
    elected,
    f32,
    fence,
    kernel,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    sync,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)
from argus.verifier.api import interpret


def test_the_layout_of_wide_tiles() -> None:
    assert swizzle_tiled((128, 128), 64) == Layout((128, (64, 2)), (64, (1, 8192)))
    assert swizzle_tiled((2, 16, 96), 32) == Layout((2, 16, (32, 3)), (1536, 32, (1, 512)))
    assert swizzle_tiled((128, 64), 64) == row_major((128, 64))
    with pytest.raises(ValueError, match="do not divide into swizzle tiles of 64"):
        swizzle_tiled((128, 100), 64)


def test_each_swizzle_tile_has_the_layout_of_a_box() -> None:
    """Swizzle tile j of (rows, columns) is the row-major (rows, width) that a box writes; tiles follow one another."""
    offsets = swizzle_tiled((16, 128), 64).table().reshape((16, 128), order="F")
    for slab in range(2):
        box = row_major((16, 64)).table().reshape((16, 64), order="F") + slab * 16 * 64
        assert np.array_equal(offsets[:, 64 * slab : 64 * (slab + 1)], box)


def test_the_width_of_a_swizzle_tile() -> None:
    def width(layout: Layout, swizzle: Swizzle | None) -> int | None:
        return tile_columns(Buffer("x", "shared", bf16, (const(32), const(128)), Staged(layout, swizzle)))

    assert width(swizzle_tiled((32, 128), 64), Swizzle(3, 3, 3)) == 64
    assert width(swizzle_tiled((32, 128), 32), Swizzle(2, 3, 3)) == 32
    assert width(swizzle_tiled((32, 128), 32), Swizzle(3, 3, 3)) is None
    assert width(row_major((32, 128)), Swizzle(3, 3, 3)) == 128
    assert width(Layout((32, 128), (1, 32)), None) is None


@kernel(target=sm_90a, threads=384)
def products(
    Q: Tensor["B H S 128", bf16],
    K: Tensor["B H S 128", bf16],
    V: Tensor["B H S 128", bf16],
    O: Tensor["B H S 128", bf16],  # noqa: E741 reason: the output's name in every paper
) -> None:
    """O = (Q K^T rounded) V of one block of rows: wide factors, along k and along n, and one in registers."""
    assume(Q.shape[2] <= 128)
    q_ring = Ring(1, q=shared(bf16, (128, 128), swizzle=128))
    kv = Ring(2, k=shared(bf16, (128, 128), swizzle=128), v=shared(bf16, (128, 128), swizzle=128))
    boxes = shared(bf16, (2, 64, 128), swizzle=128)
    qk, pv = wgmma(bf16, n=128), wgmma(bf16, n=128, a="registers", b_major="n")
    h, b = block_id((Q.shape[1], Q.shape[0]))
    with role("load", warpgroup(0).elected, registers=24):
        with q_ring.fill() as slot:
            copy(Q[b, h].tile((128, 128), (0, 0)), slot.q, via=tma, edge=0)
        with kv.fill() as slot:
            copy(K[b, h].tile((128, 128), (0, 0)), slot.k, via=tma, edge=0)
            copy(V[b, h].tile((128, 128), (0, 0)), slot.v, via=tma, edge=0)
    with role("math", warpgroups(1, 2), registers=240) as wg:
        s, o, p = registers(f32, qk.C), registers(f32, pv.C), registers(bf16, pv.A.tiled(k=128))
        q, slot = q_ring.wait().q.tile((64, 128), (wg, 0)), kv.wait()
        with wgmma.group():
            mma(qk, s, q, slot.k, init=True)
            mma(qk, s, q, slot.k)
        wgmma.wait(0)
        p[:] = s.to(bf16)
        mma(pv, o, p, slot.v, init=True)
        wgmma.wait(0)
        q_ring.release()
        kv.release()
        copy(o.to(bf16), boxes[wg])
        fence("async proxy")
        sync()
        with elected():
            copy(boxes[wg], O[b, h].tile((64, 128), (wg, 0)), via=tma, edge=0)
            bulk.commit()
            bulk.wait(0)


def boxes_of(made: Kernel) -> list[str]:
    return [stmt.atom.name for stmt in walk(made.body) if isinstance(stmt, Copy) and stmt.atom.box is not None]


def test_a_copy_is_one_box_for_each_swizzle_tile() -> None:
    made = products.trace()
    assert check(made) == ()
    assert boxes_of(made) == ["tma_load_4d_sw128"] * 6 + ["tma_store_4d_sw128"] * 2
    bytes_ = [stmt.bytes for stmt in walk(made.body) if isinstance(stmt, Arrive) and stmt.bytes is not const(0)]
    assert bytes_ == [const(2 * 128 * 128), const(2 * 2 * 128 * 128)]
    text = pretty(made)
    assert "K[block_1, block_0, i0, i1 + 64 : 128 x 64] -> kv_k[kv_use % 2, i0, i1 + 64 : 128 x 64]" in text
    layouts = {stmt.buffer.name: stmt.buffer.layout for stmt in walk(made.body) if isinstance(stmt, Alloc)}
    assert layouts["kv_v"] == Staged(Layout((2, 128, (64, 2)), (16384, 64, (1, 8192))), Swizzle(3, 3, 3))


def test_a_group_of_products_is_closed_once() -> None:
    made = products.trace()
    assert [stmt.grouped for stmt in walk(made.body) if isinstance(stmt, Mma)] == [True, True, False]
    assert sum(isinstance(stmt, Commit) and stmt.queue == "wgmma" for stmt in walk(made.body)) == 1
    assert pretty(made).count("init true grouped") == 1
    assert sum(isinstance(stmt, Fence) and stmt.kind == "wgmma" for stmt in walk(made.body)) == 2


def test_wide_tiles_and_more_axes_in_the_interpreter() -> None:
    """Small integers, so that every sum is exact; rows beyond S come in as zeros and are not stored."""
    draw = np.random.default_rng(0)
    q, k, v = (draw.integers(-2, 3, (2, 2, 100, 128)).astype(bf16.numpy) for _ in range(3))
    found = interpret(products.trace(), q, k, v, np.zeros_like(q))["O"]
    wide = [x.astype(np.float32) for x in (q, k, v)]
    scores = (2 * wide[0] @ wide[1].transpose(0, 1, 3, 2)).astype(bf16.numpy).astype(np.float32)
    assert np.array_equal(found, (scores @ wide[2]).astype(bf16.numpy))


def test_the_text_has_a_box_for_each_swizzle_tile_and_one_commit_for_a_group() -> None:
    body = cuda_text(products.trace()).text.rpartition("__global__")[2]
    assert (body.count("tma_load_4d("), body.count("tma_store_4d("), body.count("wgmma_commit();")) == (6, 2, 2)


def refused(tensor: str, columns: int, *, fixed: int) -> Diagnostic:
    def body(A: Tensor) -> None:
        box = shared(bf16, (64, columns), swizzle=128)
        part = A[(0,) * fixed] if fixed else A
        with elected():
            copy(box, part.tile((64, columns), (0, 0)), via=tma, edge=0)

    body.__annotations__["A"] = Tensor[tensor, bf16]
    with pytest.raises(ArgusError) as caught:
        kernel(target=sm_90a, threads=128)(body).trace()
    return caught.value.diagnostic


def test_tiles_that_are_not_boxes_are_refused() -> None:
    assert refused("M N", 96, fixed=0).code == "E211"
    assert "do not divide into swizzle tiles" in refused("M N", 96, fixed=0).message
    assert refused("P Q R S T U", 64, fixed=4).code == "E501"


def test_the_last_axes_of_a_tensor_are_a_box() -> None:
    for axes in (3, 4, 5):

        def body(A: Tensor) -> None:
            box = shared(bf16, (64, 64), swizzle=128)
            with elected():
                copy(box, A[(1,) * (len(A.shape) - 2)].tile((64, 64), (0, 0)), via=tma, edge=0)
                bulk.commit()
                bulk.wait(0)

        body.__annotations__["A"] = Tensor[" ".join("PQRST"[:axes]), bf16]
        made = kernel(target=sm_90a, threads=128)(body).trace()
        assert boxes_of(made) == [f"tma_store_{axes}d_sw128"]


def test_a_middle_axis_cannot_be_the_row_of_a_box() -> None:
    def body(A: Tensor["P Q R", bf16]) -> None:
        box = shared(bf16, (64, 64), swizzle=128)
        with elected():
            copy(box, A[:, 0].tile((64, 64), (0, 0)), via=tma, edge=0)

    with pytest.raises(ArgusError) as caught:
        kernel(target=sm_90a, threads=128)(body).trace()
    assert caught.value.diagnostic.code == "E108"
    assert "it is not a box of the tensor" in caught.value.diagnostic.message
