"""Generated expressions, right transformations of them, and one-edit changes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st

from argus.core.algebra import add, le, lt, minimum, mul, sub, sym
from argus.core.index import Index, Symbol
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Reduce,
    choose,
    compare,
    element,
    expr,
    fn,
    infinity,
    reduce_,
    unique,
)
from argus.core.walk import substitute

N, K, B = (sym(Symbol(name, "size", low)) for name, low in (("N", 1), ("k", 0), ("B", 1)))
VARIABLES = [Symbol(name, "fresh") for name in ("i", "j")]
SIZES = [Symbol("N", "size", 1), Symbol("k", "size", 0), Symbol("B", "size", 1)]
_RANGES: tuple[tuple[Index | int, Index | int], ...] = ((0, N), (0, mul(K, B)), (0, add(N, 1)), (K, add(K, B)))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3, bound: tuple[Symbol, ...] = ()) -> Expr:
    """An expression over a few tensors, finite or -inf under masks."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(_leaves(bound))
    inner = expressions(depth - 1, bound)
    kind = draw(st.sampled_from(("two", "two", "one", "where", "mask", "sum", "sum", "max", "compare", "product")))
    match kind:
        case "two":
            return fn(draw(st.sampled_from(("add", "sub", "mul", "div", "max", "min"))), draw(inner), draw(inner))
        case "one":
            return fn(
                draw(st.sampled_from(("exp", "neg", "abs", "relu", "tanh", "mystery", "sqrt", "log"))), draw(inner)
            )
        case "compare":
            test = compare(draw(st.sampled_from(("<", "<=", "=="))), draw(inner), draw(inner))
            return choose(test, draw(inner), draw(inner))
        case "where" | "mask":
            left = sym(draw(st.sampled_from(bound))) if bound else K
            other = draw(st.sampled_from((N, K, add(K, 1), mul(K, B))))
            test = le(left, other) if draw(st.booleans()) else lt(other, left)
            return choose(test, draw(inner), draw(inner) if kind == "where" else infinity(-1))
        case _:
            if len(bound) == len(VARIABLES):
                return draw(inner)
            variable = VARIABLES[len(bound)]
            low, high = draw(st.sampled_from(_RANGES))
            body = draw(expressions(depth - 1, (*bound, variable)))
            return reduce_(kind, variable, low, high, body)


def _leaves(bound: tuple[Symbol, ...]) -> st.SearchStrategy[Expr]:
    places = [sym(each) for each in bound] or [K]
    leaves: list[Expr] = [expr(1), expr(Fraction(1, 2)), expr(-2), expr(N), element("Y", K)]
    leaves += [element("X", place) for place in places] * 3 + [element("X", add(places[-1], 1))]
    leaves += [element("Z", places[0], places[-1]), expr(places[-1])]
    return st.sampled_from(leaves)


def rebuilt(of: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with the outermost parts for which `change` has an answer replaced."""
    found = change(of)
    if found is not None:
        return found
    match of:
        case Fn(name=name, args=args):
            return fn(name, *(rebuilt(each, change) for each in args))
        case Choose(test=test, then=then, other=other):
            new = test
            if isinstance(test, Compare):
                new = compare(test.op, rebuilt(test.left, change), rebuilt(test.right, change))
            return choose(new, rebuilt(then, change), rebuilt(other, change))
        case Reduce(op=op, variable=variable, low=low, high=high, where=where, body=body):
            return unique(Reduce, op, variable, low, high, where, rebuilt(body, change))
        case _:
            return of


def replaced(of: Expr, variable: Symbol, by: Index) -> Expr:
    """The expression with a free variable replaced in its indices."""

    def change(each: Expr) -> Expr | None:
        match each:
            case Element(tensor=tensor, at=at):
                return element(tensor, *(substitute(x, {variable: by}) for x in at))
            case Reduce(op=op, variable=own, low=low, high=high, where=where, body=body):
                ends = substitute(low, {variable: by}), substitute(high, {variable: by})
                return reduce_(op, own, *ends, replaced(body, variable, by), substitute(where, {variable: by}))
            case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
                parts = (replaced(part, variable, by) for part in (then, other))
                return choose(substitute(test, {variable: by}), *parts)
            case _:
                index = getattr(each, "index", None)
                return None if index is None else expr(substitute(index, {variable: by}))

    return rebuilt(of, change)


_COMBINE = {"sum": "add", "max": "max", "min": "min", "product": "mul"}


def _over(of: Reduce, low: Index | int, high: Index | int) -> Expr:
    return reduce_(of.op, of.variable, low, high, of.body, of.where)


def _split(of: Expr) -> Expr | None:
    if not isinstance(of, Reduce):
        return None
    middle = add(of.low, minimum(2, sub(of.high, of.low)))
    return fn(_COMBINE[of.op], _over(of, of.low, middle), _over(of, middle, of.high))


def _reversed(of: Expr) -> Expr | None:
    if not isinstance(of, Reduce):
        return None
    back = sub(sub(add(of.low, of.high), 1), sym(of.variable))
    return reduce_(
        of.op,
        of.variable,
        of.low,
        of.high,
        replaced(of.body, of.variable, back),
        substitute(of.where, {of.variable: back}),
    )


def _shifted(of: Expr) -> Expr | None:
    if not isinstance(of, Reduce):
        return None
    here = sub(sym(of.variable), K)
    ends = add(of.low, K), add(of.high, K)
    return reduce_(
        of.op, of.variable, *ends, replaced(of.body, of.variable, here), substitute(of.where, {of.variable: here})
    )


def _exp(of: Expr) -> Expr | None:
    if not (isinstance(of, Fn) and of.name == "exp"):
        return None
    by = element("M")
    return fn("exp", of.args[0] - by) * fn("exp", by)


def _quotient(of: Expr) -> Expr | None:
    return of.args[0] * fn("reciprocal", of.args[1]) if isinstance(of, Fn) and of.name == "div" else None


def _turned(of: Expr) -> Expr | None:
    return fn(of.name, *of.args[::-1]) if isinstance(of, Fn) and of.name in ("add", "mul", "max", "min") else None


def _spelled_out(of: Expr) -> Expr | None:
    if isinstance(of, Fn) and of.name == "relu":
        return choose(compare("<", 0, of.args[0]), of.args[0], 0)
    if isinstance(of, Fn) and of.name == "abs":
        return choose(compare("<=", of.args[0], 0), -of.args[0], of.args[0])
    return None


def _doubled(of: Expr) -> Expr | None:
    return of * 2 - of if isinstance(of, Element) else None


TRANSFORMATIONS: dict[str, Callable[[Expr], Expr | None]] = {
    "loop split": _split,
    "backwards": _reversed,
    "loop shifted": _shifted,
    "exp rescaled": _exp,
    "quotient": _quotient,
    "operands turned": _turned,
    "where for relu and abs": _spelled_out,
    "twice minus once": _doubled,
}


def _edited(of: Expr) -> Expr | None:
    match of:
        case Reduce():
            return _over(of, of.low, sub(of.high, 1))
        case Fn(name="exp", args=(a,)):
            return fn("exp", -a)
        case Fn(name="add", args=(a, b)):
            return a - b
        case Fn(name="mul" | "div", args=(a, b)):
            return a * b + 1
        case Fn(name="max", args=(a, _)):
            return a
        case Choose(then=then, other=other, test=test):
            return choose(test, other, then)
        case Element(tensor=tensor, at=at) if at:
            return element(tensor, *at[:-1], add(at[-1], 1))
        case _:
            return None


def _unguarded(of: Expr) -> Expr | None:
    """A choice as a sum of products: both branches are computed, whatever they are."""
    match of:
        case Choose(test=test, then=then, other=other):
            return choose(test, 1, 0) * then + choose(test, 0, 1) * other
        case _:
            return None


EDITS: dict[str, Callable[[Expr], Expr | None]] = {"edited": _edited, "unguarded": _unguarded}
