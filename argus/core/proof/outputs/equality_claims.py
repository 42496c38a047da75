"""Obligations of claims that an output equals a formula (I39)."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.ir import Assert, Equals
from argus.core.ir.pretty import claim_text
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation

UNKNOWN = "the values of its elements are not compared with formulas yet"
_INSTEAD = "compare runs with it (`argus run`); claims about tags are proved: `assert_written_once`, `assert_covers`"
OF_PROGRAM = "values are not followed from one launch to the next yet"


def equality_obligations(flow: Flow, stmt: Assert, claim: Equals) -> Iterator[Obligation]:
    """That each element equals the formula. Not decided: only a run can violate it."""
    del flow
    yield _undecided(stmt, claim, UNKNOWN)


def program_equality_obligations(stmt: Assert, claim: Equals) -> Iterator[Obligation]:
    """The same of a tensor that a program leaves."""
    yield _undecided(stmt, claim, OF_PROGRAM)


def _undecided(stmt: Assert, claim: Equals, why: str) -> Obligation:
    what = f"`{claim_text(claim)}` holds"
    return Obligation("I39", what, stmt, algebra.FALSE, unknown=why, instead=_INSTEAD)
