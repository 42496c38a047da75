"""Random small matrix products by one wave or four, from global or shared memory; some have mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.ir import Kernel
from argus.language import (
    Bool,
    Fragment,
    Int,
    Swizzle,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    ds_read,
    ds_write,
    eq,
    f32,
    gfx942,
    global_load,
    kernel,
    lds,
    loop,
    mfma,
    mfma_f32_16x16x16_bf16,
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
from property_tests.small.choosing import Choose, number_of_mistakes

Array = npt.NDArray[Any]


@frozen
class Summing:
    """C = A B^T by tiles of `side` x `side`, `deep` of k per iteration; some values introduce mistakes.

    wide: use the 32 x 32 instruction. staged: through `slots` shared buffers. first: the iteration that initialises the
    accumulator, None for every one. start, stop: offsets of the loop bounds. descending: reverse order of k. crossed:
    operands exchanged. late: offset of B's k in tiles. loaded, fetched: operations that waits leave pending, None for
    no wait. before, after: whether there is a barrier before a tile is written and after. twice: add a product again.
    cover: offset of the claimed range.
    """

    waves: int = 1
    wide: bool = False
    deep: int = 16
    staged: bool = False
    slots: int = 1
    swizzle: Swizzle | None = None
    first: int | None = 0
    start: int = 0
    stop: int = 0
    descending: bool = False
    crossed: bool = False
    late: int = 0
    loaded: int | None = 0
    stored: int | None = 0
    fetched: int | None = 0
    before: bool = True
    after: bool = True
    twice: bool = False
    cover: int = 0
    edge: bool = True
    scale: float = 1.0
    row: int = 0
    guarded: bool = False

    @property
    def side(self) -> int:
        return (32 if self.wide else 16) * (2 if self.waves == 4 else 1)

    def kernel(self) -> Kernel:
        return _traced(self)

    def expected(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The output that the claims state, in float64: the sum of all products, up to a factor."""
        product = arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64).T
        return {"C": self.scale * product}


def draw(choose: Choose) -> Summing:
    """A correct program, or one with one or two mistakes."""
    slots = choose((1, 1, 2))
    config: dict[str, Any] = {
        "waves": choose((1, 4)),
        "wide": choose((False, True)),
        "deep": choose((32, 64)),
        "staged": choose((False, True)),
        "slots": slots,
        "swizzle": choose((None, Swizzle(2, 3, 3))),
        "descending": choose((False, False, True)),
        "before": slots < 2 or choose((True, False)),
        "scale": choose((1.0, 1.0, 0.5)),
    }
    mistakes: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("first", (None, 1, -1)),
        ("start", (1,)),
        ("stop", (-1, 1)),
        ("crossed", (True,)),
        ("late", (1, -1)),
        ("loaded", (None, 1)),
        ("stored", (None, 1)),
        ("fetched", (None, 1)),
        ("before", (False,)),
        ("after", (False,)),
        ("twice", (True,)),
        ("cover", (1, -1)),
        ("edge", (False,)),
        ("row", (1,)),
        ("guarded", (True,)),
    )
    for _ in range(number_of_mistakes(choose)):
        name, values = choose(mistakes)
        config[name] = choose(values)
    return Summing(**config)


def _traced(cfg: Summing) -> Kernel:
    atom, run = (mfma_f32_32x32x8_bf16, 8) if cfg.wide else (mfma_f32_16x16x16_bf16, 8)
    side, deep, threads = cfg.side, cfg.deep, 64 * cfg.waves
    grid = (2, 2) if cfg.waves == 4 else (1, 1)

    @kernel(target=gfx942, threads=threads)
    def summing(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
        (M, K), (N, _) = A.shape, B.shape
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B, lambda n, k: dict(n=n, k=k))
        assume(K >= 1, K % 8 == 0)
        mm = mfma(atom).over(waves=grid, tile=(side, side), k=deep, k_run=run)
        m, n = block_id((ceil_div(M, side), ceil_div(N, side)))
        depth = ceil_div(K, deep)
        a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
        load = _staged(cfg, threads) if cfg.staged else _direct(cfg)
        ascending, descending = loop(cfg.start, depth + cfg.stop), loop(depth - 1 - cfg.start, -1 - cfg.stop, step=-1)
        for k in descending if cfg.descending else ascending:
            load(A, B, (m + cfg.row, n, k), a, b)
            _multiply(cfg, mm, (acc, a, b), k, depth)
        assert_covers(acc.tag.k, 0, K + cfg.cover)
        copy((acc * cfg.scale if cfg.scale != 1.0 else acc).to(bf16), C.tile((side, side), (m, n)), edge=0)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return summing.trace()


def _multiply(cfg: Summing, mm: Any, held: tuple[Fragment, Fragment, Fragment], k: Int, depth: Int) -> None:  # noqa: ANN401 reason: a tiled product
    acc, a, b = held
    init: Bool | bool = True
    if cfg.first is not None:
        init = eq(k, depth - 1 - cfg.first) if cfg.descending else eq(k, cfg.first)
    left, right = (b, a) if cfg.crossed else (a, b)
    if cfg.guarded:
        with when(k < 3):
            mma(mm, acc, left, right, init=init)
    else:
        mma(mm, acc, left, right, init=init)
    if cfg.twice:
        mma(mm, acc, a, b, init=False)


def _direct(cfg: Summing) -> Any:  # noqa: ANN401 reason: a step of the trace
    def load(A: Tensor, B: Tensor, at: tuple[Int, Int, Int], a: Fragment, b: Fragment) -> None:
        m, n, k = at
        edge = 0 if cfg.edge else None
        copy(A.tile((cfg.side, cfg.deep), (m, k)), a, via=global_load, edge=edge)
        copy(B.tile((cfg.side, cfg.deep), (n, k + cfg.late)), b, via=global_load, edge=edge)
        _wait(vmem, cfg.loaded)

    return load


def _staged(cfg: Summing, threads: int) -> Any:  # noqa: ANN401 reason: as above
    shape = (cfg.side, cfg.deep)
    by = spread(shape, threads=threads, vector=8 if cfg.side * cfg.deep >= 8 * threads else 4)
    tiles = [shared(bf16, (cfg.slots, *shape), swizzle=cfg.swizzle) for _ in range(2)]
    x, y = registers(bf16, by), registers(bf16, by)

    def load(A: Tensor, B: Tensor, at: tuple[Int, Int, Int], a: Fragment, b: Fragment) -> None:
        m, n, k = at
        edge = 0 if cfg.edge else None
        copy(A.tile(shape, (m, k)), x, via=global_load, edge=edge)
        copy(B.tile(shape, (n, k + cfg.late)), y, via=global_load, edge=edge)
        _wait(vmem, cfg.loaded)
        if cfg.before:
            sync()
        for held, tile in ((x, tiles[0]), (y, tiles[1])):
            copy(held, tile[k % cfg.slots], via=ds_write)
        _wait(lds, cfg.stored)
        if cfg.after:
            sync()
        for held, tile in ((a, tiles[0]), (b, tiles[1])):
            copy(tile[k % cfg.slots], held, via=ds_read)
        _wait(lds, cfg.fetched)

    return load


def _wait(queue: Any, pending: int | None) -> None:  # noqa: ANN401 reason: one of the queues' handles
    if pending is not None:
        queue.wait(pending)
