"""Verifies mutants of proved kernels: `python benchmarks/mutants.py [--operators NAME,...] [--kernel NAME,...]
[--places N] [--sample N]`.

Applies every operator of `argus.testing.mutation` to every kernel of tests/corpus/proved, every proved listing and
every shipped configuration: at every place, at N random places, or to a sample that rotates over the operators. Each
mutant is verified; a proved one is run at small sizes under directed and random schedules, with tags and values.
Results are appended to a journal, so that an interrupted run, or one with `--minutes`, can be resumed; rows of another
version of Argus count only with `--keep`. Fails if a mutant survives: it is proved, but wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_args

from argus.core.ir import Kernel
from argus.core.query import RUNS_PER_SECOND, Budget
from argus.kernels.gemm import gemm
from argus.runtime.kernel_cache import sources_digest
from argus.testing.mutants import Fate, Judge, Thoroughness
from argus.testing.mutation import OPERATORS, Mutant, mutated, named
from argus.verifier.loader import load

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
MUTANTS_PER_PROCESS = 150
"""Mutants per worker process."""
FATES: tuple[Fate, ...] = get_args(Fate)
Key = tuple[str, str, int]
"""Kernel, operator, and the number of the place where it applies."""


@lru_cache(maxsize=1)
def kernels() -> Mapping[str, Kernel]:
    """The proved kernels: of the corpus and the listings by file, and the shipped family by configuration."""
    files: dict[str, Kernel] = {}
    listings = [path for path in CORPUS.glob("traced/*.py") if path.read_text("utf-8").startswith("# verdict: proved")]
    for path in sorted((*CORPUS.glob("proved/*.py"), *listings)):
        several = [each for each in load(str(path)) if each.program is None]
        for each in several:
            files[path.stem if len(several) == 1 else f"{path.stem}.{each.name}"] = each.trace()
    return files | {f"gemm.{config}": gemm.trace(config) for config in gemm.instances()}


@lru_cache(maxsize=8)
def judge_of(name: str, seconds: float, *, searches: bool) -> Judge:
    return Judge(
        kernels()[name],
        Budget.about(seconds),
        Thoroughness(runs=round(4 * seconds * RUNS_PER_SECOND)),
        searches=searches,
    )


@lru_cache(maxsize=32)
def found(name: str, operator: str) -> tuple[Mutant, ...]:
    return tuple(mutated(kernels()[name], named([operator])))


def sampled(names: Sequence[str], operators: Sequence[str], seed: int, most: int | None = None) -> Iterator[Key]:
    """Every mutant once, or `most` per operator and kernel, in random order but rotating over the operators."""
    drawn = random.Random(seed)  # noqa: S311 reason: a seed makes the figures repeatable
    rows = [_of_operator(each, drawn.sample(names, len(names)), drawn.random(), most) for each in operators]
    return _interleaved(rows)


def _of_operator(operator: str, names: Sequence[str], seed: float, most: int | None) -> Iterator[Key]:
    drawn = random.Random(seed)  # noqa: S311 reason: as above
    return _interleaved([islice(_places(name, operator, drawn), most) for name in names])


def _places(name: str, operator: str, drawn: random.Random) -> Iterator[Key]:
    """The places of one operator in one kernel, found on the first request."""
    count = len(found(name, operator))
    yield from ((name, operator, place) for place in drawn.sample(range(count), count))


def _interleaved(rows: Iterable[Iterator[Key]]) -> Iterator[Key]:
    """Interleave iterators, one item of each, until all are empty."""
    left = list(rows)
    while left:
        still: list[Iterator[Key]] = []
        for row in left:
            key = next(row, None)
            if key is not None:
                still.append(row)
                yield key
        left = still


def judge_key(key: Key, seconds: float, *, searches: bool) -> dict[str, Any]:
    name, operator, place = key
    mutant = found(name, operator)[place]
    start = time.perf_counter()
    result = judge_of(name, seconds, searches=searches)(mutant)
    took = round(time.perf_counter() - start, 3)
    row = {"kernel": name, "operator": operator, "place": place, "fate": result.fate, "code": result.code}
    return row | {"what": str(mutant), "why": result.why, "runs": result.runs, "seconds": took}


def journal(path: Path, digest: str, *, keep: bool) -> dict[Key, dict[str, Any]]:
    rows: dict[Key, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if keep or row["argus"] == digest:
                rows[row["kernel"], row["operator"], row["place"]] = row
    return rows


def work(keys: Sequence[Key], judge: Callable[[Key], dict[str, Any]], jobs: int, deadline: float) -> Iterator[Any]:
    """The fates of mutants, until the deadline; workers are recycled, since interned expressions stay alive."""
    left = iter(keys)
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=MUTANTS_PER_PROCESS) as pool:
        running = [pool.submit(judge, key) for key in islice(left, 2 * jobs)]
        while running:
            yield running.pop(0).result()
            if time.monotonic() < deadline:
                running += [pool.submit(judge, key) for key in islice(left, 1)]


def table(rows: Sequence[Mapping[str, Any]], by: str) -> Iterator[str]:
    """Counts of fates, one line per operator or per kernel."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row[by]][row["fate"]] += 1
    yield f"{by:26} {'applied':>8} " + " ".join(f"{fate:>10}" for fate in FATES)
    order = {operator.name: place for place, operator in enumerate(OPERATORS)}
    for name in sorted(counts, key=lambda each: (order.get(each, 0), each)):
        yield _line(name, counts[name])
    yield _line("all", sum(counts.values(), Counter[str]()))


def _line(name: str, count: Counter[str]) -> str:
    applied = sum(count.values()) - count["ill-formed"]
    return f"{name:26} {applied:8} " + " ".join(f"{count[fate]:10}" for fate in FATES)


def report(rows: Sequence[Mapping[str, Any]]) -> int:
    """Print the tables and every survivor; returns the number of survivors."""
    for by in ("operator", "kernel"):
        print("\n".join(table(rows, by)), end="\n\n")
    for row in rows:
        if row["fate"] in ("survived", "unchecked"):
            print(
                f"{row['fate'].upper()} {row['kernel']}: {row['what']} [{row['operator']} {row['place']}]: {row['why']}"
            )
    applied = {row["operator"] for row in rows if row["fate"] != "ill-formed"}
    survived = sum(row["fate"] == "survived" for row in rows)
    print(f"{len(rows):,} mutants by {len(applied)} operators that apply, {survived} survived")
    return survived


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=lambda text: text.split(","), default=[each.name for each in OPERATORS])
    parser.add_argument("--kernel", type=lambda text: text.split(","), default=list(kernels()))
    parser.add_argument("--places", type=int, help="places per operator and kernel; default: all")
    parser.add_argument("--sample", type=int, help="number of mutants, rotating over operators; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time limit of the run")
    parser.add_argument("--seconds", type=float, default=2.0, help="the budget of a verification")
    parser.add_argument("--proofs", action="store_true", help="do not search for a counterexample if there is no proof")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / "bench" / "mutants.jsonl")
    parser.add_argument("--keep", action="store_true", help="also count rows of other versions of Argus")
    parser.add_argument("--report", action="store_true", help="only print the journal")
    chosen = parser.parse_args()
    deadline = time.monotonic() + 60 * chosen.minutes
    digest = sources_digest()[:12]
    known = journal(chosen.journal, digest, keep=chosen.keep)
    if chosen.report:
        return 1 if report(list(known.values())) else 0
    wanted = list(islice(sampled(chosen.kernel, chosen.operators, chosen.seed, chosen.places), chosen.sample))
    judge = partial(judge_key, seconds=chosen.seconds, searches=not chosen.proofs)
    chosen.journal.parent.mkdir(parents=True, exist_ok=True)
    with chosen.journal.open("a", encoding="utf-8") as file:
        for row in work([key for key in wanted if key not in known], judge, chosen.jobs, deadline):
            known[row["kernel"], row["operator"], row["place"]] = row
            file.write(json.dumps(row | {"argus": digest}) + "\n")
            file.flush()
            if row["fate"] == "survived":
                print(f"SURVIVED {row['kernel']}: {row['what']}: {row['why']}", flush=True)
    return 1 if report([known[key] for key in wanted if key in known]) else 0


if __name__ == "__main__":
    sys.exit(main())
