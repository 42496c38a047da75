"""Register values as user code sees them: eager and immutable, but for `registers`, which assign in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union, overload

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, ElementWise, Int, axis_values, extents, number, unwrap
from argus.core.dsl.tiles import reductions
from argus.core.dsl.tiles.masks import ElementCondition, Mask, as_mask, check_axes
from argus.core.dsl.tiles.reductions import Within
from argus.core.dsl.tiles.values import RegisterTile, check_dtype, check_types, computed, covering_tile, layout_mismatch
from argus.core.dsl.tiles.values import fresh as fresh_registers
from argus.core.dsl.tracer import current
from argus.core.dsl.views import TagNames
from argus.core.dtype import DType
from argus.core.elementwise import ELEMENT_OPS
from argus.core.ir import Cast, Compare, Elem, Lit, Map, Num, Op, Test, View, Where
from argus.core.layout import TV
from argus.core.layout.thread_value.facets import Facet
from argus.core.tiling import subtile
from argus.core.walk import substitute

Operand = Union["Fragment", Int, float]
Combines = Callable[["Fragment", "Fragment"], "Fragment"]


class Fragment(ElementWise):
    """A tile in registers under a thread-value layout, or a tile cut from one."""

    __slots__ = ("_layout", "mutable", "view")

    def __init__(self, view: View, *, mutable: bool, layout: TV | None = None) -> None:
        self.view = view
        self.mutable = mutable
        self._layout = layout

    @property
    def held(self) -> RegisterTile:
        return RegisterTile(self.view, self.layout)

    @property
    def layout(self) -> TV:
        layout = self.view.buffer.layout if self._layout is None else self._layout
        assert isinstance(layout, TV)
        return layout

    def tile(self, shape: tuple[int, ...], at: tuple[int, ...]) -> Fragment:
        """The part number `at` of a grid of parts of this shape, to be read: the same registers, fewer of them.

        Raises E101 for a number that is not known while tracing, E109 unless all threads hold a share of each part.
        """
        sizes = extents(shape, "a tile")
        numbers = tuple(
            number(part, "the number of a tile of registers") for part in axis_values(at, "the number of a tile")
        )
        layout = _part(self.layout, sizes)
        if len(numbers) != len(sizes) or not all(
            0 <= part < whole // size for part, whole, size in zip(numbers, self.shape, sizes, strict=True)
        ):
            fault("E106", f"a fragment of {self.shape} has no part {numbers} of {sizes}", help="parts count from 0")
        inner = tuple(
            algebra.add(algebra.coord(axis), part * size)
            for axis, (part, size) in enumerate(zip(numbers, sizes, strict=True))
        )
        moved = tuple(substitute(expression, {}, inner) for expression in self.view.at)
        shape_ = tuple(algebra.const(size) for size in sizes)
        return Fragment(View(self.view.buffer, shape_, moved), mutable=False, layout=layout)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.tile

    @property
    def dtype(self) -> DType:
        return self.view.buffer.dtype

    @property
    def index(self) -> tuple[Int, ...]:
        """Each element's own coordinates, for masks: `row, col = s.index`."""
        return tuple(Int(algebra.coord(axis)) for axis in range(len(self.shape)))

    @property
    def tag(self) -> TagNames:
        return TagNames(self.view, self._layout)

    def to(self, dtype: DType) -> Fragment:
        """The same elements rounded to another type."""
        check_dtype(dtype)
        return _made(computed(Cast(dtype, _elem(self, self.layout)), dtype, self.layout, "value"))

    def __add__(self, other: Operand) -> Fragment:
        return elementwise("add", self, other)

    def __radd__(self, other: Operand) -> Fragment:
        return elementwise("add", other, self)

    def __sub__(self, other: Operand) -> Fragment:
        return elementwise("sub", self, other)

    def __rsub__(self, other: Operand) -> Fragment:
        return elementwise("sub", other, self)

    def __mul__(self, other: Operand) -> Fragment:
        return elementwise("mul", self, other)

    def __rmul__(self, other: Operand) -> Fragment:
        return elementwise("mul", other, self)

    def __truediv__(self, other: Operand) -> Fragment:
        return elementwise("div", self, other)

    def __rtruediv__(self, other: Operand) -> Fragment:
        return elementwise("div", other, self)

    def __neg__(self) -> Fragment:
        return elementwise("neg", self)

    def __iadd__(self, other: Operand) -> Fragment:
        return self._update("add", other)

    def __isub__(self, other: Operand) -> Fragment:
        return self._update("sub", other)

    def __imul__(self, other: Operand) -> Fragment:
        return self._update("mul", other)

    def __itruediv__(self, other: Operand) -> Fragment:
        return self._update("div", other)

    def __setitem__(self, item: slice, value: Operand) -> None:
        if item != slice(None):
            fault("E106", "only the whole of a register tile can be assigned", help="write `x[:] = value`")
        self._check(value, "assignment")
        self._assign(_elem(value, self.layout))

    def _update(self, name: str, other: Operand) -> Fragment:
        self._check(other, name)
        return self._assign(Op(name, (_elem(self, self.layout), _elem(other, self.layout))))

    def _check(self, other: Operand, name: str) -> None:
        """Raises E205 or E106 unless each thread holds what its own elements here become."""
        for tile in _tiles((other,)):
            if tile.under(self.layout) is None:
                layout_mismatch(name, self.layout, tile.layout)
            check_types(name, (self.held, tile))

    def _assign(self, elem: Elem) -> Fragment:
        if not self.mutable:
            fault(
                "E106",
                f"`{self.view.buffer.name}` is an immutable value",
                here="assigned here",
                help="make it with `registers(dtype, layout)` to assign it in place",
            )
        tracer = current("assignment")
        tracer.emit(Map(self.view, elem, span=tracer.span()))
        return self

    @property
    def T(self) -> Fragment:  # noqa: N802 reason: NumPy's name
        """The same registers under the axes in reverse order, to be read."""
        rank = len(self.shape)
        order = tuple(algebra.coord(rank - 1 - axis) for axis in range(rank))
        at = tuple(substitute(expression, {}, order) for expression in self.view.at)
        view = View(self.view.buffer, tuple(reversed(self.view.shape)), at)
        return Fragment(view, mutable=False, layout=self.layout.T)

    def fold(
        self, axis: int, op: Combines, *, within: Within | None = None, where: ElementCondition = True
    ) -> Fragment:
        """Each row folded along an axis by `add`, `mul`, `maximum` or `minimum`, in any order.

        within: `thread` folds what each thread holds, `warp` what each warp does; the result then has one number for
        each that holds a different part. Without it all of the row, which must lie in one warp. where: the elements
        that count; for the others the operation's neutral element stands.
        """
        name = reductions.operation(op, _FOLDS)
        chosen = self if where is True else _where(where, self, reductions.neutral(name))
        return _made(reductions.total(chosen.held, axis, name, within))

    def sum(self, axis: int, *, within: Within | None = None, where: ElementCondition = True) -> Fragment:
        return self.fold(axis, add, within=within, where=where)

    def max(self, axis: int, *, within: Within | None = None, where: ElementCondition = True) -> Fragment:
        return self.fold(axis, maximum, within=within, where=where)

    def min(self, axis: int, *, within: Within | None = None, where: ElementCondition = True) -> Fragment:
        return self.fold(axis, minimum, within=within, where=where)

    def scan(self, axis: int, op: Combines, *, within: Within) -> Fragment:
        """Each element folded with those before it along an axis that its thread (or warp) holds."""
        return _made(reductions.prefix(self.held, axis, reductions.operation(op, _FOLDS), within))

    def last(self, axis: int, *, within: Within | None = None) -> Fragment:
        """The last element along an axis of those of a thread, or where it holds one only, of those of its warp."""
        return _made(reductions.last(self.held, axis, within))

    def shift(self, axis: int, distance: int, *, fill: float) -> Fragment:
        """The element of `distance` lanes before, `fill` where that is another warp's. One element a lane."""
        return _made(reductions.shift(self.held, axis, distance, fill))

    def __lt__(self, other: Operand) -> Mask:
        return _compare(self, other, lambda a, b: Compare("<", a, b))

    def __le__(self, other: Operand) -> Mask:
        return _compare(self, other, lambda a, b: Compare("<=", a, b))

    def __gt__(self, other: Operand) -> Mask:
        return _compare(self, other, lambda a, b: Compare("<", b, a))

    def __ge__(self, other: Operand) -> Mask:
        return _compare(self, other, lambda a, b: Compare("<=", b, a))

    def __eq__(self, other: object) -> Mask:  # pyright: ignore[reportIncompatibleMethodOverride]  # as `<`: for elements
        return _compare(self, _comparable(other), lambda a, b: Compare("==", a, b))

    def __ne__(self, other: object) -> Mask:  # pyright: ignore[reportIncompatibleMethodOverride]  # as `<`: for elements
        return ~_compare(self, _comparable(other), lambda a, b: Compare("==", a, b))

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        fault("E101", f"the register tile `{self.view.buffer.name}` has no truth value", help="use `where(...)`")

    def __repr__(self) -> str:
        return f"{self.view.buffer.name}: {self.dtype} {self.layout}"


def _made(value: RegisterTile) -> Fragment:
    return Fragment(value.view, mutable=False, layout=value.layout)


def _part(layout: TV, sizes: tuple[int, ...]) -> TV:
    """Who holds what of a tile cut from a fragment. Raises E109."""
    help_ = "cut along the axes that each thread holds several registers of"
    if any(facet.extent != facet.of for facet in layout.facets):
        fault("E109", f"a part of a fragment of {layout.tile} that numbers groups of threads", help=help_)
    try:
        found = subtile(layout, sizes)
    except ValueError as problem:
        fault("E109", str(problem), help=help_)
    facets = tuple(Facet(whole.axis, size, ((1, size),)) for whole, size in zip(layout.facets, sizes, strict=True))
    return TV(found.threads, found.values, sizes, facets)


def fresh(dtype: DType, layout: TV, kind: str) -> Fragment:
    """An immutable value, to be written once by the statement that follows."""
    return _made(fresh_registers(dtype, layout, kind))


def _tiles(operands: Sequence[Operand]) -> list[RegisterTile]:
    return [operand.held for operand in operands if isinstance(operand, Fragment)]


def _elem(value: Operand, layout: TV) -> Elem:
    """What an operand is for the elements of a layout that it has its part in."""
    if isinstance(value, Fragment):
        found = value.held.under(layout)
        assert found is not None, "a leader has been chosen"
        return found
    if isinstance(value, Int):
        check_axes(value.node, layout)
        return Num(value.node)
    if isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return Lit(float(value))
    fault("E106", f"expected a register tile or a number, found {describe_value(value)}")


def elementwise(name: str, *operands: Operand) -> Fragment:
    """One operation of the table `argus.core.elementwise` on tiles and numbers.

    Raises E205 unless one of the tiles has elements that all others have their part in, by coordinates.
    """
    chosen = covering_tile(name, _tiles(operands))
    assert ELEMENT_OPS[name].arity == len(operands)
    elem = Op(name, tuple(_elem(operand, chosen.layout) for operand in operands))
    return _made(computed(elem, chosen.dtype, chosen.layout, "value"))


def _comparable(value: object) -> Operand:
    if isinstance(value, Fragment | Int | int | float):
        return value
    fault(
        "E106", f"a register tile is compared with {describe_value(value)}", help="compare it with a tile or a number"
    )


def _compare(left: Fragment, right: Operand, test: Callable[[Elem, Elem], Test]) -> Mask:
    tiles = _tiles((left, right))
    covering_tile("comparison", tiles)
    return Mask(tuple(tiles), lambda layout: test(_elem(left, layout), _elem(right, layout)))


def _where(cond: ElementCondition, then: Operand, other: Operand) -> Fragment:
    mask = as_mask(cond)
    values = _tiles((then, other))
    chosen = covering_tile("where", [*values, *mask.tiles])
    elem = Where(mask.build(chosen.layout), _elem(then, chosen.layout), _elem(other, chosen.layout))
    return _made(computed(elem, chosen.dtype, chosen.layout, "value"))


@overload
def where(cond: Bool, then: Int | int, other: Int | int) -> Int: ...


@overload
def where(cond: ElementCondition, then: Fragment, other: Operand) -> Fragment: ...


@overload
def where(cond: ElementCondition, then: Operand, other: Fragment) -> Fragment: ...


@overload
def where(cond: Mask, then: Operand, other: Operand) -> Fragment: ...


def where(cond: ElementCondition, then: Operand, other: Operand) -> Fragment | Int:
    """`then` at the elements that satisfy the condition, else `other`; of two integers, an integer.

    The condition speaks of coordinates (`row < column`, with `row, column = x.index`) or compares elements.
    """
    if isinstance(cond, Bool) and isinstance(then, Int | int) and isinstance(other, Int | int):
        return Int(algebra.pick(cond.node, unwrap(then), unwrap(other)))
    return _where(cond, then, other)


def add(a: Fragment, b: Operand) -> Fragment:
    """a + b, and the name of a sum: `x.fold(0, add)`."""
    return elementwise("add", a, b)


def mul(a: Fragment, b: Operand) -> Fragment:
    """a * b, and the name of a product: `x.fold(0, mul)`."""
    return elementwise("mul", a, b)


@overload
def maximum(a: Int | int, b: Int | int) -> Int: ...


@overload
def maximum(a: Fragment, b: Operand) -> Fragment: ...


@overload
def maximum(a: Operand, b: Fragment) -> Fragment: ...


def maximum(a: Operand, b: Operand) -> Fragment | Int:
    """The larger, of tiles element by element or of integers."""
    if isinstance(a, Int | int) and isinstance(b, Int | int):
        return Int(algebra.maximum(unwrap(a), unwrap(b)))
    return elementwise("max", a, b)


@overload
def minimum(a: Int | int, b: Int | int) -> Int: ...


@overload
def minimum(a: Fragment, b: Operand) -> Fragment: ...


@overload
def minimum(a: Operand, b: Fragment) -> Fragment: ...


def minimum(a: Operand, b: Operand) -> Fragment | Int:
    """The smaller, of tiles element by element or of integers."""
    if isinstance(a, Int | int) and isinstance(b, Int | int):
        return Int(algebra.minimum(unwrap(a), unwrap(b)))
    return elementwise("min", a, b)


_FOLDS: dict[object, str] = {add: "add", mul: "mul", maximum: "max", minimum: "min"}
