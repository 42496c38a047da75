"""Register values as user code sees them: eager and immutable, but for `registers`, which assign in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union, overload

from argus.core import algebra
from argus.core.dsl.faults import described, fault
from argus.core.dsl.handles import Bool, ElementWise, Int, as_cond, extents, number, several, unwrap
from argus.core.dsl.tracer import Tracer, current
from argus.core.dsl.views import TagNames
from argus.core.dtype import DType
from argus.core.elementwise import ELEMENT_OPS
from argus.core.ir import Alloc, Buffer, Cast, Elem, Get, Holds, Lit, Map, Num, Op, View, Where, whole
from argus.core.layout import TV
from argus.core.tiling import part_of
from argus.core.walk import substitute

Operand = Union["Fragment", Int, float]


class Fragment(ElementWise):
    """A tile in registers under a thread-value layout, or a tile cut from one."""

    __slots__ = ("_layout", "mutable", "view")

    def __init__(self, view: View, *, mutable: bool, layout: TV | None = None) -> None:
        self.view = view
        self.mutable = mutable
        self._layout = layout

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
            number(part, "the number of a tile of registers") for part in several(at, "the number of a tile")
        )
        try:
            layout = part_of(self.layout, sizes)
        except ValueError as problem:
            fault("E109", str(problem), help="cut along the axes that each thread holds several registers of")
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
        return TagNames(self.view)

    def to(self, dtype: DType) -> Fragment:
        """The same elements rounded to another type."""
        check_dtype(dtype)
        return _emit(Cast(dtype, _get(self)), dtype, self.layout, "value")

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
        _leader("assignment", (self, value))
        self._assign(_elem(value))

    def _update(self, name: str, other: Operand) -> Fragment:
        _leader(name, (self, other))
        return self._assign(Op(name, (_get(self), _elem(other))))

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

    def __bool__(self) -> bool:
        fault("E101", f"the register tile `{self.view.buffer.name}` has no truth value", help="use `where(...)`")

    def __repr__(self) -> str:
        return f"{self.view.buffer.name}: {self.dtype} {self.layout}"


def registers(dtype: DType, layout: TV) -> Fragment:
    """A register tile, uninitialised, assigned in place (`x[:] = ...`, `x += ...`, `copy`, `mma`)."""
    tracer = current("registers")
    return Fragment(_allocate(tracer, dtype, layout, tracer.name("registers")), mutable=True)


def zeros(dtype: DType, layout: TV) -> Fragment:
    """A register tile of zeros, assigned in place."""
    tracer = current("zeros")
    view = _allocate(tracer, dtype, layout, tracer.name("zeros"))
    tracer.emit(Map(view, Lit(0.0), span=tracer.span()))
    return Fragment(view, mutable=True)


def _allocate(tracer: Tracer, dtype: DType, layout: TV, name: str) -> View:
    check_dtype(dtype)
    check_layout(layout)
    agent = tracer.agent
    if layout.threads.size() != agent.threads:
        whose = f"role `{agent.name}`" if agent.name else "kernel"
        fault(
            "E109",
            f"a layout of {layout.threads.size()} threads in a {whose} of {agent.threads}",
            here="made here",
            help=f"spread the tile over as many threads or waves as the {'role' if agent.name else 'kernel'} has",
        )
    shape = tuple(algebra.const(extent) for extent in layout.tile)
    buffer = Buffer(name, "register", dtype, shape, layout, owner=agent.name, span=tracer.span())
    tracer.emit(Alloc(buffer, span=tracer.span()))
    return whole(buffer)


def check_dtype(dtype: DType) -> None:
    if not isinstance(dtype, DType):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106",
            f"expected an element type, found {described(dtype)}",
            help="use `bf16`, `f16`, `f32`, `e4m3` or `i32`",
        )


def check_layout(layout: TV) -> None:
    if not isinstance(layout, TV):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"expected a thread-value layout, found {described(layout)}", help="use `mm.A` or `spread(...)`")


def fresh(dtype: DType, layout: TV, kind: str) -> Fragment:
    """An immutable value, to be written once by the statement that follows."""
    tracer = current(kind)
    return Fragment(_allocate(tracer, dtype, layout, tracer.name(kind)), mutable=False)


def _emit(elem: Elem, dtype: DType, layout: TV, kind: str) -> Fragment:
    value = fresh(dtype, layout, kind)
    tracer = current(kind)
    tracer.emit(Map(value.view, elem, span=tracer.span()))
    return value


def _get(fragment: Fragment) -> Get:
    return Get(fragment.view, tuple(algebra.coord(axis) for axis in range(len(fragment.shape))))


def _elem(value: Operand) -> Elem:
    if isinstance(value, Fragment):
        return _get(value)
    if isinstance(value, Int):
        return Num(value.node)
    if isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return Lit(float(value))
    fault("E106", f"expected a register tile or a number, found {described(value)}")


def elementwise(name: str, *operands: Operand) -> Fragment:
    """One operation of the table `argus.core.elementwise` on tiles and numbers.

    Raises E106 unless the tiles have one layout and one type.
    """
    leader = _leader(name, operands)
    assert ELEMENT_OPS[name].arity == len(operands)
    return _emit(Op(name, tuple(_elem(operand) for operand in operands)), leader.dtype, leader.layout, "value")


def _leader(name: str, operands: Sequence[Operand]) -> Fragment:
    tiles = [operand for operand in operands if isinstance(operand, Fragment)]
    if not tiles:
        fault("E106", f"`{name}` needs a register tile among its operands")
    for tile in tiles[1:]:
        if tile.layout != tiles[0].layout:
            fault(
                "E205",
                f"`{name}` combines elements that different threads hold: {tiles[0].layout} and {tile.layout}",
                help="give both tiles one thread-value layout, or go through shared memory",
            )
        if tile.dtype != tiles[0].dtype:
            fault("E106", f"`{name}` combines {tiles[0].dtype} and {tile.dtype}", help="convert one with `.to(...)`")
    return tiles[0]


def exp2(x: Fragment) -> Fragment:
    """2 to the power of each element."""
    return elementwise("exp2", x)


def where(cond: Bool | bool, then: Operand, other: Operand) -> Fragment:
    """`then` at the elements whose coordinates satisfy the condition, else `other`."""
    leader = _leader("where", [then, other])
    elem = Where(Holds(as_cond(cond)), _elem(then), _elem(other))
    return _emit(elem, leader.dtype, leader.layout, "value")


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
