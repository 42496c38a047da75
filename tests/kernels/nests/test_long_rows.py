"""Rows that a cluster of blocks holds: which nests and lengths have such a kernel, and with how many blocks."""

from __future__ import annotations

import pytest

from argus.kernels.nests.long_rows import config_for
from argus.nests.affine import computed
from argus.nests.canonical import canonical
from argus.testing import nest_cases as cases
from argus.testing.nest_cases import Case


def config_of(case: Case, length: int) -> tuple[int, bool, int] | None:
    """The blocks of a row, whether these are whole, and the bytes of shared memory of each."""
    form = canonical(case.nests, {each.name: each for each in case.inputs})
    given = {"A": 5, "J": length, "B": 64}
    found = config_for(form, {name: int(computed(extent, given)) for name, extent in form.sizes.items()})
    if found is None:
        return None
    assert found.staged
    assert found.steps % found.together == 0
    assert found.blocks * found.width >= length
    return found.blocks, found.whole, 4 * found.width


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1 << 15, None),  # registers hold it
        (65535, (8, False, 1 << 15)),
        (1 << 18, (8, True, 1 << 17)),
        (393216, (8, True, 196608)),
        (1 << 19, None),  # too long for eight blocks
    ],
)
def test_rows_are_held_by_as_many_blocks_as_have_room(length: int, expected: object) -> None:
    assert config_of(cases.along(cases.softmax, columns=False), length) == expected


def test_other_nests_have_no_such_kernel() -> None:
    assert config_of(cases.along(cases.softmax, columns=True), 1 << 18) is None
    assert config_of(cases.reduced("add", columns=False), 1 << 18) is None
    assert config_of(cases.scan("add"), 1 << 18) is None
