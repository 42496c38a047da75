"""Register storage behind the values of the language: who holds it, and what of it an operation reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, get_args

from attrs import frozen

from argus.core import algebra
from argus.core.check.register_operands import threads_hold
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.tracer import Tracer, current
from argus.core.dtype import DType
from argus.core.ir import Alloc, Buffer, Elem, File, Get, Map, View, whole
from argus.core.layout import TV
from argus.core.layout.thread_value.facets import coordinates_from_finer
from argus.core.target import Target

_SUM = 32
"""Bits of an accumulation register, which holds one sum."""


@frozen
class RegisterTile:
    """A view of registers under a thread-value layout of its own axes."""

    view: View
    layout: TV

    @property
    def dtype(self) -> DType:
        return self.view.buffer.dtype

    def under(self, layout: TV) -> Get | None:
        """The element that belongs to one of `layout`, by its coordinates; None unless its thread holds it.

        A row of a tile belongs to all elements of that row: vectors are spread over tiles with no syntax.
        """
        at = coordinates_from_finer(layout.facets, self.layout.facets)
        if at is None or not threads_hold(self.view, at, layout):
            return None
        return Get(self.view, at)


def covering_tile(name: str, tiles: Sequence[RegisterTile], *, typed: bool = True) -> RegisterTile:
    """The tile whose elements all others have their part in. Raises E106 or E205 where there is none.

    typed: they have one element type.
    """
    if not tiles:
        fault("E106", f"`{name}` needs a register tile among its operands")
    chosen = next((one for one in tiles if all(other.under(one.layout) is not None for other in tiles)), None)
    if chosen is None:
        other = next(tile for tile in tiles if tile.under(tiles[0].layout) is None)
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


def allocate(tracer: Tracer, dtype: DType, layout: TV, name: str, file: File = "any") -> RegisterTile:
    """Registers of the threads that run the line.

    Raises E109 for a layout of another number of threads, E106 for a file that the target has not.
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
    buffer = Buffer(name, "register", dtype, shape, layout, owner=agent.name, span=tracer.span(), file=file)
    tracer.emit(Alloc(buffer, span=tracer.span()))
    return RegisterTile(whole(buffer), layout)


def fresh(dtype: DType, layout: TV, kind: str) -> RegisterTile:
    """Storage of an immutable value, to be written once by the statement that follows."""
    tracer = current(kind)
    return allocate(tracer, dtype, layout, tracer.name(kind))


def computed(elem: Elem, dtype: DType, layout: TV, kind: str) -> RegisterTile:
    """A new value, element by element."""
    value = fresh(dtype, layout, kind)
    tracer = current(kind)
    tracer.emit(Map(value.view, elem, span=tracer.span()))
    return value


def check_dtype(dtype: DType) -> None:
    if not isinstance(dtype, DType):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106",
            f"expected an element type, found {describe_value(dtype)}",
            help="use `bf16`, `f16`, `f32`, `e4m3` or `i32`",
        )


def check_file(target: Target, dtype: DType, file: File) -> None:
    if file not in get_args(File):
        fault(
            "E106", f"registers of a file {describe_value(file)}", help='write `file="accumulation"`, or leave it out'
        )
    if file == "accumulation" and not target.accumulation:
        fault("E106", f"{target} has no accumulation registers", help="leave `file` out")
    if file == "accumulation" and dtype.bits != _SUM:
        fault("E106", f"{dtype} in accumulation registers", help="sums of 32 bits are kept there: use `f32`")


def check_layout(layout: TV) -> None:
    if not isinstance(layout, TV):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106",
            f"expected a thread-value layout, found {describe_value(layout)}",
            help="use `mm.A` or `spread(...)`",
        )
