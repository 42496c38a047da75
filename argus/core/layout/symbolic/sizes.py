"""Symbolic sizes: integer expressions with Python's operators, and conditions on them."""

from __future__ import annotations

from operator import index
from typing import NoReturn, Protocol, SupportsIndex, Union, cast, runtime_checkable

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Coord, Held, Index, Pick, Read, Sum, Sym, Symbol
from argus.core.index_text import show
from argus.core.layout.faults import LayoutError, malformed

_NODES = (Const, Sym, Coord, Sum, Bin, Pick, Read, Held)


@runtime_checkable
class HasNode(Protocol):
    """An object with an integer expression: a `Size`, or an integer of a kernel."""

    @property
    def node(self) -> Index: ...


SizeLike = Union["Size", HasNode, Index, SupportsIndex]


def node_of(value: object) -> Index:
    """The expression behind a number, an expression or a handle. Raises LayoutError (E801) for anything else."""
    if value.__class__ is int:
        return algebra.const(cast(int, value))
    found = value if isinstance(value, _NODES) else getattr(value, "node", None)
    return found if isinstance(found, _NODES) else algebra.const(checked_integer(value, "give an int or a symbol"))


def checked_integer(value: object, repair: str) -> int:
    """The value as an int; accepts NumPy integers. Raises LayoutError (E801) for anything else, bools included."""
    if not isinstance(value, bool):
        try:
            return index(cast(SupportsIndex, value))
        except TypeError:
            pass
    raise malformed(f"{value!r} is no integer, it is a {type(value).__name__}", repair)


def compact(node: Index) -> str:
    """The expression without spaces, as printed inside a layout: `K//64`."""
    text = show(node)
    return text if " if " in text else text.replace(" ", "")


class Claim:
    """A condition on sizes such as `M % 128 == 0`. `bool` raises LayoutError (E811) unless it is a constant."""

    __slots__ = ("node",)

    def __init__(self, node: Cond) -> None:
        self.node = node

    def __and__(self, other: Claim) -> Claim:
        return Claim(algebra.all_of((self.node, other.node)))

    def __or__(self, other: Claim) -> Claim:
        return Claim(algebra.any_of((self.node, other.node)))

    def __invert__(self) -> Claim:
        return Claim(algebra.negate(self.node))

    def __bool__(self) -> bool:
        if self.node is algebra.TRUE:
            return True
        if self.node is algebra.FALSE:
            return False
        raise LayoutError(
            "E811",
            f"`{show(self.node)}` has no truth value: it holds for some sizes and not for others",
            help="pass it to `under(...)` as an assumption; combine claims with `&` and `|`",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return Claim, (self.node,)

    def __repr__(self) -> str:
        return show(self.node)


class Size:
    """An integer expression of symbols: `M`, `M // 128`, `K * 2 + 1`. Comparisons give claims."""

    __slots__ = ("node",)
    __array_ufunc__ = None
    """Makes NumPy defer `np.int64(2) * M` to `Size` instead of building an array."""

    def __init__(self, node: Index) -> None:
        self.node = node

    def __add__(self, other: SizeLike) -> Size:
        return Size(algebra.add(self.node, node_of(other)))

    __radd__ = __add__

    def __sub__(self, other: SizeLike) -> Size:
        return Size(algebra.sub(self.node, node_of(other)))

    def __rsub__(self, other: SizeLike) -> Size:
        return Size(algebra.sub(node_of(other), self.node))

    def __neg__(self) -> Size:
        return Size(algebra.neg(self.node))

    def __mul__(self, other: SizeLike) -> Size:
        return Size(algebra.mul(self.node, node_of(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: SizeLike) -> Size:
        return Size(algebra.floordiv(self.node, _divisor(other)))

    def __rfloordiv__(self, other: SizeLike) -> Size:
        return Size(algebra.floordiv(node_of(other), _divisor(self)))

    def __mod__(self, other: SizeLike) -> Size:
        return Size(algebra.mod(self.node, _divisor(other)))

    def __rmod__(self, other: SizeLike) -> Size:
        return Size(algebra.mod(node_of(other), _divisor(self)))

    def __lt__(self, other: SizeLike) -> Claim:
        return Claim(algebra.lt(self.node, node_of(other)))

    def __le__(self, other: SizeLike) -> Claim:
        return Claim(algebra.le(self.node, node_of(other)))

    def __gt__(self, other: SizeLike) -> Claim:
        return Claim(algebra.lt(node_of(other), self.node))

    def __ge__(self, other: SizeLike) -> Claim:
        return Claim(algebra.le(node_of(other), self.node))

    def __eq__(self, other: object) -> Claim:  # pyright: ignore[reportIncompatibleMethodOverride] reason: a condition
        return Claim(algebra.eq(self.node, node_of(other)))

    def __ne__(self, other: object) -> Claim:  # pyright: ignore[reportIncompatibleMethodOverride] reason: a condition
        return Claim(algebra.negate(algebra.eq(self.node, node_of(other))))

    def __hash__(self) -> int:
        return hash(self.node)

    def __index__(self) -> int:
        if isinstance(self.node, Const):
            return self.node.value
        _no_number(self)

    def __reduce__(self) -> tuple[object, ...]:
        return Size, (self.node,)

    def __repr__(self) -> str:
        return show(self.node)


def condition_of(fact: object) -> Cond:
    """The condition of a claim or a bool. Raises LayoutError (E801) for anything else, truthy or not."""
    if isinstance(fact, bool):
        return algebra.TRUE if fact else algebra.FALSE
    if isinstance(fact, Claim):
        return fact.node
    raise malformed(f"{fact!r} is no claim, it is a {type(fact).__name__}", "write a comparison: `M % 128 == 0`")


def _divisor(value: SizeLike) -> Index:
    node = node_of(value)
    if node is algebra.const(0):
        raise malformed("a size is divided by zero", "divide by a positive number")
    return node


def _no_number(size: Size) -> NoReturn:
    raise LayoutError(
        "E811",
        f"`{size}` has no value: Python asks for a number",
        help="substitute values first: `layout.substitute({M: 256})`",
    )


def symbols(names: str, low: SupportsIndex | None = 1, high: SupportsIndex | None = None) -> tuple[Size, ...]:
    """One symbol per name; names are separated by spaces or commas. Its values are in `low` .. `high`; None: unbounded.

    Raises LayoutError (E801) for a name that is not an identifier, a bound that is not an integer, or an empty range.
    """
    found = tuple(names.replace(",", " ").split())
    for name in found:
        if not name.isidentifier():
            raise malformed(f"`{name}` is no name for a symbol", "use letters, digits and underscores")
    least, most = (
        None if bound is None else checked_integer(bound, "give an int or None as a bound") for bound in (low, high)
    )
    if least is not None and most is not None and least > most:
        raise malformed(f"no integer is within {least} .. {most}, the bounds of {names}", "give low <= high")
    return tuple(Size(algebra.sym(Symbol(name, "size", least, most))) for name in found)
