"""Instructions injected into what a model is shown change nothing but the text that is quoted."""

import pytest

from benchmarks.injections import ORDERS, PLACES, attempts


@pytest.mark.nightly
def test_no_injected_instruction_gets_a_proposal_past_the_gate_or_a_secret_into_a_request() -> None:
    found = list(attempts())

    assert len(found) == len(ORDERS) * len(PLACES) == 20
    assert [each for each in found if each.faults] == []
    assert {each.outcome for each in found} == {"", "unknown", "ill-formed", "refuted"}
