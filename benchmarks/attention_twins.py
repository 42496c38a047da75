"""Verifies attention with one edit: `python benchmarks/attention_twins.py [NAME...] [--solver z3 --solver cvc5]`.

Prints a row for each twin and solver: refuted by which invariant, and whether the interpreter has replayed it; unknown,
with the reason; or proved, which is an error. Also the CPU seconds that it took, and the counts of each. Writes the
rows to `--out` as JSON. Fails if a twin is proved.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.ir import Kernel
from argus.core.verdict import Proved, Refuted, Verdict
from argus.interp.search.runs import Runs
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.attention_twins import FORWARD, Twin
from tests.kernels.twins import twin

Row = dict[str, Any]


def examined(name: str, of: Twin, solvers: Sequence[str]) -> Iterator[Row]:
    """A row of the table for each solver. Runs of one kernel are made once for all solvers."""
    made = twin(of.kernel, of.config, of.module, of.edit)
    runs = Runs()
    for solver in solvers:
        start = time.process_time()
        if isinstance(made, Kernel):
            verdict = verify(made, solver=solver, runs=runs).verdict
        else:
            verdict = verify_program(made, solver=solver).verdict
        yield _row(name, solver, verdict) | {"seconds": round(time.process_time() - start, 1)}


def _row(name: str, solver: str, verdict: Verdict) -> Row:
    row = {"twin": name, "solver": solver}
    match verdict:
        case Refuted(counterexample=found):
            return row | {"verdict": "refuted", "by": found.code, "replayed": found.replayed, "why": found.message}
        case Proved():
            return row | {"verdict": "proved", "by": "", "replayed": "", "why": ""}
        case _:
            return row | {"verdict": "unknown", "by": "", "replayed": "", "why": str(verdict)}


def _show(row: Row) -> None:
    why = row["why"] if row["verdict"] == "unknown" else ""
    told = f"{row['verdict']:8} {row['by']:4} {row['replayed']:11}"
    print(f"{row['twin']:40} {row['solver']:5} {told} {row['seconds']:6.1f} s  {why}"[:200], flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="by default all")
    parser.add_argument("--solver", action="append", help="by default z3, then cvc5")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    solvers = given.solver or ["z3", "cvc5"]
    rows: list[Row] = []
    for name in given.names or FORWARD:
        for row in examined(name, FORWARD[name], solvers):
            rows.append(row)
            _show(row)
        if given.out is not None:
            given.out.write_text(json.dumps(rows, indent=2) + "\n")
    for solver in solvers:
        mine = [row for row in rows if row["solver"] == solver]
        replays = sum(row["replayed"] == "interpreter" for row in mine)
        print(f"{solver}: {dict(Counter(row['verdict'] for row in mine))}, {replays} replayed by the interpreter")
    return int(any(row["verdict"] == "proved" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
