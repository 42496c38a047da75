"""Random proved programs whose emitted text is executed on the CPU: `python benchmarks/fuzz.py text`.

Programs are drawn from the families of `property_tests/small` that are right by construction. Each is verified; the
texts of the proved ones (all that a build chooses from) are compiled many at a time, run at three sizes, each under
another schedule with other inputs, and compared with the interpreter. A journal has one line for each program: what
came of it, its family, its target, what it uses, the seed, and the program.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel, Program
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.search.search import sizes_in_order
from argus.runtime.cpu.programs import validate_program
from argus.runtime.cpu.together import Runs, validate_together
from argus.runtime.cpu.validate import Validation, every_text
from argus.testing.mutants import spread_sizes
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from property_tests.small.marks import uses
from property_tests.small.right import FAMILIES, Right, draw

_AT_ONCE = 48
"""Programs that one call compiles together, at most."""
_SIZES = 3
_SCHEDULES = 2 * _SIZES
"""Schedules that programs take in turn: the latest moments, the earliest, and drawn ones."""
T = TypeVar("T")
EXECUTED = ("right", "wrong")


@frozen
class Entry:
    """What came of a program. outcome: "right", "wrong", "not proved" or "refused (code)". why: of a wrong one."""

    outcome: str
    family: str
    target: str
    uses: tuple[str, ...]
    seed: int
    program: str
    why: str = ""

    @property
    def line(self) -> str:
        return "\t".join((self.outcome, self.family, self.target, ",".join(self.uses), str(self.seed), self.program))


def read(journal: Path) -> list[Entry]:
    """The entries of a journal but for disagreements, which are run again, and a last line without an end."""
    if not journal.exists():
        return []
    lines = journal.read_text("utf-8").split("\n")[:-1]
    parts = [line.split("\t") for line in lines]
    made = [Entry(a, b, c, tuple(filter(None, d.split(","))), int(e), f) for a, b, c, d, e, f in parts]
    return [each for each in made if each.outcome != "wrong"]


def replace(journal: Path, entries: Sequence[Entry]) -> None:
    """Write a journal anew, at once: a process that is killed leaves the old one or the new one."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    new = journal.with_name(journal.name + ".new")
    new.write_text("".join(each.line + "\n" for each in entries), encoding="utf-8")
    new.replace(journal)


def run(
    count: int, seed: int, minutes: float, seconds: float, journal: Path, jobs: int, families: Collection[str]
) -> list[Entry]:
    """Execute programs until `count` were executed, those of the journal included, or the time is over."""
    entries = read(journal)
    replace(journal, entries)
    print(f"{len(entries):,} programs in the journal", flush=True)
    end = time.monotonic() + 60 * minutes
    batches = _batches(seed, {each.program for each in entries}, families)
    executed = sum(each.outcome in EXECUTED for each in entries)
    with ProcessPoolExecutor(jobs, initializer=_collect_rarely) as pool, journal.open("a", encoding="utf-8") as stream:
        pending: set[Future[list[Entry]]] = set()
        while (executed < count and time.monotonic() < end) or pending:
            while len(pending) < jobs and executed < count and time.monotonic() < end:
                pending.add(pool.submit(executed_batch, next(batches), seed, seconds))
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for entry in (each for future in done for each in future.result()):
                entries.append(entry)
                executed += entry.outcome in EXECUTED
                stream.write(entry.line + "\n")
                if entry.outcome == "wrong":
                    print(f"DISAGREEMENT on {entry.program}\n  {entry.why}", flush=True)
            stream.flush()
    return entries


def _collect_rarely() -> None:
    """Collect garbage rarely: what the modules hold stays, and a batch leaves little. Saves an eighth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


def _batches(seed: int, seen: set[str], families: Collection[str]) -> Iterator[list[Right]]:
    drawn = random.Random(seed)  # noqa: S311 reason: a seed makes the figures repeatable
    while True:
        batch: list[Right] = []
        while len(batch) < _AT_ONCE:
            program = draw(drawn.choice, families)
            if repr(program) not in seen:
                seen.add(repr(program))
                batch.append(program)
        yield batch


def executed_batch(programs: Sequence[Right], seed: int, seconds: float) -> list[Entry]:
    """What came of each program."""
    entries: list[Entry] = []
    runs: list[tuple[Entry, tuple[Runs, ...]]] = []
    for number, program in enumerate(programs):
        entry, traced = _proved(program, seed, seconds)
        if traced is None:
            entries.append(entry)
        elif isinstance(traced, Program):
            entries.append(_judged(entry, _or_error(partial(validate_program, traced, seeds=[number % _SCHEDULES]))))
        else:
            made = _or_error(partial(every_text, traced))
            if isinstance(made, ArgusError):
                entries.append(_judged(entry, made))
            else:
                sizes = spread_sizes(list(sizes_in_order(traced)), _SIZES)
                cases = [(each, (place + number) % _SCHEDULES) for place, each in enumerate(sizes)]
                runs.append((entry, tuple(Runs(each, cases) for each in made)))
    found = iter(validate_together([each for _, made in runs for each in made]) if runs else [])
    return [*entries, *(_worst([_judged(entry, next(found)) for _ in made]) for entry, made in runs)]


def _worst(entries: Sequence[Entry]) -> Entry:
    """The first of a program's texts that is not right, else any."""
    return next((each for each in entries if each.outcome != "right"), entries[0])


def _or_error(action: Callable[[], T]) -> T | ArgusError:
    try:
        return action()
    except ArgusError as error:
        return error


def _proved(program: Right, seed: int, seconds: float) -> tuple[Entry, Kernel | Program | None]:
    """The entry of a program so far, and its kernel or launches if they are proved."""
    family, target, used = type(program).__name__.lower(), "", ()
    try:
        traced = program.kernel()
        kernels = [each.kernel for each in traced.launches] if isinstance(traced, Program) else [traced]
        target, used = kernels[0].target.name, tuple(sorted({mark for each in kernels for mark in uses(each)}))
        budget = Budget.about(seconds)
        if isinstance(traced, Program):
            verdict = verify_program(traced, solver="z3", budget=budget).verdict
        else:
            verdict = verify(traced, solver="z3", budget=budget).verdict
    except ArgusError as error:
        return Entry(f"refused ({error.diagnostic.code})", family, target, used, seed, repr(program)), None
    proved = isinstance(verdict, Proved)
    entry = Entry("right" if proved else "not proved", family, target, used, seed, repr(program))
    return entry, traced if proved else None


def _judged(entry: Entry, found: Validation | ArgusError) -> Entry:
    outcome, why = "right", ""
    if isinstance(found, ArgusError):
        outcome = "wrong" if found.diagnostic.code == "E304" else f"refused ({found.diagnostic.code})"
        why = str(found)
    elif not found.right:
        outcome, why = "wrong", str(next(each for each in found.trials if not each.right))
    return Entry(outcome, entry.family, entry.target, entry.uses, entry.seed, entry.program, why)


def summary(entries: Sequence[Entry]) -> dict[str, Any]:
    """The figures of a journal."""
    executed = [each for each in entries if each.outcome in EXECUTED]
    return {
        "schema": "argus.fuzz_text/1",
        "programs": len(entries),
        "executed": len(executed),
        "disagreements": sum(each.outcome == "wrong" for each in entries),
        "seeds": sorted({each.seed for each in entries}),
        "sizes of a program": _SIZES,
        "outcomes": _counted(each.outcome for each in entries),
        "executed by target": _counted(each.target for each in executed),
        "executed by family": {
            family: _counted(each.target for each in executed if each.family == family)
            for family in sorted({each.family for each in executed})
        },
        "executed by use": {
            mark: _counted(each.target for each in executed if mark in each.uses)
            for mark in sorted({mark for each in executed for mark in each.uses})
        },
    }


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def added(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of two journals without a program in common."""
    for name in ("schema", "sizes of a program"):
        assert one[name] == two[name], f"{name}: {one[name]} and {two[name]}"
    found = {name: _sum(one[name], two[name]) for name in two}
    return {**found, "seeds": sorted({*one["seeds"], *two["seeds"]}), "sizes of a program": one["sizes of a program"]}


def _sum(one: Any, two: Any) -> Any:  # noqa: ANN401 reason: counts, and mappings of counts
    """None is the count of nothing."""
    if one is None or two is None:
        return two if one is None else one
    if isinstance(one, int):
        return one + two
    if isinstance(one, dict):
        counts = cast("dict[str, Any]", one)
        return {name: _sum(counts.get(name), two.get(name)) for name in sorted({*counts, *two})}
    return one


def texts(
    count: int,
    seed: int,
    minutes: float,
    seconds: float,
    journal: Path,
    jobs: int,
    result: Path | None,
    families: Collection[str] = FAMILIES.keys(),
    *,
    add: bool = False,
) -> int:
    """Run, print and store the figures; returns the number of disagreements. add: to the figures stored so far."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    start = time.monotonic()
    found = summary(run(count, seed, minutes, seconds, journal, jobs, families))
    print(json.dumps(found, indent=1))
    print(f"{time.monotonic() - start:.0f} s")
    wrong = found["disagreements"]
    if result is not None:
        found = added(json.loads(result.read_text("utf-8")), found) if add else found
        result.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return wrong
