"""Compares verdicts with those of SentryWard, a verifier of PTX by others: `python benchmarks/ptx_judge.py [--places N]
[--only PATTERN] [--seconds S]`.

Every kernel for sm_90a of tests/corpus/{proved,refuted,traced}, the kernels of one `mma.sync`, and mutants of the
proved kernels without wgmma (each operator of `OPERATORS` at its first N places) are compiled to PTX and judged by
SentryWard: at the sizes of our counterexample, if there is one, and unless that shows a fault at sizes of several
tiles. Writes benchmarks/results/sentryward.json. The table of docs/soundness.md explains differences; exit status 1 if
one is not.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Literal

from attrs import asdict, frozen

from argus.core.check import check
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted
from argus.testing.instructions.products import warp_trials
from argus.testing.mutation import mutated, named
from argus.testing.sentryward import Compilation, Finding, Limits, chosen_sizes, compilation, finding, meets
from argus.verifier.kernel import verify
from argus.verifier.loader import load

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests" / "corpus"
TABLE = ROOT / "docs" / "soundness.md"
RESULTS = ROOT / "benchmarks" / "results" / "sentryward.json"
OPERATORS = (
    "drop_copy", "repeat_copy", "one_thread_alone", "all_threads", "drop_wait", "weaken_wait", "drop_commit",
    "drop_meeting", "meeting_of_others", "meeting_without_waiting", "partial_meeting", "drop_fence", "drop_await",
    "drop_arrive", "repeat_arrive", "phase_ahead", "phase_behind", "barrier_of_another_slot", "barrier_of_one_slot",
    "another_barrier", "arrive_count", "set_up_count", "announced_bytes", "release_early", "release_late", "next_slot",
    "drop_signal", "fewer_slots", "next_block", "overlap_rows",
)  # fmt: skip
"""Operators on what SentryWard models: copies, meetings, waits, fences, barriers, slots and blocks."""
Relation = Literal["agree", "differ", "no opinion"]


@frozen
class Subject:
    """A kernel and our verdict: `proved`, `refuted I5`, `unknown`. sizes: of the counterexample, empty without one."""

    name: str
    ours: str
    kernel: Callable[[], Kernel]
    sizes: Mapping[str, int]


@frozen
class Row:
    """One comparison. lines: of PTX. seconds: SentryWard's time."""

    name: str
    ours: str
    theirs: str
    codes: tuple[str, ...]
    sizes: Mapping[str, int]
    wgmma: bool
    lines: int
    seconds: float

    @property
    def relation(self) -> Relation:
        opinion = Finding(self.theirs).opinion
        if opinion == "none" or self.ours == "unknown":
            return "no opinion"
        return "agree" if (opinion == "clean") == (self.ours == "proved") else "differ"


@frozen
class Explanation:
    """A row of the table: which differences (patterns of names, ours and theirs), and why."""

    kernel: str
    ours: str
    theirs: str
    why: str

    def fits(self, row: Row) -> bool:
        pairs = ((row.name, self.kernel), (row.ours, self.ours), (row.theirs, self.theirs))
        return all(any(fnmatch(text, each) for each in patterns.split(", ")) for text, patterns in pairs)


# -- subjects ------------------------------------------------------------------------------------------------


def corpus(kinds: Sequence[str] = ("proved", "refuted", "traced"), stem: str = "*") -> Iterator[Subject]:
    """The kernels of these folders that are written for sm_90a, with the verdicts of their first lines."""
    for path in (path for kind in kinds for path in sorted((CORPUS / kind).glob(f"{stem}.py"))):
        ours = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# verdict: ")
        if ours.split()[0] in {"proved", "refuted"} and "sm_90a" in path.read_text(encoding="utf-8"):
            for each in load(str(path)):
                kernel = each.trace()
                if each.program is None and kernel.target.name == "sm_90a":
                    name = f"{path.parent.name}/{path.stem}"
                    yield Subject(name, ours, lambda kernel=kernel: kernel, _sizes_of_report(path.with_suffix(".txt")))


def _sizes_of_report(path: Path) -> dict[str, int]:
    """The sizes of the counterexample in a report beside a kernel."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    stated = re.search(r"^ *= launch: (.*)$", text, flags=re.MULTILINE)
    return {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", stated[1])} if stated else {}


def judged(name: str, kernel: Kernel) -> Subject:
    """A kernel that has no stated verdict: it is verified now."""
    match verify(kernel, solver="z3", budget=Budget.about(5)).verdict:
        case Proved():
            return Subject(name, "proved", lambda: kernel, {})
        case Refuted(counterexample=found):
            return Subject(name, f"refuted {found.code}", lambda: kernel, dict(found.sizes))
        case _:
            return Subject(name, "unknown", lambda: kernel, {})


def mutants(subjects: Iterable[Subject], places: int) -> Iterator[Subject]:
    """Each operator at the first places of each kernel that leave it well-formed."""
    for subject in subjects:
        for operator in named(OPERATORS):
            formed = (each.kernel for each in mutated(subject.kernel(), [operator]) if not check(each.kernel))
            for place, kernel in enumerate(islice(formed, places)):
                yield judged(f"mutants/{Path(subject.name).name}.{operator.name}.{place}", kernel)


# -- comparison ----------------------------------------------------------------------------------------------


def compare(subject: Subject, limits: Limits | None = None, made: Compilation | None = None) -> Row:
    """SentryWard's finding beside our verdict. Raises ArgusError if the kernel is not emitted."""
    made = made or compilation(subject.kernel())
    of_run = [subject.sizes] if subject.sizes and meets(made.launch, subject.sizes) else []
    of_tiles = chosen_sizes(made.launch)
    found, sizes = Finding("no sizes"), {}
    for sizes in (*of_run, *([] if of_tiles is None else [of_tiles])):
        found = finding(made, sizes, limits)
        if found.opinion == "fault":
            break
    lines = len(made.ptx.splitlines())
    return Row(subject.name, subject.ours, found.result, found.codes, sizes, made.uses_wgmma, lines, found.seconds)


def explanations() -> tuple[Explanation, ...]:
    """The table of differences of docs/soundness.md."""
    _, _, section = TABLE.read_text(encoding="utf-8").partition("## A second checker")
    lines = section.partition("\n## ")[0].splitlines()
    cells = [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"
    ]
    return tuple(Explanation(*each) for each in cells[2:])


def unexplained(rows: Iterable[Row]) -> list[Row]:
    """The differences that no row of the table explains."""
    known = explanations()
    return [row for row in rows if row.relation == "differ" and not any(each.fits(row) for each in known)]


def counts(rows: Sequence[Row], missing: Mapping[str, str]) -> dict[str, object]:
    """How many kernels agree, differ or have no opinion, by folder and wgmma, and why there is none."""
    folders = sorted({row.name.partition("/")[0] for row in rows})
    plain = {
        folder: Counter(row.relation for row in rows if row.name.startswith(f"{folder}/") and not row.wgmma)
        for folder in folders
    }
    return {
        "without wgmma": {folder: dict(count) for folder, count in plain.items()},
        "with wgmma": dict(Counter(row.relation for row in rows if row.wgmma)),
        "pairs": {f"{ours} | {theirs}": n for (ours, theirs), n in _pairs(rows).most_common()},
        "why no opinion": dict(Counter(f"{row.theirs}: {', '.join(row.codes[:1])}" for row in rows if _silent(row))),
        "not emitted": len(missing),
    }


def document(rows: Sequence[Row], missing: Mapping[str, str]) -> str:
    """The text of the file of results: a line per comparison. missing: codes of kernels that are not emitted."""
    head = {"sentryward": version("sentryward"), "counts": counts(rows, missing), "not emitted": dict(missing)}
    lines = ",\n".join(f"  {json.dumps(asdict(row))}" for row in rows)
    return f'{json.dumps(head, indent=1)[:-2]},\n "rows": [\n{lines}\n ]\n}}\n'


def _pairs(rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    return Counter((row.ours.split()[0], row.theirs) for row in rows if not row.wgmma)


def _silent(row: Row) -> bool:
    return Finding(row.theirs).opinion == "none"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=1, help="places per operator and kernel for mutants; 0: none")
    parser.add_argument("--only", default="*", help="a pattern of names, such as `refuted/scan_*`")
    parser.add_argument("--seconds", type=float, default=Limits().seconds)
    given = parser.parse_args(arguments)
    limits, missing = Limits(seconds=given.seconds), dict[str, str]()

    def rows_of(subjects: Iterable[Subject]) -> Iterator[Row]:
        for subject in subjects:
            try:
                row = compare(subject, limits)
            except ArgusError as refused:
                missing[subject.name] = refused.diagnostic.code
                continue
            print(f"{row.name:60} {row.ours:12} {row.theirs:16} {row.relation:10} {row.seconds:6.2f} s", flush=True)
            yield row

    subjects = [subject for subject in corpus() if fnmatch(subject.name, given.only)]
    rows = list(rows_of(subjects))
    if given.only == "*":
        rows += rows_of(judged(f"mma.sync/{trial.name}", trial.kernel) for trial in warp_trials())
    clean = {row.name for row in rows if not row.wgmma and row.ours == "proved" and not _silent(row)}
    rows += rows_of(mutants((subject for subject in subjects if subject.name in clean), given.places))
    summary, left = counts(rows, missing), unexplained(rows)
    print(json.dumps(summary, indent=1))
    for row in left:
        print(f"not explained: {row.name}: {row.ours}, SentryWard: {row.theirs} {', '.join(row.codes)}")
    if given.only == "*":
        RESULTS.write_text(document(rows, missing), encoding="utf-8")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
