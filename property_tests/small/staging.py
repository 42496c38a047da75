"""Random right programs that stage tiles in shared memory: padded, swizzled or turned, read by another layout.

A block walks over the tiles of its rows through a number of slots. On sm_90a tiles come by loads and stores or by
`cp.async`, some tiles ahead; on gfx942 by global loads, by buffer loads, or directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    Swizzle,
    Tensor,
    assert_written_once,
    assume,
    bf16,
    block_id,
    buffer_load,
    buffer_load_lds,
    ceil_div,
    copy,
    cp_async,
    f16,
    f32,
    i32,
    load,
    loop,
    shared,
    spread,
    sync,
    tag,
    vmem,
    when,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import TARGETS, Tile, arrived, assume_rows, choose_tile, meet, trace, vectors


@frozen
class Staging:
    """Y is X, its rows rotated by `turn` within each tile.

    written, read: elements of a thread per access of a tile. padding: columns of the shared tile beyond those used.
    slots: tiles in shared memory. how: "plain", "buffer", "direct" or "ahead" (cp.async). axes: of the tensors.
    """

    target: str
    threads: int
    dtype: DType
    tile: Tile
    written: int
    read: int
    slots: int
    how: str
    padding: int = 0
    swizzle: Swizzle | None = None
    turn: int = 0
    axes: int = 2
    scale: float = 1.0

    def kernel(self) -> Kernel:
        axes = ("M N" if self.axes == 2 else "B M N", self.dtype)
        return trace(_body(self), self.target, self.threads, X=axes, Y=axes)


_SWIZZLES = (Swizzle(1, 3, 3), Swizzle(2, 3, 3), Swizzle(2, 2, 3), Swizzle(3, 3, 3), Swizzle(1, 4, 2))


def draw(choose: Choose) -> Staging:
    target, threads = choose(TARGETS), choose((64, 128, 256))
    how = choose(("plain", "ahead", "ahead") if target == "sm_90a" else ("plain", "plain", "buffer", "direct"))
    dtype = choose((bf16, f32, f16, i32))
    least = 32 // dtype.bits
    tile = choose_tile(choose, threads, dtype, (16, 32, 64), (16, 32, 64), least)
    widths = vectors(tile, threads, dtype, least)
    written = least if how == "direct" else choose(widths)
    padded = how in ("plain", "buffer") and choose((False, True, False))
    read = choose(widths)
    wide = max(written, read)
    fitting = tuple(s for s in _SWIZZLES if tile[0] * tile[1] % s.period == 0 and 1 << s.base >= wide)
    swizzled = bool(fitting) and not padded and how != "direct" and choose((False, True))
    return Staging(
        target=target,
        threads=threads,
        dtype=dtype,
        tile=tile,
        written=written,
        read=read,
        slots=choose((2, 3, 4) if how == "ahead" else (1, 2, 3)),
        how=how,
        padding=128 // dtype.bits * choose((1, 2)) if padded else 0,
        swizzle=choose(fitting) if swizzled else None,
        turn=choose((0, 0, 1, 3, 8)),
        axes=choose((2, 2, 3)),
        scale=1.0 if dtype == i32 else choose((1.0, 0.5, -3.0)),
    )


def _body(cfg: Staging) -> Callable[..., None]:
    rows, columns = cfg.tile

    def staging(X: Tensor, Y: Tensor) -> None:
        M, N = X.shape[-2:]
        wide = max(cfg.written, cfg.read)
        assume_rows(X, wide)
        assume(M % rows == 0) if cfg.turn else None
        if cfg.axes == 3:
            assume(X.shape[0] * M * N <= 1 << 28)
            tag(X, lambda b, m, n: dict(b=b, m=m, n=n))
            m, b = block_id((ceil_div(M, rows), X.shape[0]))
            source, target = X[b], Y[b]
        else:
            assume(M * N <= 1 << 28)
            tag(X, lambda m, n: dict(m=m, n=n))
            (m,) = block_id((ceil_div(M, rows),))
            source, target = X, Y
        held = shared(cfg.dtype, (cfg.slots, rows, columns + cfg.padding), swizzle=cfg.swizzle)
        slots = _Slots(cfg, held)
        if cfg.how == "ahead":
            _ahead(cfg, source, target, m, slots)
        else:
            _one_by_one(cfg, source, target, m, slots)
        if cfg.axes == 3:
            assert_written_once(Y, lambda b, m, n: dict(b=b, m=_row(cfg, m), n=n))
        else:
            assert_written_once(Y, lambda m, n: dict(m=_row(cfg, m), n=n))

    return staging


@frozen
class _Slots:
    """The slots of shared memory, without their padding."""

    cfg: Staging
    held: Tensor

    def of(self, use: Any) -> Tensor:  # noqa: ANN401 reason: an integer of either language
        slot = self.held[use % self.cfg.slots]
        return slot.tile(self.cfg.tile, (0, 0)) if self.cfg.padding else slot


def _row(cfg: Staging, m: Any) -> Any:  # noqa: ANN401 reason: as above
    rows = cfg.tile[0]
    return m // rows * rows + (m % rows + cfg.turn) % rows if cfg.turn else m


def _store(cfg: Staging, slot: Tensor, target: Tensor) -> None:
    rows, columns = cfg.tile
    if cfg.turn:
        slot = slot.gather((rows, columns), lambda r, c: ((r + cfg.turn) % rows, c))
    y = load(slot, spread(cfg.tile, threads=cfg.threads, vector=cfg.read))
    arrived(cfg.target)
    copy(y * cfg.scale if cfg.scale != 1.0 else y, target, edge=0)


def _one_by_one(cfg: Staging, X: Tensor, Y: Tensor, m: Any, slots: _Slots) -> None:  # noqa: ANN401 reason: as above
    by = spread(cfg.tile, threads=cfg.threads, vector=cfg.written)
    for n in loop(ceil_div(X.shape[1], cfg.tile[1])):
        source, slot = X.tile(cfg.tile, (m, n)), slots.of(n)
        if cfg.how == "direct":
            copy(source, slot, via=buffer_load_lds, by=by, edge=0)
            vmem.wait(0)
            sync()
        else:
            x = load(source, by, via=buffer_load if cfg.how == "buffer" else None, edge=0)
            arrived(cfg.target)
            copy(x, slot)
            meet(cfg.target)
        _store(cfg, slot, Y.tile(cfg.tile, (m, n)))
        if cfg.slots == 1:
            sync()


def _ahead(cfg: Staging, X: Tensor, Y: Tensor, m: Any, slots: _Slots) -> None:  # noqa: ANN401 reason: as above
    by, trips = spread(cfg.tile, threads=cfg.threads, vector=cfg.written), ceil_div(X.shape[1], cfg.tile[1])
    ahead = cfg.slots - 1

    def start(n: Any) -> None:  # noqa: ANN401 reason: as above
        with when(n < trips):
            copy(X.tile(cfg.tile, (m, n)), slots.of(n), via=cp_async, by=by, edge=0)
        cp_async.commit()

    for n in range(ahead):
        start(n)
    for n in loop(trips):
        cp_async.wait(ahead - 1)
        sync()
        start(n + ahead)
        _store(cfg, slots.of(n), Y.tile(cfg.tile, (m, n)))
