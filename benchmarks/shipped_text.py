"""Executes the emitted text of every shipped configuration on the CPU: `python benchmarks/shipped_text.py`.

With OPENBLAS_NUM_THREADS=1 it takes a third of the time: threads have too little to do in the products of one tile.

Each configuration is built by the compiler of its GPU; its text is then executed at several sizes under three schedules
and compared with the interpreter, as `argus validate` does, see `shipped.texts`. Configurations that a journal
(`--journal FILE`) holds are not run again; `--minutes M` limits the time. Writes the result file once every
configuration was run, and fails if one was not right.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel, Program
from argus.emit.build import build
from argus.emit.build_program import build_program
from argus.runtime.cpu.programs import validate_program
from argus.runtime.cpu.validate import Trial, validate
from benchmarks.shipped import Shipped, shipped, texts

RESULT = Path(__file__).resolve().parent / "results" / "shipped_text.json"
STEPS = ("built", "compiled", "executed", "right")
"""How far a configuration came: emitted, accepted by its GPU's compiler, run to the end on the CPU, and agreeing."""
SECONDS = 300.0
Row = dict[str, Any]


def examined(each: Shipped, seeds: int) -> Row:
    """A configuration as a row of the result. Its `trouble` is empty, or the first one; its `step` the last reached."""
    row: Row = {"stem": each.stem, "module": each.module, "step": "", "trouble": ""}
    start = time.process_time(), _children()
    try:
        made = each.trace()
        kernels = [made] if isinstance(made, Kernel) else [launch.kernel for launch in made.launches]
        row |= {"target": kernels[0].target.name, "kernels": len(kernels)}
        trials = list(_trials(each, made, row, seeds))
        bad = next((f"{label}: {described(trial)}" for label, trial in trials if not trial.right), "")
        row |= {"step": "executed" if bad else "right", "trouble": bad, "runs": len(trials)}
        row |= {"elements": sum(trial.elements for _, trial in trials)}
    except ArgusError as problem:
        row["trouble"] = str(problem).splitlines()[0]
    return row | {"seconds": round(time.process_time() - start[0] + _children() - start[1], 2)}


def _trials(each: Shipped, made: Kernel | Program, row: Row, seeds: int) -> Iterator[tuple[str, Trial]]:
    """Build, compile for the CPU and run, noting each step in the row."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            build(made, directory=Path(folder)) if isinstance(made, Kernel) else build_program(made, Path(folder))
        except ArgusError as problem:
            row["step"] = "" if problem.diagnostic.code == "E501" else "built"
            raise
    row["step"] = "compiled"
    for text in texts(each):
        if isinstance(text.made, Kernel):
            found = validate(text.made, text.sizes, seeds=seeds, seconds=SECONDS)
        else:
            found = validate_program(text.made, text.sizes, seeds=seeds, seconds=SECONDS)
        yield from ((text.label, trial) for trial in found.trials)


def described(trial: Trial) -> str:
    """What is wrong with a run."""
    what = trial.ended or (str(trial.findings[0]) if trial.findings else str(trial.difference))
    return f"sizes {dict(trial.sizes)}, seed {trial.seed}: {what}"


def _document(rows: Sequence[Mapping[str, Any]], seeds: int) -> str:
    """The result file, with one line for each configuration and each line of the table."""
    listed = {"families": table(rows), "configurations": rows}
    parts = [f'"{name}": [\n' + ",\n".join(map(json.dumps, each)) + "\n]" for name, each in listed.items()]
    return f'{{"seeds": {seeds},\n' + ",\n".join(parts) + "}\n"


def _lines(journal: Path | None) -> list[Row]:
    text = journal.read_text("utf-8") if journal is not None and journal.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def table(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """For each file of `argus.kernels` and target: configurations, kernels, and how many of them reached each step."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row["module"], row["target"]
        line = found.setdefault(key, {"family": key[0], "target": key[1], "configurations": 0, "kernels": 0})
        line["configurations"] += 1
        line["kernels"] += row["kernels"]
        for place, step in enumerate(STEPS):
            reached = row["step"] in STEPS[place:]
            line[step] = line.get(step, 0) + row["kernels"] * reached
    return [found[key] for key in sorted(found)]


def report(rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        if row["trouble"]:
            print(f"{row['stem']}: {row['trouble']}")
    for line in table(rows):
        steps = ", ".join(f"{line[step]} {step}" for step in STEPS)
        what = f"{line['configurations']} configurations, {line['kernels']} kernels"
        print(f"{line['family']} ({line['target']}): {what}: {steps}")
    seconds = [row["seconds"] for row in rows]
    if seconds:
        median, most = statistics.median(seconds), max(seconds)
        print(f"CPU seconds a configuration: median {median:.1f}, most {most:.1f}, all {sum(seconds):.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--journal", type=Path, help="what was run, one configuration a line; is continued")
    parser.add_argument("--family", help="only the configurations of this kernel, or of this file of `argus.kernels`")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seeds", type=int, default=3, help="schedules at each of the sizes")
    chosen = parser.parse_args()
    journal: Path | None = chosen.journal
    held = {row["stem"]: row for row in _lines(journal)}
    every = [each for each in shipped() if chosen.family in {None, each.family, each.module}]
    start = time.monotonic()
    for each in every:
        if each.stem in held or time.monotonic() - start > 60 * chosen.minutes:
            continue
        held[each.stem] = row = examined(each, chosen.seeds)
        if journal is not None:
            with journal.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
    rows = [held[each.stem] for each in every if each.stem in held]
    report(rows)
    if len(rows) < len(every):
        print(f"{len(every) - len(rows)} configurations remain")
    elif chosen.family is None:
        RESULT.write_text(_document(rows, chosen.seeds), encoding="utf-8")
    return int(any(row["step"] != "right" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
