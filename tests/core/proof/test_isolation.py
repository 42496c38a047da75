"""Isolation of agents, and disjointness of the copies into one slot."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, const, coord, sym
from argus.core.index import Index
from argus.core.ir import Copy, Kernel, View
from argus.core.layout import TV, Layout
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.dataflow.timeline import timeline
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.isolation import disjoint_fill_obligations
from argus.core.verdict import Proved
from argus.core.walk import substitute
from argus.verifier.kernel import verify
from property_tests.role_programs import ROLES
from tests.core.proof.queries import failing, obligations_of, read
from tests.core.proof.rings import changed, of_role

APART = "agents of `math` access disjoint parts of `box`"


def stated(kernel: Kernel, what: str) -> list[Obligation]:
    return [each for each in obligations_of(kernel) if each.what == what]


def with_box(name: str, first: Index) -> Kernel:
    """The schedule with every access to its box in another slot."""
    kernel = ROLES[name]
    for stmt in of_role(kernel, "math", Copy):
        for side in ("source", "target"):
            view: View = getattr(stmt, side)
            if view.buffer.name == "box":
                kernel = changed(kernel, stmt, **{side: evolve(view, at=(first, *view.at[1:]))})
    return kernel


def number(name: str) -> Index:
    roles = ROLES[name].roles
    assert roles is not None
    return sym(roles.roles[1].number)


@pytest.mark.share(6, among="isolation")
@pytest.mark.parametrize("name", ["cooperative", "pingpong"])
def test_buffers_indexed_by_the_agent_are_isolated(name: str) -> None:
    found = stated(ROLES[name], APART)
    # A write with itself, and with the copy that reads it.
    assert len(found) == 2
    assert "I5" not in failing(ROLES[name])


@pytest.mark.share(6, among="isolation")
@pytest.mark.parametrize("name", ["cooperative", "pingpong"])
@pytest.mark.parametrize("slot", [0, 1])
def test_one_buffer_for_all_agents_is_not_isolated(name: str, slot: int) -> None:
    assert "I5" in failing(with_box(name, const(slot)))


@pytest.mark.share(6, among="isolation")
@pytest.mark.parametrize("name", ["cooperative", "pingpong"])
def test_buffers_in_reverse_agent_order_are_isolated(name: str) -> None:
    kernel = with_box(name, algebra.sub(1, number(name)))
    assert "I5" not in failing(kernel)
    assert isinstance(verify(kernel, solver="z3").verdict, Proved)


def test_one_agent_needs_no_isolation() -> None:
    assert not [each for each in obligations_of(ROLES["stores_of_boxes"]) if each.what.startswith("agents of")]


# -- copies into one slot ------------------------------------------------------------------------------------


def in_halves(kernel: Kernel, second_row: int) -> list[Copy]:
    """The copy of A's slot as two of 32 rows, the second from that row on."""
    whole = of_role(kernel, "load", Copy)[0]
    by = TV(Layout(1, 0), Layout(32 * 16, 1), (32, 16))

    def extract(row: int) -> Copy:
        views = {
            side: evolve(view, shape=(const(32), view.shape[1]), at=substituted(view, row))
            for side, view in (("source", whole.source), ("target", whole.target))
        }
        return evolve(whole, by=by, **views)

    return [extract(0), extract(second_row)]


def substituted(view: View, row: int) -> tuple[Index, ...]:
    """The view's places, so many rows further down."""
    return tuple(substitute(at, {}, (add(coord(0), row), coord(1))) for at in view.at)


@pytest.mark.parametrize(("row", "alone"), [(32, True), (31, False), (16, False), (0, False)])
def test_copies_into_one_slot_fill_disjoint_parts(row: int, alone: bool) -> None:
    kernel = ROLES["barriers_by_hand"]
    accesses = Accesses(timeline(read(kernel).kernel))
    found = list(disjoint_fill_obligations(accesses, in_halves(kernel, row)))
    assert [each.what for each in found] == ["the copies into one slot fill disjoint parts of `a`"]
    assert (found[0].goal is algebra.TRUE) == alone
    assert not found[0].unknown


def test_copies_into_different_buffers_are_disjoint() -> None:
    kernel = ROLES["barriers_by_hand"]
    accesses = Accesses(timeline(read(kernel).kernel))
    assert list(disjoint_fill_obligations(accesses, of_role(kernel, "load", Copy))) == []
