"""Ranges that begin in their middle and wrap around: {(v + c) % d : v in [0, d)} has each number of [0, d) once."""

from __future__ import annotations

from collections.abc import Sequence

from argus.core import algebra
from argus.core.index import Bin, Cond, Index, Node, Symbol
from argus.core.proof.values.held.terms import all_symbols, replaced
from argus.core.values.expr import Expr
from argus.core.values.rewriting import bound_variables, divisors, mapped
from argus.core.walk import fold, rebuild, symbols


def unrotated(variable: Symbol, high: Index, body: Expr) -> Expr:
    """The body, of a reduction over a variable in [0, high), at v in place of (v + c) % high.

    Only if the variable occurs in no other way, and c is the same everywhere; itself else.
    """
    if high not in divisors(body):
        return body
    inner = bound_variables(body)
    if variable in inner or variable in symbols(high) or variable not in all_symbols(body):
        return body
    here, offsets = algebra.sym(variable), set[Index]()
    own = Symbol(f"{variable.name} rotated", "fresh", 0)

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if isinstance(node, Bin) and node.op == "%" and node.right is high:
            offset = algebra.sub(node.left, here)
            if symbols(offset).isdisjoint((variable, *inner)):
                offsets.add(offset)
                return algebra.sym(own)
        return rebuild(node, parts) if parts else node

    def index(at: Index) -> Index:
        return fold(at, visit)  # pyright: ignore[reportReturnType]  # an index stays one

    def cond(test: Cond) -> Cond:
        return fold(test, visit)  # pyright: ignore[reportReturnType]  # a condition stays one

    found = mapped(body, index, cond)
    if len(offsets) != 1 or variable in all_symbols(found):
        return body
    return replaced(found, {own: here})
