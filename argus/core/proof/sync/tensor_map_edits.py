"""What edits of tensor maps in memory need of copies before them, and copies of edits (I29).

Part of `visibility`: `maps` says what a map describes by then, `progress` how far copies have come.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Buffer, Copy, Edit
from argus.core.proof.sync import tensor_maps
from argus.core.proof.sync.progress import Found, State


def of_edit(stmt: Edit, state: State, *, alone: bool) -> Iterator[Found]:
    """One thread takes the step, and an edit finds every copy through the map over."""
    name = stmt.map.name
    several = "" if alone else f"`{name}` is edited by several threads"
    if stmt.step != "replace":
        yield Found("I29", f"one thread tells of the edits of `{name}`", stmt, None, alone, unknown=several)
        return
    assert stmt.tensor is not None
    whole = tensor_maps.regular(stmt.tensor)
    unusual = several or ("" if whole else "a map of a part of a tensor, or of its axes in another order")
    yield Found("I29", f"`{name}` describes a tensor", stmt, None, alone and whole, unknown=unusual)
    for touched, progress in state.records.values():
        if isinstance(touched.stmt, Copy) and touched.stmt.through is stmt.map:
            what = f"copies through `{name}` are over before it is edited"
            reads = "a wait for reads alone: whether the map is read by then is not modelled" if progress.over else ""
            yield Found("I29", what, stmt, touched.stmt, progress.ended, _IN_USE, reads)


def of_copy(stmt: Copy, through: Buffer, state: State, *, alone: bool) -> Found:
    """The map describes what the copy means, and its thread has been told of the edit."""
    what = f"`{through.name}` describes the tensor of this copy, released and acquired since it was edited"
    reason = "" if alone else "a copy through a map in memory by several threads"
    good = alone and tensor_maps.leads_to(state.maps.get(through), stmt)
    return Found("I29", what, stmt, None, good, _SEEN, reason)


_IN_USE = "let the thread that issued the copies wait, `bulk.wait(0)`, before `replace`"
_SEEN = "after `replace`, the thread runs `release()` and then `acquire()` of the map, before the copy"
