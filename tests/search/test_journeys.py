"""Whole searches with a scripted author: from a naive kernel to the shipped structure, each step judged by the gate."""

from pathlib import Path

import pytest

from argus.core.ir.pretty import pretty
from argus.policy.llm.record import from_data
from argus.policy.llm.reply import Reply
from argus.runtime.sandbox import Refused, trace_text
from argus.search.events import Asked
from argus.search.journal import Journal
from argus.search.run import SearchResult
from benchmarks.journeys import ATTENTION, ROWS, run


def times(found: SearchResult) -> list[float]:
    """Of the written kernels that passed, in order; the last candidate is the user's own kernel, or a rewrite of it."""
    *written, own = found.judged
    assert own.name.partition("+")[0] in {"softmax", "attention"}
    return [each.microseconds for each in written if each.microseconds is not None]


def check_every_answer_is_used(found: SearchResult) -> None:
    with Journal(found.journal) as journal:
        asked = [from_data(each.reply) for each in journal.events(found.run) if isinstance(each, Asked)]
    answers = [each for each in asked if isinstance(each, Reply)]
    assert {each.task for each in answers} == {"plan", "lower", "repair"}
    assert len(asked) - len(answers) <= 1  # after the last step the author proposes nothing


@pytest.mark.nightly
def test_rows_reach_the_bandwidth_of_the_static_model(tmp_path: Path) -> None:
    found, author = run(ROWS, tmp_path)
    passed = times(found)

    assert author.mended == ["I39", "I39", "I31"]
    assert [each.outcome for each in found.judged] == ["refuted", "timed"] * 3 + ["timed", "timed"]
    assert passed == sorted(passed, reverse=True)
    assert found.best is not None
    assert found.best.microseconds == passed[-1]
    assert found.best.breakdown["memory"] >= 0.95 * passed[-1]
    check_every_answer_is_used(found)


@pytest.mark.nightly
def test_attention_reaches_the_shipped_structure(tmp_path: Path) -> None:
    found, author = run(ATTENTION, tmp_path)
    passed = times(found)
    own = found.judged[-1].microseconds

    assert author.mended == ["I10", "I4", "I11", "I21"]
    assert passed == sorted(passed, reverse=True)
    assert own is not None
    assert passed[-1] < own / 2.5
    traced = trace_text(found.text)
    assert not isinstance(traced, Refused)
    text = pretty(traced[0].trace())
    # A role that loads, three rings, and warpgroups in turns.
    assert all(part in text for part in ("role load", "role math", "q_ring", "k_ring", "v_ring", "turns"))
    check_every_answer_is_used(found)
