"""Runs a command and reports its errors. Each command returns an exit code of `EXIT_CODES` and a JSON document."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO, cast

import click

from argus import __version__
from argus.cli.commands import commands
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.command_result import Outcome

BAD_INPUT, INTERNAL, INTERRUPTED, READER_GONE = 3, 4, 130, 141
SCHEMA = "argus.report/1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors of the user, of files and of the output raise nothing."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.stdout, sys.stderr = _writable(sys.stdout), _writable(sys.stderr)
    try:
        with warnings.catch_warnings():
            # Python hides this category outside of the main script, which a kernel file is not.
            warnings.filterwarnings("default", message="`argus", category=DeprecationWarning)
            code = _run_and_report(given)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon(sys.stdout)
        return READER_GONE
    except OSError as problem:
        _abandon(sys.stdout)
        sys.stderr.write(f"argus: cannot write to the output: {problem.strerror}\n")
        return BAD_INPUT
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    return code


def _writable(stream: TextIO | None) -> TextIO:
    """The stream with unencodable characters escaped; /dev/null in place of a stream closed before start-up."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    wrapper: object = stream
    if isinstance(wrapper, TextIOWrapper):
        wrapper.reconfigure(errors="backslashreplace")
    return stream


def _abandon(stream: TextIO) -> None:
    """Redirect the stream to /dev/null, so that the interpreter's last flush cannot fail."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _run_and_report(given: list[str]) -> int:
    as_json = "--json" in given
    try:
        outcome = _invoke(given, as_json)
    except ArgusError as problem:
        outcome = _report_bad_input(problem.diagnostic, as_json)
    except click.ClickException as problem:
        outcome = _report_bad_input(_usage(problem), as_json)
    except OSError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: the outermost frame; anything else is a bug in Argus, and is saved
        outcome = _report_internal_error(problem, given, as_json)
    if as_json and outcome.document:
        document = {"schema": SCHEMA, "version": __version__, **outcome.document, "exit_code": outcome.code}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return outcome.code


def _invoke(given: list[str], as_json: bool) -> Outcome:
    # Output that a kernel file prints while it is loaded must not get into the JSON document.
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


def _report_bad_input(diagnostic: Diagnostic, as_json: bool) -> Outcome:
    from argus.cli.screen import Screen, on_stderr  # noqa: PLC0415 reason: start-up time, and most commands succeed
    from argus.report.diagnostic_text import to_json  # noqa: PLC0415 reason: as above

    if not as_json:
        Screen(on_stderr()).diagnostic(diagnostic)
    return Outcome(BAD_INPUT, {"kernels": [], "diagnostics": [to_json(diagnostic)]})


def _report_internal_error(problem: Exception, given: Sequence[str], as_json: bool) -> Outcome:
    from argus.cli.internal_error import save  # noqa: PLC0415 reason: start-up time, and internal errors are rare
    from argus.cli.screen import Screen, on_stderr  # noqa: PLC0415 reason: as above

    message = str(problem) or type(problem).__name__
    first = message.splitlines()[0]
    saved = save(problem, given)
    if not as_json:
        Screen(on_stderr()).lines(
            [
                f"internal error: {first}",
                "  This is a bug in Argus, not in your kernel: nothing was proved or refuted by this run.",
                "  Please report it, with this file, which has everything needed to reproduce it:",
                f"  {saved}",
            ]
        )
    return Outcome(INTERNAL, {"kernels": [], "diagnostics": [], "internal_error": {"message": message, "saved": saved}})
