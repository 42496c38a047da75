"""`argus run`: runs a kernel on the GPU or in the interpreter, and checks its results."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

import click

from argus.cli.run_text import as_data, lines, verdict_line, where
from argus.cli.screen import Screen
from argus.cli.waiting import waiting
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel, Program
from argus.core.verdict import ProgramReport, Proved, Refuted, Report, Verdict
from argus.report.command_result import Outcome
from argus.report.diagnostic_text import to_json
from argus.report.summary import results as verdict_results
from argus.report.summary import verdict_word
from argus.runtime.run import On, RunResult, runs_on_gpu
from argus.runtime.run import run as run_kernel
from argus.runtime.run_references import load_reference
from argus.solvers.cache import Cache
from argus.verifier.kernel import verify
from argus.verifier.limits import time_limit
from argus.verifier.loader import Exported, load
from argus.verifier.program import verify_program

SCHEMA = "argus.run/1"
WRONG, OPEN = 1, 2
LONGEST_SECONDS = 86_400
LARGEST_SIZE = 2**31 - 1


def parsed_sizes(_context: click.Context, _parameter: click.Parameter, text: str) -> dict[str, int]:
    """Parse sizes such as `M=8,N=16`."""
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(-?[0-9]+)\s*", part)
        if match is None or match[1] in found:
            raise click.BadParameter(f"expected sizes such as M=8,N=16, each once, found {text[:60]}")
        if len(match[2]) > len(str(LARGEST_SIZE)) or not 0 <= int(match[2]) <= LARGEST_SIZE:
            raise click.BadParameter(f"{match[1]} = {match[2][:20]} is out of range, expected 0 to {LARGEST_SIZE}")
        found[match[1]] = int(match[2])
    return found


@click.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--config", metavar="NAME", help="Configuration of a family; default: the first that the GPU runs.")
@click.option(
    "--sizes",
    callback=parsed_sizes,
    default="",
    metavar="M=8,N=16",
    help="Sizes by name; default 256, or what the assumptions ask.",
)
@click.option(
    "--reference",
    metavar="FILE:FUNCTION",
    help="Compare with this function of float64 arrays by name, which returns an array, or a dict of outputs.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the inputs.")
@click.option(
    "--on",
    type=click.Choice(["auto", "gpu", "interpreter"]),
    default="auto",
    show_default=True,
    help="auto: the GPU if it can run the kernel, else the interpreter.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, LONGEST_SECONDS, min_open=True),
    default=60.0,
    show_default=True,
    help="Time limit of the run, on the GPU or in the interpreter.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def run(
    file: str,
    config: str | None,
    sizes: dict[str, int],
    reference: str | None,
    seed: int,
    on: On,
    seconds: float,
    as_json: bool,
) -> Outcome:
    """Run a kernel of FILE (or of a module such as argus.kernels.gemm) on random inputs, and check its results.

    A program runs whole. Exit code 1 for wrong results or a refuted kernel; 2 where an output is not compared, or the
    kernel is neither proved nor refuted.
    """
    exported = load(file)
    kernel = _chosen(exported, config, file)
    oracle = None if reference is None else load_reference(reference)
    with waiting(f"verifying {kernel.name}"):
        report = _verify(kernel)
    proved = verdict_results(report.verdict)
    longest = seconds if on == "interpreter" else 2 * seconds + _OTHER_WORK
    with waiting(f"running {kernel.name}", bar=True), _interpreted_within(longest, kernel):
        ran = run_kernel(kernel, sizes, seed=seed, on=on, seconds=seconds, reference=oracle, results=proved)
    wrong = _wrong(ran)
    refuted = next((each for each in _diagnostics(report) if each.severity == "error"), None)
    if not as_json:
        for each in (wrong, refuted):
            if each is not None:
                Screen().diagnostic(each)
        Screen().lines([*lines(ran), verdict_line(report.verdict, _uncovered(report))])
    document: dict[str, object] = {"run": as_data(ran), "verdict": verdict_word(report.verdict)}
    found = [to_json(each) for each in (wrong, refuted) if each is not None]
    return Outcome(_code(ran, report.verdict), {"schema": SCHEMA, **document, "diagnostics": found})


@contextmanager
def _interpreted_within(seconds: float, kernel: Kernel | Program) -> Generator[None]:
    """Raises ArgusError (E410) if a run, its reference and comparison included, takes longer."""
    try:
        with time_limit(seconds, f"running `{kernel.name}`", kernel.span):
            yield
    except ArgusError as problem:
        if problem.diagnostic.code != "E006":
            raise
        message = f"`{kernel.name}` did not finish in the interpreter within {seconds:g} s"
        advice = "choose smaller sizes, or allow more time with --seconds"
        raise ArgusError(Diagnostic("E410", "error", message, help=advice, kernel=kernel.name)) from problem


_OTHER_WORK = 10.0
"""Seconds beyond the limit for what surrounds a run that may be on a GPU: its process has that limit of its own."""


def _verify(kernel: Kernel | Program) -> Report | ProgramReport:
    if isinstance(kernel, Program):
        return verify_program(kernel, cache=Cache())
    return verify(kernel, cache=Cache())


def _diagnostics(report: Report | ProgramReport) -> Iterator[Diagnostic]:
    for each in report.launches if isinstance(report, ProgramReport) else (report,):
        yield from each.diagnostics


def _uncovered(report: Report | ProgramReport) -> tuple[str, ...]:
    launches = report.launches if isinstance(report, ProgramReport) else (report,)
    return tuple(dict.fromkeys(name for each in launches for name in each.uncovered))


def _code(ran: RunResult, verdict: Verdict) -> int:
    """1 for a wrong result or a refuted kernel, 2 for an output that is not compared or a kernel not proved, else 0."""
    if isinstance(verdict, Refuted) or (ran.comparison is not None and not ran.comparison.right):
        return WRONG
    return 0 if ran.comparison is not None and not ran.uncompared and isinstance(verdict, Proved) else OPEN


def _chosen(exported: Sequence[Exported], config: str | None, file: str) -> Kernel | Program:
    """The named configuration, else the first that the GPU can run, else the first; the program of its launches.

    A launch that is named alone is run alone. Raises ArgusError (E005).
    """
    meant = [each for each in exported if config is None or each.config == config]
    if not meant:
        known = list(dict.fromkeys(each.config for each in exported if each.config))
        message = f"`{file}` has no configuration `{config}`, found {', '.join(known) or 'none'}"
        nearest = get_close_matches(config or "", known, n=1)
        advice = f"did you mean `--config {nearest[0]}`?" if nearest else "choose one of these, or leave it out"
        raise ArgusError(Diagnostic("E005", "error", message, help=advice))
    program = meant[0].program
    if program is not None and sum(each.program is program for each in meant) == len(program.launches):
        return program
    if len(meant) == 1:
        return meant[0].trace()
    kernels = [each.trace() for each in meant if each.program is None] or [meant[0].trace()]
    return next((kernel for kernel in kernels if runs_on_gpu(kernel)), kernels[0])


def _wrong(ran: RunResult) -> Diagnostic | None:
    """E412 if an element differs from the reference by more than the rounding-error bound."""
    found = ran.comparison
    if found is None or found.right:
        return None
    message = f"{found.outside:,} of {found.elements:,} elements of `{ran.kernel}` differ from {found.with_what}"
    facts = (
        ("launch", ", ".join(f"{name}={value}" for name, value in ran.sizes.items())),
        ("largest error", f"{found.worst:.3g}, where rounding may cause {found.allowed:.3g}"),
        ("run", where(ran)),
    )
    advice = f"`argus verify` names the statement if it is refuted; `--seed {ran.seed}` repeats the inputs"
    return Diagnostic("E412", "error", message, facts=facts, help=advice, kernel=ran.kernel)
