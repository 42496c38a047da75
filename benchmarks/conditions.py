"""When techniques gain: `benchmarks/conditions.py` learns a decision list for each from the recorded tables, and prints
how often it is right at shapes that were left out, beside the constant answer, and its counter-examples.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator

from argus.policy.conditions import Case, Condition, learn_condition
from argus.policy.knowledge import load_techniques
from argus.policy.technique import Technique
from argus.search.designs.ablation import Table, ablation_pairs
from argus.search.techniques import TRANSFORMATIONS
from benchmarks.lineage import RESULTS, measured_tables

FEWEST = 6
"""Shapes of a technique: of fewer, those left out say nothing."""


def features(shape: str) -> dict[str, float]:
    """Of a shape such as 4096x4096x4096: its sizes, and the elements of its result."""
    m, n, k = map(float, shape.split("x"))
    return {"M": m, "N": n, "K": k, "M N": m * n}


def cases(technique: Technique, tables: list[Table]) -> list[Case]:
    """One for each shape that recorded pairs have times of."""
    pairs = list(ablation_pairs(TRANSFORMATIONS[technique.transformation], tables))
    found: dict[str, list[float]] = {}
    for each in pairs:
        if len(each.shape.split("x")) == 3:
            found.setdefault(each.shape, []).append(each.ratio)
    return [Case(shape, features(shape), statistics.geometric_mean(ratios)) for shape, ratios in found.items()]


def conditions(names: list[str]) -> Iterator[tuple[str, Condition]]:
    tables = list(measured_tables(RESULTS))
    for technique in load_techniques():
        if names and technique.name not in names:
            continue
        known = cases(technique, [each for each in tables if each.target in technique.targets])
        if len(known) >= FEWEST:
            yield technique.name, learn_condition(known)


def table(names: list[str]) -> Iterator[str]:
    yield "| technique | shapes | right when left out | constant answer | condition | counter-examples |"
    yield "|---|---|---|---|---|---|"
    for name, found in conditions(names):
        wrong = ", ".join(f"{each.shape} ({each.ratio:.3f})" for each in found.counter_examples)
        counts = f"{found.cases} | {found.held_out} | {found.constant}"
        yield f"| `{name}` | {counts} | {found.learnt} | {wrong or 'none'} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="techniques; all by default")
    asked = parser.parse_args()
    print("\n".join(table(asked.names)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
