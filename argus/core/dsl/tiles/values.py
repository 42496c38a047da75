"""Register tiles behind the fragments of the language: allocation, broadcasting and type checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import NoReturn, cast, get_args

from attrs import frozen

from argus.core import algebra
from argus.core.check.register_operands import threads_hold
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import CoordinateFunction, Int, IntLike, axis_values, unwrap
from argus.core.dsl.tracer import Tracer, current
from argus.core.dtype import DType, i32, i64
from argus.core.elementwise import ELEMENT_OPS, INTEGER_OPS, WIDE_OPS
from argus.core.ir import Alloc, Buffer, Elem, File, Get, Lit, Map, View, whole
from argus.core.layout import TV
from argus.core.layout.thread_value.facets import Facet, coordinates_from_finer
from argus.core.target import Target
from argus.core.tiling import subtile

Places = CoordinateFunction[tuple[IntLike, ...]]
"""The coordinates of an element, for each element of another layout."""
_ACCUMULATOR_BITS = 32
"""The bits of an accumulation register."""


@frozen
class RegisterTile:
    """A view of registers under a thread-value layout of its own axes."""

    view: View
    layout: TV

    @property
    def dtype(self) -> DType:
        return self.view.buffer.dtype

    def element_for(self, layout: TV) -> Get | None:
        """The read of this tile's element that corresponds to each element of `layout`, by coordinates.

        A tile without an axis of `layout` is broadcast along it. None unless each thread holds the elements that it
        reads.
        """
        at = coordinates_from_finer(layout.facets, self.layout.facets)
        if at is None or not threads_hold(self.view, at, layout):
            return None
        return Get(self.view, at)


def covering_tile(name: str, tiles: Sequence[RegisterTile], *, typed: bool = True) -> RegisterTile:
    """The tile to which all others can be broadcast. Raises E106 for no tiles, E205 if there is no such tile.

    typed: raise E106 as well unless all have the same element type.
    """
    if not tiles:
        fault("E106", f"`{name}` needs a register tile among its operands")
    chosen = next((one for one in tiles if all(other.element_for(one.layout) is not None for other in tiles)), None)
    if chosen is None:
        other = next(tile for tile in tiles if tile.element_for(tiles[0].layout) is None)
        layout_mismatch(name, tiles[0].layout, other.layout)
    if typed:
        check_types(name, tiles)
    return chosen


def layout_mismatch(name: str, one: TV, other: TV) -> NoReturn:
    fault(
        "E205",
        f"`{name}` combines elements that different threads hold: {one} and {other}",
        help="give both tiles one thread-value layout, or go through shared memory",
    )


def check_types(name: str, tiles: Sequence[RegisterTile]) -> None:
    for tile in tiles[1:]:
        if tile.dtype != tiles[0].dtype:
            fault("E106", f"`{name}` combines {tiles[0].dtype} and {tile.dtype}", help="convert one with `.to(...)`")


def allocate(
    tracer: Tracer, dtype: DType, layout: TV, name: str, file: File = "any", products: int | None = None
) -> RegisterTile:
    """Declare a register tile of the executing agent.

    Raises E109 unless the layout has the agent's number of threads, E106 for a register file that the target lacks.
    """
    check_dtype(dtype)
    check_layout(layout)
    check_file(tracer.target, dtype, file)
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
    buffer = Buffer(
        name, "register", dtype, shape, layout, owner=agent.name, span=tracer.span(), file=file, products=products
    )
    tracer.emit(Alloc(buffer, span=tracer.span()))
    return RegisterTile(whole(buffer), layout)


def fresh(dtype: DType, layout: TV, kind: str) -> RegisterTile:
    """A new immutable tile, which the next statement must write."""
    tracer = current(kind)
    return allocate(tracer, dtype, layout, tracer.name(kind))


def compute_tile(elem: Elem, dtype: DType, layout: TV, kind: str) -> RegisterTile:
    """A new tile computed element by element."""
    value = fresh(dtype, layout, kind)
    tracer = current(kind)
    tracer.emit(Map(value.view, elem, span=tracer.span()))
    return value


def gathered(tile: RegisterTile, layout: TV, places: Places) -> RegisterTile:
    """A new tile of the elements at the places of those of a layout. Raises E205 unless each thread holds them."""
    check_layout(layout)
    coordinates = (Int(algebra.coord(axis)) for axis in range(len(layout.tile)))
    given = cast(Callable[..., tuple[IntLike, ...]], places)(*coordinates)
    at = tuple(unwrap(each) for each in axis_values(given, "the place of an element"))
    if len(at) != len(tile.layout.tile):
        said = f"`gather` gives {len(at)} coordinates for {len(tile.layout.tile)} axes"
        fault("E106", said, help="give one coordinate for each axis")
    if not threads_hold(tile.view, at, layout):
        layout_mismatch("gather", layout, tile.layout)
    return compute_tile(Get(tile.view, at), tile.dtype, layout, "value")


def check_dtype(dtype: DType) -> None:
    if not isinstance(dtype, DType):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106",
            f"expected an element type, found {describe_value(dtype)}",
            help="use `bf16`, `f16`, `f32`, `e4m3`, `e4m3fnuz`, `e5m2fnuz`, `i8`, `i32` or `i64`",
        )


def check_operation(name: str, dtype: DType) -> None:
    """Raises E106 for an operation that is not defined on integers of this type."""
    if dtype == i64 and name not in WIDE_OPS:
        fault("E106", f"`{name}` of i64, which is added, subtracted and multiplied only", help="compute in `i32`")
    if dtype != i32 and ELEMENT_OPS[name].integers:
        fault("E106", f"`{name}` of {dtype}, which is defined on integers of 32 bits", help="pass tiles of `i32`")
    if dtype.family == "int" and name not in INTEGER_OPS:
        fault("E106", f"`{name}` of {dtype}, which is defined on floats only", help="convert with `.to(f32)` first")


def literal(value: float) -> Lit:
    """A number of a program. Raises E106 for anything else, and for an integer that float64 does not have."""
    if not isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"expected a register tile or a number, found {describe_value(value)}")
    found = float(value)
    if found != value and not isnan(found):
        fault("E106", f"the number {value}, which float64 rounds to {found:.0f}", help="compute it from smaller ones")
    return Lit(found)


def check_file(target: Target, dtype: DType, file: File) -> None:
    if file not in get_args(File):
        fault(
            "E106", f"registers of a file {describe_value(file)}", help='write `file="accumulation"`, or leave it out'
        )
    if file == "accumulation" and not target.accumulation:
        fault("E106", f"{target} has no accumulation registers", help="leave `file` out")
    if file == "accumulation" and dtype.bits != _ACCUMULATOR_BITS:
        fault("E106", f"{dtype} in accumulation registers", help="they hold 32-bit elements: use `f32` or `i32`")


def check_layout(layout: TV) -> None:
    if not isinstance(layout, TV):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106",
            f"expected a thread-value layout, found {describe_value(layout)}",
            help="use `mm.A` or `spread(...)`",
        )


def subtile_layout(layout: TV, sizes: tuple[int, ...]) -> TV:
    """The thread-value layout of a subtile. Raises E109 if threads do not hold equal parts of it."""
    help_ = "cut along the axes that each thread holds several registers of"
    if any(facet.extent != facet.of for facet in layout.facets):
        fault("E109", f"a part of a fragment of {layout.tile} that numbers groups of threads", help=help_)
    try:
        found = subtile(layout, sizes)
    except ValueError as problem:
        fault("E109", str(problem), help=help_)
    facets = tuple(Facet(whole.axis, size, ((1, size),)) for whole, size in zip(layout.facets, sizes, strict=True))
    return TV(found.threads, found.values, sizes, facets)
