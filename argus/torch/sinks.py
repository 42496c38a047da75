"""Which nodes of a graph are computed within the nests of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argus.torch.tables import pointwise, views
from argus.torch.tables.table import ENTRIES


def sinks_of(graph: Any, eager: Mapping[str, str]) -> dict[Any, set[Any]]:  # noqa: ANN401 reason: a graph
    """The nodes into which each is computed: those that are kept in memory."""
    found: dict[Any, set[Any]] = {}
    for node in reversed(list(graph.nodes)):
        found[node] = set()
        for user in node.users:
            found[node] |= found[user] if _inlines(user) and user.name not in eager else {user}
    return found


def _inlines(node: Any) -> bool:  # noqa: ANN401 reason: a node
    """Whether the operation is computed within the nests that use it."""
    entry = ENTRIES.get(getattr(node.target, "overloadpacket", None))
    return getattr(entry, "__module__", "") in {pointwise.__name__, views.__name__}
