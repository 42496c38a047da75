"""Copies of one size in one fill: the one-slot lemma lets them complete in order, which hides no failure."""

from __future__ import annotations

import pytest

from argus.core.protocol import lemma
from argus.core.protocol.lemma import Certified, Shape, Steps, certify
from argus.core.protocol.outcome import Fails, Unknown

DRAIN: Steps = (("wait", 0), ("read", 0), ("over", 0), ("release", 1))


def fill(copies: int, announced: int | None = None) -> Steps:
    return (("wait", 0), ("announce", copies if announced is None else announced), *(("copy", 1),) * copies)


def _never(*_: object) -> bool:
    return False


def without_order(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> Certified | Fails | Unknown:
    with monkeypatch.context() as patch:
        patch.setattr(lemma, "_follows_alike", _never)
        return certify.__wrapped__(shape)


def test_sixteen_copies_take_few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    found = certify(Shape(fill(16), (DRAIN,)))

    assert isinstance(found, Certified)
    assert found.states < 2000
    few, many = certify(Shape(fill(6), (DRAIN,))), without_order(Shape(fill(6), (DRAIN,)), monkeypatch)
    assert isinstance(few, Certified)
    assert isinstance(many, Certified)
    assert 4 * few.states <= many.states


SHAPES = {
    "right": Shape(fill(4), (DRAIN,)),
    "two consumers": Shape(fill(3), (DRAIN, DRAIN), empty=2),
    "fewer bytes announced": Shape(fill(4, 3), (DRAIN,)),
    "more bytes announced": Shape(fill(3, 4), (DRAIN,)),
    "no wait before the fill": Shape(fill(3)[1:], (DRAIN,)),
    "released before it is read": Shape(fill(3), ((DRAIN[0], DRAIN[3], *DRAIN[1:3]),)),
    "read without a wait": Shape(fill(3), (DRAIN[1:],)),
    "released while it is read": Shape(fill(3), ((DRAIN[0], DRAIN[1], DRAIN[3], DRAIN[2]),)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_order_changes_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, other = certify(SHAPES[name]), without_order(SHAPES[name], monkeypatch)

    assert type(found) is type(other)
    assert isinstance(found, Certified) is (name in ("right", "two consumers"))
