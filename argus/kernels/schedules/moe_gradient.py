"""Gradients of a layer of experts, row by row: of the gate, of the factors of rows, and of tokens."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.epilogues import CUBIC, LINEAR
from argus.kernels.schedules.grouped_gated import Activation, activated
from argus.kernels.schedules.moe_gradient_claims import slope
from argus.kernels.schedules.moe_rows import arrived
from argus.kernels.schedules.rows import Block, Rows, RowsCdna3
from argus.language import (
    TV,
    Fragment,
    Int,
    Layout,
    Tensor,
    Value,
    add,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    elements,
    eq,
    f32,
    fma,
    gfx942,
    load,
    loop,
    minimum,
    promise,
    registers,
    scalar,
    sm_90a,
    tanh,
    thread,
    total,
    where,
)

GATED = Rows(threads=128, steps=1, held=False)
GATED_CDNA3 = RowsCdna3(threads=128, steps=1, held=False)
"""A block has one row, 1024 columns at a time."""


@frozen
class RowFactors:
    """A block has the factors of so many tokens."""

    threads: int = 128
    target = sm_90a


@frozen
class RowFactorsCdna3(RowFactors):
    """The same on MI300X."""

    target = gfx942


def _activation(activation: Activation, x: Fragment) -> tuple[Fragment, Fragment]:
    """activation(x) and its derivative, both from one tanh."""
    half = x * 0.5
    squared = half * half
    inner, slope = half, 0.5
    if activation == "gelu":
        inner, slope = half * fma(squared, CUBIC, LINEAR), fma(squared, 1.5 * CUBIC, 0.5 * LINEAR)
    bent = tanh(inner)
    return fma(half, bent, half), fma(half * slope, 1.0 - bent * bent, fma(bent, 0.5, 0.5))


@frozen
class Gated:
    """Rows that an activation has gated, and their gradients.

    both: (2, rows, N), what is in the activation, and what it is multiplied by. given: (rows, N), the gradient of rows
    before their factors, which are weights[order[r]]; both of (rows,).
    """

    both: Tensor
    given: Tensor
    weights: Tensor
    order: Tensor
    activation: Activation

    def __attrs_post_init__(self) -> None:
        rows, length = self.given.shape
        assume(eq(self.order.shape[0], rows), rows < 1 << 28, length < 1 << 28)
        pairs = self.weights.shape[0]
        promise(self.order, lambda p: (p >= 0) & (p < pairs))

    def differentiate(self, halves: Tensor, beside: Tensor, hidden: Tensor, dots: Tensor, cfg: Rows) -> None:
        """Trace the kernel. halves: the gradient of `both`, with factors; beside: the same as (rows, 2, N), in which a
        row has both halves. hidden: the gated rows, times their factors. dots: in f32, the gradients of the factors.
        """
        rows, length = self.given.shape
        block = Block(cfg, rows, length)
        gate, up, given = (block.rows(each) for each in (self.both[0], self.both[1], self.given))
        factor = block.load(self.weights[scalar(self.order[block.at])], block.layout.axis())
        sums = registers(f32, block.layout.partial(1))
        sums[:] = 0.0
        for chunk in loop(ceil_div(length, cfg.longest)):
            u, s = up(chunk), given(chunk)
            active, bent = _activation(self.activation, gate(chunk))
            weighted = s * factor
            for i, values in enumerate((weighted * u * bent, weighted * active)):
                block.store(values, halves[i], chunk)
                block.store(values, beside[:, i], chunk)
            block.store(active * u * factor, hidden, chunk)
            sums += (active * u * s).sum(1, within=thread)
        block.store_one(block.across(sums, add), dots)
        self._claim(halves, beside, hidden, dots)

    def _claim(self, halves: Tensor, beside: Tensor, hidden: Tensor, dots: Tensor) -> None:
        z, s, w, length = elements(self.both), elements(self.given), elements(self.weights), self.given.shape[1]

        def product(r: Int, n: Int) -> Value:
            return activated(self.activation, z(0, r, n)) * z(1, r, n)

        def gradient(i: Int, r: Int, n: Int) -> Value:
            of_gate = z(1, r, n) * slope(self.activation, z(0, r, n))
            chosen = where(eq(i, 0), of_gate, activated(self.activation, z(0, r, n)))
            return w(scalar(self.order[r])) * s(r, n) * chosen

        assert_equals(halves, gradient)
        assert_equals(beside, lambda r, i, n: gradient(i, r, n))
        assert_equals(hidden, lambda r, n: w(scalar(self.order[r])) * product(r, n))
        assert_equals(dots, lambda r: total(lambda n: product(r, n) * s(r, n), over=length))


def weigh_choices(dots: Tensor, inverse: Tensor, made: Tensor, cfg: RowFactors) -> None:
    """made[t, j] = dots[inverse[t, j]], of the row of each choice."""
    (count, choices), rows = inverse.shape, dots.shape[0]
    assume(count < 1 << 28, rows < 1 << 28, choices < 1 << 28)
    m, j = block_id((ceil_div(count, cfg.threads), choices))
    by, first = TV(Layout(cfg.threads, 1), Layout(1, 0), (cfg.threads,)), m * cfg.threads
    rows_of = dots.gather((cfg.threads,), lambda i: (scalar(inverse[minimum(first + i, count - 1), j]),))
    held = arrived(load(rows_of, by, edge=0), cfg.target)
    copy(held, made[:, j].tile((cfg.threads,), (m,)), edge=0)
    assert_equals(made, lambda t, j: elements(dots)(scalar(inverse[t, j])))
