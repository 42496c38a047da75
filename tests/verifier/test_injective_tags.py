"""A claim determines an output only if the tags tell apart the elements of the inputs that its value is made of."""

from __future__ import annotations

import pytest

from argus.core.proof.outputs.data_sources import data_sources
from argus.core.verdict import Proved, Report
from argus.language import (
    Tensor,
    assert_written_once,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    global_load,
    kernel,
    load,
    spread,
    tag,
    vmem,
)
from argus.language import bf16 as half
from argus.verifier import uncovered
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import PROVED
from tests.verifier.switched_off_checks import load as load_corpus

pytestmark = pytest.mark.share(3, among="verifier: injective tags")

REVERSED = "tiles_reversed_under_equal_tags"


@kernel(target=gfx942, threads=64)
def biased(X: Tensor["M N", f32], G: Tensor["N M", f32], Y: Tensor["M N", f32]) -> None:
    """Adds the transposed tile of an untagged tensor."""
    assume(X.shape[0] % 16 == 0, X.shape[1] % 16 == 0)
    tag(X, lambda m, n: dict(m=m, n=n))
    m, n = block_id((ceil_div(X.shape[0], 16), ceil_div(X.shape[1], 16)))
    by = spread((16, 16), threads=64, vector=1)
    x = load(X.tile((16, 16), (m, n)), by, via=global_load, edge=0)
    g = load(G.tile((16, 16), (n, m)), by, via=global_load, edge=0)
    vmem.wait(0)
    copy(x + g, Y.tile((16, 16), (m, n)), edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, n=n))


@kernel(target=gfx942, threads=64)
def one_row(X: Tensor["M N", f32], Y: Tensor["M N", f32]) -> None:
    """The claim lacks the row."""
    tag(X, lambda _m, n: dict(n=n))
    m, n = block_id((ceil_div(X.shape[0], 16), ceil_div(X.shape[1], 16)))
    by = spread((16, 16), threads=64, vector=1)
    x = load(X.tile((16, 16), (m, n)), by, via=global_load, edge=0)
    vmem.wait(0)
    copy(x, Y.tile((16, 16), (m, n)), edge=0)
    assert_written_once(Y, lambda _m, n: dict(n=n))


@kernel(target=gfx942, threads=64)
def broadcast(X: Tensor["1 N", f32], Y: Tensor["M N", f32]) -> None:
    """Every row is X: the tags determine it, but the claim does not mention the row."""
    tag(X, lambda _m, n: dict(n=n))
    m, n = block_id((ceil_div(Y.shape[0], 16), ceil_div(Y.shape[1], 16)))
    by = spread((16, 16), threads=64, vector=1)
    row = X.gather((16, 16), lambda _i, j: (0, 16 * n + j))
    x = load(row, by, via=global_load, edge=0)
    vmem.wait(0)
    copy(x, Y.tile((16, 16), (m, n)), edge=0)
    assert_written_once(Y, lambda _m, n: dict(n=n))


@kernel(target=gfx942, threads=64)
def named_like_a_type(
    X: Tensor["M N", f32], bf16: Tensor["M N", f32], Y: Tensor["M N", half], Z: Tensor["M N", f32]
) -> None:
    """Y is X alone, rounded; the other input has the name of that rounding, no tags, and its own output."""
    tag(X, lambda m, n: dict(m=m, n=n))
    m, n = block_id((ceil_div(X.shape[0], 16), ceil_div(X.shape[1], 16)))
    by = spread((16, 16), threads=64, vector=1)
    x = load(X.tile((16, 16), (m, n)), by, via=global_load, edge=0)
    z = load(bf16.tile((16, 16), (m, n)), by, via=global_load, edge=0)
    vmem.wait(0)
    copy(x.to(half), Y.tile((16, 16), (m, n)), edge=0)
    copy(z, Z.tile((16, 16), (m, n)), edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, n=n))


def nothing_is_ambiguous(*_: object) -> str:
    return ""


def no_axes(*_: object) -> tuple[int, ...]:
    return ()


def proved(report: Report) -> Proved:
    assert isinstance(report.verdict, Proved), report.diagnostics
    return report.verdict


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_elements_with_equal_tags_are_shown(solver: str) -> None:
    report = verify(load_corpus(REVERSED, PROVED), solver=solver)

    assert (report.exit_code, report.uncovered) == (2, ("Y",))
    (warning,) = report.diagnostics
    assert "does not tell apart elements of `X` with equal tags (m=i0 % 16, n=i1), such as `X`[" in warning.message
    (line,) = proved(report).results
    assert line.startswith("each element of `Y` is X, as far as its claim says: it does not tell apart")


def test_an_untagged_input_is_not_determined() -> None:
    report = verify(biased, solver="z3")

    assert report.exit_code == 2
    (line,) = proved(report).results
    assert "does not tell apart elements of `G` with no tag among those of the claim" in line


def test_inputs_are_found_by_what_flows_and_not_by_name() -> None:
    report = verify(named_like_a_type, solver="z3")

    assert proved(report).results == ("each element of `Y` is bf16(X)",)
    assert report.uncovered == ("Z",)


def test_the_sources_of_an_output_are_its_own() -> None:
    made = named_like_a_type.trace()
    x, other, y, z = made.parameters
    assert data_sources(made, y).isdisjoint({other, y, z})
    assert x in data_sources(made, y)
    assert {*made.parameters} & data_sources(made, z) == {other}


def test_both_operands_and_what_is_added_are_sources() -> None:
    made = biased.trace()
    x, g, y = made.parameters
    assert {*made.parameters} & data_sources(made, y) == {x, g}
    product = load_corpus("tiles_in_groups_of_rows", PROVED).trace()
    a, b, c = product.parameters
    assert {*product.parameters} & data_sources(product, c) == {a, b}


def test_a_claim_without_a_coordinate_says_which() -> None:
    report = verify(broadcast, solver="z3")

    proved(report)
    (warning,) = report.diagnostics
    assert warning.code == "E404"
    assert warning.message == "the claim about the output `Y` does not mention coordinate 0 of 2"
    assert warning.primary.span.frame is not None


def test_without_a_look_at_coordinates_a_claim_that_lacks_one_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncovered, "_unmentioned_axes", no_axes)

    report = verify(broadcast, solver="z3")
    assert (report.exit_code, report.diagnostics) == (0, ())


def test_a_tag_without_a_coordinate_is_shown_by_two_elements() -> None:
    (warning,) = verify(one_row, solver="z3").diagnostics

    assert "elements of `X` with equal tags (n=i1), such as `X`[" in warning.message


def test_without_the_check_tiles_in_reverse_order_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argus.core.proof.outputs.writes.undetermined_inputs", nothing_is_ambiguous)

    assert verify(load_corpus(REVERSED, PROVED), solver="z3").exit_code == 0
