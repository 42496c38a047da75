"""Property: every law of the layout algebra holds for random operands, checked by explicit tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from argus.layout import Layout, LayoutError, coalesce, composition, logical_divide
from argus.testing.laws import LAWS, Law
from argus.testing.operands import operands
from argus.testing.strategies import compact_layouts, composable_pairs, layouts, regrouped, tilers


@pytest.mark.share(4)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name.replace(" ", "-"))
@given(data=st.data())
def test_law(law: Law, data: DataObject) -> None:
    breach = law.breach(*data.draw(operands(law)))

    assert breach is None, f"{law.statement}: {breach}"


@pytest.mark.share(3)
@given(data=st.data())
def test_regrouped_layouts_coalesce_to_one(data: DataObject) -> None:
    layout = data.draw(layouts())

    assert coalesce(data.draw(regrouped(layout))) == coalesce(layout)


@given(composable_pairs())
def test_what_takes_digits_composes(pair: tuple[Layout, Layout]) -> None:
    a, b = pair

    assert composition(a, b).table().tolist() == [a(b(index)) for index in range(b.size())]


@pytest.mark.share(3)
@given(data=st.data())
def test_a_tile_that_divides_a_compact_mode_divides_the_layout(data: DataObject) -> None:
    layout = data.draw(compact_layouts().filter(lambda layout: len(layout.flat_modes) == 1))
    try:
        divided = logical_divide(layout, data.draw(tilers(layout)))
    except LayoutError as error:
        pytest.fail(str(error))
    assert sorted(divided.table().tolist()) == list(range(layout.size()))
