"""Softmax and log-softmax of rows."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from math import inf

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import TYPES, row_kernel
from argus.kernels.rows.formulas import LOG2_E
from argus.kernels.schedules.rows import Block, Chunks, Rows
from argus.language import (
    DType,
    Fragment,
    Template,
    Tensor,
    add,
    assert_equals,
    ceil_div,
    elements,
    exp2,
    f32,
    log2,
    loop,
    maximum,
    registers,
    thread,
    where,
)


def maximum_and_sum(block: Block, x: Chunks) -> tuple[Fragment, Fragment]:
    """The maximum m of each row, and the sum of exp(x - m), in one pass: a larger maximum rescales a thread's sum.

    Blocks of a cluster exchange the maxima and sums of their parts at once.
    """
    if block.cfg.blocks > 1 and block.cfg.held:
        own = block.of_own(x, maximum)
        guard = where(own == -inf, 0.0, own)  # for the subtraction alone: a part may have no element, or -inf alone
        tops, parts = block.exchanged(own, block.of_own(lambda chunk: fast_exp(x(chunk) - guard), add))
        top = tops.max(1, within=thread)
        return top, (parts * fast_exp(tops - top)).sum(1, within=thread)
    if block.cfg.held:
        top = block.of_held(x, maximum)
        return top, block.sum(lambda chunk: fast_exp(x(chunk) - top))
    high, sums = registers(f32, block.layout.partial(1)), registers(f32, block.layout.partial(1))
    high[:], sums[:] = -inf, 0.0
    for chunk in loop(ceil_div(block.length, block.cfg.longest)):
        v = x(chunk)
        now = maximum(high, v.max(1, within=thread))
        guard = where(now == -inf, 0.0, now)  # for the subtraction alone: this thread has seen no element yet
        sums[:] = sums * fast_exp(high - guard) + fast_exp(v - guard).sum(1, within=thread)
        high[:] = now
    top = block.across(high, maximum)
    return top, block.across(sums * fast_exp(high - top), add)


def fast_exp(x: Fragment) -> Fragment:
    """exp(x), of the base 2^LOG2_E."""
    return exp2(x * LOG2_E)


def softmax(dtype: DType) -> Template:
    """Y[r, n] = exp(X[r, n]) / sum over j of exp(X[r, j]), of the base 2^LOG2_E."""

    @row_kernel("softmax", dtype, "twice")
    def made(X: Tensor["R N", dtype], Y: Tensor["R N", dtype], *, cfg: Rows) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        scores = block.rows(X, -inf)
        top, sums = maximum_and_sum(block, scores)
        scale = 1.0 / sums
        block.each(lambda chunk: block.store(fast_exp(scores(chunk) - top) * scale, Y, chunk))
        assert_equals(Y, formulas.softmax(elements(X), N))

    return made


def log_softmax(dtype: DType) -> Template:
    """Y[r, n] = X[r, n] - log of the sum over j of exp(X[r, j])."""

    @row_kernel("log_softmax", dtype, "twice")
    def made(X: Tensor["R N", dtype], Y: Tensor["R N", dtype], *, cfg: Rows) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        x = block.rows(X, -inf)
        top, sums = maximum_and_sum(block, x)
        below = log2(sums) / LOG2_E
        block.each(lambda chunk: block.store(x(chunk) - top - below, Y, chunk))
        assert_equals(Y, formulas.log_softmax(elements(X), N))

    return made


softmax_bf16, softmax_f16, softmax_f32 = map(softmax, TYPES)
log_softmax_bf16, log_softmax_f16, log_softmax_f32 = map(log_softmax, TYPES)
