"""Integer index expressions and conditions: hash-consed nodes in normal form.

    Index = Const(n) | Sym(symbol) | Coord(axis) | Sum(terms, constant) | Bin(op, a, b)
          | Pick(cond, a, b) | Read(array, at) | Held(view, at)
    Cond  = Cmp(op, a, b) | And(c*) | Or(c*) | Not(c)

Build them with the functions of `argus.core.algebra` only: they normalise, and equal normal forms are the
same object, so `is` decides equality of forms. `Sum` is the normal form of `+`, `-` and multiplication by a
constant; `Bin` holds the other operators: `* // % min max & | ^ << >>`. Division and remainder are floor division
and modulus (Python's), for every sign.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal, Self, TypeVar, cast

from attrs import field, fields, frozen

from argus.core.interning import intern, lookup

SymbolKind = Literal["size", "block", "loop", "agent", "wave", "thread", "fresh"]
BinOp = Literal["*", "//", "%", "min", "max", "&", "|", "^", "<<", ">>"]
CmpOp = Literal["<=", "=="]


@frozen(eq=False)
class Symbol:
    """A named integer; those with equal fields are one object.

    `low` and `high` (inclusive, None for unbounded) are facts that hold whenever the symbol has a value:
    simplification uses them, and every query about the symbol assumes them.
    """

    name: str
    kind: SymbolKind
    low: int | None = None
    high: int | None = None

    def __new__(cls, name: str, kind: SymbolKind, low: int | None = None, high: int | None = None) -> Self:
        key = cls, name, kind, low, high
        found = lookup(key)
        if found is not None:
            return found
        made = object.__new__(cls)
        for each, value in (("name", name), ("kind", kind), ("low", low), ("high", high)):
            object.__setattr__(made, each, value)  # before another thread can find it
        return intern(key, made)

    def __reduce__(self) -> tuple[object, ...]:
        return Symbol, (self.name, self.kind, self.low, self.high)


Range = tuple[int | None, int | None]
_DERIVED = {"digest", "range", "operands"}


class _Interned:
    """A hash-consed node: copying returns the node itself, and so does unpickling while the node is alive.

    `operands` are a node's direct parts, in order: kept, since every traversal asks for them.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        kind = cast("type[Const]", type(self))
        own, derived = (
            tuple(getattr(self, each.name) for each in fields(kind) if (each.name in _DERIVED) is wanted)
            for wanted in (False, True)
        )
        return _intern_loaded, (kind, own, derived)


@frozen(eq=False, weakref_slot=True)
class Const(_Interned):
    """An integer constant."""

    value: int
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(default=(), repr=False)


@frozen(eq=False, weakref_slot=True)
class Sym(_Interned):
    """The value of a symbol."""

    symbol: Symbol
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(default=(), repr=False)


@frozen(eq=False, weakref_slot=True)
class Coord(_Interned):
    """Coordinate `axis` of the current element, in views and tags."""

    axis: int
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(default=(), repr=False)


@frozen(eq=False, weakref_slot=True)
class Sum(_Interned):
    """`constant + sum(coefficient * atom)`: atoms distinct, coefficients non-zero, in canonical order."""

    terms: tuple[tuple[Index, int], ...]
    constant: int
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Bin(_Interned):
    """`left op right`."""

    op: BinOp
    left: Index
    right: Index
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Pick(_Interned):
    """`then` where `cond` holds, else `other`."""

    cond: Cond
    then: Index
    other: Index
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Read(_Interned):
    """An element of a read-only integer tensor: an uninterpreted function of its index."""

    array: str
    at: tuple[Index, ...]
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Held(_Interned):
    """An element of an integer register fragment of the same thread."""

    fragment: str
    at: tuple[Index, ...]
    digest: bytes = field(repr=False)
    range: Range = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


Index = Const | Sym | Coord | Sum | Bin | Pick | Read | Held


@frozen(eq=False, weakref_slot=True)
class Cmp(_Interned):
    """`left <= right` or `left == right`; no term occurs on both sides, all coefficients are positive."""

    op: CmpOp
    left: Index
    right: Index
    digest: bytes = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class And(_Interned):
    """All of `parts`; `And(())` is true."""

    parts: tuple[Cond, ...]
    digest: bytes = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Or(_Interned):
    """Any of `parts`; `Or(())` is false."""

    parts: tuple[Cond, ...]
    digest: bytes = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Not(_Interned):
    """The negation of an equation."""

    part: Cond
    digest: bytes = field(repr=False)
    operands: tuple[Node, ...] = field(repr=False)


Cond = Cmp | And | Or | Not
Node = Index | Cond
NodeT = TypeVar("NodeT", bound=Node)


def digest_of(tag: str, *parts: object) -> bytes:
    """A hash of the structure alone, equal in every process: for the canonical order and query keys."""
    pieces = [tag.encode()]
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        pieces += (len(data).to_bytes(4, "little"), data)
    return hashlib.blake2b(b"".join(pieces), digest_size=12).digest()


def _intern_loaded(kind: Callable[..., Node], own: tuple[object, ...], derived: tuple[object, ...]) -> Node:
    """The node with these fields. Its key consists of `own`, from which the rest is derived."""
    return intern((kind.__name__.lower(), *own), kind(*own, *derived))
