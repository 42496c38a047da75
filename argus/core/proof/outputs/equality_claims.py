"""Obligations of claims that an output equals a formula (I39)."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.ir import Assert, Equals
from argus.core.ir.pretty import claim_text
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation

UNKNOWN = "the values of its elements are not compared with formulas yet"


def equality_obligations(flow: Flow, stmt: Assert, claim: Equals) -> Iterator[Obligation]:
    """That each element equals the formula. Not decided: only a run can violate it."""
    del flow
    yield Obligation("I39", f"`{claim_text(claim)}` holds", stmt, algebra.FALSE, unknown=UNKNOWN)
