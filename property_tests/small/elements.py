"""Random right programs of element operations: chains of operations and conversions on tiles of either target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Tensor,
    add,
    assert_written_once,
    assume,
    bf16,
    block_id,
    buffer_load,
    buffer_store,
    ceil_div,
    copy,
    e4m3,
    exp,
    exp2,
    f16,
    f32,
    fma,
    i32,
    load,
    log,
    loop,
    maximum,
    minimum,
    mul,
    reciprocal,
    rsqrt,
    spread,
    sqrt,
    tag,
    tanh,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import (
    TARGETS,
    Tile,
    arrived,
    assume_rows,
    choose_tile,
    narrowed,
    one_by_one,
    trace,
    vectors,
)

_PAIRS: Mapping[str, Callable[[Fragment, Fragment], Fragment]] = {
    "sum": add,
    "difference": lambda x, v: x - v,
    "product": mul,
    "larger": maximum,
    "smaller": lambda x, v: minimum(v, x),
    "fused": lambda x, v: fma(x, 0.5, v),
}
_EXACT: Mapping[str, Callable[[Fragment], Fragment]] = {
    "doubled": lambda x: x * 2,
    "less three": lambda x: x - 3,
    "relu": lambda x: maximum(x, 0),
    "negated": lambda x: -x,
    "square": lambda x: x * x,
    "by 1.25": lambda x: 1.25 * x,
    "from one": lambda x: 1.0 - x,
    "clipped": lambda x: minimum(maximum(x, -2.0), 2.5),
    "bf16": lambda x: x.to(bf16),
    "f16": lambda x: x.to(f16),
    "f32": lambda x: x.to(f32),
    "e4m3": lambda x: minimum(maximum(x, -64.0), 64.0).to(e4m3).to(f32),
}
_ROUNDED: Mapping[str, Callable[[Fragment], Fragment]] = {
    "exp": lambda x: exp(minimum(x, 4.0)),
    "exp2": lambda x: exp2(minimum(x, 4.0)),
    "root": lambda x: sqrt(maximum(x, 0.0)),
    "rsqrt": lambda x: rsqrt(x * x + 1.0),
    "reciprocal": lambda x: reciprocal(x * x + 1.0),
    "log": lambda x: log(x * x + 1.0),
    "tanh": tanh,
    "quotient": lambda x: x / 3.0,
}
"""Functions that the machine approximates: a program has one, as its last step, in single precision."""
_ALONE = {**_EXACT, **_ROUNDED}


@frozen
class Elements:
    """Y = f(X, V), element by element.

    source, result: element types. tile, vector: of a block, and of a thread. other: the axes of the second operand.
    steps: the operations. trips: tiles per block along the columns, None for one. turned: the output is stored
    transposed. buffered: through buffer instructions. order: of the grid's axes.
    """

    target: str
    threads: int
    tile: Tile
    vector: int
    source: DType
    result: DType
    other: str
    steps: tuple[str, ...]
    trips: int | None = None
    turned: bool = False
    buffered: bool = False
    order: bool = False

    def kernel(self) -> Kernel:
        axes = {"tile": "M N", "row": "N", "column": "M"}[self.other]
        result = ("N M" if self.turned else "M N", self.result)
        body = _body(self)
        return trace(body, self.target, self.threads, X=("M N", self.source), V=(axes, self.source), Y=result)


def draw(choose: Choose) -> Elements:
    target, threads = choose(TARGETS), choose((64, 128, 256))
    source = choose((f32, bf16, f16, i32, f32))
    tile = choose_tile(choose, threads, source, (8, 16, 32, 64), (8, 16, 32, 64))
    steps = tuple(choose((*_PAIRS, *_EXACT)) for _ in range(choose((1, 2, 3, 4))))
    if choose((True, False, False)):
        steps = (*steps, "f32", choose(tuple(_ROUNDED)))
    turned = choose((False, False, False, True))
    vector = choose(vectors(tile, threads, source))
    results = (i32,) if source == i32 else (f32, bf16, f16) if turned or vector < 4 else (f32, bf16, f16, e4m3)
    return Elements(
        target=target,
        threads=threads,
        tile=tile,
        vector=vector,
        source=source,
        result=choose(results),
        other=choose(("tile", "row", "column")),
        steps=() if source == i32 else steps,
        trips=choose((None, None, 2, 3)),
        turned=turned,
        buffered=target == "gfx942" and choose((False, True)),
        order=choose((False, True)),
    )


def _body(cfg: Elements) -> Callable[..., None]:
    def elements(X: Tensor, V: Tensor, Y: Tensor) -> None:
        M, N = X.shape
        tag(X, lambda m, n: dict(m=m, n=n))
        assume_rows(X, max(cfg.vector, 16 if cfg.result == e4m3 else 1))
        assume(M * N <= (1 << 28)) if cfg.buffered else None
        counts = (ceil_div(M, cfg.tile[0]), ceil_div(N, cfg.tile[1] * (cfg.trips or 1)))
        m, n = block_id(counts) if not cfg.order else block_id(counts[::-1])[::-1]
        if cfg.trips is None:
            _move(cfg, (X, V, Y), (m, n))
        else:
            for j in loop(cfg.trips):
                _move(cfg, (X, V, Y), (m, n * cfg.trips + j))
        if cfg.turned:
            assert_written_once(Y, lambda n, m: dict(m=m, n=n))
        else:
            assert_written_once(Y, lambda m, n: dict(m=m, n=n))

    return elements


def _move(cfg: Elements, tensors: tuple[Tensor, Tensor, Tensor], at: tuple[Any, Any]) -> None:
    (X, V, Y), by = tensors, spread(cfg.tile, threads=cfg.threads, vector=cfg.vector)
    loads, stores = (buffer_load, buffer_store) if cfg.buffered else (None, None)
    x = load(X.tile(cfg.tile, at), by, via=loads, edge=0)
    match cfg.other:
        case "tile":
            v = load(V.tile(cfg.tile, at), by, via=loads, edge=0)
        case "row":
            v = load(V.tile((cfg.tile[1],), (at[1],)), by.axis(1), edge=0)
        case _:
            v = load(V.tile((cfg.tile[0],), (at[0],)), by.axis(0), via=one_by_one(cfg.source), edge=0)
    arrived(cfg.target)
    y = x
    for name in cfg.steps:
        y = _PAIRS[name](y, narrowed(v, y.dtype)) if name in _PAIRS else _ALONE[name](y)
    if cfg.turned:
        copy(narrowed(y, cfg.result), Y.T.tile(cfg.tile, at), via=one_by_one(cfg.result), edge=0)
    else:
        copy(narrowed(y, cfg.result), Y.tile(cfg.tile, at), via=stores, edge=0)
