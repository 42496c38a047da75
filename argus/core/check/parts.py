"""The views and expressions of one statement, without those of the statements nested in it."""

from __future__ import annotations

from typing import assert_never

from argus.core import algebra
from argus.core.index import Node
from argus.core.ir import (
    Advance,
    Arrive,
    Assert,
    Assume,
    Atomic,
    Await,
    Claim,
    Copy,
    Covers,
    Distinct,
    Edit,
    Equal,
    Equals,
    Fold,
    For,
    If,
    Let,
    Map,
    Mma,
    Order,
    Peek,
    Products,
    Relation,
    Reset,
    Stmt,
    Tag,
    View,
    WrittenOnce,
    whole,
)
from argus.core.ir.element_walk import gets, indices
from argus.core.values.rewriting import integers
from argus.core.walk import substitute


def views(stmt: Stmt) -> tuple[View, ...]:
    """The views that a statement accesses or makes a claim about, without those of nested statements."""
    match stmt:
        case Copy(source=source, target=target, signal=signal):
            return (source, target) if signal is None else (source, target, signal)
        case Map(target=target, elem=elem):
            return target, *(get.view for get in gets(elem))
        case Fold(target=target, source=source):
            return target, source
        case Mma(target=target, a=a, b=b):
            return target, a, b
        case Arrive(event=event) | Await(event=event):
            return (event,)
        case Let(value=Peek(view=view) | Atomic(view=view)) | Tag(view=view):
            return (view,)
        case Edit(map=buffer, tensor=tensor):
            return (whole(buffer),) if tensor is None else (whole(buffer), tensor)
        case Advance(counter=buffer) | Reset(buffer=buffer):
            return (whole(buffer),)
        case Assert(claim=claim):
            return claim_views(claim)
        case _:
            return ()


def claim_views(claim: Claim) -> tuple[View, ...]:
    """The views that a claim is about."""
    match claim:
        case Equal(left=left, right=right):
            return left.view, right.view
        case Distinct(components=components):
            return tuple(of.view for of in components)
        case Relation(names=names):
            return tuple(of.view for _, of in names)
        case Covers(of=of) | Order(of=of):
            return (of.view,)
        case WrittenOnce(view=view) | Products(view=view) | Equals(view=view):
            return (view,)
        case _:
            assert_never(claim)


def expressions(stmt: Stmt) -> tuple[Node, ...]:
    """The expressions and conditions of a statement and its views, without those of nested statements."""
    placed = tuple(
        part for view in views(stmt) for part in (*view.at, view.where, *(() if view.peer is None else (view.peer,)))
    )
    return (*placed, *_own_expressions(stmt))


def _own_expressions(stmt: Stmt) -> tuple[Node, ...]:
    match stmt:
        case Map(elem=elem):
            return indices(elem)
        case Mma(init=cond) | If(cond=cond) | Assume(cond=cond):
            return (cond,)
        case Arrive(bytes=value) | Await(phase=value) | Advance(by=value) | Let(value=Atomic(value=value)):
            return (value,)
        case Copy(peers=peers):
            return () if peers is None else (peers,)
        case For(start=start, stop=stop):
            return start, stop
        case Tag(names=record):
            return tuple(value for _, value in record)
        case Assert(claim=WrittenOnce(record=record, where=where)):
            return *(value for _, value in record), where
        case Assert(claim=Products(products=products, over=over)):
            # Symbols that the claim itself binds are not free: replace them by a constant.
            bound = {symbol: algebra.const(0) for symbol, _ in over}
            places = tuple(node for pair in products for side in pair for node in side)
            return *(substitute(node, bound) for node in places), *(extent for _, extent in over)
        case Assert(claim=Equals(formula=formula, where=where)):
            return *integers(formula), where
        case Assert(claim=Distinct(over=over)):
            return tuple(algebra.sym(symbol) for symbol in over)
        case Assert(claim=Covers(low=low, high=high, where=where)):
            return low, high, where
        case _:
            return ()
