"""Where all that is claimed are formulas of all outputs, what tiles hold on the way needs no tags.

Each check that stays has a wrong kernel that would be proved without it.
"""

from collections.abc import Iterator

import pytest

from argus.core.ir import Kernel
from argus.core.proof.dataflow import reads
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import store_coverage
from argus.core.verdict import Proved, Refuted, Verdict
from argus.core.walk import IntArray
from argus.language import (
    Tensor,
    assert_written_once,
    block_id,
    ceil_div,
    copy,
    f32,
    first_lane,
    kernel,
    load,
    sm_90a,
    spread,
    tag,
)
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import load_edited


def verdict(wrong: Kernel) -> Verdict:
    return verify(wrong).verdict


def test_a_load_must_have_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = load_edited("formula_doubled", ("    vmem.wait(0)\n", "")).trace()
    assert isinstance(verdict(wrong), Refuted)
    monkeypatch.setattr(reads, "_arrives", nothing)
    assert isinstance(verdict(wrong), Proved)


def nothing(*_: object) -> Iterator[Obligation]:
    return iter(())


@kernel(target=sm_90a, threads=32)
def first_of_each_tile(X: Tensor["R", f32], Y: Tensor["R", f32]) -> None:
    (R,) = X.shape
    tag(X, lambda r: dict(r=r))
    (block,) = block_id((ceil_div(R, 32),))
    x = load(X.tile((32,), (block,)), spread((32,), threads=32, vector=1), edge=0)
    copy(x, Y.tile((32,), (block,)), by=first_lane, edge=0)
    assert_written_once(Y, lambda r: dict(r=r))


def test_lanes_that_store_nothing_cover_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = first_of_each_tile.trace()
    assert isinstance(verdict(wrong), Refuted)
    monkeypatch.setattr(store_coverage, "_stored_elements", every_element)
    assert isinstance(verdict(wrong), Proved)


def every_element(_: Access, place: Separable) -> IntArray:
    return place.table
