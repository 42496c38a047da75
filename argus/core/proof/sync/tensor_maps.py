"""The state of tensor maps in memory (I29): edited, released, acquired, and then used by copies.

Part of `visibility`, which tracks them along an agent's body as it tracks accesses. One thread edits, releases,
acquires and issues the copies; other uses are not modelled. Source: proof-methods 4, the automaton of
"edit, release, acquire, use"; NVIDIA PTX ISA, `tensormap.replace` and `fence.proxy.tensormap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Coord, Index, Symbol
from argus.core.ir import Buffer, Copy, Edit, View
from argus.core.walk import mentions, substitute, symbols

Stage = Literal[0, 1, 2]
"""0: edited; 1: then released; 2: then acquired."""


@frozen
class MapState:
    """The tensor that a map describes (the part of a buffer at these indices), and the stage since its edit."""

    buffer: Buffer
    at: tuple[Index, ...]
    stage: Stage = 0


Maps = Mapping[Buffer, MapState]


def after_edit(maps: Maps, stmt: Edit) -> Maps:
    """The maps after a step of an edit. A step out of order changes nothing."""
    now = maps.get(stmt.map)
    match stmt.step:
        case "replace":
            assert stmt.tensor is not None
            return {**maps, stmt.map: MapState(stmt.tensor.buffer, stmt.tensor.at)}
        case "release":
            further: Stage = 1
        case "acquire":
            further = 2
    if now is None or now.stage != further - 1:
        return maps
    return {**maps, stmt.map: evolve(now, stage=further)}


def join_maps(one: Maps, two: Maps) -> Maps:
    """The maps after either of two paths."""
    both = {buffer: (one[buffer], two[buffer]) for buffer in one if buffer in two}
    return {
        buffer: evolve(a, stage=min(a.stage, b.stage))
        for buffer, (a, b) in both.items()
        if (a.buffer, a.at) == (b.buffer, b.at)
    }


def previous_iteration(maps: Maps, past: Mapping[Symbol, Index]) -> Maps:
    """The maps at the start of the next iteration, over the loop variable of the previous one."""
    return {
        buffer: evolve(now, at=tuple(substitute(at, past) if past.keys() & symbols(at) else at for at in now.at))
        for buffer, now in maps.items()
    }


def is_describable(tensor: View) -> bool:
    """Whether a map can describe a view: its own axes whole and in order, one index along the others."""
    places = [at for at in tensor.at if mentions(at, (Coord,))]
    return places == [algebra.coord(axis) for axis in range(len(tensor.shape))]


def describes_target(now: MapState | None, stmt: Copy) -> bool:
    """Whether the map describes the tensor of a copy's target, with all edits released and acquired."""
    if now is None or now.stage != 2 or now.buffer is not stmt.target.buffer:
        return False
    return all(
        mentions(described, (Coord,)) or described is place
        for described, place in zip(now.at, stmt.target.at, strict=True)
    )
