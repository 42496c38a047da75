"""Normal forms as text, for messages and tests."""

from __future__ import annotations

from fractions import Fraction

from argus.core.index_text import show as show_index
from argus.core.values.atoms import (
    Above,
    Atom,
    Base,
    Cell,
    Count,
    Exp,
    Greatest,
    Holds,
    Inhabited,
    Largest,
    Opaque,
    Poly,
    Prefix,
)


def show(of: Poly) -> str:
    """The polynomial as text."""
    return " + ".join(_term(monomial, factor) for monomial, factor in of.terms) or "0"


def _term(monomial: tuple[tuple[Atom, Fraction], ...], factor: Fraction) -> str:
    powers = [_atom(atom) if power == 1 else f"{_atom(atom)}^{power}" for atom, power in monomial]
    return " * ".join(powers if factor == 1 and powers else [str(factor), *powers])


def _atom(atom: Atom) -> str:
    match atom:
        case Count(index=index):
            return f"({show_index(index)})"
        case Cell(tensor=tensor, at=at):
            return f"{tensor}[{', '.join(map(show_index, at))}]"
        case Exp(of=of):
            return f"exp({show(of)})"
        case Base(of=of):
            return f"({show(of)})"
        case Opaque(name=name, args=args):
            return f"{name}({', '.join(map(show, args))})"
        case Holds(cond=cond):
            return f"[{show_index(cond)}]"
        case Above(of=of):
            return f"[{show(of)} > 0]"
        case Prefix(product=product, variable=variable, bound=bound, body=body):
            return f"{'product' if product else 'sum'}({variable.name} < {show_index(bound)}: {show(body)})"
        case Greatest(variable=variable, low=low, high=high, body=body):
            return f"max({show_index(low)} <= {variable.name} < {show_index(high)}: {show(body)})"
        case Inhabited(variable=variable, low=low, high=high, where=where):
            return f"[some {show_index(low)} <= {variable.name} < {show_index(high)}: {show(where)}]"
        case Largest(of=of):
            return f"max({', '.join(map(show, of))})"
