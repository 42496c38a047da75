"""The public layout algebra in CuTe's vocabulary; each result is exact, or the operation raises with a reason.

    >>> from argus.layout import Layout, composition, logical_divide
    >>> print(composition(Layout((128, 64), (64, 1)), Layout((8, 16), (1, 8))))
    (8,16):(64,512)
    >>> print(logical_divide(Layout((128, 64), (64, 1)), (32, 16)))
    ((32,4),(16,4)):((64,2048),(1,16))

Where no layout represents the result of an operation, `LayoutError` says why and at which index:

    >>> composition(Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3)))
    Traceback (most recent call last):
    argus.core.layout.faults.LayoutError: E804: ((6,2):(1,7)) o ((3,2):(2,3)) is no layout whose shape ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from argus.core.atoms.registry import thread_values
from argus.core.layout.coalesce import (
    filter,  # noqa: A004 reason: CuTe's name
    filter_zeros,
)
from argus.core.layout.common import max_common_layout, max_common_vector
from argus.core.layout.complement import complement
from argus.core.layout.compose import Tiler, composition
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.division import safe_div, shape_mod
from argus.core.layout.f2.matrix import BinaryMatrix
from argus.core.layout.faults import LayoutError
from argus.core.layout.footprint import Footprint, footprint
from argus.core.layout.inttuple import (
    Coordinate,
    IntTuple,
    compatible,
    congruent,
    crd2crd,
    crd2idx,
    elem_scale,
    has_none,
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
    weakly_compatible,
    weakly_congruent,
)
from argus.core.layout.inverse import (
    left_inverse,
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
    group,
    hier_unzip,
    logical_divide,
    logical_product,
    prepend,
    raked_product,
    replace,
    select,
    sort,
    squeeze,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from argus.core.layout.notation import parse
from argus.core.layout.permutation import Permutation
from argus.core.layout.placing import Condition, Placement, Placing, by_law
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
from argus.core.layout.swizzle import Swizzle, make_swizzle
from argus.core.layout.thread_value.tv import TV
from argus.core.layout.values import Layout, column_major, make_layout, make_layout_like, make_ordered_layout, row_major
from argus.core.layout.witness import Answer
from argus.core.memory.banks import Conflict, bank_conflicts, find_swizzle
from argus.core.memory.coalescing import Segments, coalescing
from argus.core.memory.lane_accesses import Access
from argus.deprecated import moved
from argus.layout.symbolic import (
    Assumptions,
    Claim,
    Decision,
    Equality,
    SideCondition,
    Size,
    SymbolicLayout,
    SymbolicResult,
    symbols,
    under,
)
from argus.layout.tensor import Tensor, local_partition, local_tile
from argus.layout.trees import (
    ceil_div,
    concat,
    cosize,
    depth,
    dice,
    flatten,
    idx2crd,
    is_layout,
    mode,
    rank,
    size,
    slice_,
    slice_and_offset,
    unflatten,
    with_shape,
)
from argus.report.layout_svg import banks, conflicts, grid, swizzled, tv

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A name that moved, see `argus.deprecated`; hidden from type checkers, which report unknown names."""
        return moved(__name__, name)


__all__ = [
    "TV",
    "Access",
    "Answer",
    "Assumptions",
    "BinaryMatrix",
    "Claim",
    "ComposedLayout",
    "Condition",
    "Conflict",
    "Coordinate",
    "Decision",
    "Equality",
    "Footprint",
    "IntTuple",
    "Layout",
    "LayoutError",
    "LayoutLike",
    "Permutation",
    "Placement",
    "Placing",
    "Relation",
    "Segments",
    "SideCondition",
    "Size",
    "Swizzle",
    "SymbolicLayout",
    "SymbolicResult",
    "Tensor",
    "Tiler",
    "append",
    "are_complementary",
    "bank_conflicts",
    "banks",
    "blocked_product",
    "by_law",
    "ceil_div",
    "coalesce",
    "coalescing",
    "column_major",
    "compatible",
    "complement",
    "composition",
    "concat",
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
    "footprint",
    "functionally_equal",
    "grid",
    "group",
    "has_none",
    "hier_unzip",
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
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "make_swizzle",
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
    "safe_div",
    "select",
    "shape_div",
    "shape_mod",
    "signum",
    "size",
    "slice_",
    "slice_and_offset",
    "sort",
    "squeeze",
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
    "with_shape",
    "zipped_divide",
    "zipped_product",
]
