"""Random right programs on 32-bit integers: chains of operations and choices on tiles of either target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Tensor,
    add,
    assert_written_once,
    assume,
    block_id,
    buffer_load,
    buffer_store,
    ceil_div,
    copy,
    i32,
    load,
    loop,
    maximum,
    minimum,
    mul,
    spread,
    tag,
    where,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import TARGETS, Tile, arrived, assume_rows, choose_tile, one_by_one, trace, vectors

_LARGE = 1_103_515_245
"""A factor under which products wrap around."""
_PAIRS: Mapping[str, Callable[[Fragment, Fragment], Fragment]] = {
    "sum": add,
    "difference": lambda x, v: x - v,
    "product": mul,
    "larger": maximum,
    "smaller": lambda x, v: minimum(v, x),
    "chosen": lambda x, v: where(x < v, x, v * 3),
    "masked": lambda x, v: where(v != x, x + v, 7),
}
_ALONE: Mapping[str, Callable[[Fragment], Fragment]] = {
    "tripled": lambda x: x * 3,
    "less five": lambda x: x - 5,
    "negated": lambda x: -x,
    "square": lambda x: x * x,
    "from nine": lambda x: 9 - x,
    "clipped": lambda x: minimum(maximum(x, -2), 3),
    "wrapped": lambda x: x * _LARGE + 12345,
    "positive": lambda x: where(x >= 0, x, -x),
}


@frozen
class Counting:
    """Y = f(X, V), element by element, of integers.

    tile, vector: of a block, and of a thread. other: the axes of the second operand. steps: the operations. trips:
    tiles per block along the columns, None for one. turned: the output is stored transposed. buffered: through buffer
    instructions.
    """

    target: str
    threads: int
    tile: Tile
    vector: int
    other: str
    steps: tuple[str, ...]
    trips: int | None = None
    turned: bool = False
    buffered: bool = False

    def kernel(self) -> Kernel:
        axes = {"tile": "M N", "row": "N", "column": "M"}[self.other]
        result = "N M" if self.turned else "M N"
        return trace(_body(self), self.target, self.threads, X=("M N", i32), V=(axes, i32), Y=(result, i32))


def draw(choose: Choose) -> Counting:
    target, threads = choose(TARGETS), choose((64, 128, 256))
    tile = choose_tile(choose, threads, i32, (8, 16, 32, 64), (8, 16, 32, 64))
    return Counting(
        target=target,
        threads=threads,
        tile=tile,
        vector=choose(vectors(tile, threads, i32)),
        other=choose(("tile", "row", "column")),
        steps=tuple(choose((*_PAIRS, *_ALONE)) for _ in range(choose((1, 2, 3, 4)))),
        trips=choose((None, None, 2, 3)),
        turned=choose((False, False, False, True)),
        buffered=target == "gfx942" and choose((False, True)),
    )


def _body(cfg: Counting) -> Callable[..., None]:
    def counting(X: Tensor, V: Tensor, Y: Tensor) -> None:
        M, N = X.shape
        tag(X, lambda m, n: dict(m=m, n=n))
        assume_rows(X, cfg.vector)
        assume(M * N <= (1 << 28)) if cfg.buffered else None
        m, n = block_id((ceil_div(M, cfg.tile[0]), ceil_div(N, cfg.tile[1] * (cfg.trips or 1))))
        if cfg.trips is None:
            _move(cfg, (X, V, Y), (m, n))
        else:
            for j in loop(cfg.trips):
                _move(cfg, (X, V, Y), (m, n * cfg.trips + j))
        if cfg.turned:
            assert_written_once(Y, lambda n, m: dict(m=m, n=n))
        else:
            assert_written_once(Y, lambda m, n: dict(m=m, n=n))

    return counting


def _move(cfg: Counting, tensors: tuple[Tensor, Tensor, Tensor], at: tuple[Any, Any]) -> None:
    (X, V, Y), by = tensors, spread(cfg.tile, threads=cfg.threads, vector=cfg.vector)
    loads, stores = (buffer_load, buffer_store) if cfg.buffered else (None, None)
    y = load(X.tile(cfg.tile, at), by, via=loads, edge=0)
    match cfg.other:
        case "tile":
            v = load(V.tile(cfg.tile, at), by, via=loads, edge=0)
        case "row":
            v = load(V.tile((cfg.tile[1],), (at[1],)), by.axis(1), edge=0)
        case _:
            v = load(V.tile((cfg.tile[0],), (at[0],)), by.axis(0), via=one_by_one(i32), edge=0)
    arrived(cfg.target)
    for name in cfg.steps:
        y = _PAIRS[name](y, v) if name in _PAIRS else _ALONE[name](y)
    if cfg.turned:
        copy(y, Y.T.tile(cfg.tile, at), via=one_by_one(i32), edge=0)
    else:
        copy(y, Y.tile(cfg.tile, at), via=stores, edge=0)
