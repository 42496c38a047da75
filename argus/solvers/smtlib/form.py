"""The lowered form of a query: first-order integer arithmetic as a list of steps, which SMT backends translate.

    Step = Number(value) | Variable(ordinal) | Total(terms, constant) | Product(left, right)
         | Choice(condition, then, other)
         | AtMost(left, right) | Equal(left, right) | Every(parts) | Some(parts) | Opposite(part)

Steps refer to earlier steps by position: shared parts are written once, and a backend translates the list in one
loop, however deep the expressions are.
"""

from __future__ import annotations

from typing import Literal, assert_never

from attrs import frozen

from argus.core.index import Symbol

Logic = Literal["QF_LIA", "QF_NIA"]


@frozen
class Number:
    value: int


@frozen
class Variable:
    """An integer unknown; its `ordinal` is unique."""

    ordinal: int


@frozen
class Total:
    """`constant + sum(coefficient * step)`."""

    terms: tuple[tuple[int, int], ...]
    constant: int


@frozen
class Product:
    left: int
    right: int


@frozen
class Choice:
    condition: int
    then: int
    other: int


@frozen
class AtMost:
    left: int
    right: int


@frozen
class Equal:
    left: int
    right: int


@frozen
class Every:
    parts: tuple[int, ...]


@frozen
class Some:
    parts: tuple[int, ...]


@frozen
class Opposite:
    part: int


Step = Number | Variable | Total | Product | Choice | AtMost | Equal | Every | Some | Opposite


def operands(step: Step) -> tuple[int, ...]:
    """The steps that a step refers to."""
    match step:
        case Number() | Variable():
            return ()
        case Total(terms=terms):
            return tuple(part for part, _ in terms)
        case Product(left, right) | AtMost(left, right) | Equal(left, right):
            return left, right
        case Choice(condition, then, other):
            return condition, then, other
        case Every(parts) | Some(parts):
            return parts
        case Opposite(part):
            return (part,)
        case _:
            assert_never(step)


@frozen
class Lowered:
    """A lowered query: the steps at `asserted` must all hold; `symbols` gives the position of each symbol.

    elements: (name, positions of its indices, position) of each array element.
    """

    logic: Logic
    steps: tuple[Step, ...]
    asserted: tuple[int, ...]
    symbols: tuple[tuple[Symbol, int], ...]
    elements: tuple[tuple[str, tuple[int, ...], int], ...] = ()


@frozen
class Inexpressible:
    """Why a query has no first-order form."""

    reason: str
