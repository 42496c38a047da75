"""Quotients that an iteration computes once, ahead of its statements.

The place of a tile takes divisions by numbers of tiles, each some hundred cycles of one thread for which others wait. A
compiler does not move them out of the branches that use them.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.parts import expressions
from argus.core.index import Bin, Const, Index, Read, Symbol
from argus.core.ir import For, walk
from argus.core.walk import mentions, symbols, topological


def quotients(loop: For, known: frozenset[Symbol]) -> Iterator[Index]:
    """Quotients and remainders by what is no constant that change from iteration to iteration, parts first.

    known: symbols that have their values before the loop.
    """
    found = (node for stmt in walk(loop.body) for node in topological(expressions(stmt)))
    for node in dict.fromkeys(found):
        if isinstance(node, Bin) and node.op in ("//", "%") and not isinstance(node.right, Const):
            used = symbols(node)
            if mentions(node, (Read,)):
                continue  # only where it is executed does the element exist
            if loop.symbol in used and used <= known | {loop.symbol}:
                yield node
