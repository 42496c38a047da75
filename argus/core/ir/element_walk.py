"""Traversals of element expressions (`ir.Elem`)."""

from __future__ import annotations

from typing import assert_never

from argus.core.dtype import DType
from argus.core.index import Node
from argus.core.ir import Both, Cast, Compare, Either, Elem, Get, Holds, Lit, Neither, Num, Op, Test, Where


def children(node: Elem | Test) -> tuple[Elem | Test, ...]:
    """The direct operands of a node, left to right."""
    match node:
        case Lit() | Num() | Get() | Holds():
            return ()
        case Op(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Where(test=test, then=then, other=other):
            return test, then, other
        case Compare(left=left, right=right):
            return left, right
        case Both(parts=parts) | Either(parts=parts):
            return parts
        case Neither(part=part):
            return (part,)
        case _:
            assert_never(node)


def nodes(root: Elem) -> tuple[Elem | Test, ...]:
    """Every node of the expression, the root included, children before parents, left to right."""
    order: list[Elem | Test] = []
    stack: list[Elem | Test] = [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(children(node))
    return tuple(reversed(order))


def gets(root: Elem) -> tuple[Get, ...]:
    """The reads of buffer elements in an expression."""
    return tuple(node for node in nodes(root) if isinstance(node, Get))


def dtype_of(root: Elem) -> DType | None:
    """The type in which an expression is computed; None for a number, which takes the type of the other operand."""
    match root:
        case Lit() | Num():
            return None
        case Get(view=view):
            return view.buffer.dtype
        case Cast(dtype=dtype):
            return dtype
        case Op(args=args):
            return next((found for found in map(dtype_of, args) if found is not None), None)
        case Where(then=then, other=other):
            return dtype_of(then) or dtype_of(other)
        case _:
            assert_never(root)


def indices(root: Elem) -> tuple[Node, ...]:
    """The integer expressions and conditions in an expression."""
    found: list[Node] = []
    for node in nodes(root):
        match node:
            case Num(value=value):
                found.append(value)
            case Get(at=at):
                found.extend(at)
            case Holds(cond=cond):
                found.append(cond)
            case _:
                continue
    return tuple(found)
