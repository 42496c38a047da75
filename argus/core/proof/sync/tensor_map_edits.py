"""Checks of edits of tensor maps in memory against earlier copies, and of copies against earlier edits (I29).

Part of `visibility`: `tensor_maps` is the state of the maps, `progress` that of the copies.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Buffer, Copy, Edit
from argus.core.proof.sync import tensor_maps
from argus.core.proof.sync.progress import Check, State


def edit_checks(stmt: Edit, state: State, *, alone: bool) -> Iterator[Check]:
    """The steps of an edit are by one thread, and all copies through the map are complete before `replace`."""
    name = stmt.map.name
    several = "" if alone else f"`{name}` is edited by several threads"
    if stmt.step != "replace":
        yield Check(
            "I29", f"one thread releases and acquires the edits of `{name}`", stmt, None, alone, unknown=several
        )
        return
    assert stmt.tensor is not None
    whole = tensor_maps.is_describable(stmt.tensor)
    unusual = several or ("" if whole else "a map of part of a tensor, or of its axes in another order")
    yield Check("I29", f"`{name}` describes a tensor", stmt, None, alone and whole, unknown=unusual)
    for touched, progress in state.records.values():
        if isinstance(touched.stmt, Copy) and touched.stmt.through is stmt.map:
            what = f"copies through `{name}` are complete before it is edited"
            reads = (
                "a wait for the reads only: whether the map has been read by then is not modelled"
                if progress.reads_done
                else ""
            )
            yield Check("I29", what, stmt, touched.stmt, progress.complete, _IN_USE, reads)


def copy_check(stmt: Copy, through: Buffer, state: State, *, alone: bool) -> Check:
    """The map describes the tensor of the copy, and the copy's thread has acquired the edit."""
    what = f"`{through.name}` describes the tensor of this copy, released and acquired since it was edited"
    reason = "" if alone else "several threads copy through a map in memory"
    good = alone and tensor_maps.describes_target(state.maps.get(through), stmt)
    return Check("I29", what, stmt, None, good, _SEEN, reason)


_IN_USE = "let the thread that issued the copies wait, `bulk.wait(0)`, before `replace`"
_SEEN = "after `replace`, the thread runs `release()` and then `acquire()` of the map, before the copy"
