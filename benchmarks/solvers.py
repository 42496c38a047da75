"""Compares all solver backends on the verifier's queries: `python benchmarks/solvers.py [--every N] [--budget S]`.

The queries are those of the shipped kernels and the corpus (proved, refuted, unknown), as asked, and narrowed to a few
values per symbol, so that enumeration answers too. In addition z3 and cvc5 parse the queries' SMT-LIB scripts with
their own parsers, which tests our lowering. Every script is read back. Fails if two answers contradict each other, if a
model is wrong, or if a script does not parse to its query.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from argus.cli.bench.plot import cactus
from argus.cli.bench.queries import Question, checkout, collect, narrowed, shipped
from argus.cli.bench.runs import measure
from argus.cli.bench.text import Comparison, contradictions, rows, table
from argus.core.query import Budget
from argus.solvers.registry import get
from argus.solvers.smtlib.reader import read_script
from argus.solvers.smtlib.script import export

ROOT = Path(__file__).resolve().parent.parent
BACKENDS = ("z3", "cvc5", "enumerate", "portfolio", "z3-text", "cvc5-text")
NARROWED = ("z3", "cvc5", "enumerate", "z3-text")


def read_back(questions: Sequence[Question]) -> int:
    """Number of queries whose scripts do not parse to the same query; prints counts."""
    start = time.perf_counter()
    written = [(question.query, export(question.query)) for question in questions]
    texts = [(query, text) for query, text in written if isinstance(text, str)]
    wrong = sum(read_script(text).query.key != query.key for query, text in texts)
    size = sum(len(text) for _, text in texts)
    print(
        f"{len(texts):,} of {len(questions):,} queries written as SMT-LIB and read back in "
        f"{time.perf_counter() - start:.1f} s ({size:,} characters), {wrong} with another key"
    )
    return wrong


def compare(title: str, questions: Sequence[Question], names: Sequence[str], budget: Budget) -> Comparison:
    comparison = Comparison(title, tuple(questions), tuple(measure(questions, name, budget) for name in names))
    print("\n" + "\n".join(table(comparison)), flush=True)
    for problem in contradictions(comparison):
        print(problem.message)
    return comparison


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every Nth query")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds per query")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="output folder")
    given = parser.parse_args()
    budget = Budget.about(given.budget)
    start = time.perf_counter()
    corpus = collect((*shipped(), *checkout()), get("portfolio"), budget)
    questions = corpus.questions[:: given.every]
    print(
        f"{corpus.kernels} kernels: {corpus.asked:,} queries, {len(corpus.questions):,} of them distinct, "
        f"in {time.perf_counter() - start:.1f} s; {len(corpus.skipped)} skipped; {len(questions):,} compared"
    )
    wrong = read_back(questions)
    near = (narrowed(question, get("portfolio"), budget) for question in questions)
    fewer = tuple({question.query.key: question for question in near}.values())
    comparisons = [
        compare("as the verifier asks", questions, BACKENDS, budget),
        compare("narrowed to few values", fewer, NARROWED, budget),
    ]
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "solvers.csv").write_text(rows(comparisons), encoding="utf-8")
    for name, each in zip(("cactus.svg", "cactus-narrowed.svg"), comparisons, strict=True):
        times = {tally.backend: tally.times() for tally in each.tallies}
        (given.out / name).write_text(cactus(times, len(each.questions)), encoding="utf-8")
    if wrong or not all(each.right for each in comparisons):
        sys.exit("contradictory or wrong answers: see above")


if __name__ == "__main__":
    main()
