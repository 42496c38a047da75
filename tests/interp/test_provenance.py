"""Provenance of a wrong element: every statement between its tensor and the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.verdict import Counterexample, Hop, Refuted
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates

OF_TAGS = ("I1", "I2", "I3", "I4", "I39")


def counterexample(name: str) -> Counterexample:
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    verdict = verify(template, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    return verdict.counterexample


def line(hop: Hop) -> str:
    """The statement of a hop as it is written."""
    assert hop.span.frame is not None
    text = Path(hop.span.frame.file).read_text(encoding="utf-8").splitlines()[hop.span.frame.line - 1]
    return text[hop.span.frame.column :].partition("(")[0]


def described(found: Counterexample) -> list[str]:
    """Each hop as `target from sources`, with the thread and the iteration."""
    return [
        f"{line(hop)}: {hop.target} from {taken(hop)}, thread {hop.thread} {dict(hop.iteration)}" for hop in found.chain
    ]


def taken(hop: Hop) -> str:
    return " and ".join(map(str, hop.sources))


@pytest.mark.share(16, among="provenance")
def test_both_factors_are_followed_through_shared_memory() -> None:
    assert described(counterexample("transposed_b")) == [
        "copy: `next_a`[0, 0] from `A`[0, 0], thread 0 {}",
        "copy: `lds_a`[0, 0, 0] from `next_a`[0, 0], thread 0 {}",
        "copy: `a`[0, 0] from `lds_a`[0, 0, 0], thread 0 {'k': 0}",
        "copy: `next_b`[1, 0] from `B`[0, 1], thread 4 {}",
        "copy: `lds_b`[0, 1, 0] from `next_b`[1, 0], thread 4 {}",
        "copy: `b`[1, 0] from `lds_b`[0, 1, 0], thread 1 {'k': 0}",
    ]


def test_it_is_the_copy_of_the_right_iteration() -> None:
    found = counterexample("relation_too_strong")

    assert found.iteration == (("k", 1),)
    assert described(found) == [
        "copy: `next_a`[0, 0] from `A`[0, 32], thread 0 {'k': 0}",
        "copy: `lds_a`[1, 0, 0] from `next_a`[0, 0], thread 0 {'k': 0}",
        "copy: `a`[0, 0] from `lds_a`[1, 0, 0], thread 0 {'k': 1}",
    ]


def test_agents_and_asynchronous_copies_are_followed() -> None:
    assert described(counterexample("slices_in_another_order")) == [
        "copy: `a`[0, 0, 0] from `A`[0, 0], thread 0 {'k': 0}",
        "copy: `b`[0, 0, 0] from `B`[0, 16], thread 0 {'k': 0}",
    ]


@pytest.mark.share(16, among="provenance")
def test_a_result_is_followed_through_its_product_and_its_conversion() -> None:
    assert described(counterexample("both_consumers_the_same_rows")) == [
        "copy: `a`[0, 0, 0] from `A`[0, 0], thread 0 {'k': 0}",
        "copy: `b`[0, 0, 0] from `B`[0, 0], thread 0 {'k': 0}",
        "mma: `acc`[0, 0] from `a`[0, 0, 0] and `b`[0, 0, 0], thread 256 {'wg': 1, 'k_2': 0}",
        "acc.to: `value_43`[0, 0] from `acc`[0, 0], thread 256 {'wg': 1}",
        "copy: `C`[64, 0] from `value_43`[0, 0], thread 256 {'wg': 1}",
    ]


@pytest.mark.share(16, among="provenance")
def test_a_sum_is_followed_from_its_claim() -> None:
    found = counterexample("slice_used_twice")

    assert [line(hop) for hop in found.chain] == ["copy", "copy", "copy", "copy", "copy", "copy", "mma"]
    assert str(found.chain[-1].target) == "`acc`[0, 0]"
    assert {str(source) for hop in found.chain for source in hop.sources if source.space == "global"} == {
        "`A`[0, 0]",
        "`B`[0, 0]",
    }


@pytest.mark.share(16, among="provenance")
def test_padding_ends_the_provenance() -> None:
    first = counterexample("half_stored_twice").chain[0]

    assert first.sources[0].element is None
    assert str(first.sources[0]) == "padding"


@pytest.mark.share(6)
@pytest.mark.parametrize("name", ["transposed_b", "slices_in_another_order", "both_consumers_the_same_rows"])
def test_each_hop_reads_what_an_earlier_one_wrote(name: str) -> None:
    chain = counterexample(name).chain
    for place, hop in enumerate(chain):
        before = {earlier.target for earlier in chain[:place]}
        assert all(source in before for source in hop.sources if source.space != "global")


@pytest.mark.share(16, among="provenance")
def test_an_unwritten_element_has_no_provenance() -> None:
    found = counterexample("swapped_output")

    assert "never written" in found.message
    assert found.chain == ()
    assert [str(place) for place in found.elements] == ["`C`[64, 0]"]


def test_a_fault_of_another_kind_has_no_provenance() -> None:
    found = counterexample("no_full_wait")

    assert found.code not in OF_TAGS
    assert (found.elements, found.chain, found.tags) == ((), (), ())
