"""Generates docs/kernelbench.md from rows of `argus bench kernelbench --into`: `python benchmarks/kernelbench_page.py`.

Rows are those of benchmarks/results/kernelbench_h200.jsonl, or of the files named. Of several rows of a problem the one
with most comparisons counts, with the times of the one that has most peers. With --check the page is only compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from argus.report.kernelbench import SEARCHED, Row, merged, searched_times

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "benchmarks" / "results" / "kernelbench_h200.jsonl"
PAGE = ROOT / "docs" / "kernelbench.md"
_DIGITS = 12
"""Of a commit."""
COUNT = ["aten.add.Tensor"]
LEVELS = {1: 100, 2: 100}
"""Problems of each level."""
BANDWIDTH = 4.8e12
"""Bytes a second, by the data sheet [NVIDIA H200, 2024]."""
PRODUCTS = 989e12 / 6
"""Operations a second of products of f32: six bf16 products each, at the data sheet's rate."""
PLAIN = "argus without rewrites"
"""The time without algebraic rewrites, in rows of problems that have any."""
SINGLE = "eager without TF32"
"""The time of eager torch whose convolutions are those of single precision, where they are others by default."""
EXACT = "argus without TF32"
"""Ours of such a problem, when convolutions are of six products of parts."""
HOST = "host_milliseconds"
"""Times until calls return, in rows whose times on the GPU are without them."""
HEADS = (
    *("problem", "proved", "right", "comparisons", "error", "eager's error", "argus", "eager", "ratio"),
    *(
        "without TF32",
        "without rewrites",
        "compile",
        f"{SEARCHED} (ratio)",
        "bound",
        "cold (proofs)",
        "warm",
        "compile, cold",
        "compile, warm",
        "",
    ),
)
ABOUT = """\
# KernelBench on an H200

What `argus bench kernelbench` found of the problems of levels 1 and 2 at their own sizes
([torch-compile.md](torch-compile.md#kernelbench) says what is compared and how times are taken). This page is generated
by `benchmarks/kernelbench_page.py` from the rows of the run.

*Proved*: each operation is a kernel proved to compute what the graph says, none runs in eager torch. *Right*: within
1e-4 of float64, or within twice the error of eager torch without TF32, in all comparisons of the row. *Stock* is the
benchmark's own comparison with eager torch (1e-4), without TF32 and with it, as torch is set by default; eager torch
is timed as it is set by default, in which convolutions may round to TF32: ours then are of three products of parts, and
of six where both are without TF32 (the column *without TF32*). *Bound* is the least time, of memory that is read and
written once at 4.8 TB/s, or of products at 165 TFLOP/s (six bf16 products for one of f32), as a share of the time
measured. Max-autotune's *ratio* is its time over ours in its own turn.

*Cold* is the seconds of compilation with empty caches: of ours, capture, proofs and compilers in a process on fake
tensors beside others of its kind, and what of it proofs take; of `torch.compile`, the first call. *Warm* is the first
call with full caches on disk, the code's loading and the kernels' run included."""


def read(paths: Sequence[Path]) -> list[Row]:
    """The rows, one a problem, in order."""
    found: dict[tuple[int, int], Row] = {}
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            key = row["level"], row["problem"]
            found[key] = merged(found[key], row) if key in found else row
    return [found[key] for key in sorted(found)]


def page(rows: Sequence[Row]) -> Iterator[str]:
    yield ABOUT
    yield from what_ran(rows)
    for level, count in LEVELS.items():
        own = [row for row in rows if row["level"] == level]
        yield from summary(level, count, own)
    yield from table(rows)
    yield from failures(rows)


def what_ran(rows: Sequence[Row]) -> Iterator[str]:
    """What was run, counted from the rows."""
    ran = [row for row in rows if not row.get("error")]
    timed = [row for row in ran if "milliseconds" in row]
    places = Counter(_place(row) for row in ran)
    yield "\n## What ran\n"
    yield f"* {len(rows)} of {sum(LEVELS.values())} problems were begun, {len(ran)} ran."
    for place, count in places.most_common():
        yield f"* {count} problems on {place}."
    for tree, count in Counter(_tree(row.get("tree")) for row in ran).most_common():
        yield f"* {count} problems by {tree}."
    for tree, count in Counter(_tree(row["tree_of_times"]) for row in ran if "tree_of_times" in row).most_common():
        yield f"* Times of {count} of them by {tree}."
    shapes = _counts(len(row["shapes"]) for row in ran)
    yield f"* Seeds: {_counts(row['seeds'] for row in ran)}. Other shapes: {shapes}."
    short = [row for row in ran if row.get("cut") or row["shapes_dropped"]]
    yield f"* {len(short)} problems have fewer comparisons than were asked for; the last column says why."
    yield f"* Rounds of the medians: {_counts(row['rounds'] for row in timed)}."
    beside = sum("compile" in row["milliseconds"] for row in timed)
    yield f"* Times beside eager torch for {len(timed)} problems; compile for {beside}."
    searched = [found for row in ran if (found := searched_times(row))]
    yield f"* Times beside max-autotune for {len(searched)}, in a turn of its own, in which all are measured again."
    queued = [each for each in (*timed, *searched) if HOST in each]
    yield f"* The GPU had work when calls began in {len(queued)} of these {len(timed) + len(searched)} turns; times of"
    yield "  the others include what the host needs for a call."
    for tree, count in Counter(_tree(each.get("tree")) for each in searched).most_common():
        yield f"* Turns with max-autotune: {count} problems by {tree}."


def _place(row: Row) -> str:
    if "gpu" not in row:
        return "an NVIDIA H200, torch 2.11, with ten processes that proved and built on 16 cores that had other work"
    return (
        f"{row['gpus']} {row['gpu']}, torch {row['torch']}, with {row['jobs']} processes that proved and built on "
        f"{row['cores']} cores"
    )


def _tree(tree: Mapping[str, str] | None) -> str:
    """Which sources ran, as far as a row says."""
    if tree is None:
        return "sources that their rows do not name, from before rows did"
    commit = f" at commit {tree['commit'][:_DIGITS]}" if "commit" in tree else ""
    return f"sources of digest {tree['sources']}{commit}"


def _counts(values: Iterable[int]) -> str:
    found = sorted(Counter(values).items(), reverse=True)
    return ", ".join(f"{value} ({count} problems)" for value, count in found) or "none"


def summary(level: int, count: int, rows: Sequence[Row]) -> Iterator[str]:
    ran = [row for row in rows if not row.get("error")]
    both = [row for row in ran if row["proved"] and row["right"]]
    yield f"\n## Level {level}\n"
    yield f"Of {count} problems {len(rows)} were begun, and {len(ran)} ran to their end:\n"
    yield "| | problems |\n|---|---|"
    counts: dict[str, Callable[[Row], bool]] = {
        "proved, nothing in eager torch": lambda row: row["proved"],
        "eager torch adds to a count of batches, in 64 bits, and that is all": lambda row: list(row["eager"]) == COUNT,
        "right": lambda row: row["right"],
        "right against eager torch instead of float64": lambda row: row["against"] != ["float64"],
        "stock comparison, without TF32": lambda row: row["stock"],
        "stock comparison, with TF32": lambda row: row["stock_tf32"],
        "a constant passes": lambda row: row["trivial"],
    }
    yield f"| proved and right | {len(both)} |"
    for name, holds in counts.items():
        yield f"| {name} | {sum(map(holds, ran))} |"
    yield "\nEager torch's time over ours, and that of `torch.compile` and its max-autotune mode:\n"
    peers = "over eager | faster than eager | over eager without TF32 | faster"
    yield f"| | problems | {peers} | over compile | over max-autotune | share of the bound |"
    yield "|---" * 9 + "|"
    sound = [row for row in both if not row["trivial"]]
    ways: dict[str, Sequence[Row]] = {
        "all that ran": ran,
        "proved and right": both,
        "of those, no constant passes": sound,
    }
    for name, chosen in ways.items():
        yield f"| {name} | {len(chosen)} | {' | '.join(means(chosen, 'argus'))} |"
    if rewritten := [row for row in both if PLAIN in row.get("milliseconds", {})]:
        name = f"proved and right, {len(rewritten)} of them timed without algebraic rewrites"
        yield f"| {name} | {len(both)} | {' | '.join(means(both, PLAIN))} |"
    hosts = [row[HOST] for row in ran if HOST in row]
    if hosts:
        known = {name: [each[name] for each in hosts if name in each] for name in ("argus", "eager", "compile")}
        medians = ", ".join(f"{name} {statistics.median(each):.2f} ms" for name, each in known.items() if each)
        yield f"\nUntil a call returns to the host, which the times are without, median of {len(hosts)}: {medians}."


def means(rows: Sequence[Row], own: str) -> Iterator[str]:
    """Geometric means of ratios, and of how many. own: which of our times, where a row has it."""
    timed = [row for row in rows if "milliseconds" in row]
    for peer in ("eager", SINGLE, "compile", SEARCHED):
        measured = [found for row in rows if (found := searched_times(row))] if peer == SEARCHED else timed
        both = ((_time(row, peer), _ours(row, own, peer)) for row in measured)
        over = [theirs / ours for theirs, ours in both if theirs is not None and ours is not None]
        yield mean(over)
        if "eager" in peer:
            yield f"{sum(one > 1 for one in over)} of {len(over)}" if over else ""
    yield mean([bound(row) / row["milliseconds"].get(own, row["milliseconds"]["argus"]) for row in timed])


def _ours(row: Row, own: str, peer: str) -> float | None:
    """Our time beside a peer, which without TF32 is without it, too; None if sums as they are were not timed so."""
    times: dict[str, float] = row["milliseconds"]
    if peer == SINGLE and EXACT in times:
        return None if own == PLAIN and PLAIN in times else times[EXACT]
    return times.get(own, times["argus"])


def _time(row: Row, peer: str) -> float | None:
    times: Row = row["milliseconds"]
    return times.get(SINGLE, times["eager"]) if peer == SINGLE and "gpu" in row else times.get(peer)


def mean(ratios: Sequence[float]) -> str:
    """The geometric mean, and of how many."""
    return f"{statistics.geometric_mean(ratios):.2f} ({len(ratios)})" if ratios else "not measured"


def table(rows: Sequence[Row]) -> Iterator[str]:
    yield "\n## Problems\n"
    yield "Times in milliseconds; an error is the greatest of all comparisons, relative to 1 + the value.\n"
    yield f"|{'|'.join(f' {each} ' for each in HEADS)}|"
    yield "|---" * len(HEADS) + "|"
    for row in rows:
        if not row.get("error"):
            yield "| " + " | ".join(cells(row)) + " |"


def cells(row: Row) -> Iterator[str]:
    yield named(row)
    yield "yes" if row["proved"] else "in part"
    yield "yes" if row["right"] else "**no**"
    yield f"{len(row['errors'])} of {row['wanted']}" if "wanted" in row else str(len(row["errors"]))
    yield f"{max(row['errors']):.1e}"
    yield f"{max(row['eager_errors']):.1e}"
    times = row.get("milliseconds", {})
    yield f"{times['argus']:.3f}" if times else ""
    yield f"{times['eager']:.3f}" if times else ""
    yield f"{times['eager'] / times['argus']:.2f}" if times else ""
    yield f"{times[SINGLE] / times.get(EXACT, times['argus']):.2f}" if SINGLE in times else ""
    yield f"{times['eager'] / times[PLAIN]:.2f}" if PLAIN in times else ""
    yield f"{times['compile']:.3f}" if "compile" in times else ""
    searched = searched_times(row).get("milliseconds")
    yield f"{searched[SEARCHED]:.3f} ({searched[SEARCHED] / searched['argus']:.2f})" if searched else ""
    yield f"{100 * bound(row) / times['argus']:.0f} %" if times else ""
    yield from seconds(row)
    yield "; ".join(notes(row))


def seconds(row: Row) -> Iterator[str]:
    """Of compilation: ours with empty caches and with full ones, and torch.compile's."""
    known: Row = row.get("ahead") or {}
    calls: Row = row.get("first_call", {})
    yield f"{known['seconds']:.1f} ({known['proofs']:.1f})" if known.get("cold") and "proofs" in known else ""
    for name in ("argus", "compile", "compile, warm"):
        yield f"{calls[name]:.1f}" if name in calls else ""


def bound(row: Row) -> float:
    """The least time in milliseconds."""
    return 1e3 * max(row["bytes"] / BANDWIDTH, row["flops"] / PRODUCTS)


def notes(row: Row) -> Iterator[str]:
    for operation, why in row["eager"].items():
        yield f"`{operation.removesuffix('.default')}` in eager torch: {why or 'not covered'}"
    if row["trivial"]:
        yield "a constant passes"
    if row.get("rewrites"):
        yield f"sums in another order ({', '.join(row['rewrites'])})"
    if row["against"] != ["float64"]:
        yield "against eager torch"
    ahead: Row = row.get("ahead") or {}
    if "error without rewrites or TF32" in ahead:
        yield f"not prepared without rewrites or TF32: {ahead['error without rewrites or TF32']}"
    if row.get("cut"):
        yield f"cut: {row['cut']}"
    if row["shapes_dropped"]:
        yield f"{len(row['shapes'])} other shapes, not at {', '.join(row['shapes_dropped'])}"


def failures(rows: Sequence[Row]) -> Iterator[str]:
    lost = [row for row in rows if row.get("error")]
    if lost:
        yield "\n## Not run to the end\n"
        yield from (f"* {named(row)}: {'. '.join(' '.join(row['error'].split()).split('. ')[:2])}" for row in lost)


def named(row: Row) -> str:
    return f"{row['level']}.{row['problem']} {row['name'].rstrip('_').replace('_', ' ')}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", type=Path, default=[ROWS])
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    asked = parser.parse_args()
    text = "\n".join(page(read(asked.rows))) + "\n"
    if asked.check:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
