"""Tiles that hold a number after each iteration, of which no closed form is known: a function of its recurrence.

It is an element of a pseudo tensor, so any real number. Where that cancels, as the reference of a softmax does, the
value does not depend on what it is. Its coordinates are all that the recurrence depends on: the register, the loop
variable, blocks and agents. So two such numbers are one only where their recurrences are.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.index import Index
from argus.core.proof.values.held.emptiness import has_element
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.iterations import Closed, Recurrence
from argus.core.proof.values.held.terms import all_symbols, chosen, exchanged, heads, reasons
from argus.core.values.expr import Choose, Element, Expr, element, infinity
from argus.core.values.numbers import is_number
from argus.core.values.rewriting import bound_variables, nodes

_NOTHING = infinity(-1)
_MARK = "~#"


def unnamed(of: Recurrence, reason: str) -> Closed | None:
    """The tile as such a number; None if it is not shown to be one. reason: why no closed form of it is known."""
    if reasons(of.step) or reasons(of.entry) or heads(of.entry) or any(each is not of.mine for each in heads(of.step)):
        return None
    if not has_element(of.known(), of.step):
        return None
    if not has_element(of.first, of.entry) and not (of.entry is _NOTHING and is_set_from_nothing(of)):
        return None
    tables = of.cells.tables.known
    parts = of.step, of.entry
    own = all_symbols(parts[0]) | all_symbols(parts[1])
    own -= bound_variables(parts[0]) | bound_variables(parts[1])
    others = sorted(
        (each for each in own if each.kind != "size" and each not in tables and each != of.loop.symbol),
        key=lambda each: (each.kind, each.name),
    )
    name = f"{_MARK}{of.mine.tensor} {reason}"

    def at(k: Index) -> Expr:
        return element(name, of.mine.at[0], k, *map(algebra.sym, others))

    head = chosen(algebra.eq(of.k, of.loop.stmt.start), of.entry, at(of.k))
    return Closed(head, chosen(algebra.lt(0, of.loop.trips), at(of.end), of.entry), extremum=True)


def is_set_from_nothing(of: Recurrence) -> bool:
    """Whether an iteration makes a number of a tile that is -inf."""
    return becomes_number(of.known(), exchanged(of.step, {of.mine: _NOTHING}))


def becomes_number(known: Known, of: Expr) -> bool:
    """Whether the value is a number; what its tests compare may be infinite."""
    return has_element(known, of) or any(known.same(of, each) for each in _numbers(of))


def _numbers(of: Expr) -> Iterator[Expr]:
    """The numbers that the value may be, by its tests."""
    seen: set[Expr] = set()
    stack = [of]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if is_number(node):
            yield node
        elif isinstance(node, Choose):
            stack += [node.then, node.other]


def unnamed_reasons(root: Expr) -> tuple[str, ...]:
    """Why no closed form is known of the numbers of this kind in the expression."""
    found = (each.tensor for each in nodes(root) if isinstance(each, Element) and each.tensor.startswith(_MARK))
    return tuple(dict.fromkeys(each[each.index("no closed form") :] for each in found))
