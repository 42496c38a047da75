"""Formats a comparison of solvers as a table, as CSV rows and as a JSON document."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from attrs import frozen

from argus.cli.bench.queries import Question
from argus.cli.bench.runs import FAULTS, OUTCOMES, STATED, Disagreement, Tally, answers_by_key, disagreements
from argus.core.diagnostic import Diagnostic

SCHEMA = "argus.bench.solvers/1"
_MOST_SHOWN = 5
_COLUMNS = ("median ms", "slowest ms", "total s", "cache hits", "cached s")


@frozen
class Comparison:
    """The results of several backends on one list of queries. title: describes the queries."""

    title: str
    questions: tuple[Question, ...]
    tallies: tuple[Tally, ...]

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        return tuple(disagreements(self.questions, self.tallies))

    @property
    def answered_by_two(self) -> int:
        """Number of queries that at least two backends answer."""
        return sum(len(answers) > 1 for answers in answers_by_key(self.tallies).values())

    @property
    def faults(self) -> int:
        """Number of wrong models and exceptions."""
        return sum(tally.count(outcome) for tally in self.tallies for outcome in FAULTS)

    @property
    def right(self) -> bool:
        return not self.disagreements and not self.faults


# -- text ------------------------------------------------------------------------------------------------


def table(comparison: Comparison) -> Iterator[str]:
    """One line per backend, then the number of disagreements."""
    widest = max([7, *(len(tally.backend) for tally in comparison.tallies)])
    heads = [f"{name:>{_width(name)}}" for name in (*OUTCOMES, *_COLUMNS)]
    yield f"{comparison.title}: {len(comparison.questions):,} queries"
    yield f"  {'backend':{widest}} {' '.join(heads)}"
    for tally in comparison.tallies:
        counts = [f"{tally.count(outcome):{_width(outcome)},}" for outcome in OUTCOMES]
        figures = [f"{value:>{_width(name)}}" for name, value in zip(_COLUMNS, _figures(tally), strict=True)]
        yield f"  {tally.backend:{widest}} {' '.join([*counts, *figures])}"
    found = len(comparison.disagreements)
    yield (
        f"  {comparison.answered_by_two:,} queries are answered by two or more backends: "
        f"{found or 'no'} disagreement{'' if found == 1 else 's'}"
    )


def _width(name: str) -> int:
    return max(6, len(name))


def _figures(tally: Tally) -> tuple[str, ...]:
    times = tally.times()
    middle, most = (median(times), times[-1]) if times else (0.0, 0.0)
    total = sum(result.seconds for result in tally.results)
    return (
        f"{middle * 1e3:.2f}",
        f"{most * 1e3:.1f}",
        f"{total:.2f}",
        f"{tally.hits:,}",
        f"{tally.cached_seconds:.2f}",
    )


def contradictions(comparison: Comparison) -> Iterator[Diagnostic]:
    """E604 for the first few disagreements."""
    for each in comparison.disagreements[:_MOST_SHOWN]:
        said = ", ".join(f"{'expected' if name == STATED else name} {answer}" for name, answer in each.answers)
        yield Diagnostic(
            "E604",
            "error",
            f"the answers to query {each.question.query.key} differ: {said}",
            facts=(("asked by", ", ".join(each.question.asked_by[:3])),),
            help="run `argus conformance NAME` on each of them",
        )


# -- files -----------------------------------------------------------------------------------------------


def rows(comparisons: Sequence[Comparison]) -> str:
    """A CSV table with one line for every query and backend."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("queries", "key", "backend", "outcome", "seconds", "reason", "times asked", "first asked by"))
    for comparison in comparisons:
        for tally in comparison.tallies:
            for question, result in zip(comparison.questions, tally.results, strict=True):
                about = (result.reason, question.times, question.asked_by[0])
                said = (result.key, result.backend, result.outcome, f"{result.seconds:.6f}")
                writer.writerow((comparison.title, *said, *about))
    return text.getvalue()


def as_data(comparison: Comparison) -> dict[str, object]:
    return {
        "title": comparison.title,
        "queries": len(comparison.questions),
        "answered_by_two_or_more": comparison.answered_by_two,
        "backends": [_tally_data(tally) for tally in comparison.tallies],
        "disagreements": [
            {
                "key": each.question.query.key,
                "answers": dict(each.answers),
                "asked_by": list(each.question.asked_by),
            }
            for each in comparison.disagreements
        ],
    }


def _tally_data(tally: Tally) -> Mapping[str, object]:
    times = tally.times()
    return {
        "backend": tally.backend,
        **{outcome.replace(" ", "_"): tally.count(outcome) for outcome in OUTCOMES},
        "seconds": sum(result.seconds for result in tally.results),
        "median_seconds": median(times) if times else None,
        "slowest_seconds": times[-1] if times else None,
        "cache_hits": tally.hits,
        "cached_seconds": tally.cached_seconds,
    }
