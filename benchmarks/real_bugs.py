"""Verifies kernels that reproduce real bugs of other projects: `python benchmarks/real_bugs.py [--solver NAME]`.

Reads the table of docs/real-bugs.md, verifies each kernel that it names, and prints how many bugs are expressible, how
many are caught with the code of their row, and how many correct kernels (so marked in the table, or repaired twins) are
refuted. Exit status 1 unless all verdicts are those of the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.core.verdict import Proved, Refuted
from argus.verifier.kernel import verify
from argus.verifier.loader import load

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "real-bugs.md"
CORPUS = ROOT / "tests" / "corpus"
_COLUMNS = 5


@frozen
class Row:
    """One issue. kernel: the stem of its file, empty if the bug is not expressible; verdict then says why not."""

    thread: str
    what: str
    invariant: str
    kernel: str
    verdict: str

    @property
    def folder(self) -> str:
        return self.verdict.split()[0]

    @property
    def path(self) -> Path:
        return CORPUS / self.folder / f"{self.kernel}.py"


def rows() -> tuple[Row, ...]:
    """The rows of the table, in its order."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert all(len(each) == _COLUMNS for each in cells)
    return tuple(Row(*each[:3], kernel=each[3].strip("`"), verdict=each[4]) for each in cells[1:])


def twins() -> tuple[Path, ...]:
    """Repaired kernels: those of tests/corpus/proved with the name of a faulty one."""
    return tuple(path for path in sorted((CORPUS / "proved").glob("real_*.py")) if _faulty(path.stem))


def _faulty(name: str) -> bool:
    return any((CORPUS / "refuted").glob(f"{name}.py"))


def verdict_of(path: Path, solver: str) -> str:
    """`proved`, `refuted I5`, `rejected E108` or `unknown`."""
    try:
        (kernel,) = load(str(path))
        verdict = verify(kernel.trace(), solver=solver).verdict
    except ArgusError as refused:
        return f"rejected {refused.diagnostic.code}"
    match verdict:
        case Refuted(counterexample=found):
            return f"refuted {found.code}"
        case Proved():
            return "proved"
        case _:
            return "unknown"


def table(found: Sequence[tuple[Row, str]], repaired: Sequence[tuple[Path, str]]) -> Iterator[str]:
    """One line per kernel, then the counts."""
    for row, verdict in found:
        wrong = "" if verdict == row.verdict else f"  NOT {row.verdict}"
        yield f"{row.thread:40} {row.kernel:36} {verdict}{wrong}"
    faults = [(row, verdict) for row, verdict in found if row.folder != "proved"]
    right = [verdict for row, verdict in found if row.folder == "proved"] + [verdict for _, verdict in repaired]
    caught = sum(verdict == row.verdict for row, verdict in faults)
    alarms = sum(verdict.startswith("refuted") for verdict in right)
    everything = rows()
    yield f"rows: {len(everything)}; expressible: {len(found)}; not expressible: {len(everything) - len(found)}"
    yield f"faults: {len(faults)}; caught with the code of their row: {caught}"
    yield f"right kernels: {len(right)} ({len(repaired)} repaired twins); proved: {right.count('proved')}"
    yield f"false alarms: {alarms}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solver", default="z3")
    solver: str = parser.parse_args(arguments).solver
    found = [(row, verdict_of(row.path, solver)) for row in rows() if row.kernel]
    repaired = [(path, verdict_of(path, solver)) for path in twins()]
    print("\n".join(table(found, repaired)))
    good = all(verdict == row.verdict for row, verdict in found) and all(verdict == "proved" for _, verdict in repaired)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
