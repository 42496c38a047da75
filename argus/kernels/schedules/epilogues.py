"""What a GEMM does with its sums before it stores them, on every target: a scale, a bias, an activation, a residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul

from argus.language import (
    Fragment,
    Int,
    IntLike,
    Tensor,
    buffer_load,
    copy,
    f32,
    fma,
    load,
    maximum,
    registers,
    tanh,
)

TileCoord = tuple[IntLike, Int]
Deferred = Callable[[], Fragment]
Epilogue = Callable[[Fragment, TileCoord], Deferred]
"""An epilogue in two steps: called with a part of the accumulator, it issues the loads of its operands, while products
of that part may still be in flight; the function that it returns is called when sums and operands are there. The
coordinate counts parts of that shape along the rows and columns of C."""

Tail = Callable[[Sequence[Int]], Epilogue]
"""The epilogue of each matrix of results, by its coordinates among them: none of a single one."""

LINEAR, CUBIC = 2 * 0.7978845608, 8 * 0.0356774081
"""2 sqrt(2 / pi) and 8 sqrt(2 / pi) * 0.044715: coefficients of the tanh form in x / 2 [Hendrycks 2016, section 2]."""


Fetched = Callable[[Tensor, Fragment], None]
"""How an epilogue loads a tile of an operand."""


def plainly(tile: Tensor, held: Fragment) -> None:
    copy(tile, held, edge=0)


def bounded(*, single: bool) -> Fetched:
    """On MI300X, by buffer loads, whose bounds cost no branches; they take 4 GiB at most.

    single: of one element each, as rows may begin anywhere.
    """

    def fetch(tile: Tensor, held: Fragment) -> None:
        copy(tile, held, via=buffer_load[: held.dtype.bits // 16] if single else buffer_load, edge=0)

    return fetch


def identity(acc: Fragment, at: TileCoord) -> Deferred:
    del at
    return lambda: acc


def of_each(epilogue: Epilogue) -> Tail:
    """One epilogue for all matrices of results."""
    return lambda _: epilogue


def apply(tail: Tail, part: Fragment, at: TileCoord, around: Sequence[Int] = ()) -> Fragment:
    """What becomes of a part of the sums, whose operands are loaded now."""
    return tail(around)(part, at)()


def relu(x: Fragment) -> Fragment:
    return maximum(x, 0.0)


def silu(x: Fragment) -> Fragment:
    """x * sigmoid(x); with sm_90a's tanh.approx the error is within 2^-12 |x|, plus rounding."""
    half = x * 0.5
    return fma(half, tanh(half), half)


def gelu(half: Fragment) -> Fragment:
    """GELU of 2 * half, in its tanh form; with sm_90a's tanh.approx the error is within 2^-12 |x|, plus rounding.

    Six instructions per element, with the addition that makes `half`; the tanh takes as long as the others together.
    """
    return fma(half, tanh(half * fma(half * half, CUBIC, LINEAR)), half)


def with_bias(bias: Tensor, then: Callable[[Fragment], Fragment], fetch: Fetched = plainly) -> Epilogue:
    """The epilogue then(acc + bias), bias along the columns of C; each thread loads the columns of its accumulators."""
    return _biased(bias, lambda acc, held: then(acc + held), fetch)


def with_bias_gelu(bias: Tensor, fetch: Fetched = plainly) -> Epilogue:
    """The epilogue gelu(acc + bias), whose half is computed at once."""
    return _biased(bias, lambda acc, held: gelu(fma(acc, 0.5, held * 0.5)), fetch)


def _biased(bias: Tensor, then: Callable[[Fragment, Fragment], Fragment], fetch: Fetched) -> Epilogue:
    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        held = registers(f32, acc.layout.axis(1))
        fetch(bias.tile((acc.shape[1],), (at[1],)), held)
        return lambda: then(acc, held)

    return epilogue


def scaled_by(*scales: Tensor) -> Epilogue:
    """The epilogue acc * scales[0] * ..., each a number in memory."""
    loaded: list[Fragment] = []

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        del at
        if not loaded:  # once per tile, for all of its parts
            loaded.extend(load(each[0], acc.layout.axis()) for each in scales)
        return lambda: acc * reduce(mul, loaded)

    return epilogue


def scaled_by_vectors(of_rows: Tensor, of_columns: Tensor, fetch: Fetched = plainly) -> Epilogue:
    """The epilogue acc * of_rows * of_columns in f32; each thread loads those of its accumulators."""

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        rows, columns = (registers(f32, acc.layout.axis(axis)) for axis in range(2))
        for axis, (source, held) in enumerate(((of_rows, rows), (of_columns, columns))):
            fetch(source.tile((acc.shape[axis],), (at[axis],)), held)
        return lambda: acc.to(f32) * rows * columns

    return epilogue


def with_residual(residual: Tensor, fetch: Fetched = plainly) -> Epilogue:
    """The epilogue acc + residual; each thread loads the elements that it holds sums of."""

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        held = registers(residual.dtype, acc.layout)
        fetch(residual.tile(acc.shape, at), held)
        return lambda: acc + held.to(f32)

    return epilogue
