"""Laws are decided by tables: each holds for known operands, and catches a wrong result and a needless refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from argus.core.layout.faults import LayoutError
from argus.layout import IntTuple, Layout, Swizzle
from argus.testing.laws import ARGUS, KINDS, LAWS, Law, Operand
from argus.testing.laws.law import Breach
from argus.testing.laws.tabulated import (
    composable,
    expected_complement,
    images_of,
    layout_exists_through,
    layout_of_table,
    table,
)

BY_NAME = {law.name: law for law in LAWS}
EXAMPLES: dict[str, Operand] = {
    "layout": Layout((4, (2, 3)), (6, (1, 2))),
    "inner": Layout((2, 3), (1, 4)),
    "tiler": (2, (Layout(2), None)),
    "cotarget": 24,
    "count": 2,
    "shape": (4, (2, 3)),
    "swizzle": Swizzle(2, 1, -3),
}
PAGE = Path(__file__).parents[2] / "docs" / "laws.md"


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_laws_hold_for_plain_operands(law: Law) -> None:
    assert law.breach(*(EXAMPLES[kind] for kind in law.operands)) is None


def test_names_are_unique_and_every_kind_occurs() -> None:
    assert len(BY_NAME) == len(LAWS)
    assert {kind for law in LAWS for kind in law.operands} == set(KINDS)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_page_states_the_law(law: Law) -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert f"### {law.name}\n\n`{law.statement}`\n" in text


def test_the_page_states_no_other_law() -> None:
    titles = [line[4:] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]

    assert titles == [law.name for law in LAWS]


# -- faults are caught ---------------------------------------------------------------------------------------


def refuse(index: int | None) -> Callable[..., Layout]:
    def raising(*_: object) -> Layout:
        raise LayoutError("E804", "there is none", help="try others", index=index, expected=7, found=8)

    return raising


def gives(shape: IntTuple, stride: IntTuple | None = None) -> Callable[..., Layout]:
    return lambda *_: Layout(shape, stride)


@frozen
class Fault:
    """A law's operation replaced by another, and what the breach must say."""

    law: str
    operation: str
    operands: tuple[Operand, ...]
    instead: Callable[..., Layout]
    said: str


CARRY = Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3))
FAULTS = [
    Fault("composition", "composition", (Layout(8), Layout(6)), gives(4), "a shape that refines 6"),
    Fault("composition", "composition", CARRY, gives((3, 2), (2, 3)), "expected a refusal"),
    Fault("composition", "composition", CARRY, refuse(None), "two values that differ at an index"),
    Fault("composition", "composition", CARRY, refuse(5), "expected 8, found 7"),
    Fault("composition", "composition", (Layout(8), Layout(4, 2)), refuse(1), "which exists"),
    Fault("composition", "composition", (Layout(8), Layout(4, 2)), gives(4, 3), "at index 1 expected 2"),
    Fault("composition", "composition", (Layout(8), Layout((4,))), gives(4), "refines (4,)"),
    Fault("complement", "complement", (Layout(4, 2), 24), gives((2, 2), (1, 8)), "expected size 24"),
    Fault("complement", "complement", (Layout(4, 2), 24), gives((2, 3), (1, 9)), "at index 8"),
    Fault("complement", "complement", (Layout(4, 2), 24), gives((3, 2), (8, 1)), "at index 1"),
    Fault("complement", "complement", (Layout(4, 2), 24), refuse(None), "which exists"),
    Fault("left inverse", "left_inverse", (Layout(2, 2),), refuse(None), "which exists"),
    Fault("left inverse", "left_inverse", (Layout(2, 0),), gives(2), "at index 1"),
    Fault("right inverse", "right_inverse", (Layout((2, 2), (2, 1)),), gives(1, 0), "expected 4"),
    Fault("common layout", "max_common_layout", (Layout(4), Layout(4)), gives(2), "expected 4"),
    Fault("nullspace", "nullspace", (Layout((2, 2), (0, 1)),), gives(2, 2), "at index 1"),
    Fault("coalesce is a normal form", "coalesce", (Layout((2, 2)), Layout(4)), gives((2, 2)), "((4, 1),)"),
    Fault("filter keeps the image", "filter", (Layout((2, 2), (0, 1)),), gives((2, 2), (0, 1)), "expected 2"),
    Fault("upcast gathers vectors", "upcast", (Layout(6), 4), gives(2), "a refusal"),
    Fault("upcast gathers vectors", "upcast", (Layout(8), 4), gives(4), "expected [2]"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.law}: {fault.said}")
def test_faults_are_caught(fault: Fault) -> None:
    assert BY_NAME[fault.law].breach(*fault.operands) is None

    breach = BY_NAME[fault.law].check(ARGUS.but(**{fault.operation: fault.instead}), *fault.operands)

    assert isinstance(breach, Breach)
    assert breach.operands == fault.operands
    assert fault.said in str(breach)


def _half(_swizzle: Swizzle, at: int) -> int:
    return at // 2


def _same(swizzle: Swizzle, _count: int) -> Swizzle:
    return swizzle


def _itself(_layout: Layout, at: int) -> int:
    return at


def _another(_text: str) -> Swizzle:
    return Swizzle(1, 0, 2)


def _zero(*_: object) -> int:
    return 0


DIVIDE = "divide is composition with a tile and its complement"
PRODUCT = "product repeats a block without overlap"
FLATTEN = "flatten and group keep the function"
SABOTAGED: list[tuple[str, str, tuple[Operand, ...], Callable[..., object]]] = [
    ("composition within the domain", "composition", (Layout(8), Layout(4, 2)), gives(4, 3)),
    ("composition by mode", "composition", (Layout((8, 8)), (4, None)), gives((4, 8), (2, 8))),
    ("a swizzle composes with every layout", "composition", (Swizzle(1, 0, 1), Layout(8)), gives(8)),
    (DIVIDE, "logical_divide", (Layout(8), Layout(4)), gives((2, 4))),
    (
        "product repeats a block without overlap",
        "logical_product",
        (Layout(4), Layout(2)),
        gives((4, 2), (1, 3)),
    ),
    (
        "blocked and raked products have the image of the product",
        "blocked_product",
        (Layout(4), Layout(2)),
        gives(((4, 2),), ((1, 3),)),
    ),
    ("pseudo-inverse", "pseudo_inverse", (Layout((2, 2), (0, 1)),), gives(2, 1)),
    (
        "flatten and group keep the function",
        "flatten",
        (Layout((2, (2, 2))),),
        gives((2, 2, 2), (2, 1, 4)),
    ),
    ("notation of a layout", "parse", (Layout((2, 3)),), gives((2, 3), (3, 1))),
    ("notation of a swizzle", "parse", (Swizzle(1, 0, 1),), _another),
    ("index and coordinate", "crd2idx", ((2, 3),), _zero),
    ("downcast splits elements", "downcast", (Layout(4), 2), gives(8, 2)),
    ("a swizzle is an involution", "swizzle", (Swizzle(1, 0, 1),), _half),
    ("a layout is its strides", "call", (Layout((2, 3), (3, 1)),), _itself),
    ("upcast of a swizzle", "upcast", (Swizzle(1, 1, 1), 2), _same),
    ("complement by the law of CuTe", "cute_complement", (Layout(4, 2), 24), gives((2, 3), (1, 4))),
]


@pytest.mark.parametrize(("law", "operation", "operands", "instead"), SABOTAGED, ids=[each[0] for each in SABOTAGED])
def test_a_wrong_operation_breaks_its_law(
    law: str,
    operation: str,
    operands: tuple[Operand, ...],
    instead: Callable[..., object],
) -> None:
    assert BY_NAME[law].breach(*operands) is None

    assert isinstance(BY_NAME[law].check(ARGUS.but(**{operation: instead}), *operands), Breach)


# -- oracles -------------------------------------------------------------------------------------------------


def test_tables_go_on_in_the_last_mode() -> None:
    modes = ((2, 3), (3, 1))

    assert table(modes).tolist() == [0, 3, 1, 4, 2, 5]
    assert images_of(modes, table(((9, 1),)) - 2).tolist() == [-1, 2, 0, 3, 1, 4, 2, 5, 3]


@pytest.mark.parametrize(
    ("images", "modes"),
    [
        ([0], ()),
        ([0, 1, 2, 3], ((4, 1),)),
        ([0, 1, 7, 8], ((2, 1), (2, 7))),
        ([0, 0, -3, -3], ((2, 0), (2, -3))),
        ([0, 1, 2, 4], None),
        ([0, 1, 3], None),
        ([1, 2], None),
    ],
)
def test_tables_are_recognised(images: list[int], modes: object) -> None:
    assert layout_of_table(images) == modes


def test_composable_is_what_the_paper_decides() -> None:
    assert composable(((4, 2), (6, 3), (8, 5)), ((6, 4),))
    assert not composable(((6, 1), (2, 7)), ((3, 2), (2, 3)))
    assert not composable(((4, 1), (6, 7)), ((5, 1),))


def test_greedy_tiling() -> None:
    assert expected_complement([0, 2, 4, 6], 24) == ((2, 1), (3, 8))
    assert expected_complement([0, 0, 1], 5) == ((3, 2),)
    assert expected_complement([0, 1, 3], 1) == ()
    assert expected_complement([0, 1, 3], 4) is None
    assert expected_complement([0, -1], 4) is None


def test_layouts_through_points() -> None:
    assert layout_exists_through({0: 0, 2: 1, 4: 2})
    assert layout_exists_through({0: 0, -1: 1, 1: 2})
    assert not layout_exists_through({0: 0, 2: 1, 3: 5, 6: 7, 4: 4})
    assert not layout_exists_through({0: 1})
