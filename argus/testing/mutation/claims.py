"""Mutation operators on tags, claims, assumptions and data contracts: change, weaken, or drop one."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from argus.core.algebra import TRUE, add, const, coord
from argus.core.ir import (
    Assert,
    Assume,
    Covers,
    Distinct,
    Equal,
    Equals,
    Kernel,
    Order,
    Products,
    Relation,
    Tag,
    WrittenOnce,
)
from argus.core.ir import Stmt as Statement
from argus.core.ir.surgery import kernel_with_objects
from argus.core.values.expr import Expr, Fn, Reduce, fn, reduce_
from argus.testing.mutation.control import compared_otherwise
from argus.testing.mutation.operator import Change, Made, Operator, each, other


def _drop(_: Kernel, stmt: Statement) -> Iterator[Change]:
    yield (), f"{type(stmt).__name__} dropped"


def _tag_shifted(_: Kernel, stmt: Tag) -> Iterator[Change]:
    for at, (name, index) in enumerate(stmt.names):
        names = (*stmt.names[:at], (name, add(index, 1)), *stmt.names[at + 1 :])
        yield from other(stmt, f"tag {name} + 1", names=names)


def _tag_exchanged(_: Kernel, stmt: Tag) -> Iterator[Change]:
    if len(stmt.names) >= 2:
        (one, first), (two, second), *rest = stmt.names
        yield from other(stmt, f"tags {one} and {two} exchanged", names=((one, second), (two, first), *rest))


def _tag_constant(_: Kernel, stmt: Tag) -> Iterator[Change]:
    for at, (name, _index) in enumerate(stmt.names):
        names = (*stmt.names[:at], (name, const(0)), *stmt.names[at + 1 :])
        yield from other(stmt, f"tag {name} = 0", names=names)


def _covers(_: Kernel, stmt: Assert) -> Iterator[Change]:
    if isinstance(stmt.claim, Covers):
        for low, high in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            claim = evolve(stmt.claim, low=add(stmt.claim.low, low), high=add(stmt.claim.high, high))
            yield from other(stmt, f"covers from {low} more to {high} more", claim=claim)


def _record(_: Kernel, stmt: Assert) -> Iterator[Change]:
    if isinstance(stmt.claim, WrittenOnce):
        record = stmt.claim.record
        for at, (name, index) in enumerate(record):
            for made, what in ((add(index, 1), "+ 1"), (coord(1 - at) if at < 2 else const(0), "the other")):
                claim = evolve(stmt.claim, record=(*record[:at], (name, made), *record[at + 1 :]))
                yield from other(stmt, f"claims {name} {what}", claim=claim)


def _claimed(_: Kernel, stmt: Assert) -> Iterator[Change]:
    match stmt.claim:
        case Relation(cond=cond):
            for made, what in compared_otherwise(cond):
                yield from other(stmt, what, claim=evolve(stmt.claim, cond=made))
        case Equal(left=left, right=right):
            yield from other(stmt, "of one component alone", claim=Equal(left, left))
            yield from other(stmt, "of one component alone", claim=Equal(right, right))
        case Distinct(components=components) if len(components) > 1:
            yield from other(stmt, "distinct in fewer components", claim=Distinct(components[1:]))
        case Products(products=products) if len(products) > 1:
            yield from other(stmt, "a product less", claim=evolve(stmt.claim, products=products[1:]))
        case Equals(formula=formula, where=where):
            for made, what in _other_formulas(formula):
                yield from other(stmt, what, claim=evolve(stmt.claim, formula=made))
            if where is not TRUE:
                yield from other(stmt, "claims all elements", claim=evolve(stmt.claim, where=TRUE))
        case Distinct() | Products() | Covers() | Order() | WrittenOnce():
            return


def _other_formulas(formula: Expr) -> Iterator[tuple[Expr, str]]:
    """Formulas that differ in one place of the outermost operation."""
    yield fn("add", formula, 1), "claims 1 more"
    match formula:
        case Fn(name="div", args=(dividend, _)):
            yield dividend, "claims the dividend alone"
        case Reduce(op=op, variable=variable, low=low, high=high, where=where, body=body):
            yield reduce_(op, variable, add(low, 1), high, body, where), "claims a reduction over one less"
        case _:
            return


def _assumed(_: Kernel, stmt: Assume) -> Iterator[Change]:
    for cond, what in compared_otherwise(stmt.cond):
        yield from other(stmt, what, cond=cond)


def _promised(kernel: Kernel) -> Iterator[Made]:
    for buffer in kernel.parameters:
        if buffer.promise is TRUE:
            continue
        weaker = [(TRUE, "promises nothing"), *compared_otherwise(buffer.promise)]
        for cond, what in weaker:
            made = kernel_with_objects(kernel, {id(buffer): evolve(buffer, promise=cond)})
            yield Made(made, f"`{buffer.name}`: {what}", buffer.span)


OPERATORS: tuple[Operator, ...] = (
    Operator("drop_tag", "an input is not tagged", each(Tag, _drop), claims=False),
    Operator("shift_tag", "a tag is off by one", each(Tag, _tag_shifted), claims=False),
    Operator("exchange_tags", "two names of a tag are exchanged", each(Tag, _tag_exchanged), claims=False),
    Operator("constant_tag", "a tag is constant", each(Tag, _tag_constant), claims=False),
    Operator("drop_claim", "a claim is left out", each(Assert, _drop), claims=False),
    Operator("cover_otherwise", "a sum is claimed to cover another range", each(Assert, _covers), claims=False),
    Operator("record_otherwise", "an output is claimed to hold another record", each(Assert, _record), claims=False),
    Operator("claim_otherwise", "a claim is another", each(Assert, _claimed), claims=False),
    Operator("drop_assumption", "an assumption is left out", each(Assume, _drop)),
    Operator("assume_otherwise", "an assumption has another comparison", each(Assume, _assumed)),
    Operator("weaken_promise", "the data contract of integers in memory is weaker", _promised),
)
