"""Substitution of symbols, or of whole subexpressions, in statements and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never, cast

from attrs import evolve, frozen

from argus.core import walk
from argus.core.index import Index, Node, Sym, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Atomic,
    Await,
    Both,
    Cast,
    Claim,
    Commit,
    Compare,
    Copy,
    Covers,
    Distinct,
    Edit,
    Either,
    Elem,
    Equal,
    Equals,
    Fence,
    Fold,
    For,
    Get,
    Holds,
    If,
    Let,
    Lit,
    Map,
    Mma,
    Neither,
    Num,
    One,
    Op,
    Order,
    Peek,
    Policy,
    Products,
    Relation,
    Reset,
    Roles,
    Stmt,
    Sync,
    Tag,
    TagOf,
    Test,
    View,
    Wait,
    Where,
    WrittenOnce,
    bodies,
    with_bodies,
)
from argus.core.values.rewriting import mapped
from argus.core.walk import NodeT


@frozen
class NodeMap:
    """A substitution of expressions: the replacement of each."""

    names: Mapping[Node, Index]


Names = Mapping[Symbol, Index] | NodeMap


def substitute(root: NodeT, names: Names) -> NodeT:
    """The expression after a simultaneous substitution of symbols or of whole subexpressions."""
    if not isinstance(names, NodeMap):
        return walk.substitute(root, names)
    found = names.names
    return cast(NodeT, walk.fold(root, lambda node, parts: found.get(node) or walk.rebuild(node, parts)))


def rewrite_view(view: View, names: Names) -> View:
    at = tuple(substitute(expression, names) for expression in view.at)
    peer = None if view.peer is None else substitute(view.peer, names)
    return View(view.buffer, view.shape, at, substitute(view.where, names), peer)


def rewrite_elem(elem: Elem, names: Names) -> Elem:
    match elem:
        case Lit():
            return elem
        case Num(value=value):
            return Num(substitute(value, names))
        case Get(view=view, at=at):
            return Get(rewrite_view(view, names), tuple(substitute(x, names) for x in at))
        case Op(name=name, args=args):
            return Op(name, tuple(rewrite_elem(arg, names) for arg in args))
        case Cast(dtype=dtype, arg=arg):
            return Cast(dtype, rewrite_elem(arg, names))
        case Where(test=test, then=then, other=other):
            return Where(rewrite_test(test, names), rewrite_elem(then, names), rewrite_elem(other, names))
        case _:
            assert_never(elem)


def rewrite_test(test: Test, names: Names) -> Test:
    match test:
        case Holds(cond=cond):
            return Holds(substitute(cond, names))
        case Compare(op=op, left=left, right=right):
            return Compare(op, rewrite_elem(left, names), rewrite_elem(right, names))
        case Both(parts=parts):
            return Both(tuple(rewrite_test(part, names) for part in parts))
        case Either(parts=parts):
            return Either(tuple(rewrite_test(part, names) for part in parts))
        case Neither(part=part):
            return Neither(rewrite_test(part, names))
        case _:
            assert_never(test)


def rewrite_claim(claim: Claim, names: Names) -> Claim:
    def of(tag: TagOf) -> TagOf:
        return evolve(tag, view=rewrite_view(tag.view, names))

    def rename(symbol: Symbol) -> Symbol:
        new = None if isinstance(names, NodeMap) else names.get(symbol)
        return new.symbol if isinstance(new, Sym) else symbol

    match claim:
        case Equal(left=left, right=right):
            return Equal(of(left), of(right))
        case Distinct(components=components, over=over):
            return Distinct(tuple(of(tag) for tag in components), tuple(rename(symbol) for symbol in over))
        case Relation(names=bound, cond=cond):
            return Relation(tuple((symbol, of(tag)) for symbol, tag in bound), substitute(cond, names))
        case Covers(of=tag, low=low, high=high, where=where):
            return Covers(of(tag), substitute(low, names), substitute(high, names), substitute(where, names))
        case Order(of=tag):
            return Order(of(tag))
        case WrittenOnce(view=view, record=record, where=where):
            named = tuple((n, substitute(e, names)) for n, e in record)
            return WrittenOnce(rewrite_view(view, names), named, substitute(where, names))
        case Products(view=view, products=products, over=over):
            pairs = tuple(
                (tuple(substitute(x, names) for x in a), tuple(substitute(x, names) for x in b)) for a, b in products
            )
            return Products(rewrite_view(view, names), pairs, tuple((s, substitute(e, names)) for s, e in over))
        case Equals(view=view, formula=formula, where=where, before=before):
            made = mapped(formula, lambda index: substitute(index, names), lambda cond: substitute(cond, names))
            return Equals(rewrite_view(view, names), made, substitute(where, names), before)
        case _:
            assert_never(claim)


def rewrite_stmt(stmt: Stmt, names: Names) -> Stmt:
    """The statement after the substitution, nested statements included."""
    inner = with_bodies(stmt, tuple(tuple(rewrite_stmt(s, names) for s in body) for body in bodies(stmt)))
    match inner:
        case Alloc() | Sync() | Commit() | Wait() | Fence() | Policy() | Reset() | Roles() | One():
            return inner
        case Let(value=Peek(view=view)):
            return evolve(inner, value=Peek(rewrite_view(view, names)))
        case Let(value=Atomic(op=op, view=view, value=value)):
            return evolve(inner, value=Atomic(op, rewrite_view(view, names), substitute(value, names)))
        case Let():
            return inner
        case Copy(source=source, target=target, signal=signal, peers=peers):
            return evolve(
                inner,
                source=rewrite_view(source, names),
                target=rewrite_view(target, names),
                signal=None if signal is None else rewrite_view(signal, names),
                peers=None if peers is None else substitute(peers, names),
            )
        case Map(target=target, elem=elem):
            return evolve(inner, target=rewrite_view(target, names), elem=rewrite_elem(elem, names))
        case Fold(target=target, source=source):
            return evolve(inner, target=rewrite_view(target, names), source=rewrite_view(source, names))
        case Mma(target=target, a=a, b=b, init=init):
            views = {"target": rewrite_view(target, names), "a": rewrite_view(a, names), "b": rewrite_view(b, names)}
            return evolve(inner, **views, init=substitute(init, names))
        case Arrive(event=event, bytes=count):
            return evolve(inner, event=rewrite_view(event, names), bytes=substitute(count, names))
        case Await(event=event, phase=phase):
            return evolve(inner, event=rewrite_view(event, names), phase=substitute(phase, names))
        case Edit(tensor=tensor):
            return inner if tensor is None else evolve(inner, tensor=rewrite_view(tensor, names))
        case Advance(by=by):
            return evolve(inner, by=substitute(by, names))
        case For(start=start, stop=stop):
            return evolve(inner, start=substitute(start, names), stop=substitute(stop, names))
        case If(cond=cond):
            return evolve(inner, cond=substitute(cond, names))
        case Tag(view=view, names=record):
            return evolve(
                inner, view=rewrite_view(view, names), names=tuple((n, substitute(e, names)) for n, e in record)
            )
        case Assume(cond=cond):
            return evolve(inner, cond=substitute(cond, names))
        case Assert(claim=claim):
            return evolve(inner, claim=rewrite_claim(claim, names))
        case _:
            assert_never(inner)
