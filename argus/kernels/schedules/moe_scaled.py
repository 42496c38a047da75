"""Rows of 8 bits between the products of experts: their scales in the experts' order, and gated rows scaled anew."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from argus.kernels.schedules.epilogues import gelu, silu
from argus.kernels.schedules.grouped import BLOCK
from argus.kernels.schedules.grouped_gated import Activation, activated
from argus.kernels.schedules.moe_rows import arrived
from argus.language import (
    TV,
    Fragment,
    Int,
    Layout,
    Tensor,
    Value,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    elements,
    eq,
    f32,
    first_lane,
    gfx942,
    greatest,
    load,
    maximum,
    minimum,
    promise,
    reciprocal,
    scalar,
    sm_90a,
)

LEAST = 2.0**-100
"""The least magnitude that a block is scaled by, so that none is divided by 0."""
_LANES, _ROWS = 32, 4


@frozen
class ScaledRows:
    """A warp has 128 columns of a row; a block 4 rows."""

    threads: int = _LANES * _ROWS
    target = sm_90a

    @property
    def layout(self) -> TV:
        return TV(Layout((_LANES, _ROWS), (_ROWS * _ROWS, 1)), Layout(4, _ROWS), (_ROWS, BLOCK))


@frozen
class ScaledRowsCdna3(ScaledRows):
    """The same on MI300X, where a wave has 128 columns of two rows."""

    target = gfx942


def gather_scales(scales: Tensor, tokens: Tensor, sorted_scales: Tensor, cfg: ScaledRows) -> None:
    """sorted_scales[b, r] = scales[tokens[r], b]."""
    (count, blocks), rows = scales.shape, tokens.shape[0]
    promise(tokens, lambda t: (t >= 0) & (t < count))
    assume(count < 1 << 28, rows < 1 << 28, blocks < 1 << 16)
    m, b = block_id((ceil_div(rows, cfg.threads), blocks))
    by = TV(Layout(cfg.threads, 1), Layout(1, 0), (cfg.threads,))
    first = m * cfg.threads

    def place(i: Int) -> tuple[Int, Int]:
        return scalar(tokens[minimum(first + i, rows - 1)]), b + 0 * i

    held = arrived(load(scales.gather((cfg.threads,), place), by, edge=0), cfg.target)
    copy(held, sorted_scales[b].tile((cfg.threads,), (m,)), edge=0)
    assert_equals(sorted_scales, lambda b, r: elements(scales)(scalar(tokens[r]), b))


def quantise_gated(both: Tensor, made: Tensor, scales: Tensor, activation: Activation, cfg: ScaledRows) -> None:
    """made * scales = activation(gate) * up, rounded: of blocks of 128 columns, whose largest magnitude becomes
    the largest number of the type of `made`.

    both: (rows, 2 N), the gate's columns first. made: (rows, N). scales: (N / 128, rows).
    """
    rows, blocks = both.shape[0], scales.shape[0]
    assume(eq(both.shape[1], 2 * BLOCK * blocks), eq(made.shape[1], BLOCK * blocks), rows < 1 << 28, blocks < 1 << 16)
    by = cfg.layout
    m, b = block_id((ceil_div(rows, _ROWS), blocks))
    held = [load(both.tile(by.tile, (m, b + half)), by, edge=0) for half in (0, blocks)]
    gate, up = (arrived(each, cfg.target).to(f32) for each in held)
    h = (silu(gate) if activation == "silu" else gelu(gate * 0.5)) * up
    most = _magnitude(h)
    limit, of_rows = made.dtype.greatest, scales[b].tile((_ROWS,), (m,))
    copy((h * (limit * reciprocal(most))).to(made.dtype, saturate=True), made.tile(by.tile, (m, b)), edge=0)
    if cfg.target == gfx942:
        copy(most / limit, of_rows, edge=0)
    else:
        copy(most / limit, of_rows, by=first_lane, edge=0)
    of_both = elements(both)

    def hidden(r: Int, n: Int) -> Value:
        return activated(activation, of_both(r, n)) * of_both(r, n + BLOCK * blocks)

    assert_equals(scales, lambda b, r: largest(lambda n: hidden(r, n), b) / limit)
    assert_equals(made, lambda r, n: scaled(lambda n: hidden(r, n), n, limit))


def largest(hidden: Callable[[Int], Value], b: Int) -> Value:
    """In a formula, the largest magnitude of a block of a row."""
    return maximum(greatest(lambda n: abs(hidden(BLOCK * b + n)), over=BLOCK), LEAST)


def scaled(hidden: Callable[[Int], Value], n: Int, limit: float) -> Value:
    """In a formula, an element of a row as a multiple of its block's scale, before it is rounded."""
    return minimum(maximum(hidden(n) * (limit / largest(hidden, n // BLOCK)), -limit), limit)


def _magnitude(h: Fragment) -> Fragment:
    """The largest magnitude of each row."""
    return maximum(maximum(h, h * -1.0).max(1), LEAST)
