"""Accesses whose cells depend on the number of the agent that makes them."""

from __future__ import annotations

from attrs import evolve

from argus.core.index import Symbol
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.timeline import Shift
from argus.core.walk import symbols


def agent_symbol_of_cells(access: Access) -> Symbol | None:
    """The agent symbol on which the cells of an access depend; None if it selects only slots, or nothing."""
    for place in access.places or ():
        if not place.uniform:
            for symbol in symbols(place.base):
                if symbol.kind == "agent" and symbol.low is not None and symbol.high is not None:
                    return symbol
    return None


def substitute_agent(access: Access, number: Shift) -> Access:
    """The access of one agent."""
    assert access.places is not None
    return evolve(access, places=tuple(place.shifted(number) for place in access.places))
