"""The public layout algebra in CuTe's vocabulary; each result is exact, or the operation raises with a reason.

    >>> from argus.layout import Layout, composition, logical_divide
    >>> print(composition(Layout((128, 64), (64, 1)), Layout((8, 16), (1, 8))))
    (8,16):(64,512)
    >>> print(logical_divide(Layout((128, 64), (64, 1)), (32, 16)))
    ((32,4),(16,4)):((64,2048),(1,16))

Where no layout represents the result of an operation, `LayoutError` says why and at which index:

    >>> composition(Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3)))
    Traceback (most recent call last):
    argus.core.layout.faults.LayoutError: E804: ((6,2):(1,7)) o ((3,2):(2,3)) is no layout: at index 5 it is 8, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from argus.core.atoms.registry import thread_values
from argus.core.layout import inttuple
from argus.core.layout.coalesce import (
    filter,  # noqa: A004 reason: CuTe's name
    filter_zeros,
)
from argus.core.layout.complement import complement
from argus.core.layout.compose import Tiler, composition
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.f2.matrix import BinaryMatrix
from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import (
    Coordinate,
    IntTuple,
    compatible,
    congruent,
    crd2crd,
    crd2idx,
    elem_scale,
    has_none,
    idx2crd,
    inner_product,
    is_int,
    is_tuple,
    prefix_product,
    product,
    product_each,
    shape_div,
    signum,
    suffix_product,
    tuple_max,
    unflatten,
    weakly_compatible,
    weakly_congruent,
)
from argus.core.layout.inverse import (
    left_inverse,
    max_common_layout,
    max_common_vector,
    nullspace,
    pseudo_inverse,
    right_inverse,
)
from argus.core.layout.lift import (
    append,
    blocked_product,
    coalesce,
    flat_divide,
    flat_product,
    flatten_layout,
    group,
    logical_divide,
    logical_product,
    mode,
    prepend,
    raked_product,
    replace,
    select,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from argus.core.layout.notation import parse
from argus.core.layout.predicates import (
    are_complementary,
    functionally_equal,
    is_admissible,
    is_bijective,
    is_compact,
    is_contiguous,
    is_disjoint,
    is_injective,
    is_surjective,
)
from argus.core.layout.recast import downcast, recast, upcast
from argus.core.layout.relation import Relation
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.thread_value.tv import TV
from argus.core.layout.values import Layout, column_major, make_layout, make_ordered_layout, row_major
from argus.core.layout.witness import Answer
from argus.core.memory.banks import Conflict, bank_conflicts, find_swizzle
from argus.core.memory.coalescing import Segments, coalescing
from argus.core.memory.lane_accesses import Access
from argus.layout.symbolic import (
    Assumptions,
    Claim,
    Equality,
    SideCondition,
    Size,
    SymbolicLayout,
    SymbolicResult,
    symbols,
    under,
)
from argus.report.layout_svg import banks, conflicts, grid, swizzled, tv

__all__ = [
    "TV",
    "Access",
    "Answer",
    "Assumptions",
    "BinaryMatrix",
    "Claim",
    "ComposedLayout",
    "Conflict",
    "Coordinate",
    "Equality",
    "IntTuple",
    "Layout",
    "LayoutError",
    "LayoutLike",
    "Relation",
    "Segments",
    "SideCondition",
    "Size",
    "Swizzle",
    "SymbolicLayout",
    "SymbolicResult",
    "Tiler",
    "append",
    "are_complementary",
    "bank_conflicts",
    "banks",
    "blocked_product",
    "ceil_div",
    "coalesce",
    "coalescing",
    "column_major",
    "compatible",
    "complement",
    "composition",
    "conflicts",
    "congruent",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "dice",
    "downcast",
    "elem_scale",
    "filter",
    "filter_zeros",
    "find_swizzle",
    "flat_divide",
    "flat_product",
    "flatten",
    "functionally_equal",
    "grid",
    "group",
    "has_none",
    "idx2crd",
    "inner_product",
    "is_admissible",
    "is_bijective",
    "is_compact",
    "is_contiguous",
    "is_disjoint",
    "is_injective",
    "is_int",
    "is_layout",
    "is_surjective",
    "is_tuple",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_layout",
    "make_ordered_layout",
    "max_common_layout",
    "max_common_vector",
    "mode",
    "nullspace",
    "parse",
    "prefix_product",
    "prepend",
    "product",
    "product_each",
    "pseudo_inverse",
    "raked_product",
    "rank",
    "recast",
    "replace",
    "right_inverse",
    "row_major",
    "select",
    "shape_div",
    "signum",
    "size",
    "slice_",
    "slice_and_offset",
    "suffix_product",
    "swizzled",
    "symbols",
    "thread_values",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "tuple_max",
    "tv",
    "under",
    "unflatten",
    "upcast",
    "weakly_compatible",
    "weakly_congruent",
    "zipped_divide",
    "zipped_product",
]


def is_layout(value: object) -> bool:
    return isinstance(value, Layout | ComposedLayout)


def size(value: LayoutLike | IntTuple) -> int:
    """The number of elements of a layout's domain, or of a shape."""
    return product(value) if isinstance(value, int | tuple) else value.size()


def cosize(layout: LayoutLike) -> int:
    """One more than the largest image."""
    return layout.cosize()


def rank(value: Layout | ComposedLayout | IntTuple) -> int:
    """The number of modes."""
    return inttuple.rank(value if isinstance(value, int | tuple) else value.shape)


def depth(value: Layout | ComposedLayout | IntTuple) -> int:
    """Levels of nesting of the shape; 0 for an int."""
    return inttuple.depth(value if isinstance(value, int | tuple) else value.shape)


@overload
def flatten(value: Layout) -> Layout: ...
@overload
def flatten(value: ComposedLayout) -> ComposedLayout: ...
@overload
def flatten(value: IntTuple) -> tuple[int, ...]: ...
def flatten(value: Layout | ComposedLayout | IntTuple) -> Layout | ComposedLayout | tuple[int, ...]:
    """The same function with modes of depth 0, or the leaves of an int-tuple."""
    return flatten_layout(value) if isinstance(value, Layout | ComposedLayout) else inttuple.flatten(value)


def ceil_div(value: IntTuple, tiler: Layout | IntTuple) -> IntTuple:
    """The number of tiles that cover a shape, mode by mode; for a layout, the shape of its complement in the shape."""
    return complement(tiler, value).shape if isinstance(tiler, Layout) else inttuple.ceil_div(value, tiler)


@overload
def slice_(coord: Coordinate, value: Layout) -> Layout: ...
@overload
def slice_(coord: Coordinate, value: IntTuple) -> IntTuple: ...
def slice_(coord: Coordinate, value: Layout | IntTuple) -> Layout | IntTuple:
    """The modes where `coord` has None. Raises LayoutError (E803) where `coord` does not fit."""
    return _chosen(inttuple.slice_, coord, value)


@overload
def dice(coord: Coordinate, value: Layout) -> Layout: ...
@overload
def dice(coord: Coordinate, value: IntTuple) -> IntTuple: ...
def dice(coord: Coordinate, value: Layout | IntTuple) -> Layout | IntTuple:
    """The modes where `coord` has an int. Raises LayoutError (E803) where `coord` does not fit."""
    return _chosen(inttuple.dice, coord, value)


def _chosen(
    choose: Callable[[Coordinate, IntTuple], IntTuple], coord: Coordinate, value: Layout | IntTuple
) -> Layout | IntTuple:
    if isinstance(value, Layout):
        return Layout(choose(coord, value.shape), choose(coord, value.stride))
    return choose(coord, value)


def slice_and_offset(coord: Coordinate, layout: Layout) -> tuple[Layout, int]:
    """The layout of the modes where `coord` has None, and the image of the others."""
    return slice_(coord, layout), crd2idx(coord, layout.shape, layout.stride)
