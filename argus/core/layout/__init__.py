"""The layout algebra in CuTe's vocabulary: int-tuples, layouts, swizzles, thread-value layouts."""

from __future__ import annotations

from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple, flatten, product
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.thread_value.tv import TV
from argus.core.layout.values import IntArray, Layout, column_major, make_layout, row_major

__all__ = [
    "TV",
    "ComposedLayout",
    "IntArray",
    "IntTuple",
    "Layout",
    "LayoutError",
    "LayoutLike",
    "Swizzle",
    "column_major",
    "flatten",
    "make_layout",
    "product",
    "row_major",
]
