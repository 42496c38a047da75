"""Hoist integer divisions to the top of a loop iteration.

A tile's coordinates need divisions by tile counts: about a hundred cycles each, in a thread that others wait for. NVRTC
does not hoist them out of the branches that use them.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.parts import expressions
from argus.core.index import Bin, Const, Coord, Index, Read, Symbol
from argus.core.ir import For, walk
from argus.core.walk import mentions, symbols, topological


def hoistable_divisions(loop: For, known: frozenset[Symbol]) -> Iterator[Index]:
    """Quotients and remainders by non-constants that depend on the loop variable, operands before users.

    known: symbols defined before the loop.
    """
    found = (node for stmt in walk(loop.body) for node in topological(expressions(stmt)))
    for node in dict.fromkeys(found):
        if isinstance(node, Bin) and node.op in ("//", "%") and not isinstance(node.right, Const):
            used = symbols(node)
            if mentions(node, (Read, Coord)):
                continue  # a load is in bounds only where the program executes it; elements have each their own
            if loop.symbol in used and used <= known | {loop.symbol}:
                yield node
