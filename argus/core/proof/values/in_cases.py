"""What holds of a value in each case of its tests of sizes, blocks and loops, simplified by what is known there.

Parts that are the same number in a case may be unlike expressions: a maximum over all blocks, and that of the first
block, where there is one block. Under the case's test, ranges that are empty are gone and others have one form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from argus.core import algebra
from argus.core.index import Cond, Coord, Held, Read
from argus.core.proof.values.held.facts import Known
from argus.core.values.expr import Choose, Compare, Expr
from argus.core.values.rewriting import nodes
from argus.core.walk import mentions, symbols

MOST_TESTS = 3
_COMMON = ("size", "block", "loop")


def common_test(of: Expr) -> Cond | None:
    """The outermost test of a value, if that holds for all elements of a tile or for none."""
    if not isinstance(of, Choose) or isinstance(of.test, Compare) or mentions(of.test, (Coord, Read, Held)):
        return None
    return of.test if all(each.kind in _COMMON for each in symbols(of.test)) else None


def in_each_case(asked: Callable[[Expr], bool], of: Expr, known: Known, left: int = MOST_TESTS) -> bool:
    """Whether something holds of a value as it is, or else in each case of a test anywhere in it.

    known: what holds where the value is used. left: how many tests may still be split by.
    """
    if asked(of):
        return True
    test = next(filter(None, map(common_test, nodes(of))), None) if left else None
    return test is not None and all(in_each_case(asked, *case, left - 1) for case in _cases(of, test, known))


def _cases(of: Expr, test: Cond, known: Known) -> Iterator[tuple[Expr, Known]]:
    """The value where a test holds and where it does not, with what is known there."""
    for cond in (test, algebra.negate(test)):
        here = known.within(cond)
        yield here.simplified(of), here
