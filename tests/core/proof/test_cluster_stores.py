"""Stores into other blocks of a cluster: the obligations of an exchange, and the stores that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.algebra import FALSE
from argus.core.dsl.kernel import Template
from argus.core.proof.analysis import Analysis, analyse
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session

TEXT = (Path(__file__).parents[2] / "corpus" / "proved" / "split_k_in_a_cluster.py").read_text(encoding="utf-8")
STORE = "            copy(acc.tile((64, 8), (0, to)), sums[wg, rank].of(to))\n"
TELL = "                come[wg].of(to).arrive()\n"
WAIT = "        come[wg].wait(0)\n"
AGAIN = "        for i in loop(depth):\n            load(sums[wg, 0], spread((64, 8), threads=128, vector=4))\n"
OWN = "    other = shared(bf16, (128, 16), swizzle=32)\n"
ALSO = "                copy(A.tile((128, 16), (m, 0)), other, via=tma, signal=come[wg], edge=0)\n"
LOADS = "load(sums[wg, 0], by) + load(sums[wg, 1], by)"


def analysed(*edits: tuple[str, str]) -> Analysis:
    text = TEXT
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    found: dict[str, object] = {"__name__": "split"}
    exec(compile(text, "split.py", "exec"), found)  # noqa: S102 reason: a corpus file
    template = next(value for value in found.values() if isinstance(value, Template))
    return analyse(template.trace(), Session(resolve("z3")))


def false(found: Analysis) -> set[str]:
    return {each.invariant for each in found.obligations if each.goal is FALSE and not each.unknown}


def test_all_obligations_of_an_exchange_are_present() -> None:
    found = analysed()

    assert found.unmodelled == ()
    assert false(found) == set()
    assert {"I5", "I6", "I8", "I9", "I15"} <= {each.invariant for each in found.obligations}


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("edit", "broken"),
    [
        (("        sync()\n", ""), "I5"),
        ((WAIT, WAIT.replace("(0)", "(1)")), "I6"),
        (("barrier(2, of=2)", "barrier(3, of=2)"), "I8"),
        ((TELL, TELL + TELL), "I8"),
        ((TELL, TELL.replace("of(to)", "of(0)")), "I8"),
        ((TELL, TELL.replace("[wg]", "[1 - wg]")), "I9"),
        ((TELL, TELL.replace("[wg]", "[0]")), "I9"),
        ((STORE, STORE + STORE.replace("rank]", "1 - rank]")), "I5"),
    ],
)
def test_a_violated_obligation_of_an_exchange_is_false(edit: tuple[str, str], broken: str) -> None:
    assert broken in false(analysed(edit))


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        (((WAIT, ""),), "not followed by arrivals there and a wait here"),
        (((STORE, STORE.replace("of(to)", "of(0)")),), "the blocks of the cluster receive different numbers of stores"),
        (((STORE, STORE.replace("sums[wg, rank]", "sums[wg, (rank + to) % 2]")),), "differ by more than the index"),
        (((LOADS, LOADS + "\n        copy(total, sums[wg, 0])"),), "another use of the memory"),
        (((WAIT, WAIT + AGAIN),), "loops"),
        (((TELL, TELL + ALSO), ("    come = ", OWN + "    come = ")), "does something else too"),
    ],
)
def test_other_remote_stores_are_not_modelled(edits: tuple[tuple[str, str], ...], reason: str) -> None:
    found = analysed(*edits)

    assert [each for each in found.unmodelled if reason in each.reason], found.unmodelled
