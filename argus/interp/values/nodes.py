"""Topological traversal of element expressions: operands before the nodes that use them."""

from __future__ import annotations

from typing import assert_never

from argus.core.ir import Both, Cast, Compare, Either, Elem, Get, Holds, Lit, Neither, Num, Op, Test, Where

Node = Elem | Test


def parts_first(root: Node) -> list[Node]:
    """Every node of an element expression once, in topological order, operands first."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((part, False) for part in _parts(node))
    return order


def _parts(node: Node) -> tuple[Node, ...]:
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
