"""Random right programs on sm_90a that move boxes by TMA: tensors of one to four axes, a ring of slots, no product.

One thread fills the slots; one warpgroup or two read them and store what they read, by themselves or by TMA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    Ring,
    Tensor,
    assert_written_once,
    assume,
    bf16,
    block_id,
    bulk,
    bulk_copy,
    ceil_div,
    copy,
    elected,
    f16,
    f32,
    fence,
    load,
    loop,
    persistent,
    role,
    shared,
    spread,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import Tile, choose_tile, narrowed, trace, vectors


@frozen
class Boxing:
    """Y is X, scaled, by boxes of `tile`.

    axes: of the tensors; 1: bulk copies of runs. span: of the swizzle in bytes, 0 for none. readers: warpgroups that
    read each slot, each its rows. vector: of their reads. boxed: Y is stored by TMA. blocks: of a persistent kernel.
    """

    dtype: DType
    axes: int
    tile: Tile
    span: int
    stages: int
    readers: int
    vector: int
    result: DType
    boxed: bool = False
    blocks: int | None = None
    scale: float = 1.0

    def kernel(self) -> Kernel:
        names = ("N", "M N", "B M N", "B H M N")[self.axes - 1]
        body = _lines(self) if self.axes == 1 else _boxes(self)
        return trace(body, "sm_90a", 128 * (1 + self.readers), X=(names, self.dtype), Y=(names, self.result))


def draw(choose: Choose) -> Boxing:
    dtype, axes = choose((bf16, f32, f16)), choose((1, 2, 2, 3, 3, 4))
    size, readers = dtype.bits // 8, choose((1, 2))
    least = 32 // dtype.bits
    tiles = ((1,), (128, 256, 512)) if axes == 1 else ((8, 16, 32, 64), (16, 32, 64))
    tile = choose_tile(choose, 128, dtype, *tiles, least)
    spans = tuple(
        s for s in (0, 32, 64, 128) if not s or (tile[1] * size % s == 0 and tile[0] * tile[1] * size >= 8 * s)
    )
    boxed = axes > 1 and choose((False, True))
    return Boxing(
        dtype=dtype,
        axes=axes,
        tile=tile,
        span=0 if axes == 1 else choose(spans),
        stages=choose((1, 2, 3, 4)),
        readers=readers,
        vector=choose(vectors(tile, 128, dtype, least)),
        result=dtype if boxed else choose((bf16, f32, f16)),
        boxed=boxed,
        blocks=choose((None, 2, 3)) if axes == 2 else None,
        scale=choose((1.0, 2.0, -0.5)),
    )


def _lines(cfg: Boxing) -> Callable[..., None]:
    count = cfg.tile[1]

    def lines(X: Tensor, Y: Tensor) -> None:
        (N,) = X.shape
        tag(X, lambda n: dict(n=n))
        assume(N % (count * cfg.readers) == 0, N >= 1, N <= 1 << 24)
        (block,) = block_id((2,))
        ring = Ring(cfg.stages, x=shared(cfg.dtype, (cfg.readers * count,)))
        trips = ceil_div(N // (count * cfg.readers) - block, 2)
        with role("load", warpgroup(0).elected):
            for i in loop(trips):
                with ring.fill() as slot:
                    copy(X.tile((count * cfg.readers,), (2 * i + block,)), slot.x, via=bulk_copy)
            ring.finish()
        with role("move", warpgroups(*range(1, 1 + cfg.readers))) as reader:
            for i in loop(trips):
                slot = ring.wait()
                x = load(slot.x.tile((count,), (reader,)), spread((count,), threads=128, vector=cfg.vector))
                copy(_scaled(cfg, x), Y.tile((count,), ((2 * i + block) * cfg.readers + reader,)))
                ring.release()
        assert_written_once(Y, lambda n: dict(n=n))

    return lines


def _scaled(cfg: Boxing, x: Any) -> Any:  # noqa: ANN401 reason: a fragment
    return narrowed(x * cfg.scale if cfg.scale != 1.0 else x, cfg.result)


def _boxes(cfg: Boxing) -> Callable[..., None]:
    rows, columns = cfg.tile

    def boxes(X: Tensor, Y: Tensor) -> None:
        _state(cfg, X)
        counts = (ceil_div(X.shape[-2], rows * cfg.readers), ceil_div(X.shape[-1], columns))
        each: Any
        if cfg.blocks is None:
            *first, m = block_id((*X.shape[:-2], counts[0]))
            source, target = (X[tuple(first)], Y[tuple(first)]) if first else (X, Y)
            each = _along(m, counts[1])
        else:
            source, target, each = X, Y, _over(persistent(counts, blocks=cfg.blocks))
        ring = Ring(cfg.stages, x=shared(cfg.dtype, (cfg.readers * rows, columns), swizzle=cfg.span or None))
        box = shared(cfg.result, (cfg.readers, rows, columns), swizzle=cfg.span or None) if cfg.boxed else None

        def fill(m: Any, n: Any) -> None:  # noqa: ANN401 reason: integers of the kernel
            with ring.fill() as slot:
                copy(source.tile((rows * cfg.readers, columns), (m, n)), slot.x, via=tma, edge=0)

        with role("load", warpgroup(0).elected):
            each(fill)
            ring.finish()
        with role("move", warpgroups(*range(1, 1 + cfg.readers))) as reader:

            def move(m: Any, n: Any) -> None:  # noqa: ANN401 reason: as above
                part = ring.wait().x.tile(cfg.tile, (reader, 0))
                y = _scaled(cfg, load(part, spread(cfg.tile, threads=128, vector=cfg.vector)))
                to = target.tile(cfg.tile, (cfg.readers * m + reader, n))
                _store(y, to, None if box is None else box[reader])
                ring.release()

            each(move)
        _claim(cfg, Y)

    return boxes


def _along(m: Any, count: Any) -> Callable[[Callable[[Any, Any], None]], None]:  # noqa: ANN401 reason: as above
    def each(body: Callable[[Any, Any], None]) -> None:
        for n in loop(count):
            body(m, n)

    return each


def _over(tiles: Any) -> Callable[[Callable[[Any, Any], None]], None]:  # noqa: ANN401 reason: as above
    def each(body: Callable[[Any, Any], None]) -> None:
        for m, n in tiles:
            body(m, n)

    return each


def _state(cfg: Boxing, X: Tensor) -> None:
    assume(
        X.shape[-1] % (128 // min(cfg.dtype.bits, cfg.result.bits)) == 0, X.shape[-2] <= 1 << 14, X.shape[-1] <= 1 << 14
    )
    match cfg.axes:
        case 2:
            assume(X.shape[0] >= 1, X.shape[1] >= 1) if cfg.blocks is not None else None
            tag(X, lambda m, n: dict(m=m, n=n))
        case 3:
            assume(X.shape[0] <= 1 << 10)
            tag(X, lambda b, m, n: dict(b=b, m=m, n=n))
        case _:
            assume(X.shape[0] <= 1 << 5, X.shape[1] <= 1 << 5)
            tag(X, lambda b, h, m, n: dict(b=b, h=h, m=m, n=n))


def _claim(cfg: Boxing, Y: Tensor) -> None:
    match cfg.axes:
        case 2:
            assert_written_once(Y, lambda m, n: dict(m=m, n=n))
        case 3:
            assert_written_once(Y, lambda b, m, n: dict(b=b, m=m, n=n))
        case _:
            assert_written_once(Y, lambda b, h, m, n: dict(b=b, h=h, m=m, n=n))


def _store(y: Any, target: Tensor, box: Tensor | None) -> None:  # noqa: ANN401 reason: a fragment
    if box is None:
        copy(y, target, edge=0)
        return
    with elected():
        bulk.wait(0, of="reads")
    sync()
    copy(y, box)
    fence("async proxy")
    sync()
    with elected():
        copy(box, target, via=tma, edge=0)
        bulk.commit()
        bulk.wait(0)
