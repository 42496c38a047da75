"""Traversals of index expressions: fold, substitute, evaluate; iterative, and linear in the size of the DAG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import is_not
from typing import Any, TypeVar, assert_never, cast

import numpy as np
import numpy.typing as npt

from argus.core import algebra
from argus.core.index import (
    And,
    Bin,
    BinOp,
    Cmp,
    Cond,
    Const,
    Coord,
    Held,
    Index,
    Node,
    Not,
    Or,
    Pick,
    Read,
    Sum,
    Sym,
    Symbol,
)

T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
Value = int | IntArray


def children(node: Node) -> tuple[Node, ...]:
    """The direct operands of a node, in order."""
    return node.operands


@lru_cache(maxsize=1 << 15)
def below(root: Node) -> tuple[Node, ...]:
    """The descendants of the root in topological order, children first, without the root."""
    return tuple(topological(root.operands))


def topological(roots: Iterable[Node]) -> list[Node]:
    """The roots and their descendants in topological order, children first, each once."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Node | None] = list(roots)
    while stack:
        node = stack.pop()
        if node is None:  # all children of the node below it on the stack are in `order`
            order.append(stack.pop())  # pyright: ignore[reportArgumentType] # a node lies below each None
        elif node not in seen:
            seen.add(node)
            if node.operands:
                stack += (node, None, *node.operands)
            else:
                order.append(node)
    return order


def within(root: Node) -> tuple[Node, ...]:
    """The root and its descendants in topological order, children first."""
    return *below(root), root


def fold(root: Node, visit: Callable[[Node, Sequence[T]], T], known: dict[Node, T] | None = None) -> T:
    """Bottom-up fold: the value of `visit(node, values of its children)` at the root.

    known: values of nodes from earlier folds with the same function, to which those found here are added.
    """
    values: dict[Node, T] = {} if known is None else known
    if root in values:
        return values[root]
    if not all(child in values for child in root.operands):
        for node in below(root):
            if node not in values:
                values[node] = visit(node, [values[child] for child in node.operands])
    found = values[root] = visit(root, [values[child] for child in root.operands])
    return found


def symbols(*roots: Node) -> frozenset[Symbol]:
    """All symbols that occur in the roots."""
    return _symbols_of(roots[0]) if len(roots) == 1 else frozenset[Symbol]().union(*map(_symbols_of, roots))


@lru_cache(maxsize=1 << 16)
def _symbols_of(root: Node) -> frozenset[Symbol]:
    return frozenset(node.symbol for node in (*below(root), root) if isinstance(node, Sym))


def only_as_quotient(root: Node, symbol: Symbol, unit: int) -> bool:
    """Whether `symbol` occurs only as the dividend of a floor division by a multiple of `unit`.

    For a thread number and the wave size as `unit`, the expression is then uniform within a wave.
    """
    for node in within(root):
        for child in node.operands:
            if isinstance(child, Sym) and child.symbol == symbol and not _quotient(node, unit):
                return False
    return not (isinstance(root, Sym) and root.symbol == symbol)


def _quotient(node: Node, unit: int) -> bool:
    if not isinstance(node, Bin) or node.op != "//" or not isinstance(node.right, Const):
        return False
    return node.right.value > 0 and node.right.value % unit == 0


@lru_cache(maxsize=1 << 15)
def mentions(root: Node, kinds: tuple[type[Node], ...]) -> bool:
    """Whether the root or one of its descendants is a node of one of these kinds."""
    return isinstance(root, kinds) or any(isinstance(node, kinds) for node in below(root))


def rebuild(node: Node, parts: Sequence[Node]) -> Node:
    """The node with its children replaced by `parts`, in normal form."""
    given: Sequence[Any] = parts  # each of the kind that stands there
    match node:
        case Sum(terms=terms, constant=constant):
            return algebra.linear([(atom, factor) for atom, (_, factor) in zip(given, terms, strict=True)], constant)
        case Bin(op=op):
            return _APPLY[op](given[0], given[1])
        case Cmp(op=op):
            return algebra.le(given[0], given[1]) if op == "<=" else algebra.eq(given[0], given[1])
        case Const() | Sym() | Coord():
            return node
        case Pick():
            return algebra.pick(given[0], given[1], given[2])
        case And():
            return algebra.all_of(given)
        case Or():
            return algebra.any_of(given)
        case Not():
            return algebra.negate(given[0])
        case Read(array=array):
            return algebra.read(array, given)
        case Held(fragment=fragment):
            return algebra.held(fragment, given)
        case _:
            assert_never(node)


_APPLY: dict[BinOp, Callable[[Index, Index], Index]] = {
    "*": algebra.mul,
    "//": algebra.floordiv,
    "%": algebra.mod,
    "min": algebra.minimum,
    "max": algebra.maximum,
    "&": algebra.bit_and,
    "|": algebra.bit_or,
    "^": algebra.bit_xor,
    "<<": algebra.shift_left,
    ">>": algebra.shift_right,
}


def apply(op: BinOp, left: Index, right: Index) -> Index:
    """`left op right`, in normal form."""
    return _APPLY[op](left, right)


NodeT = TypeVar("NodeT", Index, Cond)


def substitute(
    root: NodeT,
    symbols: Mapping[Symbol, Index],
    coords: Sequence[Index] | None = None,
    known: dict[Node, Node] | None = None,
) -> NodeT:
    """The expression with symbols (and coordinates, if given) replaced simultaneously.

    known: of earlier calls with the same replacements of symbols alone, to which those made here are added.
    """
    if coords is None:
        return cast(NodeT, _with_symbols(root, symbols, {} if known is None else known))

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if isinstance(node, Sym):
            return symbols.get(node.symbol, node)
        if isinstance(node, Coord):
            return coords[node.axis]
        return rebuild(node, parts) if any(map(is_not, parts, node.operands)) else node

    return cast(NodeT, fold(root, visit))


def _with_symbols(root: Node, symbols: Mapping[Symbol, Index], done: dict[Node, Node]) -> Node:
    """The same; parts without the symbols are not looked at."""
    if _symbols_of(root).isdisjoint(symbols):  # iterates over the shorter side, whose hashes are stored
        return root
    if isinstance(root, Sym):
        return symbols[root.symbol]
    found = done.get(root)
    if found is None:
        found = done[root] = rebuild(root, [_with_symbols(part, symbols, done) for part in root.operands])
    return found


def evaluate(
    root: Node,
    env: Mapping[Symbol, Value],
    coords: Sequence[Value] = (),
    arrays: Mapping[str, IntArray] | None = None,
    known: dict[Node, Value] | None = None,
) -> Value | bool | npt.NDArray[np.bool_]:
    """The value of an expression (integers) or a condition (booleans), element-wise over NumPy arrays.

    env: values of symbols; coords: of coordinates; arrays: contents of tensors and fragments by name.
    known: values of nodes under the same ones, to which those found here are added.
    Raises KeyError for a symbol without a value and ZeroDivisionError for a zero divisor.
    """

    def visit(node: Node, parts: Sequence[Value]) -> Value:
        match node:
            case Const(value=value):
                return value
            case Sym(symbol=symbol):
                return env[symbol]
            case Coord(axis=axis):
                return coords[axis]
            case Sum(terms=terms, constant=constant):
                total: Value = constant
                for value, (_, factor) in zip(parts, terms, strict=True):
                    total = total + value * factor
                return total
            case Bin(op=op):
                return apply_number(op, parts[0], parts[1])
            case Pick():
                if isinstance(parts[0], bool | np.bool_):
                    return parts[1] if parts[0] else parts[2]
                return cast(Value, np.where(parts[0], parts[1], parts[2]))
            case Read(array=array):
                return (arrays or {})[array][tuple(parts)]
            case Held(fragment=fragment):
                return (arrays or {})[fragment][tuple(parts)]
            case Cmp(op=op):
                return cast(Value, parts[0] <= parts[1] if op == "<=" else parts[0] == parts[1])
            case And():
                return _junction(np.logical_and, parts, start=True)
            case Or():
                return _junction(np.logical_or, parts, start=False)
            case Not():
                return not parts[0] if isinstance(parts[0], bool) else cast(Value, np.logical_not(parts[0]))
            case _:
                assert_never(node)

    return fold(root, visit, known)


def _junction(combine: np.ufunc, parts: Sequence[Value], *, start: bool) -> Value:
    if all(part is True or part is False for part in parts):
        return all(parts) if start else any(parts)
    result: object = start
    for part in parts:
        result = combine(result, part)
    return cast(Value, result)


def apply_number(op: BinOp, a: Value, b: Value) -> Value:
    """`a op b` on numbers or arrays: the semantics of every operator. Raises ZeroDivisionError for a zero divisor."""
    match op:
        case "*":
            return a * b
        case "//" | "%":
            zero = b == 0 if isinstance(b, int) else bool(np.any(np.equal(b, 0)))
            if zero and np.size(a):  # without elements there is no division
                raise ZeroDivisionError(f"{op} by zero in an index expression")
            return a // b if op == "//" else a % b
        case "min":
            return cast(Value, np.minimum(a, b)) if not isinstance(a, int) or not isinstance(b, int) else min(a, b)
        case "max":
            return cast(Value, np.maximum(a, b)) if not isinstance(a, int) or not isinstance(b, int) else max(a, b)
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<<":
            return a << b
        case ">>":
            return a >> b
        case _:
            assert_never(op)
