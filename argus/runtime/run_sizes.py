"""The sizes at which a kernel is run: those given, and others that meet its assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from argus.core import algebra
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index import Cond, Symbol
from argus.core.ir import Kernel, Program
from argus.core.query import Budget, Sat
from argus.core.walk import evaluate, substitute
from argus.interp.search.search import assumed
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session

DEFAULT_SIZE = 256
_LARGEST = 2 * DEFAULT_SIZE


def sizes_of(kernel: Kernel | Program, given: Mapping[str, int]) -> dict[str, int]:
    """All sizes of a kernel or program: those not given are 256, or chosen by a solver where assumptions exclude that.

    Where no sizes with the given ones meet the assumptions, the others are 256: the launch then names the assumption.
    Raises ArgusError (E701) for an unknown or negative size.
    """
    names = [symbol.name for symbol in kernel.sizes]
    for name in given:
        if name not in names:
            message = f"`{kernel.name}` has no size `{name}`, found {', '.join(names) or 'none'}"
            raise ArgusError(Diagnostic("E701", "error", message, help="name sizes as the kernel's tensors do"))
        if given[name] < 0:
            message = f"the size `{name}` is {given[name]}, expected at least 0"
            raise ArgusError(Diagnostic("E701", "error", message, help="give a number of elements"))
    conditions = tuple(_assumptions(kernel))
    fixed = [algebra.eq(algebra.sym(s), given[s.name]) for s in kernel.sizes if s.name in given]
    chosen = {name: given.get(name, DEFAULT_SIZE) for name in names}
    if _meets(conditions, {symbol: chosen[symbol.name] for symbol in kernel.sizes}):
        return chosen
    session = Session(resolve(None), Budget(), None)
    for symbol in kernel.sizes:
        if symbol.name not in given:
            value = _value(session, symbol, (*conditions, *fixed))
            if value is None:
                break
            chosen[symbol.name] = value
            fixed.append(algebra.eq(algebra.sym(symbol), value))
    return chosen


def _meets(conditions: tuple[Cond, ...], sizes: Mapping[Symbol, int]) -> bool:
    """Whether sizes meet the conditions and the ranges of their symbols."""
    high = all(s.high is None or value <= s.high for s, value in sizes.items())
    low = all(s.low is None or value >= s.low for s, value in sizes.items())
    try:
        return high and low and bool(evaluate(algebra.all_of(conditions), sizes))
    except ZeroDivisionError:
        return False


def _value(session: Session, symbol: Symbol, conditions: tuple[Cond, ...]) -> int | None:
    """256 if the conditions allow it, else a size near it, else any; None if none is found."""
    size = algebra.sym(symbol)
    for preferred in (
        (algebra.eq(size, DEFAULT_SIZE),),
        (algebra.le(DEFAULT_SIZE, size), algebra.le(size, _LARGEST)),
        (algebra.le(1, size), algebra.le(size, _LARGEST)),
        (),
    ):
        answer = session.check((*conditions, *preferred))
        if isinstance(answer, Sat):
            return answer.model.get(symbol, DEFAULT_SIZE)
    return None


def _assumptions(kernel: Kernel | Program) -> Iterator[Cond]:
    """The assumptions about sizes; those of each launch of a program in terms of the program's sizes."""
    if isinstance(kernel, Kernel):
        yield assumed(kernel)
        return
    for step in kernel.launches:
        yield substitute(assumed(step.kernel), dict(step.sizes))
