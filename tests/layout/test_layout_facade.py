"""The public `argus.layout`: it accepts composed layouts wherever layouts, and refuses invalid arguments by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argus.layout as al
from argus.layout import ComposedLayout, Layout, LayoutError, Swizzle

TILE = al.composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))

HERE = object()
"""Stands for the operand in question."""

DOMAIN: list[tuple[str, tuple[object, ...]]] = [
    ("coalesce", (HERE,)),
    ("flatten", (HERE,)),
    ("group", (HERE, 0, 2)),
    ("append", (HERE,)),
    ("logical_divide", (HERE, (4, 16))),
    ("zipped_divide", (HERE, (4, 16))),
    ("tiled_divide", (HERE, (4, None))),
    ("flat_divide", (HERE, (Layout(2, 4),))),
    ("logical_product", (HERE, Layout((2, 2)))),
    ("blocked_product", (HERE, Layout((2, 3)))),
    ("tile_to_shape", (HERE, (128, 128))),
]

ANY: list[tuple[str, tuple[object, ...]]] = [
    *[(name, (HERE,)) for name in ("coalesce", "filter", "flatten", "complement", "append", "prefix_product")],
    *[(name, (HERE,)) for name in ("right_inverse", "left_inverse", "pseudo_inverse", "nullspace", "tuple_max")],
    ("composition", (HERE, Layout(4))),
    ("logical_divide", (HERE, 4)),
    ("zipped_divide", (HERE, 4)),
    ("logical_product", (HERE, 4)),
    ("blocked_product", (Layout((4, 8)), HERE)),
    ("tile_to_shape", (HERE, (4, 4))),
    ("max_common_layout", (Layout(8), HERE)),
    ("upcast", (HERE, 2)),
    ("upcast", (Layout(8), HERE)),
    ("recast", (Layout(8), HERE, 16)),
    ("idx2crd", (HERE, (2, 3))),
    ("crd2idx", ((1, 2), HERE)),
    ("Swizzle", (HERE, 0, 3)),
    ("make_swizzle", (HERE, 4)),
    ("make_swizzle", (4, HERE)),
    ("make_layout_like", (HERE,)),
    ("safe_div", (HERE, 1)),
    ("safe_div", (4, HERE)),
    ("shape_mod", (HERE, 1)),
    ("shape_mod", ((4, 2), HERE)),
]


def call(name: str, arguments: tuple[object, ...], operand: object) -> Any:  # noqa: ANN401 reason: any operation's
    return getattr(al, name)(*(operand if argument is HERE else argument for argument in arguments))


def test_every_name_is_there() -> None:
    assert all(hasattr(al, name) for name in al.__all__)
    assert len(set(al.__all__)) == len(al.__all__)


@pytest.mark.parametrize(("name", "arguments"), DOMAIN)
def test_composed_layouts_support_division_and_product(name: str, arguments: tuple[object, ...]) -> None:
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 8, Layout((8, 64), (64, 1)))
    found, plain = call(name, arguments, swizzled), call(name, arguments, swizzled.inner)

    assert isinstance(found, ComposedLayout)
    assert found.shape == plain.shape
    assert found.table().tolist() == [Swizzle(3, 3, 3)(8 + image) for image in plain.table().tolist()]


def test_a_swizzled_tile_fills_a_shape() -> None:
    assert isinstance(TILE, ComposedLayout)
    assert al.size(al.tile_to_shape(TILE, (128, 128))) == 128 * 128


@pytest.mark.share(4)
@pytest.mark.parametrize("junk", [None, 1.5, "x", [2, 2], {}, object()])
@pytest.mark.parametrize(("name", "arguments"), ANY)
def test_invalid_arguments_are_refused_by_name(name: str, arguments: tuple[object, ...], junk: object) -> None:
    with pytest.raises(LayoutError) as refused:
        call(name, arguments, junk)

    assert refused.value.code in {"E801", "E803"}
    assert refused.value.diagnostic.help


@pytest.mark.parametrize("junk", [None, 1.5, "x", (Layout(4), "x")])
def test_modes_are_layouts(junk: object) -> None:
    with pytest.raises(LayoutError) as refused:
        call("make_layout", (HERE,), junk)
    assert refused.value.code == "E801"


def test_numpy_integers_are_integers_everywhere() -> None:
    two: Any = np.int64(2)

    assert al.composition(Layout((4, 8)), two) == al.composition(Layout((4, 8)), 2)
    assert al.composition(Layout((4, 8)), (two, two)) == al.composition(Layout((4, 8)), (2, 2))
    assert al.logical_divide(Layout((4, 8)), two) == al.logical_divide(Layout((4, 8)), 2)
    assert al.crd2idx((two, two), (4, 8)) == 10
    assert Swizzle(two, 0, 3) == Swizzle(2, 0, 3)


def test_zero_extents_are_no_shapes() -> None:
    for question in (lambda: al.idx2crd(5, (2, 0)), lambda: al.crd2idx(5, (2, (0, 3)))):
        with pytest.raises(LayoutError) as refused:
            question()
        assert refused.value.code == "E801"
