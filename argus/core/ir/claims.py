"""What a program asserts of tags."""

from __future__ import annotations

from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Cond, Index, Symbol
from argus.core.ir.storage import View
from argus.core.layout import TV


@frozen(eq=False)
class TagOf:
    """The component `name` of the tags of a view's elements.

    by: who holds the elements that are spoken of, over the view's coordinates; None for the layout of the view's
    buffer. back: as it was when the claim stood here so many iterations of the innermost loop before.
    """

    view: View
    name: str
    by: TV | None = None
    back: int = 0


@frozen(eq=False)
class Equal:
    """Element by element, as each thread holds them, the two components agree."""

    left: TagOf
    right: TagOf


@frozen(eq=False)
class Distinct:
    """No two elements of the view have equal tuples of these components.

    over: variables of loops and coordinates of blocks: nor have elements of executions that differ in these alone.
    """

    components: tuple[TagOf, ...]
    over: tuple[Symbol, ...] = ()


@frozen(eq=False)
class Relation:
    """`cond` over the components that `names` binds to symbols, element by element."""

    names: tuple[tuple[Symbol, TagOf], ...]
    cond: Cond


@frozen(eq=False)
class Covers:
    """The set component holds every integer of [low, high) once and nothing else, at each element."""

    of: TagOf
    low: Index
    high: Index
    where: Cond = TRUE


@frozen(eq=False)
class Order:
    """What is summed over the component comes in increasing order, from one product of tiles to the next."""

    of: TagOf


@frozen(eq=False)
class WrittenOnce:
    """Each element of the tensor at whose coordinates `where` holds is stored exactly once, by a value with this
    record (over coordinates); the others are not stored at all.
    """

    view: View
    record: tuple[tuple[str, Index], ...]
    where: Cond = TRUE


@frozen(eq=False)
class Products:
    """Each element of the view is the sum of these products of elements of two tensors, by their places.

    over: symbols in the places, for every value from 0 below an extent.
    """

    view: View
    products: tuple[tuple[tuple[Index, ...], tuple[Index, ...]], ...]
    over: tuple[tuple[Symbol, Index], ...] = ()


Claim = Equal | Distinct | Relation | Covers | Order | WrittenOnce | Products
