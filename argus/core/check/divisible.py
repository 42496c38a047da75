"""Whether a count is a multiple of a number for all sizes that meet the kernel's assumptions, by rewriting alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core import algebra
from argus.core.index import And, Bin, Cmp, Cond, Const, Index, Sym, Symbol
from argus.core.ir import Assume, Kernel
from argus.core.walk import substitute, symbols


def always_multiple(kernel: Kernel, count: Index, of: int) -> bool:
    """Whether `count % of == 0` follows from the kernel's assumptions.

    It does if an assumption says so of the count itself, or if the normal form of the remainder is 0 once each size
    with an assumed value or remainder is written in terms of it. False means that this does not show it.
    """
    facts = tuple(_facts(kernel))
    if any(_says(fact, count, of) for fact in facts):
        return True
    for names in (_values(facts), _remainders(facts)):
        count = substitute(count, names)
    return algebra.mod(count, of) is algebra.const(0)


def _facts(kernel: Kernel) -> Iterator[Cond]:
    for stmt in kernel.prologue:
        if isinstance(stmt, Assume):
            yield from stmt.cond.parts if isinstance(stmt.cond, And) else (stmt.cond,)


def _remainder(fact: Cond) -> tuple[Index, int, int] | None:
    """(e, q, r) of an assumption `e % q == r`."""
    if not isinstance(fact, Cmp) or fact.op != "==":
        return None
    for one, other in ((fact.left, fact.right), (fact.right, fact.left)):
        if isinstance(one, Bin) and one.op == "%" and isinstance(one.right, Const) and isinstance(other, Const):
            return one.left, one.right.value, other.value
    return None


def _says(fact: Cond, count: Index, of: int) -> bool:
    found = _remainder(fact)
    return found is not None and found[0] is count and found[1] % of == 0 and found[2] % of == 0


def _values(facts: Sequence[Cond]) -> dict[Symbol, Index]:
    """Sizes that are assumed equal to an expression of other sizes, none of which is replaced itself."""
    found: dict[Symbol, Index] = {}
    kept: set[Symbol] = set()
    for fact in facts:
        if not isinstance(fact, Cmp) or fact.op != "==":
            continue
        for one, other in ((fact.left, fact.right), (fact.right, fact.left)):
            named = symbols(other)
            if isinstance(one, Sym) and one.symbol not in found.keys() | kept | named and not named & found.keys():
                found[one.symbol] = other
                kept |= named
                break
    return found


def _remainders(facts: Sequence[Cond]) -> dict[Symbol, Index]:
    """`q * t + r`, with t >= 0 a new symbol, for each size that is assumed to have the remainder r modulo q > 0."""
    found: dict[Symbol, Index] = {}
    for fact in facts:
        match _remainder(fact):
            case (Sym(symbol=symbol), modulus, rest) if 0 <= rest < modulus and symbol not in found:
                number = algebra.sym(Symbol(f"{symbol.name}_quotient", "fresh", 0))
                found[symbol] = algebra.add(algebra.mul(number, modulus), rest)
            case _:
                pass
    return found
