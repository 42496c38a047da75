"""Whether a kernel masks elements by conditions on their coordinates."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.index import Cond
from argus.core.ir import Holds, Kernel, Map, walk
from argus.core.ir.element_walk import nodes
from argus.core.walk import symbols


def has_masks(kernel: Kernel) -> bool:
    """Whether some `Map` selects elements by a condition on coordinates."""
    return any(True for _ in _conditions(kernel))


def masks_by_range(kernel: Kernel) -> bool:
    """Whether some mask depends on a size, block or loop, and not on threads and registers alone."""
    return any(symbol.kind not in ("thread", "wave") for cond in _conditions(kernel) for symbol in symbols(cond))


def _conditions(kernel: Kernel) -> Iterator[Cond]:
    maps = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Map)]
    return (node.cond for stmt in maps for node in nodes(stmt.elem) if isinstance(node, Holds))
