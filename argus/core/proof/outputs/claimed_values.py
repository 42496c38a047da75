"""What a launch leaves in a tensor, by the formula that its kernel claims of it.

The claim is an obligation of that launch: a program is proved only where it is. Where a store is met on several control
paths, such as that of tiles that have rows, the formula is the one expression for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.ir import Assert, Buffer, Equals, axes_of
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.values.held.between import Left, coordinate, renamed_integers
from argus.core.proof.values.held.outputs import interpreted
from argus.core.proof.values.held.terms import reasons, renumbered, unknown
from argus.core.values.expr import Element, Expr, Fn, Infinity, Reduce
from argus.core.values.rewriting import bound_variables, free_symbols, map_parts, nodes
from argus.core.values.rewriting import substitute as over_coordinates

_TOTAL = {"add", "sub", "mul", "neg", "max", "min", "abs", "relu", "round_bf16", "exp", "exp2", "sigmoid", "tanh"}
"""Operations that have a value for all numbers: a claim says nothing of elements where its formula has none."""


def claimed_left(
    flow: Flow, tensor: Buffer, before: Mapping[Buffer, Expr], renamed: Collection[str] = ()
) -> Left | None:
    """What a launch leaves in a tensor by its kernel's claim about all elements; None if that is not known.

    before: what its tensors hold before it, over the coordinates of an element. renamed: names of tensors of integers
    that mean others in the launch than in the program.
    """
    claim = _claim(flow, tensor)
    order = None if claim is None else axes_of(claim.view)
    if claim is None or order is None or not _is_total(claim.formula):
        return None
    formula = over_coordinates(claim.formula, {}, tuple(map(algebra.coord, order)))
    value = _of_program(formula, before)
    foreign = [each for each in free_symbols(value) if each.kind != "size"]
    if reasons(value) or foreign or renamed_integers(value, renamed):
        return None
    held = interpreted(flow, tensor, tuple(map(coordinate, range(len(tensor.shape)))), before)
    return Left(value, frozenset() if isinstance(held, str) else held.roundings)


def _claim(flow: Flow, tensor: Buffer) -> Equals | None:
    """The claim of a formula, of elements of other tensors, for all elements."""
    claims = (step.stmt.claim for step in flow.timeline.steps if isinstance(step.stmt, Assert))
    found = [each for each in claims if isinstance(each, Equals) and each.view.buffer is tensor]
    if len(found) != 1 or found[0].before or found[0].where is not algebra.TRUE:
        return None
    return None if any(each.tensor == tensor.name for each in _elements(found[0].formula)) else found[0]


def _elements(of: Expr) -> list[Element]:
    return [each for each in nodes(of) if isinstance(each, Element)]


def _is_total(formula: Expr) -> bool:
    """Whether the formula is a number, whatever the elements of tensors are."""
    return all(
        (not isinstance(each, Fn) or each.name in _TOTAL)
        and (not isinstance(each, Reduce) or each.op == "sum")
        and not isinstance(each, Infinity)
        for each in nodes(formula)
    )


def _of_program(formula: Expr, before: Mapping[Buffer, Expr]) -> Expr:
    """The formula with what its tensors hold before the launch in place of their elements.

    Bound variables of what they hold are numbered from the inside; a formula's own have names of the language. So an
    index that names one is not captured by a sum inside.
    """
    held = {buffer.name: value for buffer, value in before.items()}

    def visit(node: Expr) -> Expr:
        if isinstance(node, Element) and node.tensor in held:
            return over_coordinates(held[node.tensor], {}, node.at)
        return map_parts(node, visit, lambda index: index, lambda cond: cond)

    inner = frozenset[Symbol]().union(*map(bound_variables, held.values()))
    return renumbered(visit(formula)) if inner.isdisjoint(bound_variables(formula)) else unknown("names that meet")
