"""Rings of one stage whose tiles have no axis for it are those with an axis of extent 1."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.ir import Kernel, View
from argus.core.ir.surgery import objects_of
from argus.core.proof.sync.roles import obligations
from argus.core.proof.sync.roles.one_stage import with_stage_axes
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.verifier.kernel import verify
from property_tests.role_programs import ROLES
from tests.core.proof.queries import extract
from tests.verifier.switched_off_checks import load_edited

PLAIN = "one_stage_without_an_axis"


def with_axis() -> Kernel:
    """The same kernel with tiles (1, rows, columns), barriers of one stage, and stage 0 written out."""
    edits = (
        ("shared(bf16, (64, 16)", "shared(bf16, (1, 64, 16)"),
        ("shared(bf16, (16, 16)", "shared(bf16, (1, 16, 16)"),
        ("(m, k)), a, via", "(m, k)), a[0], via"),
        ("(n, k)), b, via", "(n, k)), b[0], via"),
        ("mma(mm, acc, a, b,", "mma(mm, acc, a[0], b[0],"),
    )
    return load_edited(PLAIN, *edits).trace()


def test_the_protocol_is_that_of_tiles_with_an_axis() -> None:
    assert extract(with_stage_axes(ROLES[PLAIN])).extracted.protocol == extract(with_axis()).extracted.protocol


def test_each_view_has_the_axis_and_the_cells_that_it_had() -> None:
    before, after = ROLES[PLAIN], with_stage_axes(ROLES[PLAIN])
    pairs = zip(objects_of(before.roles, View), objects_of(after.roles, View), strict=True)
    changed = [(one, other) for one, other in pairs if one.buffer is not other.buffer]
    assert {one.buffer.name for one, _ in changed} == {"a", "b"}
    for one, other in changed:
        assert other.shape == one.shape
        assert other.at == (algebra.const(0), *one.at)


@pytest.mark.parametrize("name", ["barriers_by_hand", "one_slot"])
def test_tiles_with_an_axis_are_left_alone(name: str) -> None:
    assert with_stage_axes(ROLES[name]) is ROLES[name]


def test_tiles_filled_through_several_barriers_are_left_alone() -> None:
    kernel = load_edited(
        "barriers_by_hand",
        ("a = shared(bf16, (2, 64, 16)", "a = shared(bf16, (64, 16)"),
        ("(m, k)), a[k % 2], via", "(m, k)), a, via"),
        ("acc, a[k % 2], b", "acc, a, b"),
    ).trace()
    assert with_stage_axes(kernel) is kernel
    verdict = verify(kernel, solver="z3").verdict
    assert not isinstance(verdict, Proved), verdict


def unchanged(kernel: Kernel) -> Kernel:
    return kernel


def test_without_the_axis_the_ring_is_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obligations, "with_stage_axes", unchanged)
    assert isinstance(verify(ROLES[PLAIN], solver="z3", budget=evolve(Budget(), runs=8)).verdict, Unknown)
