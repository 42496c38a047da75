"""`argus sanitize`: runs a kernel of a gfx942 code object that any compiler made, and reports what it does wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import click

from argus import __version__
from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.interp.gfx942.code_object import damaged
from argus.interp.gfx942.launch import LIMIT
from argus.report.command_result import Outcome
from argus.report.diagnostic_text import to_json
from argus.report.files import write_sarif
from argus.report.sarif import Located
from argus.runtime.machine.sanitize import Sanitized, sanitize
from argus.runtime.machine.spec import read_spec

SCHEMA = "argus.sanitize/1"
TARGET = "gfx942"
WRONG = 1


@click.command(name="sanitize")
@click.argument("code_object", metavar="CODE_OBJECT")
@click.option("--kernel", required=True, metavar="NAME", help="Kernel of the code object.")
@click.option("--args", "spec_file", required=True, metavar="SPEC.json", help="Grid, block, LDS and arguments.")
@click.option("--seed", type=click.IntRange(0, 1 << 32), default=0, show_default=True, help="Of the order of waves.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1 << 40),
    default=LIMIT,
    show_default=True,
    help="Instructions that one wave may execute.",
)
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write the findings to FILE as SARIF 2.1.0.")
@json_option
def sanitize_command(
    code_object: str, kernel: str, spec_file: str, seed: int, limit: int, sarif_file: str | None, as_json: bool
) -> Outcome:
    """Execute a kernel of CODE_OBJECT (gfx942) on the CPU, instruction by instruction, and check what it does."""
    data, spec = _read(Path(code_object)), read_spec(Path(spec_file))
    start = perf_counter()
    found = sanitize(data, kernel, spec, seed=seed, limit=limit)
    seconds = perf_counter() - start
    located = [Located(kernel, TARGET, each) for each in found.diagnostics]
    note = [] if sarif_file is None else [write_sarif(located, sarif_file, version=__version__)]
    if not as_json:
        for each in found.diagnostics:
            Screen().diagnostic(each)
            Screen().lines([""])
        Screen().lines([*_lines(found, seconds), *note])
    document: dict[str, object] = {
        "schema": SCHEMA,
        "kernel": kernel,
        "target": TARGET,
        "right": not found.diagnostics,
        "seed": seed,
        "instructions": found.instructions,
        "compared_elements": found.elements,
        "seconds": seconds,
        "diagnostics": [to_json(each) for each in found.diagnostics],
    }
    return Outcome(WRONG if found.diagnostics else 0, document)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise damaged(f"{path}: {error.strerror}") from error


def _lines(found: Sanitized, seconds: float) -> Iterator[str]:
    count = len(found.diagnostics)
    yield f"{found.kernel} ({TARGET}): {f'{count} found' if count else 'nothing found'}"
    yield f"  executed        {found.instructions:,} wave-instructions in {seconds:.2f} s"
    yield f"  compared        {found.elements:,} elements with expected ones"
