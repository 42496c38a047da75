"""Random formulas: activations, norms, losses, attention, products, scans, pooling, and reductions of any shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from attrs import frozen

from argus.core import algebra
from argus.core.algebra import IndexLike, add, eq, le, lt, minimum, mul, sub, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.values.expr import Expr, ExprLike, ReduceOp, choose, compare, element, expr, fn, infinity, reduce_
from property_tests.small.choosing import Choose

Along = Callable[[Index], Expr]
Pointwise = Callable[[Expr], Expr]
Plane = Callable[[Index, Index], Expr]


def _size(name: str, low: int = 1) -> Index:
    return sym(Symbol(name, "size", low))


N, K, B, T = map(_size, ("N", "k", "B", "T"))
R, C, Q = (_size(name, 0) for name in ("r", "c", "q"))
NOTHING = infinity(-1)


@frozen
class Formula:
    """A formula, and what is known of its sizes."""

    family: str
    value: Expr
    facts: tuple[Cond, ...] = ()


def fold(op: ReduceOp, ends: tuple[IndexLike, IndexLike], body: Along, name: str = "j") -> Expr:
    """The reduction over [low, high); nested ones need other names."""
    here = Symbol(name, "fresh")
    return reduce_(op, here, *ends, body(sym(here)))


def total(ends: tuple[IndexLike, IndexLike], body: Along, name: str = "j") -> Expr:
    return fold("sum", ends, body, name)


def greatest(ends: tuple[IndexLike, IndexLike], body: Along, name: str = "j") -> Expr:
    return fold("max", ends, body, name)


def exp(x: ExprLike) -> Expr:
    return fn("exp", x)


def _x(j: IndexLike) -> Expr:
    return element("X", R, j)


def _y(j: IndexLike) -> Expr:
    return element("Y", j)


_RANGES: tuple[tuple[IndexLike, IndexLike], ...] = ((0, N), (0, mul(K, B)), (0, add(N, 1)), (C, add(C, T)))
_NUMBERS = (Fraction(1, 2), Fraction(2), Fraction(3, 4), Fraction(-1), Fraction(10))


def _element(choose_: Choose) -> Along:
    """A row's element, or a simple function of it."""
    number = choose_(_NUMBERS)
    ways: tuple[Along, ...] = (
        _x,
        _x,
        lambda j: _x(j) * number,
        lambda j: _x(j) + _y(j),
        lambda j: _x(j) * _y(j),
        lambda j: _x(j) - element("M", R),
        lambda j: (_x(j) + number) * element("s"),
    )
    return choose_(ways)


def activation(choose_: Choose) -> Pointwise:
    """A function of one element."""
    number = choose_(_NUMBERS)
    ways: tuple[Pointwise, ...] = (
        lambda a: a,
        lambda a: fn("relu", a),
        lambda a: a * fn("sigmoid", a),
        lambda a: fn("tanh", a) * number,
        lambda a: a / 2 * (1 + fn("tanh", a * Fraction(4, 5) * (1 + a * a / 20))),
        lambda a: choose(compare("<", 0, a), a, a / 10),
        lambda a: fn("log", 1 + exp(a)),
        lambda a: fn("abs", a) + a,
        lambda a: fn("min", fn("max", a, -1), 1),
        lambda a: fn("mystery", a) - number,
        lambda a: fn("round", a / element("s")) * element("s"),
        lambda a: a / (1 + fn("abs", a)),
        lambda a: a * a + number,
    )
    return choose_(ways)


def _score(choose_: Choose) -> Along:
    """What a softmax is taken of."""
    base, shape = _element(choose_), activation(choose_)
    return lambda j: shape(base(j))


def _elements(choose_: Choose) -> Formula:
    inner, outer = activation(choose_), activation(choose_)
    at = choose_((C, add(C, 1), mul(C, 2)))
    return Formula("elements", outer(inner(_element(choose_)(at))))


def _row(choose_: Choose) -> Formula:
    """A reduction of a row, and an element after it."""
    body, ends = _score(choose_), choose_(_RANGES)
    found = fold(choose_(("sum", "sum", "max", "min")), ends, body)
    ways: tuple[Pointwise, ...] = (
        lambda a: a,
        lambda a: a * Fraction(1, 2) + 1,
        lambda a: _x(C) - a,
        lambda a: _x(C) * a,
        lambda a: a / ends_size(ends),
        activation(choose_),
    )
    after = choose_(ways)
    return Formula("rows", after(found))


def ends_size(ends: tuple[IndexLike, IndexLike]) -> Expr:
    return expr(sub(algebra.index(ends[1]), algebra.index(ends[0])))


def _softmax(choose_: Choose) -> Formula:
    f, ends = _score(choose_), choose_(_RANGES)
    whole = total(ends, lambda j: exp(f(j)))
    weighted = total(ends, lambda j: exp(f(j)) * element("V", j, Q))
    value = choose_(
        (
            exp(f(C)) / whole,
            f(C) - fn("log", whole),
            fn("log", whole),
            weighted / whole,
            weighted / (whole + 1),
            exp(f(C)) / whole * Fraction(5, 4),
        )
    )
    return Formula("softmax", value)


def _masked(choose_: Choose) -> Formula:
    f = _score(choose_)
    value = choose_((NOTHING, expr(0)))
    ways: tuple[Along, ...] = (
        lambda j: choose(le(j, Q), f(j), NOTHING),
        lambda j: f(j) + choose(lt(Q, j), NOTHING, 0),
    )
    masked = choose_(ways)
    if value is NOTHING:
        whole = total((0, N), lambda j: exp(masked(j)))
        return Formula("masked", total((0, N), lambda j: exp(masked(j)) * element("V", j, C)) / whole)
    kept = total((0, N), lambda j: choose(le(j, Q), f(j), 0))
    return Formula("masked", choose_((kept, greatest((0, N), masked), kept / (expr(Q) + 1))))


def _norm(choose_: Choose) -> Formula:
    f, ends = _element(choose_), choose_((*_RANGES, _RANGES[2]))
    n = ends_size(ends)
    mean = total(ends, f, "m") / n
    squares = total(ends, lambda j: f(j) * f(j)) / n
    variance = total(ends, lambda j: (f(j) - mean) * (f(j) - mean)) / n
    eps = Fraction(1, 100)
    value = choose_(
        (
            mean,
            variance,
            f(C) * fn("rsqrt", squares + eps),
            (f(C) - mean) / fn("sqrt", variance + eps) * _y(C) + element("Bias", C),
            fn("sqrt", squares),
            f(C) / (fn("sqrt", squares * n) + eps),
        )
    )
    return Formula("norms", value)


def _loss(choose_: Choose) -> Formula:
    f = _score(choose_)
    label = _size("label", 0)
    lse = fn("log", total((0, N), lambda j: exp(f(j))))
    picked = total((0, N), lambda j: choose(eq(j, label), f(j), 0))

    def e(j: Index) -> Expr:
        return f(j) - _y(j)

    value = choose_(
        (
            lse - picked,
            (lse - picked) * Fraction(9, 10) + Fraction(1, 10) * (lse - total((0, N), f) / N),
            total((0, N), lambda j: e(j) * e(j)) / N,
            total((0, N), lambda j: fn("abs", e(j))),
            total((0, N), lambda j: choose(compare("<", fn("abs", e(j)), 1), e(j) * e(j) / 2, fn("abs", e(j)) - 1)),
            -total((0, N), lambda j: exp(f(j)) * f(j)) / total((0, N), lambda j: exp(f(j))) + lse,
        )
    )
    return Formula("losses", value, (lt(label, N),))


def _product(choose_: Choose) -> Formula:
    """A matrix product and what follows it."""
    ends = choose_(((0, N), (0, mul(K, B))))
    ways: tuple[Pointwise, ...] = (lambda a: a, lambda a: fn("relu", a), lambda a: a * element("s"))
    after, before = activation(choose_), choose_(ways)
    z = total(ends, lambda j: before(_x(j)) * element("W", j, C))
    value = choose_((after(z), after(z + element("Bias", C)), z * element("s", R) * element("t", C), z + _x(C)))
    return Formula("products", value)


def _scan(choose_: Choose) -> Formula:
    """Sums, maxima and decays up to an element."""
    f, upto = _score(choose_), (0, add(C, 1))
    gate = fn("sigmoid", element("g"))
    value = choose_(
        (
            total(upto, f),
            greatest(upto, f),
            total(upto, lambda j: f(j) * fn("pow", gate, sub(C, j))),
            total(upto, lambda j: total((0, T), lambda i: element("Q", C, i) * element("P", j, i), "i") * f(j)),
            fold("product", upto, lambda j: fn("sigmoid", f(j))),
            total((0, N), lambda j: choose(le(j, C), f(j), 0)),
        )
    )
    return Formula("scans", value)


def _pool(choose_: Choose) -> Formula:
    f = _element(choose_)
    window = choose_(((C, add(C, T)), (C, minimum(add(C, T), N)), (mul(C, 2), add(mul(C, 2), 2)), (0, mul(K, B))))
    op: ReduceOp = choose_(("max", "sum", "min"))
    value = fold(op, window, f)
    return Formula("pooling", value / T if op == "sum" else value, (lt(C, N),))


def _plane(choose_: Choose) -> Formula:
    """Reductions over two axes."""
    ways: tuple[Plane, ...] = (
        lambda i, j: element("Z", i, j),
        lambda i, j: element("Z", i, j) * _y(j),
        lambda i, j: exp(element("Z", i, j)),
        lambda i, j: element("X", R, add(mul(i, T), j)),
        lambda i, j: element("Z", i, j) * element("Z", j, i),
    )
    z = choose_(ways)
    op: ReduceOp = choose_(("sum", "max"))
    high = choose_((T, T, B))
    return Formula("planes", fold(op, (0, N), lambda i: fold(op, (0, high), lambda j: z(i, j)), "i"))


FAMILIES: Mapping[str, Callable[[Choose], Formula]] = {
    "elements": _elements,
    "rows": _row,
    "softmax": _softmax,
    "masked": _masked,
    "norms": _norm,
    "losses": _loss,
    "products": _product,
    "scans": _scan,
    "pooling": _pool,
    "planes": _plane,
}
