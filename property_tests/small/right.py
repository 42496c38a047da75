"""A random program that is right by construction, of any family and for either target, to execute its text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from argus.core.ir import Kernel, Program
from property_tests.small import (
    adding,
    boxing,
    clustering,
    counting,
    elements,
    folding,
    holding,
    multiplying,
    piping,
    staging,
    warping,
)
from property_tests.small.choosing import Choose


class Right(Protocol):
    """A configuration of a family: hashable, and its kernel, or the launches of several."""

    def kernel(self) -> Kernel | Program: ...


FAMILIES: Mapping[str, Callable[[Choose], Right]] = {
    "elements": elements.draw,
    "staging": staging.draw,
    "folding": folding.draw,
    "multiplying": multiplying.draw,
    "boxing": boxing.draw,
    "piping": piping.draw,
    "adding": adding.draw,
    "counting": counting.draw,
    "warping": warping.draw,
    "holding": holding.draw,
    "clustering": clustering.draw,
}
_WEIGHTS = {
    "elements": 30,
    "staging": 14,
    "folding": 1,
    "multiplying": 2,
    "boxing": 3,
    "piping": 2,
    "adding": 1,
    "counting": 6,
    "warping": 4,
    "holding": 3,
    "clustering": 2,
}
"""The families that are cheap to verify are drawn more often."""


def draw(choose: Choose, names: Collection[str] = FAMILIES.keys()) -> Right:
    """A program of one of the named families."""
    return FAMILIES[choose(tuple(name for name in FAMILIES if name in names for _ in range(_WEIGHTS[name])))](choose)
