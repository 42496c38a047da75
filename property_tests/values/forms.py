"""Right transformations of operations: other spellings of the same function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from argus.core import algebra
from argus.core.values import rewriting
from argus.core.values.expr import Choose as Choice
from argus.core.values.expr import (
    Compare,
    Element,
    Expr,
    Fn,
    Number,
    Reduce,
    choose,
    compare,
    element,
    fn,
    reduce_,
)
from property_tests.small.choosing import Choose
from property_tests.values.parts import Change, over


def _named(*names: str) -> Callable[[Callable[[Fn], Expr | None]], Change]:
    def of(change: Callable[[Fn], Expr | None]) -> Change:
        return lambda part: change(part) if isinstance(part, Fn) and part.name in names else None

    return of


def base_2(_: Choose) -> Change:
    """exp2 and log2 in place of exp and log, with the factor on the argument."""
    per = 1 / fn("log", 2)

    def change(of: Fn) -> Expr | None:
        return fn("exp2", of.args[0] * per) if of.name == "exp" else fn("log2", of.args[0]) * fn("log", 2)

    return _named("exp", "log")(change)


def fused(_: Choose) -> Change:
    """A product and a sum as one fma."""

    def change(of: Fn) -> Expr | None:
        a, b = of.args
        if isinstance(a, Fn) and a.name == "mul":
            return fn("fma", *a.args, b if of.name == "add" else -b)
        if isinstance(b, Fn) and b.name == "mul":
            return fn("fma", b.args[0] if of.name == "add" else -b.args[0], b.args[1], a)
        return None

    return _named("add", "sub")(change)


def reciprocal(_: Choose) -> Change:
    return _named("div")(lambda of: of.args[0] * fn("reciprocal", of.args[1]))


def turned(_: Choose) -> Change:
    return _named("add", "mul", "max", "min")(lambda of: fn(of.name, *of.args[::-1]))


def regrouped(_: Choose) -> Change:
    """(a op b) op c as a op (b op c)."""

    def change(of: Fn) -> Expr | None:
        a, c = of.args
        if isinstance(a, Fn) and a.name == of.name:
            return fn(of.name, a.args[0], fn(of.name, a.args[1], c))
        if isinstance(c, Fn) and c.name == of.name:
            return fn(of.name, fn(of.name, a, c.args[0]), c.args[1])
        return None

    return _named("add", "mul", "max", "min")(change)


def factored(_: Choose) -> Change:
    """A factor of all terms of a sum outside, or one from outside within."""

    def change(part: Expr) -> Expr | None:
        match part:
            case Reduce(op="sum", variable=variable, body=Fn(name="mul", args=(a, b))):
                for kept, out in ((a, b), (b, a)):
                    if variable not in rewriting.free_symbols(out):
                        return over(part, part.low, part.high, kept) * out
                return None
            case Fn(name="mul" | "div" as name, args=(Reduce(op="sum", variable=variable) as of, c)):
                inside = variable not in rewriting.free_symbols(c) | rewriting.bound_variables(c)
                return over(of, of.low, of.high, fn(name, of.body, c)) if inside else None
            case Fn(name="mul", args=(Fn(name="add" | "sub" as name, args=(a, b)), c)):
                return fn(name, a * c, b * c)
            case _:
                return None

    return change


def linear(_: Choose) -> Change:
    """The sum of sums, in place of a sum of sums of terms."""

    def change(part: Expr) -> Expr | None:
        match part:
            case Reduce(op="sum", body=Fn(name="add" | "sub" as name, args=(a, b))):
                return fn(name, *(over(part, part.low, part.high, each) for each in (a, b)))
            case _:
                return None

    return change


def spelled_out(_: Choose) -> Change:
    """A function by a choice, or by other functions."""

    def change(of: Fn) -> Expr | None:
        a = of.args[0]
        match of.name:
            case "relu":
                return choose(compare("<", 0, a), a, 0)
            case "abs":
                return choose(compare("<=", a, 0), -a, a)
            case "max":
                return choose(compare("<", a, of.args[1]), of.args[1], a)
            case "min":
                return choose(compare("<", a, of.args[1]), a, of.args[1])
            case "sigmoid":
                return fn("reciprocal", 1 + fn("exp", -a))
            case _:
                return 1 - 2 / (fn("exp", 2 * a) + 1)

    return _named("relu", "abs", "max", "min", "sigmoid", "tanh")(change)


def roots(_: Choose) -> Change:
    """A root by its inverse, and an inverse of a root by the root."""

    def change(of: Fn) -> Expr | None:
        a = of.args[0]
        if of.name == "rsqrt":
            return fn("reciprocal", fn("sqrt", a))
        match of.args:
            case (_, Fn(name="sqrt", args=(b,))):
                return a * fn("rsqrt", b)
            case _:
                return None

    return _named("rsqrt", "div")(change)


def exponents_split(_: Choose) -> Change:
    """exp of a sum as a product, and of a difference as a quotient."""

    def change(of: Fn) -> Expr | None:
        match of.args[0]:
            case Fn(name="add", args=(a, b)):
                return fn("exp", a) * fn("exp", b)
            case Fn(name="sub", args=(a, b)):
                return fn("exp", a) / fn("exp", b)
            case a:
                by = element("stale")
                return fn("exp", a - by) * fn("exp", by)

    return _named("exp")(change)


def logarithms_split(_: Choose) -> Change:
    """The logarithm of a sum of exponentials with a factor taken out, and that of a quotient as a difference."""

    def change(of: Fn) -> Expr | None:
        a, by = of.args[0], element("stale")
        return fn("log", a * fn("exp", -by)) + by

    return _named("log")(change)


def quotient_by_logarithm(_: Choose) -> Change:
    """exp(f) / s as exp(f - log s)."""

    def change(of: Fn) -> Expr | None:
        match of.args:
            case (Fn(name="exp", args=(f,)), Reduce(op="sum", body=Fn(name="exp" | "exp2")) as s):
                return fn("exp", f - fn("log", s))
            case _:
                return None

    return _named("div")(change)


def choices_pushed(_: Choose) -> Change:
    """A function of a choice as the choice of its values."""

    def change(of: Fn) -> Expr | None:
        for i, each in enumerate(of.args):
            if isinstance(each, Choice) and not isinstance(each.test, Compare):
                ways = (fn(of.name, *of.args[:i], way, *of.args[i + 1 :]) for way in (each.then, each.other))
                return choose(each.test, *ways)
        return None

    return lambda part: change(part) if isinstance(part, Fn) else None


def choices_as_factors(_: Choose) -> Change:
    """A choice between a value and 0 as a product with 1 or 0; between others, the negated test first."""

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Choice) or isinstance(part.test, Compare):
            return None
        finite = isinstance(part.then, Element | Number)
        if finite and isinstance(part.other, Number) and part.other.value == 0:
            return part.then * choose(part.test, 1, 0)
        return choose(algebra.negate(part.test), part.other, part.then)

    return change


def shifted_maximum(_: Choose) -> Change:
    """max(a, b) as max(a - c, b - c) + c, for elements and reductions."""

    def change(part: Expr) -> Expr | None:
        c = element("stale")
        match part:
            case Fn(name="max" | "min" as name, args=(a, b)):
                return fn(name, a - c, b - c) + c
            case Reduce(op="max" | "min"):
                return over(part, part.low, part.high, part.body - c) + c
            case _:
                return None

    return change


def scaled_maximum(_: Choose) -> Change:
    """max(a, b) as max(2 a, 2 b) / 2, or as -min(-a, -b)."""

    def change(part: Expr) -> Expr | None:
        match part:
            case Fn(name="max" | "min" as name, args=(a, b)):
                return fn(name, a * 2, b * 2) / 2
            case Reduce(op="max" | "min" as op, low=low, high=high, body=body):
                return -reduce_("min" if op == "max" else "max", part.variable, low, high, -body, part.where)
            case _:
                return None

    return change


def twice_less_once(_: Choose) -> Change:
    return lambda part: part * 2 - part if isinstance(part, Element) else None


FORMS: Mapping[str, Callable[[Choose], Change]] = {
    "base 2": base_2,
    "fma": fused,
    "times the reciprocal": reciprocal,
    "operands turned": turned,
    "regrouped": regrouped,
    "factors moved": factored,
    "sums of sums": linear,
    "spelled out": spelled_out,
    "roots by their inverse": roots,
    "exponents split": exponents_split,
    "logarithms split": logarithms_split,
    "quotient by a logarithm": quotient_by_logarithm,
    "choices pushed": choices_pushed,
    "choices as factors": choices_as_factors,
    "maximum of shifted values": shifted_maximum,
    "maximum of scaled values": scaled_maximum,
    "twice less once": twice_less_once,
}
EVERYWHERE = frozenset(("base 2", "fma", "times the reciprocal"))
"""Those that a program makes at all places or at none, more often than at one."""
