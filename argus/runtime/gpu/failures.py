"""What explains a failed call of a GPU's driver: a guard that found a violated contract, and ended the context.

Every later call fails then, of whatever operator, and says no more than that a kernel failed. So the driver asks the
guards of all loaded kernels first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from weakref import WeakMethod

from argus.core.diagnostic import ArgusError

_Check = Callable[[], None]


@cache
def _checks() -> list[tuple[object, WeakMethod[_Check]]]:
    """The checks of this process, each with its driver."""
    return []


def explain_by(driver: object, check: _Check) -> None:
    """Ask a method when a call of the driver fails, as long as its object lives. It raises ArgusError for a reason."""
    known = _checks()
    known[:] = [each for each in known if each[1]() is not None]
    known.append((driver, WeakMethod(check)))


def explained(driver: object, problem: ArgusError) -> ArgusError:
    """The reason for a failed kernel (E409) that a check gives, once; else the problem."""
    if problem.diagnostic.code != "E409":
        return problem
    for own, reference in tuple(_checks()):
        check = reference()
        if check is None or own != driver:
            continue
        try:
            check()
        except ArgusError as reason:
            return reason
    return problem
