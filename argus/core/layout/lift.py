"""Lift operations on a layout's domain to composed layouts: they act on the innermost layout.

To divide, regroup or repeat `outer(offset + inner(i))` is to divide, regroup or repeat `inner`, as in CuTe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, cast, overload

from argus.core.layout import coalesce as structure
from argus.core.layout import divide
from argus.core.layout.compose import Tiler
from argus.core.layout.composed import ComposedLayout
from argus.core.layout.faults import misplaced
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout, layout_of

P = ParamSpec("P")


class OnDomain(Protocol[P]):
    """A function that maps a layout to a layout, and a composed layout to a composed layout."""

    @overload
    def __call__(self, layout: Layout, /, *args: P.args, **kwargs: P.kwargs) -> Layout: ...
    @overload
    def __call__(self, layout: ComposedLayout, /, *args: P.args, **kwargs: P.kwargs) -> ComposedLayout: ...


def on_domain(operation: Callable[Concatenate[Layout, P], Layout]) -> OnDomain[P]:
    """Lift the operation to the innermost layout. Raises LayoutError: E801 for a non-layout, E803 for a swizzle."""

    @wraps(operation)
    def lifted(layout: Layout | ComposedLayout, /, *args: P.args, **kwargs: P.kwargs) -> Layout | ComposedLayout:
        if isinstance(layout, Layout):
            return operation(layout, *args, **kwargs)
        if not isinstance(layout, ComposedLayout):  # pyright: ignore[reportUnnecessaryIsInstance] reason: a user may pass anything
            return operation(layout_of(layout), *args, **kwargs)
        if isinstance(layout.inner, Swizzle):
            raise misplaced(f"{layout} has no modes: its innermost part is a swizzle", "compose it with a layout")
        return ComposedLayout(layout.outer, layout.offset, lifted(layout.inner, *args, **kwargs))

    return cast("OnDomain[P]", lifted)


coalesce = on_domain(structure.coalesce)
flatten_layout = on_domain(structure.flatten_layout)
append = on_domain(structure.append)
prepend = on_domain(structure.prepend)
replace = on_domain(structure.replace)
group = on_domain(structure.group)
sort = on_domain(structure.sort)
squeeze = on_domain(structure.squeeze)
select = on_domain(structure.select)
mode = on_domain(structure.mode)
logical_divide = on_domain(divide.logical_divide)
zipped_divide = on_domain(divide.zipped_divide)
tiled_divide = on_domain(divide.tiled_divide)
flat_divide = on_domain(divide.flat_divide)
logical_product = on_domain(divide.logical_product)
zipped_product = on_domain(divide.zipped_product)
tiled_product = on_domain(divide.tiled_product)
flat_product = on_domain(divide.flat_product)
blocked_product = on_domain(divide.blocked_product)
raked_product = on_domain(divide.raked_product)
tile_to_shape = on_domain(divide.tile_to_shape)


@overload
def hier_unzip(split: divide.Splitter, layout: Layout, tiler: Tiler) -> Layout: ...
@overload
def hier_unzip(split: divide.Splitter, layout: ComposedLayout, tiler: Tiler) -> ComposedLayout: ...
def hier_unzip(split: divide.Splitter, layout: Layout | ComposedLayout, tiler: Tiler) -> Layout | ComposedLayout:
    """`((tiles), (rests))` after `split` of each mode; see `argus.core.layout.divide.hier_unzip`."""
    return _unzipped(layout, split, tiler)


def _unzip(layout: Layout, split: divide.Splitter, tiler: Tiler) -> Layout:
    return divide.hier_unzip(split, layout, tiler)


_unzipped = on_domain(_unzip)
