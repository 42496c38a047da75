"""The schedule of a layer of experts for few tokens: each choice of a token reads its expert's matrices by itself.

The time is that of reading matrices, which warps load from global memory and multiply by plain FMAs: rows need no
order, no copy and no sums in a launch of their own. An expert that several tokens have chosen is read for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from attrs import field, frozen

from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation, gated_element
from argus.kernels.schedules.moe_rows import across
from argus.language import (
    TV,
    Fragment,
    Int,
    IntLike,
    Layout,
    Tensor,
    Value,
    add,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    early_reads,
    elements,
    f32,
    first_lane,
    fma,
    load,
    loop,
    own_checks,
    promise,
    registers,
    scalar,
    sm_90a,
    thread,
    total,
    warp,
    zeros,
)

_WARP, _FOUR, _MOST, _MOST_ACROSS = 32, 4, 1 << 28, 1 << 16
"""Threads of a warp; elements of f32 in 16 bytes; limits of sizes, and of blocks along further axes of a grid."""


@frozen
class Dots:
    """A warp has `columns` rows of a matrix, of which it loads `steps` times 512 bytes at a time.

    unroll: choices of a token, or parts of a row, that the compiler may overlap. resident: blocks of which a
    processor has the registers. ahead: choices of a token whose rows of the second matrix are loaded while the first
    launch ends. checks: whether blocks check the numbers of experts, in place of a launch of a guard.
    """

    columns: int = 1
    steps: int = 8
    unroll: int = 1
    threads: int = 128
    resident: int = 1
    ahead: int = 0
    checks: bool = False
    target = sm_90a

    @property
    def rows(self) -> int:
        """The rows of a matrix that a block has."""
        return self.threads // _WARP * self.columns

    def layout(self, vector: int) -> TV:
        """The elements (row, column) of 512 bytes of each row, `vector` of which are 16 bytes."""
        warps, rows = self.threads // _WARP, self.rows
        threads = Layout((_WARP, warps), (rows * vector, 1))
        return TV(threads, Layout((vector, self.columns), (rows, warps)), (rows, _WARP * vector))


@frozen
class Choices:
    """The configurations of both products; the second one reads whole rows, which have at most `longest` elements.

    atomic: blocks of a token's choices add to its result, in any order, in place of one block that adds all.
    """

    first: Dots = field(factory=Dots)
    second: Dots = field(factory=Dots)
    atomic: bool = False

    @property
    def longest(self) -> int:
        """The most elements of 16 bits between the products."""
        return self.second.steps * _WARP * 8


class _Products:
    """Sums of products of a vector and rows of matrices, in the threads of a warp that has the row."""

    def __init__(self, cfg: Dots, matrices: int, vector: int) -> None:
        self.cfg, self.by = cfg, cfg.layout(vector)
        self.width = cfg.steps * self.by.tile[1]
        self.sums = [registers(f32, self.by) for _ in range(matrices)]

    def clear(self) -> None:
        for acc in self.sums:
            acc[:] = 0.0

    def add(self, row: Tensor, matrices: Sequence[Tensor], n: Int, part: IntLike = 0) -> None:
        """Add the products of a part of a row and of the block's n-th rows of each matrix."""
        held = self._held(row, part)
        self._multiply(held, [self.rows(b, n, part) for b in matrices])

    def add_loaded(self, row: Tensor, own: Sequence[Fragment]) -> None:
        """Add the products of a row and of rows of one matrix, which are in registers."""
        self._multiply(self._held(row, 0), [own])

    def rows(self, matrix: Tensor, n: Int, part: IntLike = 0) -> list[Fragment]:
        """A part of the block's n-th rows of a matrix."""
        return [load(matrix.tile(self.by.tile, (n, i)), self.by, edge=0) for i in self._at(part)]

    def _held(self, row: Tensor, part: IntLike) -> list[Fragment]:
        return [load(row.tile(self.by.tile[1:], (i,)), self.by.axis(1), edge=0) for i in self._at(part)]

    def _at(self, part: IntLike) -> list[IntLike]:
        return [part * self.cfg.steps + step for step in range(self.cfg.steps)]

    def _multiply(self, held: Sequence[Fragment], own: Sequence[Sequence[Fragment]]) -> None:
        for acc, parts in zip(self.sums, own, strict=True):
            acc[:] = reduce(_added, zip(parts, held, strict=True), acc)

    def results(self) -> list[Fragment]:
        """The sums, in all threads of each warp."""
        return [acc.sum(1, within=thread).sum(1, within=warp) for acc in self.sums]


def _added(acc: Fragment, factors: tuple[Fragment, Fragment]) -> Fragment:
    a, b = factors
    return fma(a.to(f32), b.to(f32), acc)


def _aligned(matrices: Tensor, ids: Tensor, rows: int) -> None:
    """Rows of 16 bytes, and numbers of blocks of 32 bits."""
    (experts, columns, depth), (tokens, choices) = matrices.shape, ids.shape
    assume(depth >= 1, depth % (128 // matrices.dtype.bits) == 0, experts * columns * depth < 1 << 40)
    assume(tokens * choices * ceil_div(columns, rows) < 1 << 30, columns < _MOST, experts < _MOST)
    assume(tokens < _MOST_ACROSS, choices < _MOST_ACROSS)
    promise(ids, lambda e: (e >= 0) & (e < experts))


def first_of_choices(
    X: Tensor, gate: Tensor, up: Tensor, ids: Tensor, H: Tensor, activation: Activation, cfg: Dots
) -> None:
    """H[t, j] = activation(gate[e] X[t]) * (up[e] X[t]), with e = ids[t, j]. H: (tokens, choices, N)."""
    (tokens, choices), columns = ids.shape, gate.shape[1]
    _aligned(gate, ids, cfg.rows)
    blocks = ceil_div(columns, cfg.rows)
    n, j, t = block_id((blocks, choices, tokens))
    if cfg.checks:
        own_checks()
    e, products = scalar(ids[t, j]), _Products(cfg, 2, 128 // X.dtype.bits)
    products.clear()
    for part in loop(ceil_div(X.shape[1], products.width), unroll=cfg.unroll):
        products.add(X[t], (gate[e], up[e]), n, part)
    of_gate, of_up = products.results()
    copy((ACTIVATIONS[activation](of_gate) * of_up).to(H.dtype), H[t, j].tile((cfg.rows,), (n,)), edge=0)
    assert_equals(H, lambda t, j, n: gated_element(X, gate, up, activation, (scalar(ids[t, j]), t, n)))


def second_of_choices(H: Tensor, V: Tensor, ids: Tensor, weights: Tensor, Y: Tensor, cfg: Dots) -> None:
    """Y[t] = sum over j of weights[t, j] * V[e] H[t, j], with e = ids[t, j]."""
    (tokens, choices), (_, columns, depth) = ids.shape, V.shape
    _aligned(V, ids, cfg.rows)
    blocks = ceil_div(columns, cfg.rows)
    n, t = block_id((blocks, tokens))
    products = _Products(cfg, 1, 128 // H.dtype.bits)
    assume(depth <= products.width, choices >= cfg.ahead)
    if cfg.ahead:
        early_reads()
    of_factor = products.by.axis(0).axis()
    loaded = [(load(weights[t, j], of_factor), products.rows(V[scalar(ids[t, j])], n)) for j in range(cfg.ahead)]
    total_of = registers(f32, products.by.axis(0))
    total_of[:] = 0.0

    def add_weighted(factor: Fragment) -> None:
        total_of[:] = total_of + products.results()[0] * factor

    for j, (factor, own) in enumerate(loaded):
        products.clear()
        products.add_loaded(H[t, j], own)
        add_weighted(factor)
    for j in loop(cfg.ahead, choices, unroll=cfg.unroll):
        factor = load(weights[t, j], of_factor)
        products.clear()
        products.add(H[t, j], (V[scalar(ids[t, j])],), n)
        add_weighted(factor)
    copy(total_of.to(Y.dtype), Y[t].tile((cfg.rows,), (n,)), edge=0)
    assert_equals(Y, weighted_sum(H, V, ids, weights))


def weighted_sum(H: Tensor, V: Tensor, ids: Tensor, weights: Tensor) -> Callable[[Int, Int], Value]:
    """In a formula, the sum over j of weights[t, j] * V[ids[t, j]] H[t, j] at a token and a column."""
    of_v, of_h, of_weights = elements(V), elements(H), elements(weights)

    def value(t: Int, k: Int) -> Value:
        def chosen(j: Int) -> Value:
            e = scalar(ids[t, j])
            return of_weights(t, j) * total(lambda n: of_h(t, j, n) * of_v(e, k, n), over=V.shape[2])

        return total(chosen, over=ids.shape[1])

    return value


def add_choices(H: Tensor, V: Tensor, ids: Tensor, weights: Tensor, S: Tensor, cfg: Dots) -> None:
    """S[t] += sum over j of weights[t, j] * V[e] H[t, j], with e = ids[t, j]: each choice is added atomically."""
    (tokens, choices), (_, columns, depth) = ids.shape, V.shape
    _aligned(V, ids, cfg.rows)
    n, j, t = block_id((ceil_div(columns, cfg.rows), choices, tokens))
    products = _Products(cfg, 1, 128 // H.dtype.bits)
    assume(depth <= products.width, choices >= 1)
    factor = load(weights[t, j], products.by.axis(0).axis())
    products.clear()
    products.add(H[t, j], (V[scalar(ids[t, j])],), n)
    copy(products.results()[0] * factor, S[t].tile((cfg.rows,), (n,)), by=first_lane, edge=0, combine=add)


@frozen
class WholeRows:
    """A block has `threads` times four columns of a row."""

    threads: int = 128
    target = sm_90a


def _parts(cfg: WholeRows, *of: Tensor) -> tuple[tuple[Tensor, ...], TV]:
    """The block's part of each of several matrices of one shape, and its layout."""
    rows, length = of[0].shape
    by = across(cfg.threads, _FOUR)
    (width,) = by.tile
    assume(length % _FOUR == 0, rows < _MOST_ACROSS, length < _MOST)
    n, r = block_id((ceil_div(length, width), rows))
    return tuple(each[r].tile((width,), (n,)) for each in of), by


def clear(S: Tensor, cfg: WholeRows) -> None:
    """S = 0."""
    (part,), by = _parts(cfg, S)
    copy(zeros(S.dtype, by), part, edge=0)


def convert(S: Tensor, Y: Tensor, cfg: WholeRows) -> None:
    """Y = S, rounded to its type."""
    (part, to), by = _parts(cfg, S, Y)
    copy(load(part, by, edge=0).to(Y.dtype), to, edge=0)
