"""Random right programs of folds for either target: rows, columns, whole rows of a block, prefixes, and softmax."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    TV,
    Fragment,
    Tensor,
    add,
    all_to_each,
    assert_covers,
    assert_written_once,
    bf16,
    block_id,
    ceil_div,
    copy,
    exp,
    f16,
    f32,
    first_lane,
    last_lane,
    load,
    loop,
    maximum,
    registers,
    replicated,
    runs,
    shared,
    spread,
    tag,
    thread,
    warp,
    wave,
    where,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import TARGETS, Tile, arrived, assume_rows, meet, narrowed, trace, vectors

Combiner = Callable[[Fragment, Fragment], Fragment]
_COMBINERS: Mapping[str, tuple[Combiner, float]] = {"add": (add, 0.0), "max": (maximum, -inf)}
_LANES = {"sm_90a": 32, "gfx942": 64}


@frozen
class Folding:
    """A fold of X, combined with X again.

    kind: "rows" of tiles, "columns" of tiles, "block" (rows that all threads of a block hold), "prefix" (inclusive sums
    along a row) or "softmax". combiner: of the fold. split: the fold is one by thread and one by warp.
    """

    target: str
    threads: int
    kind: str
    dtype: DType
    result: DType
    tile: Tile
    vector: int
    combiner: str = "add"
    split: bool = False
    scale: float = 1.0

    def kernel(self) -> Kernel:
        bodies = {"rows": _tiles, "columns": _tiles, "block": _block, "prefix": _prefix, "softmax": _softmax}
        return trace(bodies[self.kind](self), self.target, self.threads, X=("M N", self.dtype), Y=("M N", self.result))


def draw(choose: Choose) -> Folding:
    target, kind = choose(TARGETS), choose(("rows", "columns", "block", "prefix", "rows", "softmax"))
    lanes, dtype = _LANES[target], choose((f32, bf16, f16))
    if kind in ("rows", "columns"):
        threads = lanes if kind == "columns" else choose((64, 128, 256))
        held = [(m, n) for m in (8, 16, 32, 64) for n in (8, 16, 32, 64)]
        tile = choose([t for t in held if _vectors_of_rows(t, threads, dtype, lanes, kind)])
        vector = choose(_vectors_of_rows(tile, threads, dtype, lanes, kind))
    else:
        threads = choose((64, 128, 256))
        threads = max(threads, 2 * lanes)
        vector = choose((2, 4))
        tile = (1, threads * vector * (1 if kind == "prefix" else choose((1, 2))))
    return Folding(
        target=target,
        threads=threads,
        kind=kind,
        dtype=dtype,
        result=choose((f32, bf16)),
        tile=tile,
        vector=vector,
        combiner="add" if kind not in ("rows", "columns") else choose(("add", "max")),
        split=kind == "rows" and vector > 1 and choose((False, True)),
        scale=choose((1.0, 0.5, -2.0)),
    )


def _vectors_of_rows(tile: Tile, threads: int, dtype: DType, lanes: int, kind: str) -> tuple[int, ...]:
    """The vectors by which one warp holds whole rows (of columns: the whole tile)."""
    found = vectors(tile, threads, dtype)
    return tuple(v for v in found if kind == "columns" or tile[1] // v <= lanes)


def _loaded(cfg: Folding, view: Tensor, by: TV, edge: float) -> Fragment:
    x = load(view, by, edge=edge)
    arrived(cfg.target)
    return narrowed(x, f32)


def _finished(cfg: Folding, x: Fragment, total: Fragment) -> Fragment:
    return narrowed(x - (total * cfg.scale if cfg.combiner == "add" else total), cfg.result)


def _tiles(cfg: Folding) -> Callable[..., None]:
    (combine, edge), axis = _COMBINERS[cfg.combiner], 1 if cfg.kind == "rows" else 0

    def folding(X: Tensor, Y: Tensor) -> None:
        tag(X, lambda m, n: dict(m=m, n=n))
        assume_rows(X, cfg.tile[1] if cfg.kind == "columns" else cfg.vector)
        by = spread(cfg.tile, threads=cfg.threads, vector=cfg.vector)
        at = block_id((ceil_div(X.shape[0], cfg.tile[0]), ceil_div(X.shape[1], cfg.tile[1])))
        x = _loaded(cfg, X.tile(cfg.tile, at), by, edge)
        if cfg.split:
            total = x.fold(axis, combine, within=thread).fold(axis, combine, within=warp)
        else:
            total = x.fold(axis, combine)
        z = load(X.tile(cfg.tile, at), by, edge=0)
        arrived(cfg.target)
        copy(_finished(cfg, narrowed(z, f32), total), Y.tile(cfg.tile, at), edge=0)

    return folding


def _across(cfg: Folding, x: Fragment, combine: Combiner) -> Fragment:
    """The fold of one value per thread over the block: by warps, then through shared memory."""
    box = shared(f32, (cfg.threads // _LANES[cfg.target],))
    copy(x.fold(0, combine, within=warp), box, by=first_lane)
    meet(cfg.target)
    heads = load(box, all_to_each(cfg.threads))
    arrived(cfg.target)
    found = heads.fold(0, combine, within=thread)
    meet(cfg.target)
    return found


def _block(cfg: Folding) -> Callable[..., None]:
    (combine, edge), chunk = _COMBINERS[cfg.combiner], cfg.tile[1:]

    def folding(X: Tensor, Y: Tensor) -> None:
        M, N = X.shape
        tag(X, lambda m, n: dict(m=m, n=n))
        assume_rows(X, cfg.vector)
        (row,) = block_id((M,))
        by = spread(chunk, threads=cfg.threads, vector=cfg.vector)
        part = registers(f32, by.partial(0))
        part[:] = edge
        for i in loop(ceil_div(N, chunk[0])):
            x = _loaded(cfg, X[row].tile(chunk, (i,)), by, edge)
            part[:] = combine(part, x.fold(0, combine, within=thread))
        total = _across(cfg, part, combine)
        if cfg.combiner == "add":
            assert_covers(total.tag.n, 0, N)
        for i in loop(ceil_div(N, chunk[0])):
            x = _loaded(cfg, X[row].tile(chunk, (i,)), by, 0)
            copy(_finished(cfg, x, total), Y[row].tile(chunk, (i,)), edge=0)
        assert_written_once(Y, lambda m, n: dict(m=m, n=n))

    return folding


def _prefix(cfg: Folding) -> Callable[..., None]:
    chunk = cfg.tile[1:]

    def folding(X: Tensor, Y: Tensor) -> None:
        M, N = X.shape
        tag(X, lambda m, n: dict(m=m, n=n))
        assume_rows(X, cfg.vector)
        (row,) = block_id((M,))
        by, carry = runs(chunk, threads=cfg.threads, vector=cfg.vector), registers(f32, replicated(cfg.threads))
        box = shared(f32, (cfg.threads // _LANES[cfg.target],))
        carry[:] = 0.0
        for i in loop(ceil_div(N, chunk[0])):
            run = _loaded(cfg, X[row].tile(chunk, (i,)), by, 0).scan(0, add, within=thread)
            lane = run.last(0).scan(0, add, within=warp)
            copy(lane.last(0), box, by=last_lane)
            meet(cfg.target)
            heads = load(box, all_to_each(cfg.threads))
            arrived(cfg.target)
            before = heads.sum(0, where=heads.index[0] < wave) + lane.shift(0, 1, fill=0.0)
            sums = run + before + carry
            n = i * chunk[0] + sums.index[0]
            y = narrowed(sums, cfg.result)
            assert_covers(y.tag.n, 0, n + 1, where=n < N)
            copy(y, Y[row].tile(chunk, (i,)), edge=0)
            carry += heads.sum(0)
            meet(cfg.target)
        assert_written_once(Y, lambda m, _: dict(m=m))

    return folding


def _softmax(cfg: Folding) -> Callable[..., None]:
    chunk = cfg.tile[1:]

    def folding(X: Tensor, Y: Tensor) -> None:
        M, N = X.shape
        tag(X, lambda m, n: dict(m=m, n=n))
        assume_rows(X, cfg.vector)
        (row,) = block_id((M,))
        by = spread(chunk, threads=cfg.threads, vector=cfg.vector)
        high, total = registers(f32, by.partial(0)), registers(f32, by.partial(0))
        high[:], total[:] = -inf, 0.0
        for i in loop(ceil_div(N, chunk[0])):
            x = _loaded(cfg, X[row].tile(chunk, (i,)), by, -inf)
            now = maximum(high, x.max(0, within=thread))
            guard = where(now == -inf, 0.0, now)
            total[:] = total * exp(high - guard) + exp(x - guard).sum(0, within=thread)
            high[:] = now
        top = _across(cfg, high, maximum)
        whole = _across(cfg, total * exp(high - top), add)
        assert_covers(whole.tag.n, 0, N)
        for i in loop(ceil_div(N, chunk[0])):
            x = _loaded(cfg, X[row].tile(chunk, (i,)), by, -inf)
            copy(narrowed(exp(x - top) / whole, cfg.result), Y[row].tile(chunk, (i,)), edge=0)
        assert_written_once(Y, lambda m, n: dict(m=m, n=n))

    return folding
