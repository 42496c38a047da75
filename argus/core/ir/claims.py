"""Claims: what a kernel asserts about the tags and the values of its elements."""

from __future__ import annotations

from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Cond, Index, Symbol
from argus.core.ir.storage import View
from argus.core.layout import TV
from argus.core.values.expr import Expr


@frozen(eq=False)
class TagOf:
    """The component `name` of the tags of a view's elements.

    by: the thread-value layout that says which thread checks which element, over the view's coordinates; None for the
    layout of the view's buffer. back: the value at the claim `back` iterations of the innermost loop earlier.
    """

    view: View
    name: str
    by: TV | None = None
    back: int = 0


@frozen(eq=False)
class Equal:
    """The two components are equal at each (thread, value) pair."""

    left: TagOf
    right: TagOf


@frozen(eq=False)
class Distinct:
    """No two elements of the view have equal tuples of these components.

    over: loop variables and block coordinates. Elements from two executions of the claim that differ only in these
    are distinct as well.
    """

    components: tuple[TagOf, ...]
    over: tuple[Symbol, ...] = ()


@frozen(eq=False)
class Relation:
    """`cond` holds at each element, over the components that `names` binds to symbols."""

    names: tuple[tuple[Symbol, TagOf], ...]
    cond: Cond


@frozen(eq=False)
class Covers:
    """At each element, the set component contains every integer of [low, high) exactly once and nothing else."""

    of: TagOf
    low: Index
    high: Index
    where: Cond = TRUE


@frozen(eq=False)
class Order:
    """Successive tile products are accumulated in increasing order of the component."""

    of: TagOf


@frozen(eq=False)
class WrittenOnce:
    """Each element at whose coordinates `where` holds is stored exactly once, and the others are never stored.

    record: expressions over the element's coordinates, which the tag of the stored value must equal.
    """

    view: View
    record: tuple[tuple[str, Index], ...]
    where: Cond = TRUE


@frozen(eq=False)
class Products:
    """Each element of the view is the sum of products of elements of two tensors.

    products: the coordinates of the two factors of each product, over the element's coordinates and the symbols of
    `over`. over: summation symbols, each with its extent: it takes every value in [0, extent).
    """

    view: View
    products: tuple[tuple[tuple[Index, ...], tuple[Index, ...]], ...]
    over: tuple[tuple[Symbol, Index], ...] = ()


@frozen(eq=False)
class Equals:
    """Each element of the view at whose coordinates `where` holds equals the formula over the reals, at all inputs.

    formula: over the element's coordinates, sizes, and the elements that tensors have when the kernel starts.
    before: the tensors that it names although the kernel writes them.
    """

    view: View
    formula: Expr
    where: Cond = TRUE
    before: tuple[str, ...] = ()


Claim = Equal | Distinct | Relation | Covers | Order | WrittenOnce | Products | Equals
