"""Differential tests of layout libraries: `python -m argus.testing.differential --peer NAME --pairs N --kind KIND`.

Runs Argus and each peer on the same random operands and checks every result against an explicit table. The expected
result is the one that the docstrings of `argus.layout` specify, which is CuTe's where CuTe has one: a complement tiles
[0, n), a left inverse recovers the indices. A peer that specifies less is measured by the same standard.
The exit code is 1 if Argus is wrong or refuses a result that exists, 2 if a peer is not installed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import get_args

from attrs import frozen

from argus.core.layout import LayoutError
from argus.testing.draws import KINDS, OPERATIONS, Draw, Kind, Operation, draws
from argus.testing.judge import Verdict, judge
from argus.testing.peers import NAMES, Outcome, Peer, Refused, peer

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FAULTS: tuple[Verdict, ...] = ("wrong", "resized", "empty", "reshaped", "needless", "undecided")
HEADINGS: dict[Verdict, str] = {
    "correct": "correct",
    "wrong": "wrong values",
    "resized": "size changed",
    "empty": "extent 0",
    "reshaped": "profile lost",
    "rightly": "refused",
    "needless": "needlessly",
    "undecided": "undecided",
}


@frozen
class Tally:
    """Counts of a library's verdicts on draws of one kind, with the smallest draw of each fault."""

    peer: str
    operation: Operation
    kind: Kind
    counts: dict[Verdict, int]
    examples: dict[Verdict, str]
    seconds: float

    @property
    def faults(self) -> int:
        return sum(self.counts[verdict] for verdict in FAULTS)


def tally(library: Peer, operation: Operation, kind: Kind, given: Sequence[Draw]) -> Tally:
    """Run a library on the draws and judge the results. The time includes the construction of operands."""
    start = time.perf_counter()
    outcomes = library.outcomes(operation, given)
    seconds = time.perf_counter() - start
    counts = dict.fromkeys(VERDICTS, 0)
    smallest: dict[Verdict, tuple[int, Draw, Outcome]] = {}
    for draw, outcome in zip(given, outcomes, strict=True):
        verdict = judge(operation, draw, outcome)
        counts[verdict] += 1
        if verdict in FAULTS and (verdict not in smallest or draw.weight < smallest[verdict][0]):
            smallest[verdict] = draw.weight, draw, outcome
    examples: dict[Verdict, str] = {
        verdict: f"{draw} -> {_text(outcome)}" for verdict, (_, draw, outcome) in smallest.items()
    }
    return Tally(library.name, operation, kind, counts, examples, seconds)


def _text(outcome: Outcome) -> str:
    if isinstance(outcome, Refused):
        return outcome.reason
    return f"{outcome.shape}:{outcome.stride}".replace(" ", "")


def table(tallies: Iterable[Tally]) -> str:
    """One line per tally: verdicts in percent of the draws, and below it the smallest example of each fault."""
    head = "".join(f"{HEADINGS[verdict]:>14}" for verdict in VERDICTS)
    lines = [f"{'operation':16} {'draws':8} {'library':15}{'pairs':>8}{head}{'us/op':>8}"]
    for row in tallies:
        pairs = sum(row.counts.values())
        shares = "".join(f"{_share(row.counts[verdict], pairs):>14}" for verdict in VERDICTS)
        name = f"{row.operation:16} {row.kind:8} {row.peer:15}"
        lines.append(f"{name}{pairs:>8}{shares}{row.seconds / pairs * 1e6:>8.1f}")
        lines += [f"{'':17}{HEADINGS[verdict]}: {example}" for verdict, example in row.examples.items()]
    return "\n".join(lines)


def _share(number: int, pairs: int) -> str:
    return "0" if number == 0 else f"{100 * number / pairs:.2f} %"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argus.testing.differential", description=__doc__)
    parser.add_argument("--peer", action="append", default=[], help=f"one of {', '.join(NAMES)}; may be repeated")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all kinds")
    parser.add_argument("--operation", choices=OPERATIONS, action="append", help="default: all operations")
    given = parser.parse_args(arguments)
    try:
        libraries = [peer("argus"), *map(peer, given.peer)]
    except LayoutError as error:
        print(error, file=sys.stderr)  # noqa: T201 reason: a program's output
        return 2
    rows: list[Tally] = []
    for kind in given.kind or KINDS:
        drawn = draws(kind, given.pairs, given.seed)
        for operation in given.operation or OPERATIONS:
            able = [library for library in libraries if operation in library.operations]
            rows += [tally(library, operation, kind, drawn) for library in able]
    print(table(rows))  # noqa: T201 reason: as above
    return int(any(row.faults for row in rows if row.peer == "argus"))


if __name__ == "__main__":
    sys.exit(main())
