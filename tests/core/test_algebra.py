"""Normal forms that later analyses rely on, and the errors of the constructors."""

from __future__ import annotations

import gc

import pytest

from argus.core import algebra, interval
from argus.core.algebra import FALSE, TRUE, add, all_of, any_of, const, eq, floordiv, le, lt, mod, mul, negate, sub, sym
from argus.core.index import Bin, Index, Symbol
from argus.core.index_text import show
from argus.core.walk import children, evaluate, mentions, substitute, symbols, topological

M, K = (sym(Symbol(name, "size", 0, 1 << 30)) for name in ("M", "K"))
T = sym(Symbol("thread", "thread", 0, 255))
X = sym(Symbol("x", "fresh"))


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (floordiv(add(mul(M, 32), T), 256), "(32*M + thread) // 256"),
        (floordiv(add(mul(M, 256), T), 256), "M"),
        (mod(add(mul(M, 256), T), 256), "thread"),
        (floordiv(floordiv(X, 4), 8), "x // 32"),
        (mod(mod(X, 64), 8), "x % 8"),
        (floordiv(add(mul(X, 8), 16), 24), "(x + 2) // 3"),
        (mod(add(mul(X, 8), 18), 24), "8*((x + 2) % 3) + 2"),
        (floordiv(X, -3), "(-x) // 3"),
        (mul(add(M, 1), add(K, 2)), "K + 2*M + K*M + 2"),
        (algebra.bit_and(X, 15), "x % 16"),
        (algebra.shift_right(X, 3), "x // 8"),
        (algebra.minimum(T, 256), "thread"),
        (algebra.maximum(T, 7), "max(thread, 7)"),
        (algebra.pick(le(M, K), M, M), "M"),
        (sub(mod(X, 8), X), "(x % 8) - x"),
    ],
)
def test_normal_form(built: Index, text: str) -> None:
    names = {"M": 5, "K": 7, "thread": 3, "x": -13}
    env = {symbol: names[symbol.name] for symbol in symbols(built)}
    assert evaluate(built, env) == eval(text, {"min": min, "max": max}, names)  # noqa: S307 reason: a literal above
    assert show(built) == text


def test_equal_forms_are_one_object() -> None:
    assert add(M, 3, K) is add(K, M, 3)
    assert le(add(M, 1), K) is lt(M, K)
    assert eq(mul(M, 2), mul(K, 2)) is eq(K, M)
    assert negate(negate(all_of([le(M, 3), eq(K, 2)]))) is all_of([eq(K, 2), le(M, 3)])
    assert any_of([le(M, 3), negate(le(M, 3))]) is TRUE
    assert all_of([eq(M, 3), negate(eq(M, 3))]) is FALSE


def test_decided_comparisons() -> None:
    assert le(0, T) is TRUE
    assert lt(T, 0) is FALSE
    assert eq(mul(M, 2), 3) is FALSE
    assert le(sub(M, M), 0) is TRUE
    assert algebra.implies(FALSE, le(M, K)) is TRUE


def test_division_by_zero_is_refused() -> None:
    for operation in (floordiv, mod):
        with pytest.raises(ZeroDivisionError):
            operation(M, 0)
        with pytest.raises(ZeroDivisionError):
            evaluate(operation(X, K), dict.fromkeys(symbols(X, K), 0))


@pytest.mark.share(2)
def test_a_form_lives_as_long_as_its_users() -> None:
    user = mul(add(M, 41, K), X)
    gc.collect()
    assert mul(X, add(K, M, 41)) is user


def test_digests_depend_on_structure_alone() -> None:
    expression = floordiv(add(mul(M, 3), K), 7)
    assert len({node.digest for node in topological([expression])}) == len(topological([expression]))
    assert expression.digest.hex() == "1251c126f9dc9733e4a368ce"


def test_depth_costs_no_recursion() -> None:
    deep: Index = X
    for step in range(2000):
        deep = floordiv(add(mul(deep, sym(Symbol(f"s{step % 7}", "fresh", 1, 9))), 1), K)
    assert len(topological([deep])) > 4000
    assert "..." in show(deep)
    assert symbols(substitute(deep, {})) == symbols(deep)
    env = dict.fromkeys(symbols(deep), 3)
    assert evaluate(deep, env) == 3


def test_sharing_costs_no_text() -> None:
    shared: Index = X
    for step in range(200):
        shared = algebra.pick(negate(eq(shared, step)), floordiv(shared, 3), add(shared, step))
    assert len(show(le(shared, 3))) < 20_000
    assert show(algebra.pick(negate(eq(floordiv(X, 3), 1)), X, 2)) == "(x if x // 3 != 1 else 2)"


def test_walks() -> None:
    expression = algebra.pick(le(M, 3), add(M, K), algebra.coord(1))
    assert mentions(expression, (Bin,)) is False
    assert len(children(expression)) == 3
    assert substitute(expression, {}, [const(0), const(5)]) is algebra.pick(le(M, 3), add(M, K), 5)
    read = algebra.read("table", [M])
    assert show(read) == "table[M]"
    assert show(algebra.held("scores", [M, 3])) == "scores[M, 3]"


def test_intervals() -> None:
    assert interval.add((0, 3), (None, 4)) == (None, 7)
    assert interval.scale((1, 3), -2) == (-6, -2)
    assert interval.scale((None, 3), 0) == (0, 0)
    assert interval.hull((0, 3), (2, None)) == (0, None)
    assert interval.within((0, 3), 0, 3)
    assert not interval.within((None, 3), 0, 3)


def test_symbols_of_deeply_nested_expressions() -> None:
    x, nested = Symbol("x", "size"), algebra.sym(Symbol("x", "size"))
    for level in range(3_000):
        nested = algebra.minimum(
            algebra.add(algebra.mul(nested, 3), algebra.const(level)), algebra.const(10**9 + level)
        )
    assert symbols(nested) == {x}
