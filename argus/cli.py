"""The command line. Each command returns its exit code and its JSON document; `main` alone reports what goes wrong.

Exit codes: 0 proved, or right; 1 refuted, or wrong; 2 unknown, vacuous, or an output without an assertion; 3 usage,
input or an ill-formed program; 4 a bug in Argus; 130 interrupted; 141 the reader of the output has gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO, cast

import click

from argus import __version__, demo, doctor
from argus.annotate_cli import annotate_command
from argus.api import build as build_kernel
from argus.bench_cli import bench
from argus.certify_cli import certify
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.query import Budget
from argus.core.verdict import Report
from argus.kb_cli import knowledge
from argus.layout_cli import layout
from argus.loader import SECONDS, load
from argus.mcp_cli import mcp
from argus.optimize_cli import optimize_command
from argus.outcome import Outcome
from argus.pictures import check_ending
from argus.render import to_json
from argus.report_cli import report
from argus.report_files import write_picture, write_sarif
from argus.report_json import SCHEMA, program_json, report_json
from argus.run_cli import run
from argus.screen import Screen, on_stderr
from argus.solver_choice import resolve
from argus.solver_cli import add_to
from argus.solvers.cache import Cache, default_folder
from argus.sources import read_source
from argus.suggest_cli import suggest
from argus.summary import BUILD_SCHEMA, artifact_json, artifact_lines, program_lines
from argus.tune_cli import gemm
from argus.verify_program import Asked

REFUTED, OPEN, BAD_INPUT, INTERNAL, INTERRUPTED, READER_GONE = 1, 2, 3, 4, 130, 141

LONGEST_SECONDS = 86_400


def _seconds(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if 0 < value <= LONGEST_SECONDS:
        return value
    raise click.BadParameter(f"expected a number above 0 and at most {LONGEST_SECONDS}, found {value:g}")


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
_load_seconds = click.option(
    "--load-seconds",
    type=float,
    callback=_seconds,
    default=SECONDS,
    show_default=True,
    help="Longest time to load and to trace.",
)


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="argus", message="%(prog)s %(version)s")
def commands() -> None:
    """GPU kernels in Python whose data flow is proved, or refuted by a replayed counterexample."""


@commands.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option(
    "--solver", default="portfolio", show_default=True, help="z3, cvc5, enumerate, portfolio, all, or a name."
)
@click.option(
    "--seconds",
    type=float,
    callback=_seconds,
    default=Budget().seconds,
    show_default=True,
    help="Longest time a question.",
)
@click.option("--no-cache", is_flag=True, help="Neither use nor keep answers on disk.")
@click.option(
    "-v", "--all-invariants", is_flag=True, help="List every invariant, also those that do not apply, and why."
)
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write the diagnostics to FILE, as SARIF 2.1.0.")
@click.option("--svg", "picture_file", metavar="FILE", help="Draw the first counterexample's tile to FILE.svg.")
@_load_seconds
@_json
def verify(
    file: str,
    solver: str,
    seconds: float,
    no_cache: bool,
    all_invariants: bool,
    sarif_file: str | None,
    picture_file: str | None,
    load_seconds: float,
    as_json: bool,
) -> Outcome:
    """Prove every kernel of FILE (or of a module such as argus.kernels.gemm), or refute it.

    A program is proved launch by launch, each with what those before it proved of its tensors.
    """
    if picture_file is not None:
        check_ending(picture_file)
    exported = load(file, seconds=load_seconds)
    kernels = [each.trace(seconds=load_seconds) for each in exported]
    asked = Asked(resolve(solver), Budget(seconds=seconds), None if no_cache else Cache())
    reports: list[Report] = []
    for each, kernel in zip(exported, kernels, strict=True):
        reports.append(asked.report(each, kernel))
        if not as_json:
            Screen().lines([""] if len(reports) > 1 else [])
            Screen().report(reports[-1], every_invariant=all_invariants)
    programs = asked.programs
    notes = [] if as_json else [line for report in programs for line in ("", *program_lines(report))]
    notes += [] if sarif_file is None else [write_sarif(reports, sarif_file, version=__version__)]
    notes += [] if picture_file is None else [write_picture(asked.drawn(exported, kernels), reports, picture_file)]
    Screen().lines([] if as_json else notes)
    document: dict[str, object] = {"kernels": [report_json(r) for r in reports]}
    document |= {"programs": [program_json(r) for r in programs]} if programs else {}
    return Outcome(_worst([report.exit_code for report in reports]), document)


def _worst(codes: Sequence[int]) -> int:
    """1 if any kernel is refuted, else 2 if any is open, else 0."""
    return next((code for code in (REFUTED, OPEN) if code in codes), 0)


@commands.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--target", required=True, help="The machine, such as gfx942.")
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder that the files go to.")
@_load_seconds
@_json
def build(file: str, target: str, output: str, load_seconds: float, as_json: bool) -> Outcome:
    """Emit and compile every kernel of FILE, and print what each costs. It does not verify them."""
    kernels = [each.trace(seconds=load_seconds) for each in load(file, seconds=load_seconds)]
    meant = [kernel for kernel in kernels if kernel.target.name == target] or kernels
    artifacts = [build_kernel(kernel, target, output) for kernel in meant]
    if not as_json:
        for artifact in artifacts:
            for warning in artifact.warnings:
                Screen().diagnostic(warning)
            Screen().lines(artifact_lines(artifact))
    return Outcome(0, {"schema": BUILD_SCHEMA, "kernels": [artifact_json(artifact) for artifact in artifacts]})


@commands.command(name="doctor")
@_json
def examine(as_json: bool) -> Outcome:
    """Say what is installed, what is missing, and how to mend it."""
    checks = doctor.examine()
    if not as_json:
        Screen().lines(doctor.table(checks))
    return Outcome(0, doctor.as_json(checks))


@commands.command(name="demo")
@click.option("-o", "--output", default="build/demo", show_default=True, metavar="DIR", help="Where artefacts go.")
def show(output: str) -> Outcome:
    """Prove the shipped GEMM, refute a broken twin, interpret it, and compile it."""
    return Outcome(demo.run(Screen(), Path(output)), {})


commands.add_command(certify)
commands.add_command(knowledge)
commands.add_command(layout)
commands.add_command(report)
commands.add_command(run)
commands.add_command(optimize_command)
commands.add_command(suggest)
commands.add_command(annotate_command)
commands.add_command(mcp)
add_to(commands)
bench.add_command(gemm)


# -- what goes wrong -----------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Raises nothing for what the user, files or the reader of the output do."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.stdout, sys.stderr = _writable(sys.stdout), _writable(sys.stderr)
    try:
        code = _guarded(given)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon(sys.stdout)
        return READER_GONE
    except OSError as problem:
        _abandon(sys.stdout)
        on_stderr().file.write(f"argus: cannot write to the output: {problem.strerror}\n")
        return BAD_INPUT
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    return code


def _writable(stream: TextIO | None) -> TextIO:
    """A stream that takes every character; one that was closed before we started takes and keeps nothing."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    wrapper: object = stream
    if isinstance(wrapper, TextIOWrapper):
        wrapper.reconfigure(errors="backslashreplace")
    return stream


def _abandon(stream: TextIO) -> None:
    """Let the interpreter's last flush go nowhere, where the stream is a real one."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _guarded(given: list[str]) -> int:
    as_json = "--json" in given
    try:
        outcome = _ran(given, as_json)
    except ArgusError as problem:
        outcome = _refused(problem.diagnostic, as_json)
    except click.ClickException as problem:
        outcome = _refused(_usage(problem), as_json)
    except OSError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: the outermost frame; anything else is a bug of ours, and saved
        outcome = _failed(problem, given, as_json)
    if as_json and outcome.document:
        document = {"schema": SCHEMA, "version": __version__, **outcome.document, "exit_code": outcome.code}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return outcome.code


def _ran(given: list[str], as_json: bool) -> Outcome:
    # What a kernel file prints while it is loaded must not get into the document.
    aside = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    try:
        with aside, commands.make_context("argus", given) as context:
            return cast(Outcome, commands.invoke(context))
    except click.exceptions.Exit as done:
        return Outcome(done.exit_code, {})


def _usage(problem: click.ClickException) -> Diagnostic:
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    command = context.command_path if context is not None else "argus"
    message = problem.format_message().rstrip(".")
    return Diagnostic("E701", "error", message[:1].lower() + message[1:], help=f"see `{command} --help`")


def _refused(diagnostic: Diagnostic, as_json: bool) -> Outcome:
    if not as_json:
        Screen(on_stderr()).diagnostic(diagnostic)
    return Outcome(BAD_INPUT, {"kernels": [], "diagnostics": [to_json(diagnostic)]})


def _failed(problem: Exception, given: Sequence[str], as_json: bool) -> Outcome:
    message = str(problem) or type(problem).__name__
    first = message.splitlines()[0]
    saved = _save(problem, given)
    if not as_json:
        Screen(on_stderr()).lines(
            [
                f"internal error: {first}",
                "  This is a bug in Argus, not in your kernel: nothing was proved or refuted by this run.",
                "  Please report it, with the file that holds all it takes to repeat it:",
                f"  {saved}",
            ]
        )
    return Outcome(INTERNAL, {"kernels": [], "diagnostics": [], "internal_error": {"message": message, "saved": saved}})


def _save(problem: Exception, given: Sequence[str]) -> str:
    """Write what repeats the failure into the user's cache; the path, or why there is none."""
    trace = "".join(traceback.format_exception(problem))
    text = f"argus {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text += f"command: argus {shlex.join(given)}\n\n{trace}\n" + "".join(_sources(given))
    path = default_folder() / "internal-errors" / f"{sha256(text.encode()).hexdigest()[:16]}.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as full:
        return f"(not saved: {path.parent}: {full.strerror})"
    return str(path)


def _sources(given: Sequence[str]) -> Iterator[str]:
    """The text of each file that the command names."""
    for argument in given:
        for name in dict.fromkeys((argument, argument.rpartition(":")[0])):
            text = read_source(name) if name and Path(name).is_file() else None
            if text is not None:
                yield f"file: {Path(name).absolute()}\n\n{text}\n"
