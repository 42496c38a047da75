"""When techniques gain: `python benchmarks/conditions.py [NAME]...` learns decision lists from the recorded tables.

Prints at how many shapes lists learnt from the other shapes are right (`lists`), at how many the whole procedure is,
which chooses between lists and a constant answer by the other shapes alone (`chosen`), and at how many the more
frequent answer of the other shapes is (`constant`). Conditions are bold whose procedure is right at more shapes than
the constant answer. `--families` prints what is recorded of attention and rows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.policy.conditions import Case, Condition, Validation, learn_condition, validate_condition
from argus.policy.knowledge import load_techniques
from argus.policy.technique import Technique
from argus.search.designs.ablation import Table, ablation_pairs
from argus.search.techniques import TRANSFORMATIONS
from benchmarks.lineage import RESULTS, SPACE, measured_tables
from benchmarks.recorded import TABLES
from benchmarks.recorded import table as table_of
from benchmarks.recorded_problems import recorded

TARGETS = ("sm_90a", "gfx942")

FEWEST = 6
"""Shapes of a technique: of fewer, those left out say nothing."""


def features(shape: str) -> dict[str, float]:
    """Of a shape such as 4096x4096x4096: its sizes, and the elements of its result."""
    m, n, k = map(float, shape.split("x"))
    return {"M": m, "N": n, "K": k, "M N": m * n}


def cases(technique: Technique, tables: Sequence[Table]) -> list[Case]:
    """One for each shape that recorded pairs have times of."""
    pairs = ablation_pairs(TRANSFORMATIONS[technique.transformation], tables)
    found: dict[str, list[float]] = {}
    for each in pairs:
        if len(each.shape.split("x")) == 3:
            found.setdefault(each.shape, []).append(each.ratio)
    return [Case(shape, features(shape), statistics.geometric_mean(ratios)) for shape, ratios in found.items()]


@cache
def recorded_tables(target: str) -> tuple[Table, ...]:
    """Times of products: of sm_90a measured, of gfx942 predicted for all designs of its space."""
    if target == "sm_90a":
        return tuple(measured_tables(RESULTS))
    found = table_of(TABLES / f"{target}.json").times.items()
    known = {"x".join(map(str, shape)): {name: took for name, took in times.items() if took} for shape, times in found}
    return tuple(Table(SPACE, target, shape, "static model", times) for shape, times in known.items())


@cache
def recorded_cases(target: str, name: str) -> tuple[Case, ...]:
    """Of a technique, one for each shape."""
    (technique,) = (each for each in load_techniques() if each.name == name)
    return tuple(cases(technique, recorded_tables(target)))


def conditions(target: str, names: list[str]) -> Iterator[tuple[str, Condition, Validation]]:
    for technique in load_techniques():
        if target not in technique.targets or (names and technique.name not in names):
            continue
        known = recorded_cases(target, technique.name)
        if len(known) >= FEWEST:
            yield technique.name, learn_condition(known), validate_condition(known)


def table(target: str, names: list[str]) -> Iterator[str]:
    yield f"| {target} | shapes | lists | chosen | constant | condition | counter-examples |"
    yield "|---|---|---|---|---|---|---|"
    totals = [0, 0, 0, 0]
    for name, found, held in conditions(target, names):
        wrong = ", ".join(f"{each.shape} ({each.ratio:.3f})" for each in found.counter_examples)
        counts = (found.cases, found.held_out, held.right, held.constant)
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        learnt = f"**{found.learnt}**" if held.confirmed else f"{found.learnt}"
        yield f"| `{name}` | {' | '.join(map(str, counts))} | {learnt} | {wrong or 'none'} |"
    yield f"| all | {' | '.join(map(str, totals))} | | |"


def pairs_of_families() -> Iterator[str]:
    """For attention and rows: of each knob, at how many problems recorded designs differ in it alone."""
    yield "| family | knob | problems | pairs |"
    yield "|---|---|---|---|"
    for family in ("sm_90a.attention", "sm_90a.rows"):
        found: dict[str, list[str]] = {}
        for each in recorded(family):
            timed = [dict(option.knobs) for option in each.before.options if each.times[option.name] is not None]
            for one, other in combinations(timed, 2):
                changed = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
                if len(changed) == 1:
                    found.setdefault(changed[0], []).append(each.name)
        for knob, names in sorted(found.items()):
            yield f"| {family} | {knob} | {len(set(names))} | {len(names)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="techniques; all by default")
    parser.add_argument("--families", action="store_true", help="print what is recorded of attention and rows")
    asked = parser.parse_args()
    for target in TARGETS if not asked.families else ():
        print("\n".join(table(target, asked.names)), "\n")
    if asked.families:
        print("\n".join(pairs_of_families()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
