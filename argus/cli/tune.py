"""`argus bench gemm`: shows the GEMM configuration chosen for a shape, or searches for a faster one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import click
from attrs import asdict, define, field

from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.ops.choice import select
from argus.report.command_result import Outcome
from argus.runtime import tuning_db
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.tuning.candidates import tuning_candidates
from argus.search.tuning.measure import Shape
from argus.search.tuning.prepare import Candidate, prepare_all
from argus.search.tuning.search import ROUNDS, Result, query_device_name, search_shapes, stored_results

SCHEMA = "argus.tune/1"
WRONG, INTERRUPTED = 1, 130
_SECONDS = 120.0
_SHAPE = re.compile(r"([1-9]\d*)[x×]([1-9]\d*)[x×]([1-9]\d*)")
Say = Callable[[Iterable[str]], None]


@click.command()
@click.argument("sizes", nargs=-1, metavar="M N K | MxNxK[,MxNxK...]")
@click.option("--tune", is_flag=True, help="Search on this machine's GPU and store the best for later calls.")
@click.option("--prepare", is_flag=True, help="Only prove and compile the candidates of a search; needs no GPU.")
@click.option("--processes", type=click.IntRange(0), default=0, help="Worker processes; 0: one per CPU.")
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True, help="Timing rounds.")
@json_option
def gemm(sizes: tuple[str, ...], tune: bool, prepare: bool, processes: int, rounds: int, as_json: bool) -> Outcome:
    """Show which configuration a product gets; with --tune, search for the fastest proved one.

    Without options, print the configuration found by an earlier search, or else the one that the cost model chooses.
    A search stores its results in $ARGUS_CACHE_DIR/tuning, one text file per GPU, and `argus.matmul` uses them.
    --prepare stores proofs and compiled code in $ARGUS_CACHE_DIR/kernels: copy that folder to a machine with a GPU to
    search there without a compiler; each machine proves for itself. An interrupted search stores the results it has so
    far.
    """
    shapes = _shapes(sizes)
    if tune and prepare:
        raise click.UsageError("--tune includes --prepare: give only one of them")
    if not shapes and not prepare:
        raise click.UsageError("give shapes, such as 4096x4096x4096")
    say: Say = _silent if as_json else Screen().lines
    if not (tune or prepare):
        chosen = {_text(shape): select(*shape) for shape in shapes}
        say(f"{shape:20} {name}" for shape, name in chosen.items())
        return Outcome(0, {"schema": SCHEMA, "chosen": chosen})
    run = Run(say, processes, rounds)
    with WatchedProcess(_SECONDS) as child:
        try:
            run.all(child, shapes, search=tune)
        except KeyboardInterrupt:
            run.interrupted = True
            say([f"interrupted: {len(run.results)} of {len(shapes)} shapes have a result"] if tune else ["interrupted"])
    return run.outcome()


def _silent(lines: Iterable[str]) -> None:
    """Print nothing: with `--json` only the document is printed."""
    del lines


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _shapes(sizes: Sequence[str]) -> list[Shape]:
    if len(sizes) == 3 and all(each.isdecimal() for each in sizes):
        sizes = ("x".join(sizes),)
    found: list[Shape] = []
    for text in (part.strip() for size in sizes for part in size.split(",")):
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise click.UsageError(f"`{text}` is not a shape: write M N K, or MxNxK,MxNxK")
        m, n, k = map(int, match.groups())
        found.append((m, n, k))
    return list(dict.fromkeys(found))


@define
class Run:
    """A tuning run and its results so far. candidates: prepared ones, both ready and rejected."""

    say: Say
    processes: int
    rounds: int
    device: str = ""
    candidates: list[Candidate] = field(factory=list[Candidate])
    results: list[Result] = field(factory=list[Result])
    interrupted: bool = False

    def all(self, child: WatchedProcess, shapes: Sequence[Shape], *, search: bool) -> None:
        """Raises ArgusError: E406, E407, E408; KeyboardInterrupt, after which `results` has those found so far."""
        if search:
            self.device = query_device_name(child)
            self.say([f"on {self.device}"])
        for each in prepare_all(list(tuning_candidates()), self.processes):
            self.candidates.append(each)
            self.say([_prepared_line(each)])
        ready = {each.name: each.path for each in self.candidates if each.state == "ready"}
        self.say([f"{len(ready)} of {len(self.candidates)} configurations are proved and compiled"])
        if search:
            for result in stored_results(self.device, search_shapes(child, shapes, ready, self.rounds)):
                self.results.append(result)
                self.say(_result_lines(result))
            self.say([f"stored in {tuning_db.file_of(self.device)}"])

    def outcome(self) -> Outcome:
        wrong = sorted({name for result in self.results for name in result.timed.wrong})
        document: dict[str, object] = {
            "schema": SCHEMA,
            "device": self.device,
            "candidates": [asdict(each) for each in self.candidates],
            "results": [_result_data(result) for result in self.results],
            "wrong": wrong,
        }
        return Outcome(INTERRUPTED if self.interrupted else WRONG if wrong else 0, document)


def _prepared_line(each: Candidate) -> str:
    if each.state == "ready":
        return f"  {each.name}: proved in {each.proof:.2f} s, compiled in {each.code:.2f} s"
    return f"  {each.name}: rejected: {each.why}"


def _result_lines(result: Result) -> Iterator[str]:
    times = ", ".join(f"{regime} {took:.1f} us" for regime, took in result.found().microseconds.items())
    missed = ", ".join(f"{regime} {ratio:.3f}" for regime, ratio in result.ratios().items()) or "not timed"
    unfinished = "" if result.finished else " (not finished)"
    yield f"{_text(result.shape)}: {result.best}{unfinished}, {times}; the cost model's {result.chosen}: {missed}"
    yield from (f"  {name} computes WRONG results" for name in result.timed.wrong)
    yield from (f"  {name} failed: {why}" for name, why in result.lost.items())


def _result_data(result: Result) -> dict[str, object]:
    return {
        "shape": list(result.shape),
        "best": result.best,
        "chosen": result.chosen,
        "finished": result.finished,
        "tried": result.tried,
        "ratios": result.ratios(),
        "microseconds": {regime: dict(each) for regime, each in result.timed.medians.items()},
        "left_out": dict(result.timed.left_out),
        "wrong": list(result.timed.wrong),
        "lost": dict(result.lost),
    }
