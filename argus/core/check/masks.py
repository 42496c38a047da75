"""Whether a kernel masks elements by conditions on their coordinates."""

from __future__ import annotations

from argus.core.ir import Holds, Kernel, Map, walk
from argus.core.ir.element_walk import nodes


def has_masks(kernel: Kernel) -> bool:
    """Whether some `Map` selects elements by a condition on coordinates."""
    maps = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Map)]
    return any(isinstance(node, Holds) for stmt in maps for node in nodes(stmt.elem))
