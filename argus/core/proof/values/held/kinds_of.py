"""What an expression is: a sum of sums, an extremum, a nest of reductions; and integers with an extremum in them."""

from __future__ import annotations

from typing import TypeGuard

from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Index
from argus.core.values.expr import Expr, Fn, Reduce
from argus.core.values.numbers import is_number


def is_of_sums(of: Expr) -> TypeGuard[Fn]:
    """Whether the value is one of two numbers added, of which one is a sum itself."""
    return (
        isinstance(of, Fn)
        and of.name == "add"
        and any(isinstance(each, Reduce) and each.op == "sum" for each in of.args)
        and all(map(is_number, of.args))
    )


def is_extremum(of: Expr) -> bool:
    """Whether the value is a maximum or a minimum, such as the reference of a sum."""
    return of.name in ("max", "min") if isinstance(of, Fn) else isinstance(of, Reduce) and of.op in ("max", "min")


def has_extremum(of: Index) -> bool:
    """Whether the integer is a sum with a maximum or a minimum of integers."""
    return any(isinstance(atom, Bin) and atom.op in ("min", "max") for atom, _ in linear_terms(of)[0])


def levels(of: Expr) -> int:
    """The number of reductions around the body of a nested one."""
    return 1 + levels(of.body) if isinstance(of, Reduce) else 0
