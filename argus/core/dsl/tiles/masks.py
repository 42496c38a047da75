"""Masks: elementwise conditions that are evaluated while the kernel runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, ElementWise
from argus.core.dsl.tiles.values import RegisterTile
from argus.core.index import Coord, Node
from argus.core.index_text import show
from argus.core.ir import Both, Either, Holds, Neither, Test
from argus.core.layout import TV
from argus.core.walk import topological

Build = Callable[[TV], Test]
ElementCondition = Union["Mask", Bool, bool]


class Mask(ElementWise):
    """A comparison of elements, or a combination of such, evaluated per element while the kernel runs.

    tiles: the compared tiles. build: the test over the elements of a layout to which all tiles can be broadcast.
    """

    __slots__ = ("build", "tiles")

    def __init__(self, tiles: tuple[RegisterTile, ...], build: Build) -> None:
        self.tiles = tiles
        self.build = build

    def __and__(self, other: ElementCondition) -> Mask:
        more = as_mask(other)
        return Mask((*self.tiles, *more.tiles), lambda layout: Both((self.build(layout), more.build(layout))))

    __rand__ = __and__

    def __or__(self, other: ElementCondition) -> Mask:
        more = as_mask(other)
        return Mask((*self.tiles, *more.tiles), lambda layout: Either((self.build(layout), more.build(layout))))

    __ror__ = __or__

    def __invert__(self) -> Mask:
        return Mask(self.tiles, lambda layout: Neither(self.build(layout)))

    def __bool__(self) -> bool:
        fault(
            "E101",
            "a comparison of elements has no truth value while the kernel is traced",
            here="Python asks for true or false here",
            help="use `where(...)`, and `&`, `|` and `~` to combine",
        )


def as_mask(value: ElementCondition) -> Mask:
    """The mask of a condition. Raises E106 for anything else."""
    if isinstance(value, Mask):
        return value
    if isinstance(value, bool):
        cond = algebra.TRUE if value else algebra.FALSE
    elif isinstance(value, Bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        cond = value.node
    else:
        fault("E106", f"expected a condition, found {describe_value(value)}", here="this is no condition")

    def build(layout: TV) -> Test:
        check_axes(cond, layout)
        return Holds(cond)

    return Mask((), build)


def check_axes(root: Node, layout: TV) -> None:
    """Raises E106 if an expression uses the coordinate of an axis that the tile does not have."""
    for node in topological([root]):
        if isinstance(node, Coord) and node.axis >= len(layout.tile):
            fault(
                "E106",
                f"`{show(node)}` is not a coordinate of a tile of {layout.tile}",
                help="take coordinates from the tile they are used on: `row, column = x.index`",
            )
