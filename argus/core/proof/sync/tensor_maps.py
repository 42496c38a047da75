"""Tensor maps in memory (I29): edited when no copy goes by them, released and acquired before the next one does.

Part of `visibility`, which follows them along an agent's body as it follows accesses. One thread does it all: it edits,
releases, acquires and issues the copies; what others do is not modelled. Source: proof-methods 4, the automaton of
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
"""Edited; released since; acquired since that."""


@frozen
class Described:
    """A tensor that a map describes: of a buffer, the part at these places; and what was done since the edit."""

    buffer: Buffer
    at: tuple[Index, ...]
    stage: Stage = 0


Maps = Mapping[Buffer, Described]


def edited(maps: Maps, stmt: Edit) -> Maps:
    """The maps after a step of an edit. A step out of order leaves them as they were."""
    now = maps.get(stmt.map)
    match stmt.step:
        case "replace":
            assert stmt.tensor is not None
            return {**maps, stmt.map: Described(stmt.tensor.buffer, stmt.tensor.at)}
        case "release":
            further: Stage = 1
        case "acquire":
            further = 2
    if now is None or now.stage != further - 1:
        return maps
    return {**maps, stmt.map: evolve(now, stage=further)}


def joined(one: Maps, two: Maps) -> Maps:
    """What holds on both paths."""
    both = {buffer: (one[buffer], two[buffer]) for buffer in one if buffer in two}
    return {
        buffer: evolve(a, stage=min(a.stage, b.stage))
        for buffer, (a, b) in both.items()
        if (a.buffer, a.at) == (b.buffer, b.at)
    }


def in_the_past(maps: Maps, past: Mapping[Symbol, Index]) -> Maps:
    """As the next iteration sees them: they describe tensors of the one before."""
    return {
        buffer: evolve(now, at=tuple(substitute(at, past) if past.keys() & symbols(at) else at for at in now.at))
        for buffer, now in maps.items()
    }


def regular(tensor: View) -> bool:
    """Whether a map can describe it: a whole tensor along its own axes, in order, at one place along the others."""
    places = [at for at in tensor.at if mentions(at, (Coord,))]
    return places == [algebra.coord(axis) for axis in range(len(tensor.shape))]


def leads_to(now: Described | None, stmt: Copy) -> bool:
    """Whether a copy goes where it means to: its tile lies in the tensor described, edits released and acquired."""
    if now is None or now.stage != 2 or now.buffer is not stmt.target.buffer:
        return False
    return all(
        mentions(described, (Coord,)) or described is place
        for described, place in zip(now.at, stmt.target.at, strict=True)
    )
