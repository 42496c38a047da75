"""Right transformations of sums of exponentials and of squares: rescaled, online, in one pass, merged from parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from argus.core import algebra
from argus.core.algebra import IndexLike, add, lt, minimum, sub, sym
from argus.core.index import Symbol
from argus.core.values import rewriting
from argus.core.values.expr import Choose as Choice
from argus.core.values.expr import Expr, Fn, Reduce, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.walk import substitute
from property_tests.small.choosing import Choose
from property_tests.values.parts import Change, inner_variable, over


def _factors(of: Expr) -> Iterator[Expr]:
    if isinstance(of, Fn) and of.name == "mul":
        for each in of.args:
            yield from _factors(each)
    else:
        yield of


def _product(parts: list[Expr]) -> Expr:
    result = parts[0]
    for each in parts[1:]:
        result = fn("mul", result, each)
    return result


def _weighted(of: Expr) -> tuple[Reduce, Expr, list[Expr]] | None:
    """(sum, f, rest), of a sum of exp(f) times the rest that has an element."""
    if not isinstance(of, Reduce) or of.op != "sum" or lt(of.low, of.high) is not algebra.TRUE:
        return None
    parts = list(_factors(of.body))
    if of.variable in rewriting.bound_variables(of.body):
        return None
    for i, part in enumerate(parts):
        if isinstance(part, Fn) and part.name == "exp" and of.variable in rewriting.free_symbols(part):
            return of, part.args[0], parts[:i] + parts[i + 1 :]
    return None


def _greatest(of: Reduce, low: IndexLike, high: IndexLike, body: Expr) -> Expr:
    """The maximum of the body over a part of the sum's range, under a name of its own."""
    name = inner_variable(of, Symbol("g", "fresh"))
    conds = substitute(of.where, {of.variable: sym(name)})
    return reduce_("max", name, low, high, rewriting.substitute(body, {of.variable: sym(name)}), conds)


def _infinite(of: Expr) -> bool:
    """Whether the value may be -inf: a mask."""
    return any(isinstance(each, Choice) for each in rewriting.nodes(of))


def rescaled(_: Choose) -> Change:
    """Each exponent less the greatest one; the sum times its exponential."""

    def change(part: Expr) -> Expr | None:
        found = _weighted(part)
        if found is None:
            return None
        of, f, rest = found
        top = _greatest(of, of.low, of.high, f)
        return over(of, of.low, of.high, _product([fn("exp", f - top), *rest])) * fn("exp", top)

    return change


def rescaled_by_a_guarded_maximum(_: Choose) -> Change:
    """The same with 0 in place of a maximum of -inf."""

    def change(part: Expr) -> Expr | None:
        found = _weighted(part)
        if found is None:
            return None
        of, f, rest = found
        top = _greatest(of, of.low, of.high, f)
        safe = choose(compare("==", top, infinity(-1)), 0, top)
        return over(of, of.low, of.high, _product([fn("exp", f - safe), *rest])) * fn("exp", safe)

    return change


def rescaled_by_another_value(_: Choose) -> Change:
    """The same with a value of another tensor in place of the maximum."""

    def change(part: Expr) -> Expr | None:
        found = _weighted(part)
        if found is None:
            return None
        of, f, rest = found
        stale = element("stale")
        return over(of, of.low, of.high, _product([fn("exp", f - stale), *rest])) * fn("exp", stale)

    return change


def online(choose_: Choose) -> Change:
    """Two parts: the first one's sum is rescaled to the greatest of both. The first has an element that counts."""
    by = choose_((1, 2, 4))

    def change(part: Expr) -> Expr | None:
        found = _weighted(part)
        if found is None:
            return None
        of, f, rest = found
        middle = add(of.low, minimum(by, sub(of.high, of.low)))
        old = _greatest(of, of.low, middle, f)
        now = fn("max", old, _greatest(of, middle, of.high, f))
        first = over(of, of.low, middle, _product([fn("exp", f - old), *rest]))
        second = over(of, middle, of.high, _product([fn("exp", f - now), *rest]))
        return (first * fn("exp", old - now) + second) * fn("exp", now)

    return change


def merged(choose_: Choose) -> Change:
    """Two parts, each with its own maximum; both are rescaled to the greater one."""
    by = choose_((1, 3))

    def change(part: Expr) -> Expr | None:
        found = _weighted(part)
        if found is None or _infinite(found[1]):
            return None
        of, f, rest = found
        middle = add(of.low, minimum(by, sub(of.high, of.low)))
        parts: list[tuple[Expr, Expr]] = []
        for low, high in ((of.low, middle), (middle, of.high)):
            own = _greatest(of, low, high, f)
            own = own if low is of.low else choose(lt(low, high), own, 0)  # a set that may be empty
            parts.append((over(of, low, high, _product([fn("exp", f - own), *rest])), own))
        top = fn("max", *(own for _, own in parts))
        return fn("add", *(own_sum * fn("exp", own - top) for own_sum, own in parts)) * fn("exp", top)

    return change


def _squares(part: Expr) -> tuple[Reduce, Expr, Expr] | None:
    """(sum, a, m), of a sum of (a - m)^2 with the same m for all elements."""
    if not isinstance(part, Reduce) or part.op != "sum" or part.where is not algebra.TRUE:
        return None
    match part.body:
        case Fn(name="mul", args=(Fn(name="sub", args=(a, m)) as one, other)) if one is other:
            return None if part.variable in rewriting.free_symbols(m) else (part, a, m)
        case _:
            return None


def one_pass(_: Choose) -> Change:
    """The sum of squares and the sum, in place of the squares of differences."""

    def change(part: Expr) -> Expr | None:
        found = _squares(part)
        if found is None:
            return None
        of, a, m = found
        once, twice = over(of, of.low, of.high, a), over(of, of.low, of.high, a * a)
        return twice - 2 * m * once + m * m * expr(sub(of.high, of.low))

    return change


def merged_moments(_: Choose) -> Change:
    """The squares of differences from the mean, of two parts with their own means."""
    by = 1

    def change(part: Expr) -> Expr | None:
        found = _squares(part)
        if found is None:
            return None
        of, a, m = found
        match m:
            case Fn(name="div", args=(Reduce(op="sum", low=of.low, high=of.high), _)):
                pass
            case _:
                return None
        middle = add(of.low, by)
        if lt(middle, of.high) is not algebra.TRUE:
            return None
        sums: list[Expr] = []
        counts: list[Expr] = []
        means: list[Expr] = []
        for low, high in ((of.low, middle), (middle, of.high)):
            count = expr(sub(high, low))
            name = inner_variable(part, Symbol("m", "fresh"))
            own = reduce_("sum", name, low, high, rewriting.substitute(a, {of.variable: sym(name)}))
            mean = own / count
            counts.append(count)
            means.append(mean)
            sums.append(over(of, low, high, (a - mean) * (a - mean)))
        apart = means[1] - means[0]
        return sums[0] + sums[1] + apart * apart * counts[0] * counts[1] / (counts[0] + counts[1])

    return change


ONLINE: Mapping[str, Callable[[Choose], Change]] = {
    "rescaled by the maximum": rescaled,
    "rescaled by a guarded maximum": rescaled_by_a_guarded_maximum,
    "rescaled by another value": rescaled_by_another_value,
    "online, one rescale": online,
    "merged from two parts": merged,
    "one pass for two": one_pass,
    "moments merged": merged_moments,
}
