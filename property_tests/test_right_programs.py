"""Property: a random program that is right by construction is proved, and its emitted text does what it should."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.runtime.cpu.validate import Emitted, every_text
from benchmarks import fuzz_text
from benchmarks.fuzz_text import Entry, added, executed_batch, read, replace, summary
from property_tests.depth import examples
from property_tests.small import staging
from property_tests.small.right import FAMILIES

COUNT = examples(2, 200)
MARKS = {
    "elements": {"elements", "buffer", "loop"},
    "staging": {"shared memory"},
    "folding": {"fold", "scan"},
    "multiplying": {"mma"},
    "boxing": {"tma", "ring", "roles"},
    "adding": {"atomic"},
    "piping": {"wgmma", "tma", "ring", "mbarrier"},
    "counting": {"integer arithmetic", "choice"},
    "warping": {"mma.sync"},
    "holding": {"wgmma with A in registers"},
    "clustering": {"multicast", "store to a peer"},
}


@pytest.mark.share(8)
@pytest.mark.parametrize("family", FAMILIES)
def test_texts_of_right_programs_agree_with_the_interpreter(family: str) -> None:
    drawn = random.Random(family)  # noqa: S311 reason: a seed makes failures repeatable
    programs = [FAMILIES[family](drawn.choice) for _ in range(COUNT)]

    entries = executed_batch(programs, seed=0, seconds=1.0)

    assert not [each for each in entries if each.outcome == "wrong"]
    assert "right" in {each.outcome for each in entries}
    assert MARKS[family] & {mark for each in entries for mark in each.uses}


@pytest.mark.share(3)
def test_a_fault_of_the_emitter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last texts for gfx942 lose their barriers: programs in which a wave reads what another wrote disagree."""

    def without_barriers(own: Kernel) -> list[Emitted]:
        *others, last = every_text(own)
        return [*others, evolve(last, text=last.text.replace("meet();", ";"))]

    monkeypatch.setattr(fuzz_text, "every_text", without_barriers)
    drawn = random.Random(1)  # noqa: S311 reason: as above
    programs = [staging.draw(drawn.choice) for _ in range(12)]

    entries = fuzz_text.executed_batch([each for each in programs if each.turn], seed=0, seconds=1.0)

    assert "wrong" in {each.outcome for each in entries if each.target == "gfx942"}
    assert "wrong" not in {each.outcome for each in entries if each.target == "sm_90a"}


def test_figures_of_another_journal_are_added() -> None:
    one = summary(
        [Entry("right", "piping", "sm_90a", ("tma",), 1, "one"), Entry("not proved", "a", "sm_90a", (), 1, "")]
    )
    two = summary(
        [Entry("right", "piping", "gfx942", ("tma",), 3, "two"), Entry("right", "warping", "sm_90a", (), 1, "")]
    )

    found = added(one, two)

    assert (found["programs"], found["executed"], found["seeds"], found["sizes of a program"]) == (4, 3, [1, 3], 3)
    assert found["outcomes"] == {"not proved": 1, "right": 3}
    assert found["executed by family"] == {"piping": {"sm_90a": 1, "gfx942": 1}, "warping": {"sm_90a": 1}}
    assert found["executed by use"] == {"tma": {"sm_90a": 1, "gfx942": 1}}


def test_a_journal_holds_all_but_disagreements_and_what_was_not_finished(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    entries = [
        Entry("right", "piping", "sm_90a", ("ring", "tma"), 1, "Piping(stages=2)"),
        Entry("not proved", "folding", "gfx942", (), 1, "Folding(split=True)"),
        Entry("wrong", "elements", "gfx942", ("cast",), 2, "Elements(vector=4)"),
    ]
    replace(journal, entries)
    with journal.open("a", encoding="utf-8") as stream:
        stream.write("right\tpiping\tsm_9")

    found = read(journal)

    assert found == entries[:2]
    assert summary(entries)["disagreements"] == 1
    assert summary(found)["executed by use"] == {"ring": {"sm_90a": 1}, "tma": {"sm_90a": 1}}
