from __future__ import annotations

from collections.abc import Callable

import pytest

from argus.core.layout import inttuple as it
from argus.core.layout.faults import LayoutError


def test_products() -> None:
    assert it.product((2, (3, 4))) == 24
    assert it.product(()) == 1
    assert it.product_each((2, (3, 4))) == (2, 12)
    assert it.inner_product(((2, 3), 4), ((2, 1), 2)) == 15
    assert it.prefix_product(((2, 3), (2, 1, 2), (5, 2, 1))) == ((1, 2), (6, 12, 12), (24, 120, 240))
    assert it.prefix_product((3, 2), 5) == (5, 15)
    assert it.prefix_product((3, (2, 4)), (2, 7)) == (2, (7, 14))
    assert it.suffix_product((2, (3, 4))) == (12, (4, 1))


def test_divisions() -> None:
    assert it.shape_div((3, 4), 6) == (1, 2)
    assert it.shape_div((3, 4), 12) == (1, 1)
    assert it.shape_div((3, 4), 36) == (1, 1)
    assert it.shape_div(((3, 4), 6), 36) == ((1, 1), 2)
    assert it.shape_div((6, (3, 4)), 36) == (1, (1, 2))
    assert it.ceil_div((10, 7), (4, 7)) == (3, 1)
    assert it.ceil_div((10, 7), 20) == (1, 4)
    with pytest.raises(LayoutError) as refused:
        it.shape_div(6, 4)
    assert refused.value.code == "E807"


def test_coordinates() -> None:
    assert it.idx2crd(17, (2, (3, 4))) == (1, (2, 2))
    assert it.crd2idx((1, (2, 2)), (2, (3, 4))) == 17
    assert it.crd2idx((1, 8), (2, (3, 4))) == 17
    assert it.crd2idx((None, 8), (2, (3, 4))) == 16
    assert it.crd2crd((1, 8), (2, (3, 4))) == (1, (2, 2))
    assert it.crd2crd((1, (2, 2)), 24, (2, (3, 4))) == 17
    assert it.crd2crd(17, 24) == 17


@pytest.mark.parametrize(
    "question",
    [
        lambda: it.crd2crd(24, 24),
        lambda: it.crd2crd((1, 2), 24),
        lambda: it.idx2crd((1, 2), 24),
        lambda: it.crd2idx((1, 2, 3), (2, 2)),
        lambda: it.unflatten((1, 2, 3), (2, 2)),
        lambda: it.slice_((None, 1), 4),
    ],
)
def test_what_does_not_fit_is_refused(question: Callable[[], object]) -> None:
    with pytest.raises(LayoutError) as refused:
        question()

    assert refused.value.code == "E803"


def test_slice_and_dice_part_a_tree() -> None:
    tree = ((4, 8), 2)

    assert it.slice_((None, 1), tree) == ((4, 8),)
    assert it.slice_((None, None), tree) == ((4, 8), 2)
    assert it.slice_(((None, 3), 1), tree) == (4,)
    assert it.dice(((None, 3), 1), tree) == (8, 2)
    assert it.dice((None, 1), tree) == (2,)
    assert it.has_none(((None, 3), 1))
    assert not it.has_none(((2, 3), 1))


def test_trees() -> None:
    assert it.flatten(((4, (8,)), 2)) == (4, 8, 2)
    assert it.unflatten((4, 8, 2), ((1, (1,)), 1)) == ((4, (8,)), 2)
    assert (it.rank(4), it.rank((4,)), it.depth(4), it.depth((4, (2, 3)))) == (1, 1, 0, 2)
    assert it.elem_scale((2, (3, 4)), (5, (1, (2, 2)))) == (10, (3, 16))
    assert (it.tuple_max((1, (7, 3))), it.signum(-3), it.signum(0)) == (7, -1, 0)


def test_relations_of_trees() -> None:
    assert it.congruent((4, (2, 3)), (1, (7, 7)))
    assert not it.congruent((4, 6), (4, (2, 3)))
    assert it.weakly_congruent((4, 6), (4, (2, 3)))
    assert not it.weakly_congruent((4, (2, 3)), (4, 6))
    assert it.compatible((4, 6), (4, (2, 3)))
    assert not it.compatible((4, (2, 3)), (4, 6))
    assert not it.compatible((4, 6), (4, (2, 4)))
    assert it.weakly_compatible((2, 3), (4, (2, 3)))
    assert not it.weakly_compatible((3, 3), (4, (2, 3)))
