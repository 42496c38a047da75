"""Functions of which no rule is known: equal for equal arguments, and numbers where an operation's value is exact."""

from __future__ import annotations

from argus.core.values.atoms import Poly, constant, number_of, of_atom, opaque_atom
from argus.core.values.operations import OPERATIONS


def opaque(name: str, args: tuple[Poly, ...]) -> Poly:
    """The value of a function of these arguments."""
    entry, numbers = OPERATIONS.get(name), [number for each in args if (number := number_of(each)) is not None]
    if entry is None or entry.exact is None or len(numbers) != len(args):
        return of_atom(opaque_atom(name, args))
    return constant(entry.exact(*numbers))
