"""The names of `tensor_layouts.analysis` on top of `argus.layout`; see `benchmarks/layout_names.py`."""

# pyright: basic
# ruff: noqa: ANN401 reason: an adapter of names, whose operands are whatever the other library takes

from __future__ import annotations

from typing import Any

from peers.tensor_layouts_names import Layout, Swizzle, idx2crd, is_layout, size, to_argus

from argus import layout as ours


def image(layout: Any) -> list[int]:
    return ours.Relation.of(to_argus(layout)).image().tolist()


def offset_table(layout: Any) -> dict[int, list[Any]]:
    by_image = ours.Relation.of(to_argus(layout)).inverse()
    return {
        offset: [idx2crd(index, layout.shape) for index in by_image(offset)] for offset in by_image.domain().tolist()
    }


def footprint(layout: Any) -> dict[str, Any]:
    found = ours.footprint(to_argus(layout))
    return {
        "min_offset": found.lowest,
        "max_offset": found.highest,
        "span": found.span,
        "unique_offsets": found.addresses,
        "total_elements": found.elements,
        "reuse_factor": float(found.reuse),
        "holes": found.holes,
    }


def cycles(layout: Any) -> list[list[int]]:
    return [list(cycle) for cycle in ours.Permutation.of(to_argus(layout)).cycles()]


def fixed_points(layout: Any) -> list[int]:
    """Of a function that may be no permutation, unlike `Permutation.fixed_points`."""
    pairs = ours.Relation.of(to_argus(layout))
    return pairs.intersect(ours.Relation.of_values(range(size(layout)))).domain().tolist()


def order(layout: Any) -> int:
    return ours.Permutation.of(to_argus(layout)).order()


def contiguity(layout: Any) -> int:
    given = to_argus(layout)
    return ours.max_common_vector(given, ours.Layout(given.size()))


def make_layout_like(layout: Any, tiler: Any) -> Layout:
    """The leading strides of a layout on another shape; CuTe's function of this name takes no tiler."""
    shape = tiler.shape if is_layout(tiler) else tiler
    strides = ours.flatten(layout.stride)[: len(ours.flatten(shape))]
    return Layout(shape, ours.unflatten(strides, shape))


def make_swizzle(source: int, target: int) -> Swizzle:
    made = ours.make_swizzle(source, target)
    return Swizzle(made.bits, made.base, made.shift)
