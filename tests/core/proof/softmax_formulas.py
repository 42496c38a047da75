"""The textbook formulas of the softmax and attention kernels of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from attrs import frozen

from argus.core import algebra
from argus.core.algebra import IndexLike
from argus.core.index import Index
from argus.core.values.expr import Element, Expr, element, expr, fn
from tests.core.proof.held_formulas import Expected, Formula, Size
from tests.core.values.formulas import greatest, total


def softmax(size: Size, at: Sequence[Index]) -> Expr:
    """With the greatest element of the row as its reference."""
    r, n = at
    top = greatest(0, size("N"), lambda j: element("X", r, j))

    def weight(j: Index) -> Expr:
        return fn("exp", element("X", r, j) - top)

    return weight(n) / total(0, size("N"), weight)


@frozen
class Heads:
    """Where the operands of attention are: Q[*at, s, d], K[*at, t, d] and what V holds for key t and column e."""

    queries: tuple[Index, ...]
    keys: tuple[Index, ...]
    depth: int
    value: Callable[[Index, Index], Element]


def _weight(of: Heads, s: Index, t: Index, scale: Expr) -> Expr:
    """exp of a score: without a reference, which no softmax depends on."""
    score = total(0, of.depth, lambda d: element("Q", *of.queries, s, d) * element("K", *of.keys, t, d))
    return fn("exp", score * scale)


def _attended(of: Heads, s: Index, e: Index, keys: IndexLike, scale: Expr) -> Expr:
    """Softmax of the scores with the first keys, times their values."""
    summed = total(0, keys, lambda t: _weight(of, s, t, scale) * of.value(t, e))
    return summed / total(0, keys, lambda t: _weight(of, s, t, scale))


def _of_one_head(turned: bool) -> Heads:
    return Heads((), (), 16, lambda t, e: element("V", e, t) if turned else element("V", t, e))


IN_BASE_2 = fn("log", 2) * Fraction(1, 4)
"""What scores are multiplied by in exp, of kernels that write exp2(score / 4)."""


def whole(*, turned: bool = True) -> Formula:
    """Attention to all T keys."""

    def of(size: Size, at: Sequence[Index]) -> Expr:
        s, e = at
        return _attended(_of_one_head(turned), s, e, size("T"), IN_BASE_2)

    return of


def _seen(size: Size, s: Index) -> Index:
    """The number of keys that query s sees: the last query sees all of them."""
    return algebra.add(s, algebra.sub(size("T"), size("S")), 1)


def causal(*, turned: bool = True) -> Formula:
    def of(size: Size, at: Sequence[Index]) -> Expr:
        s, e = at
        return _attended(_of_one_head(turned), s, e, _seen(size, s), IN_BASE_2)

    return of


def grouped(size: Size, at: Sequence[Index]) -> Expr:
    """Heads h of queries share the keys of group h // (H // G)."""
    h, s, e = at
    g = algebra.floordiv(h, algebra.floordiv(size("H"), size("G")))
    return _attended(Heads((h,), (g,), 16, lambda t, e: element("V", g, e, t)), s, e, size("T"), IN_BASE_2)


def log_sum(size: Size, at: Sequence[Index]) -> Expr:
    """The logarithm of the sum of the weights of causal attention."""
    (s,) = at
    of = _of_one_head(turned=False)
    return fn("log", total(0, _seen(size, s), lambda t: _weight(of, s, t, IN_BASE_2)))


def _of_hopper(size: Size, at: Sequence[Index]) -> Heads:
    b, h, *_ = at
    g = algebra.floordiv(h, algebra.floordiv(size("H"), size("G")))
    return Heads((b, h), (b, g), 128, lambda t, e: element("V", b, g, t, e))


HOPPER_SCALE = fn("rsqrt", expr(128))


def hopper(size: Size, at: Sequence[Index]) -> Expr:
    s, e = at[2:]
    return _attended(_of_hopper(size, at), s, e, _seen(size, s), HOPPER_SCALE)


def hopper_log_sum(size: Size, at: Sequence[Index]) -> Expr:
    s = at[2]
    of = _of_hopper(size, at)
    return fn("log", total(0, _seen(size, s), lambda t: _weight(of, s, t, HOPPER_SCALE)))


FORMULAS = (
    Expected("row_softmax", "Y", softmax),
    Expected("row_softmax_from_the_end", "Y", softmax),
    Expected("attention_of_one_wave", "O", whole()),
    Expected("attention_of_ragged_keys", "O", whole()),
    Expected("attention_a_block_behind", "O", whole()),
    Expected("attention_product_guarded", "O", whole()),
    Expected("attention_from_two_rings", "O", whole(turned=False)),
    Expected("attention_of_grouped_heads", "O", grouped),
    Expected("attention_causal", "O", causal()),
    Expected("attention_causal_of_any_size", "O", causal()),
    Expected("attention_causal_turned_in_memory", "O", causal()),
)
