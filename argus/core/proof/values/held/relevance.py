"""Where the body of a reduction matters: conditions outside of which it is neutral."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.index import And, Cond
from argus.core.proof.values.held.folds import NEUTRAL
from argus.core.values.expr import Choose, Compare, Expr, Fn, ReduceOp
from argus.core.values.numbers import is_number, number_where, unscaled


def relevant(op: ReduceOp, body: Expr) -> Iterator[Cond]:
    """Conditions outside of which the body changes nothing."""
    match body:
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
            if other is NEUTRAL[op]:
                yield from test.parts if isinstance(test, And) else (test,)
                yield from relevant(op, then)
            elif then is NEUTRAL[op]:
                yield algebra.negate(test)
                yield from relevant(op, other)
        case Fn(name="mul", args=args) if op == "sum" and all(map(is_number, args)):
            for each in args:
                yield from relevant(op, each)
        case Fn(name="exp" | "exp2", args=(a,)) if op == "sum":
            yield from _falling(a)
        case _:
            pass


def _falling(of: Expr) -> Iterator[Cond]:
    """Conditions outside of which the value is -inf."""
    match of:
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare) and other is NEUTRAL["max"]:
            yield from test.parts if isinstance(test, And) else (test,)
            yield from _falling(then)
        case Fn(name="sub", args=(a, b)) if is_number(b):
            yield from _falling(a)
        case Fn(name="add", args=(a, b)):
            for one, other in ((a, b), (b, a)):
                if number_where(other) is not None:
                    yield from _falling(one)
        case Fn(name="mul" | "div") if (scaled := unscaled(of)) is not None:
            yield from _falling(scaled)
        case _:
            pass
