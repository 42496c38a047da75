"""Random right values and wrong twins: `python benchmarks/right_values.py values|kernels|formulas [--count N]`.

values: draws formulas and other forms of the same value (property_tests/values), and asks
`argus.core.values.equality` whether they are equal; likewise one-edit twins whose numbers differ. Pair number n is
drawn with a seed of its own, so a run goes on where the journal (`--journal FILE`) ends.
kernels: the same of kernels of rows (property_tests/values/kernels), through the whole of `verify`; a journal likewise.
formulas: the formulas of tests/core/values and their wrong twins one by one, the conditions on integers that are left
answered by z3 and by cvc5, with times.
`--result FILE` stores the figures. Fails if a right one is refuted or a wrong one is proved.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.query import Budget
from argus.core.values import binding, ends, polynomial, truth
from argus.core.values.equality import Undecided
from argus.core.verdict import Unknown
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.z3_backend import Z3
from argus.verifier.kernel import verify
from property_tests.values import kernels
from property_tests.values.numbers import differ
from property_tests.values.pairs import TRANSFORMATIONS, answer, draw, outcome, wrong
from tests.core.values.formulas import attention_cases, softmax_cases
from tests.core.values.more_formulas import element_cases, loop_cases, mask_cases, norm_cases

_BUDGET = Budget.about(1.0)
_SHOWN = 200
_OFTEN = 100
"""Pairs between progress reports."""


@frozen
class Entry:
    """What came of a pair. outcome, twin: "proved", "refuted" or "unknown"; twin: "none" where none was found."""

    number: int
    family: str
    names: tuple[str, ...]
    outcome: str
    why: str
    edit: str
    twin: str


def entry(seed: int, number: int, solver: Solver) -> Entry:
    """Draw the pair of this number; the transformations take turns to come first."""
    names = tuple(TRANSFORMATIONS)
    choose = random.Random(f"{seed}/{number}").choice  # noqa: S311 reason: a seed makes the figures repeatable
    pair = draw(choose, names[number % len(names)])
    if differ(pair.held, pair.formula, pair.facts):
        raise AssertionError(f"pair {number} of seed {seed} is not right: {pair.names}")
    found = answer(pair.held, pair.formula, pair.facts, solver)
    why = ""
    if isinstance(found, Undecided):
        why = found.reason or ", ".join(sorted({type(each).__name__ for each in found.conditions}))
    twin = wrong(choose, pair)
    twins = "none" if twin is None else outcome(answer(twin.held, pair.formula, pair.facts, solver))
    return Entry(number, pair.family, pair.names, outcome(found), why, "" if twin is None else twin.edit, twins)


def kernel_entry(seed: int, number: int, solver: Solver) -> Entry:
    """Draw the kernel of this number and a wrong one, which a run refutes unless it is not found to differ."""
    del solver
    choose = random.Random(f"{seed}/{number}").choice  # noqa: S311 reason: as above
    rows = kernels.draw(choose)
    twin = kernels.wrong(choose, rows)
    found = verify(rows.kernel(), solver="z3", budget=_BUDGET).verdict
    other = verify(twin.kernel(), solver="z3", budget=_BUDGET).verdict
    why = found.reason[:_SHOWN] if isinstance(found, Unknown) else ""
    kinds = [type(each).__name__.lower() for each in (found, other)]
    family = f"{rows.family}, {rows.function}"
    return Entry(number, family, rows.names, kinds[0], why, twin.edit or "", kinds[1])


def read(journal: Path) -> list[Entry]:
    """The entries of a journal, without a last line that has no end."""
    if not journal.exists():
        return []
    return [_entry_of(json.loads(line)) for line in journal.read_text("utf-8").split("\n")[:-1]]


def _entry_of(row: dict[str, Any]) -> Entry:
    row["names"] = tuple(row["names"])
    return Entry(**row)


Drawn = Callable[[int, int, Solver], Entry]


def pairs(drawn: Drawn, count: int, seed: int, minutes: float, journal: Path, result: Path | None) -> int:
    """Ask of `count` pairs; returns the number of wrong answers."""
    done = read(journal)
    journal.parent.mkdir(parents=True, exist_ok=True)
    start, solver = time.monotonic(), Z3()
    with journal.open("a", encoding="utf-8") as stream:
        for number in range(len(done), count):
            if time.monotonic() - start > 60 * minutes:
                break
            done.append(drawn(seed, number, solver))
            stream.write(json.dumps(asdict(done[-1])) + "\n")
            stream.flush()
            if len(done) % _OFTEN == 0:
                print(_line(done), flush=True)
    print(_line(done))
    if result is not None:
        result.write_text(json.dumps({"seed": seed, **summary(done)}, indent=1) + "\n", encoding="utf-8")
    return sum(_is_wrong(each) for each in done)


def _is_wrong(of: Entry) -> bool:
    return of.outcome == "refuted" or of.twin == "proved"


def _line(entries: list[Entry]) -> str:
    outcomes, twins = Counter(each.outcome for each in entries), Counter(each.twin for each in entries)
    return (
        f"{len(entries):,} pairs: {dict(outcomes)}; twins: {dict(twins)}; {sum(map(_is_wrong, entries))} wrong answers"
    )


def summary(entries: list[Entry]) -> dict[str, object]:
    """Counts by transformation, family and edit, and the reasons of what is not proved."""
    return {
        "pairs": len(entries),
        "right": dict(Counter(each.outcome for each in entries)),
        "twins": dict(Counter(each.twin for each in entries)),
        "wrong answers": sum(map(_is_wrong, entries)),
        "by transformation": {
            name: {
                "proved %": _percent([each for each in entries if name in each.names]),
                "pairs": sum(name in each.names for each in entries),
                "alone, proved %": _percent([each for each in entries if each.names == (name,)]),
            }
            for name in sorted({each for one in entries for each in one.names})
        },
        "by family": {
            family: _percent([each for each in entries if each.family == family])
            for family in sorted({each.family for each in entries})
        },
        "edits of twins": dict(Counter(each.edit for each in entries if each.edit)),
        "not proved because": dict(Counter(each.why for each in entries if each.why)),
    }


def _percent(entries: list[Entry]) -> float | None:
    proved = sum(each.outcome == "proved" for each in entries)
    return round(100 * proved / len(entries), 1) if entries else None


def _forget() -> None:
    """Forget normal forms, so that times are those of a first question."""
    for module in (binding, ends, polynomial, truth):
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()


def formulas(result: Path | None) -> int:
    """The formulas one by one, by either solver; returns the number of wrong answers."""
    parts = (softmax_cases, attention_cases, norm_cases, element_cases, loop_cases, mask_cases)
    cases = {name: case for part in parts for name, case in part().items()}
    rows: dict[str, dict[str, object]] = {name: {} for name in cases}
    wrong_answers = 0
    for solver_name, solver in (("z3", Z3()), ("cvc5", Cvc5())):
        for name, case in cases.items():
            _forget()
            start = time.perf_counter()
            found = [outcome(answer(each, case.formula, case.facts, solver)) for each in (case.held, case.wrong)]
            rows[name][solver_name] = found[0]
            rows[name][f"{solver_name}, wrong twin"] = found[1]
            rows[name][f"{solver_name}, ms for both"] = round(1000 * (time.perf_counter() - start))
            wrong_answers += (found[0] == "refuted") + (found[1] == "proved")
    print(f"{len(rows)} formulas, {wrong_answers} wrong answers")
    if result is not None:
        result.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return wrong_answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["values", "kernels", "formulas"])
    parser.add_argument("--count", type=int, help="10,000 values or 1,000 kernels unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--result", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "formulas":
        return 1 if formulas(chosen.result) else 0
    drawn, count = (entry, 10_000) if chosen.what == "values" else (kernel_entry, 1_000)
    journal = chosen.journal or Path(f"build/right_{chosen.what}.journal")
    return 1 if pairs(drawn, chosen.count or count, chosen.seed, chosen.minutes, journal, chosen.result) else 0


if __name__ == "__main__":
    sys.exit(main())
