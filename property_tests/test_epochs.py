"""Property: with waves in different barrier epochs, a proved program has no race in any run, a refuted one has one.

Programs are words of accesses to one shared tile, waits and barriers, some executed by one row of waves only. The proof
counts barriers by line; the interpreter executes barriers and compares the counts of single executions.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from argus.core.verdict import Proved, Refuted
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run_prepared
from argus.interp.search.schedule import DIRECTED
from argus.verifier.kernel import verify
from property_tests.barriers import program
from property_tests.depth import examples

LETTERS = "w123ddsss"
WORDS = st.text(LETTERS, max_size=5)
APART = st.sampled_from([("", ""), ("p", "q"), ("q", "p"), ("p", ""), ("pp", "qq")])


def races(before: str, body: str, after: str) -> set[str]:
    """The codes of violations in some run, for few repetitions of the body."""
    prepared = Prepared(program(before, body, after))
    found: set[str] = set()
    for repeats, schedule in enumerate(DIRECTED[:4]):
        outcome = run_prepared(prepared, {"M": 64, "K": repeats}, None, schedule, tags=True, values=False)
        found |= {violation.code for violation in outcome.violations}
    return found


@pytest.mark.share(4)
@settings(max_examples=examples(25))
@given(WORDS, st.text(LETTERS, max_size=7), WORDS, APART, st.integers(0, 3))
@example("", "1dsws", "", ("p", "q"), 0)
@example("", "1dswds", "", ("p", "q"), 0)
@example("", "1dsswdss", "", ("p", "q"), 0)
@example("", "1dsswdss", "", ("pp", "qq"), 0)
@example("", "1ssdwdss", "", ("p", "q"), 0)
@example("", "s", "1d", ("p", ""), 0)
def test_proof_and_runs_agree(before: str, body: str, after: str, apart: tuple[str, str], place: int) -> None:
    before, after = before + apart[0], after[:place] + apart[1] + after[place:]
    found = races(before, body, after)
    verdict = verify(program(before, body, after), solver="z3").verdict
    if isinstance(verdict, Proved):
        assert not found, f"proved, but {before}({body}){after} violates {found}"
    if isinstance(verdict, Refuted):
        assert verdict.counterexample.code in {"I5", "I30", "I31", "I32", "I36"}


@pytest.mark.share(3)
@settings(max_examples=examples(6))
@given(st.integers(1, 3), st.booleans())
def test_a_lead_needs_one_barrier_more(lead: int, enough: bool) -> None:
    """A read, its wait, then as many barriers as one row is ahead, or one more, before the overwrite."""
    between = "s" * (lead + enough)
    verdict = verify(program("p" * lead, f"1d{between}wd{between}", "q" * lead), solver="cvc5").verdict
    assert isinstance(verdict, Proved if enough else Refuted)
