"""Telescopes sums over loop iterations: terms whose runs are adjacent from iteration to iteration become one run."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.values.multiset_count import first_iteration
from argus.core.proof.values.recognisers.products import Term
from argus.core.walk import substitute


def telescope_terms(terms: Sequence[Term], loop: Loop) -> tuple[Term, ...] | str:
    """The sum of the terms over all iterations before k, or the reason why it has no closed form.

    A term that is added only from some iteration on yields, before that iteration, a run whose low end exceeds its
    high end; such a run is empty.
    """
    merged = _merge(list(terms))
    ahead = {loop.symbol: algebra.add(algebra.sym(loop.symbol), loop.stmt.step)}
    closed: list[Term] = []
    for term in merged:
        since = first_iteration(term.rest, loop)
        if since is None:
            return f"contributions under a condition on `{loop.symbol.name}`"
        rest, first = since
        start = {loop.symbol: first}
        length = algebra.sub(term.high, term.low).range
        if length[0] is None or length[0] < 0:
            return "contributions of a run of unknown length"
        if substitute(term.low, ahead) is term.high:
            closed.append(evolve(term, low=substitute(term.low, start), high=term.low, rest=rest))
        elif substitute(term.high, ahead) is term.low:
            closed.append(evolve(term, low=term.high, high=substitute(term.high, start), rest=rest))
        else:
            return "runs of contributions that are not adjacent from iteration to iteration"
    return tuple(closed)


def _merge(terms: list[Term]) -> list[Term]:
    """Join adjacent runs."""
    merged: list[Term] = []
    for term in terms:
        for place, other in enumerate(merged):
            if other.times == term.times and other.rest is term.rest and other.high is term.low:
                merged[place] = evolve(other, high=term.high)
                break
            if other.times == term.times and other.rest is term.rest and term.high is other.low:
                merged[place] = evolve(other, low=term.low)
                break
        else:
            merged.append(term)
    return merged
