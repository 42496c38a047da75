"""The table of real bugs and the corpus say the same; tests/test_corpus.py holds each kernel to its verdict."""

from __future__ import annotations

import re

import pytest

from benchmarks.real_bugs import CORPUS, Row, rows, table, twins, verdict_of

ROWS = rows()
WITH_KERNELS = [row for row in ROWS if row.kernel]
RIGHT = ("real_rl_kernel_189", "real_flash_attention_2462", "real_fuser_4814")


@pytest.mark.parametrize("row", WITH_KERNELS, ids=[row.kernel for row in WITH_KERNELS])
def test_a_kernel_has_the_verdict_of_its_row_and_names_its_thread(row: Row) -> None:
    text = row.path.read_text(encoding="utf-8")
    assert text.startswith(f"# verdict: {row.verdict}\n")
    if "#" in row.thread:
        assert re.search(rf'^"""After {re.escape(row.thread)}\b', text, flags=re.MULTILINE), row.thread


def test_every_real_kernel_of_the_corpus_has_a_row() -> None:
    found = {path.stem for path in CORPUS.glob("*/real_*.py")}
    assert found == {row.kernel for row in WITH_KERNELS if row.kernel.startswith("real_")}
    assert {path.stem for path in twins()} <= found


def test_a_row_without_a_kernel_says_why() -> None:
    left_out = [row for row in ROWS if not row.kernel]
    assert left_out
    assert all(len(row.verdict) > 5 for row in left_out)
    assert all(re.fullmatch(r"I\d+(, I\d+)*", row.invariant) for row in ROWS)


def test_right_kernels_are_proved() -> None:
    right = [row for row in ROWS if row.what.startswith("right: ")]
    assert {row.kernel for row in right} == set(RIGHT)
    assert {row.verdict for row in right} == {"proved"}


def test_the_counts_follow_from_the_verdicts() -> None:
    row = next(row for row in WITH_KERNELS if row.kernel == "real_fuser_4096")
    refuted = verdict_of(row.path, "z3")
    assert refuted == row.verdict
    alarm = next(row for row in WITH_KERNELS if row.kernel == RIGHT[0])
    lines = list(table([(row, refuted), (alarm, "refuted I7")], [(twins()[0], "proved")]))
    assert lines[-3:] == [
        "faults: 1; caught with the code of their row: 1",
        "right kernels: 2 (1 repaired twins); proved: 1",
        "false alarms: 1",
    ]
