"""Lowers a query to first-order integer arithmetic; every SMT backend uses this lowering.

Division and remainder by d share one quotient q with `0 <= x - d*q < d`; minimum, maximum and Pick become
choices; array elements become variables, with functional congruence between any two of one array; bitwise operators
are expressed where an operand is a number or has few bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from argus.core.index import And, Bin, Cmp, Const, Coord, Held, Node, Not, Or, Pick, Read, Sum, Sym
from argus.core.query import Query
from argus.core.walk import children, topological
from argus.solvers.base import definedness
from argus.solvers.smtlib.bits import bitwise, shift
from argus.solvers.smtlib.form import (
    AtMost,
    Choice,
    Equal,
    Every,
    Inexpressible,
    Logic,
    Lowered,
    Opposite,
    Product,
    Some,
)
from argus.solvers.smtlib.writer import InexpressibleError, Writer


def lower(query: Query) -> Lowered | Inexpressible:
    """The lowered query, with its definedness conditions and the ranges of its symbols asserted."""
    writer = Writer()
    place: dict[Node, int] = {}
    roots = (*query.assertions, *definedness(query.assertions))
    try:
        for node in topological(roots):
            place[node] = lowered(writer, node, [place[child] for child in children(node)])
    except InexpressibleError as error:
        return Inexpressible(str(error))
    asserted = dict.fromkeys([*writer.asserted, *(place[root] for root in roots)])
    logic: Logic = "QF_NIA" if any(isinstance(step, Product) for step in writer.steps) else "QF_LIA"
    return Lowered(logic, tuple(writer.steps), tuple(asserted), tuple(writer.symbols), tuple(writer.read))


def lowered(writer: Writer, node: Node, parts: Sequence[int]) -> int:
    """The step of a node whose parts are lowered."""
    match node:
        case Const(value=value):
            return writer.number(value)
        case Sym(symbol=symbol):
            return writer.symbol(symbol)
        case Coord(axis=axis):
            raise InexpressibleError(f"coordinate i{axis} is not a symbol")
        case Sum(terms=terms, constant=constant):
            pairs = [(part, factor) for part, (_, factor) in zip(parts, terms, strict=True)]
            return writer.total(*pairs, constant=constant)
        case Bin():
            return _binary(writer, node, parts[0], parts[1])
        case Pick():
            return writer.write(Choice(parts[0], parts[1], parts[2]))
        case Read(array=name):
            return writer.element("read", name, tuple(parts))
        case Held(fragment=name):
            return writer.element("held", name, tuple(parts))
        case Cmp(op=op):
            return writer.write(AtMost(parts[0], parts[1]) if op == "<=" else Equal(parts[0], parts[1]))
        case And():
            return writer.write(Every(tuple(parts)))
        case Or():
            return writer.write(Some(tuple(parts)))
        case Not():
            return writer.write(Opposite(parts[0]))
        case _:
            assert_never(node)


def _binary(writer: Writer, node: Bin, left: int, right: int) -> int:
    match node.op:
        case "*":
            return writer.product(left, right)
        case "//":
            return writer.quotient(left, right)
        case "%":
            return writer.remainder(left, right)
        case "min":
            return writer.minimum(left, right)
        case "max":
            return writer.maximum(left, right)
        case "&" | "|" | "^":
            return bitwise(writer, node, left, right)
        case "<<" | ">>":
            return shift(writer, node, left, right)
        case _:
            assert_never(node.op)
