"""Register tiles of the language: results are immutable values; `registers` are assigned in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, Union, cast, overload

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import ElementWise, Int, axis_values, extents, number, unwrap
from argus.core.dsl.tiles import reductions
from argus.core.dsl.tiles.masks import ElementCondition, Mask, as_mask, check_axes
from argus.core.dsl.tiles.reductions import Within
from argus.core.dsl.tiles.values import (
    Places,
    RegisterTile,
    check_dtype,
    check_operation,
    check_types,
    compute_tile,
    covering_tile,
    gathered,
    layout_mismatch,
    literal,
    subtile_layout,
)
from argus.core.dsl.tiles.values import fresh as fresh_registers
from argus.core.dsl.tracer import current
from argus.core.dsl.values import Operand as ValueOperand
from argus.core.dsl.values import Value, applied, in_formula
from argus.core.dsl.views import TagNames
from argus.core.dtype import DType, e4m3, e4m3fnuz
from argus.core.elementwise import ELEMENT_OPS
from argus.core.ir import Cast, Compare, Elem, Lit, Map, Num, Op, Test, View, Where
from argus.core.layout import TV
from argus.core.walk import substitute

Operand = Union["Fragment", Int, float]
V = TypeVar("V", "Fragment", Value)
Combiner = Callable[["Fragment", "Fragment"], "Fragment"]


class Fragment(ElementWise):
    """A tile in registers under a thread-value layout, or a subtile of one."""

    __slots__ = ("_layout", "mutable", "view")

    def __init__(self, view: View, *, mutable: bool, layout: TV | None = None) -> None:
        self.view = view
        self.mutable = mutable
        self._layout = layout

    @property
    def register_tile(self) -> RegisterTile:
        return RegisterTile(self.view, self.layout)

    @property
    def layout(self) -> TV:
        layout = self.view.buffer.layout if self._layout is None else self._layout
        assert isinstance(layout, TV)
        return layout

    def tile(self, shape: tuple[int, ...], at: tuple[int, ...]) -> Fragment:
        """Read-only subtile `at` of a grid of subtiles of this shape: a subset of the same registers.

        Raises E101 for a symbolic `at`, E109 unless every thread holds elements of each subtile.
        """
        sizes = extents(shape, "a tile")
        what = "the number of a tile of registers"
        numbers = tuple(number(part, what) for part in axis_values(at, "the number of a tile"))
        layout = subtile_layout(self.layout, sizes)
        if len(numbers) != len(sizes) or not all(
            0 <= part < whole // size for part, whole, size in zip(numbers, self.shape, sizes, strict=True)
        ):
            fault("E106", f"a fragment of {self.shape} has no part {numbers} of {sizes}", help="parts count from 0")
        starts = enumerate(zip(numbers, sizes, strict=True))
        inner = tuple(algebra.add(algebra.coord(axis), part * size) for axis, (part, size) in starts)
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
        """The coordinates of each element, for masks: `row, col = s.index`."""
        return tuple(Int(algebra.coord(axis)) for axis in range(len(self.shape)))

    @property
    def tag(self) -> TagNames:
        return TagNames(self.view, self._layout)

    def to(self, dtype: DType, *, saturate: bool = False) -> Fragment:
        """The same elements rounded to another type.

        saturate: to e4m3 from a wider float type, what lies beyond 448 becomes 448, and below -448 it becomes -448,
        instead of NaN; on sm_90a one instruction for two f32 elements. To e4m3fnuz, 240 and -240. A formula of it has a
        minimum and a maximum, unless the elements provably lie between.
        """
        check_dtype(dtype)
        elem = _element_expr(self, self.layout)
        if saturate:
            if dtype not in (e4m3, e4m3fnuz) or self.dtype.family != "float" or self.dtype.bits == dtype.bits:
                said = f"`saturate` from {self.dtype} to {dtype}"
                fault("E106", said, help="it is for wider floats that are rounded to `e4m3` or `e4m3fnuz`")
            elem = Op("clamp", (elem, Lit(-dtype.greatest), Lit(dtype.greatest)))
        return _value(compute_tile(Cast(dtype, elem), dtype, self.layout, "value"))

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
        self._assign(_element_expr(value, self.layout))

    def _update(self, name: str, other: Operand) -> Fragment:
        self._check(other, name)
        return self._assign(Op(name, (_element_expr(self, self.layout), _element_expr(other, self.layout))))

    def _check(self, other: Operand, name: str) -> None:
        """Raises E205 or E106 unless each thread holds the operand's elements for its elements of this tile."""
        if name in ELEMENT_OPS:
            check_operation(name, self.dtype)
        for tile in _register_tiles((other,)):
            if tile.element_for(self.layout) is None:
                layout_mismatch(name, self.layout, tile.layout)
            check_types(name, (self.register_tile, tile))

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
        """Read-only transpose: the same registers with the axes reversed."""
        rank = len(self.shape)
        order = tuple(algebra.coord(rank - 1 - axis) for axis in range(rank))
        at = tuple(substitute(expression, {}, order) for expression in self.view.at)
        view = View(self.view.buffer, tuple(reversed(self.view.shape)), at)
        return Fragment(view, mutable=False, layout=self.layout.T)

    def gather(self, layout: TV, place: Places) -> Fragment:
        """The elements at `place(*coordinates)` for those of `layout`; E205 unless each thread holds what it takes."""
        return _value(gathered(self.register_tile, layout, place))

    def fold(
        self, axis: int, op: Combiner, *, within: Within | None = None, where: ElementCondition = True
    ) -> Fragment:
        """A reduction along an axis by `add`, `mul`, `maximum` or `minimum`, in unspecified order.

        within: `thread` reduces the elements that each thread holds, `warp` those of each warp; the result then has one
        element for each group that holds a different part of a row. By default the whole row is reduced, which one warp
        must hold. where: the elements to reduce; the others are replaced by the neutral element.
        """
        name = reductions.operation(op, _FOLDS)
        chosen = self if where is True else select(where, self, reductions.neutral(name))
        return _value(reductions.reduce(chosen.register_tile, axis, name, within))

    def sum(self, axis: int, *, within: Within | None = None, where: ElementCondition = True) -> Fragment:
        return self.fold(axis, add, within=within, where=where)

    def max(self, axis: int, *, within: Within | None = None, where: ElementCondition = True) -> Fragment:
        return self.fold(axis, maximum, within=within, where=where)

    def min(self, axis: int, *, within: Within | None = None, where: ElementCondition = True) -> Fragment:
        return self.fold(axis, minimum, within=within, where=where)

    def scan(self, axis: int, op: Combiner, *, within: Within) -> Fragment:
        """An inclusive scan along an axis, over the elements that each thread (or warp) holds."""
        return _value(reductions.scan(self.register_tile, axis, reductions.operation(op, _FOLDS), within))

    def last(self, axis: int, *, within: Within | None = None) -> Fragment:
        """The last element along an axis that a thread holds, or its warp if the thread holds only one."""
        return _value(reductions.last(self.register_tile, axis, within))

    def shift(self, axis: int, distance: int, *, fill: float) -> Fragment:
        """The element of the lane `distance` lanes earlier, `fill` beyond the warp; needs one element per lane."""
        return _value(reductions.shift(self.register_tile, axis, distance, fill))

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


def _value(value: RegisterTile) -> Fragment:
    return Fragment(value.view, mutable=False, layout=value.layout)


def fresh(dtype: DType, layout: TV, kind: str) -> Fragment:
    """A new immutable tile, which the next statement must write."""
    return _value(fresh_registers(dtype, layout, kind))


def _register_tiles(operands: Sequence[Operand]) -> list[RegisterTile]:
    return [operand.register_tile for operand in operands if isinstance(operand, Fragment)]


def _element_expr(value: Operand, layout: TV) -> Elem:
    """An operand as an element expression over a layout that covers it, broadcast to it if it has fewer axes."""
    if isinstance(value, Fragment):
        found = value.register_tile.element_for(layout)
        assert found is not None, "the layout covers all operands"
        return found
    if isinstance(value, Int):
        check_axes(value.node, layout)
        return Num(value.node)
    return literal(value)


def elementwise(name: str, *operands: Operand) -> Fragment:
    """An operation of the table `argus.core.elementwise` on tiles and numbers.

    In a formula, the operation on its values. Raises E205 unless all tiles can be broadcast to one of them, with every
    thread holding its operands.
    """
    if in_formula():
        return cast("Fragment", applied(name, *operands))
    chosen = covering_tile(name, _register_tiles(operands))
    check_operation(name, chosen.dtype)
    assert ELEMENT_OPS[name].arity == len(operands)
    elem = Op(name, tuple(_element_expr(operand, chosen.layout) for operand in operands))
    return _value(compute_tile(elem, chosen.dtype, chosen.layout, "value"))


def _comparable(value: object) -> Operand:
    if isinstance(value, Fragment | Int | int | float):
        return value
    said = f"a register tile is compared with {describe_value(value)}"
    fault("E106", said, help="compare it with a tile or a number")


def _compare(left: Fragment, right: Operand, test: Callable[[Elem, Elem], Test]) -> Mask:
    tiles = _register_tiles((left, right))
    covering_tile("comparison", tiles)
    return Mask(tuple(tiles), lambda layout: test(_element_expr(left, layout), _element_expr(right, layout)))


def select(cond: ElementCondition, then: Operand, other: Operand, dtype: DType | None = None) -> Fragment:
    """`then` at elements where the condition holds, else `other`. dtype: of two numbers; None: of what is compared."""
    mask, values = as_mask(cond), _register_tiles((then, other))
    if dtype is not None and values:
        fault("E106", "`where` of tiles has their type", help="leave `dtype` out, and convert the tiles")
    chosen = covering_tile("where", [*values, *mask.tiles], typed=not values)
    check_types("where", values)
    elem = Where(mask.build(chosen.layout), _element_expr(then, chosen.layout), _element_expr(other, chosen.layout))
    return _value(compute_tile(elem, dtype or (values or [chosen])[0].dtype, chosen.layout, "value"))


def add(a: Fragment, b: Operand) -> Fragment:
    """a + b; also the operator of a sum: `x.fold(0, add)`."""
    return elementwise("add", a, b)


def mul(a: Fragment, b: Operand) -> Fragment:
    """a * b; also the operator of a product: `x.fold(0, mul)`."""
    return elementwise("mul", a, b)


@overload
def maximum(a: Int | int, b: Int | int) -> Int: ...


@overload
def maximum(a: Fragment, b: Operand) -> Fragment: ...


@overload
def maximum(a: Operand, b: Fragment) -> Fragment: ...


@overload
def maximum(a: Value, b: ValueOperand) -> Value: ...


@overload
def maximum(a: ValueOperand, b: Value) -> Value: ...


def maximum(a: Operand | ValueOperand, b: Operand | ValueOperand) -> Fragment | Int | Value:
    """The elementwise maximum of tiles, or the maximum of integers."""
    if isinstance(a, Int | int) and isinstance(b, Int | int):
        return Int(algebra.maximum(unwrap(a), unwrap(b)))
    return elementwise("max", cast(Operand, a), cast(Operand, b))


@overload
def minimum(a: Int | int, b: Int | int) -> Int: ...


@overload
def minimum(a: Fragment, b: Operand) -> Fragment: ...


@overload
def minimum(a: Operand, b: Fragment) -> Fragment: ...


@overload
def minimum(a: Value, b: ValueOperand) -> Value: ...


@overload
def minimum(a: ValueOperand, b: Value) -> Value: ...


def minimum(a: Operand | ValueOperand, b: Operand | ValueOperand) -> Fragment | Int | Value:
    """The elementwise minimum of tiles, or the minimum of integers."""
    if isinstance(a, Int | int) and isinstance(b, Int | int):
        return Int(algebra.minimum(unwrap(a), unwrap(b)))
    return elementwise("min", cast(Operand, a), cast(Operand, b))


def maximum_nan(a: V, b: Operand) -> V:
    """The elementwise maximum, NaN where either is, as torch's `maximum`; `maximum` gives the other operand there."""
    return cast(V, elementwise("max_nan", cast(Fragment, a), b))


def minimum_nan(a: V, b: Operand) -> V:
    """The elementwise minimum, NaN where either is, as torch's `minimum`; `minimum` gives the other operand there."""
    return cast(V, elementwise("min_nan", cast(Fragment, a), b))


_FOLDS: dict[object, str] = {add: "add", mul: "mul", maximum: "max", minimum: "min"}
_FOLDS.update({maximum_nan: "max_nan", minimum_nan: "min_nan"})
