"""Sums in f32 of which each addition makes good what the last one lost to rounding [Kahan 1965]."""

from __future__ import annotations

from argus.language import Fragment


def add_compensated(sums: Fragment, lost: Fragment, term: Fragment) -> None:
    """sums += term; `lost`, 0 at first, is what an addition lost, and is added to the next term."""
    term = term + lost
    sum_ = sums + term
    lost[:] = term - (sum_ - sums)
    sums[:] = sum_
