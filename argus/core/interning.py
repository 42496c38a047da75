"""Interned nodes: identity is the equality of forms.

A key holds a node's children, so that no child is collected while a parent lives; an entry is dropped with its node.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

NodeT = TypeVar("NodeT")

_table: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
_references = cast("dict[tuple[object, ...], Callable[[], Any]]", vars(_table)["data"])
"""The table's own dictionary: the table's `get` takes several times as long, and nothing is asked for as often."""
_lock = Lock()


def lookup(key: tuple[object, ...]) -> Any | None:  # noqa: ANN401 reason: the key says of which kind
    """The node with this key, if one is alive."""
    reference = _references.get(key)
    return None if reference is None else reference()


def intern(key: tuple[object, ...], node: NodeT) -> NodeT:
    """The unique node with this key: `node`, unless another thread interned one first."""
    with _lock:
        found = _table.get(key)
        if found is None:
            _table[key] = node
            return node
    return cast(NodeT, found)


def unique(kind: Callable[..., NodeT], *parts: object) -> NodeT:
    """The one node of this kind with these fields, which are interned or plain data."""
    key = (kind, *parts)
    found = lookup(key)
    return intern(key, kind(*parts)) if found is None else found
