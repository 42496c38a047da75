"""The formulas that row kernels claim of their outputs, as functions of a row r and a column n."""

from __future__ import annotations

from collections.abc import Callable

from argus.language import Int, Tensor, Value, elements, exp2, log2, rsqrt, total

Element = Callable[[Int, Int], Value]
OfRow = Callable[[Int], Value]
LOG2_E = 1.4426950408889634
"""The nearest number to log2(e): exp(x) is exp2(x log2(e)), and the hardware has powers of 2."""


def added(x: Element, z: Element) -> Element:
    return lambda r, n: x(r, n) + z(r, n)


def summed(x: Element, length: Int) -> OfRow:
    """The sum of each row."""
    return lambda r: _over(lambda j: x(r, j), length)


def mean(x: Element, length: Int) -> OfRow:
    return lambda r: summed(x, length)(r) / length


def cumulative_sum(x: Element) -> Element:
    """The sum of a row's elements up to each, itself included."""
    return lambda r, n: _over(lambda j: x(r, j), n + 1)


def softmax(x: Element, length: Int) -> Element:
    """exp(x[r, n]) / sum over j of exp(x[r, j]), of the base 2^LOG2_E, which is e to within 1e-16."""
    return lambda r, n: exp2(x(r, n) * LOG2_E) / _over(lambda j: exp2(x(r, j) * LOG2_E), length)


def log_sum_exp(x: Element, length: Int) -> OfRow:
    """log(sum over j of exp(x[r, j])), of the base 2^LOG2_E."""
    return lambda r: log2(_over(lambda j: exp2(x(r, j) * LOG2_E), length)) / LOG2_E


def log_softmax(x: Element, length: Int) -> Element:
    return lambda r, n: x(r, n) - log_sum_exp(x, length)(r)


def rms_norm(x: Element, weight: Tensor, eps: Tensor, length: Int) -> Element:
    """x / sqrt(mean of x^2 + eps), times the weight of its column."""
    w = elements(weight)
    return lambda r, n: x(r, n) * w(n) * _inverse_root(lambda j: x(r, j) ** 2, eps, length)


def layer_norm(x: Element, weight: Tensor, bias: Tensor, eps: Tensor, length: Int) -> Element:
    """(x - mean) / sqrt(variance + eps), times the weight of its column, plus its bias."""
    w, b = elements(weight), elements(bias)
    norm = _norm(x, eps, length)
    return lambda r, n: norm(r, n) * w(n) + b(n)


def group_norm(
    x: Element, weight: Tensor, bias: Tensor, eps: Tensor, length: Int, vector: int, vectors: Int
) -> Element:
    """(x - mean) / sqrt(variance + eps), times the weight of its channel, plus its bias.

    A row is of a group of channels, of so many vectors each; weight and bias have one row for each group.
    """
    w, b = elements(weight), elements(bias)
    norm = _norm(x, eps, length)

    def of_channel(numbers: Callable[..., Value], r: Int, n: Int) -> Value:
        return numbers(r % weight.shape[0], n // vector // vectors)

    return lambda r, n: norm(r, n) * of_channel(w, r, n) + of_channel(b, r, n)


def _norm(x: Element, eps: Tensor, length: Int) -> Element:
    """(x - mean) / sqrt(variance + eps)."""

    def centred(r: Int, n: Int) -> Value:
        return x(r, n) - mean(x, length)(r)

    return lambda r, n: centred(r, n) * _inverse_root(lambda j: centred(r, j) ** 2, eps, length)


def cross_entropy(x: Element, column: Callable[[Int], Int], length: Int) -> OfRow:
    """log of the sum of exp(x[r]), less the score of the row's column."""
    return lambda r: log_sum_exp(x, length)(r) - x(r, column(r))


def _inverse_root(squares: Callable[[Int], Value], eps: Tensor, length: Int) -> Value:
    return rsqrt(_over(squares, length) / length + elements(eps)(0))


def _over(term: Callable[[Int], Value], length: Int) -> Value:
    """The sum over the first columns of a row."""
    return total(term, over=length)
