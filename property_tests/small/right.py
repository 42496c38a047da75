"""A random program that is right by construction, of any family and for either target, to execute its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from argus.core.ir import Kernel, Program
from property_tests.small import adding, boxing, elements, folding, multiplying, piping, staging
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
}
_WEIGHTS = {"elements": 30, "staging": 14, "folding": 1, "multiplying": 2, "boxing": 3, "piping": 2, "adding": 1}
"""The families that are cheap to verify are drawn more often."""
_DRAWN = tuple(name for name in FAMILIES for _ in range(_WEIGHTS[name]))


def draw(choose: Choose) -> Right:
    return FAMILIES[choose(_DRAWN)](choose)
