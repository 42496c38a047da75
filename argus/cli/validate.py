"""`argus validate`: executes emitted text, or machine code, on the CPU and compares it with the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click
from attrs import asdict

from argus.cli.options import json_option, load_seconds_option
from argus.cli.run import parsed_sizes
from argus.cli.screen import Screen
from argus.core.diagnostic import Diagnostic
from argus.report.command_result import Outcome
from argus.report.diagnostic_text import to_json
from argus.runtime.cpu.launch import GIBIBYTES
from argus.runtime.cpu.programs import validate_program
from argus.runtime.cpu.validate import SECONDS, SEEDS, Trial, Validation
from argus.runtime.cpu.validate import validate as validate_kernel
from argus.runtime.machine.validate import validate_code
from argus.verifier.loader import load

SCHEMA = "argus.validate/1"
WRONG = 1
_SHOWN = 8


@click.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--sizes", callback=parsed_sizes, default="", metavar="M=8,N=16", help="Sizes; default: several small.")
@click.option("--seeds", type=click.IntRange(1, 10_000), default=SEEDS, show_default=True, help="Runs at each sizes.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=SECONDS,
    show_default=True,
    help="Time limit of one run.",
)
@click.option(
    "--memory",
    type=click.FloatRange(0, 4096, min_open=True),
    metavar="GIB",
    default=GIBIBYTES,
    show_default=True,
    help="Memory limit of one run, beside its tensors.",
)
@click.option(
    "--level",
    type=click.Choice(["text", "machine"]),
    default="text",
    show_default=True,
    help="What is executed: emitted text, or the compiled machine code (gfx942).",
)
@load_seconds_option
@json_option
def validate(
    file: str,
    sizes: dict[str, int],
    seeds: int,
    seconds: float,
    memory: float,
    level: str,
    load_seconds: float,
    as_json: bool,
) -> Outcome:
    """Execute the emitted text of every kernel and program of FILE on the CPU, and compare it with the interpreter."""
    exported = load(file, seconds=load_seconds)
    programs = list(dict.fromkeys(each.program for each in exported if each.program is not None))
    kernels = [each.trace(seconds=load_seconds) for each in exported if each.program is None]
    given = [sizes] if sizes else ()
    if level == "machine":
        launched = [step.kernel for each in programs for step in each.launches]
        found = [validate_code(each, given, seeds=seeds) for each in dict.fromkeys((*kernels, *launched))]
    else:
        found = [
            *(validate_kernel(each, given, seeds=seeds, seconds=seconds, gibibytes=memory) for each in kernels),
            *(validate_program(each, given, seeds=seeds, seconds=seconds, gibibytes=memory) for each in programs),
        ]
    what = "machine code" if level == "machine" else "emitted text"
    wrong = [diagnostic for each in found if (diagnostic := _wrong(each, what)) is not None]
    if not as_json:
        for diagnostic in wrong:
            Screen().diagnostic(diagnostic)
        for each in found:
            Screen().lines(_lines(each))
    data = {"schema": SCHEMA, "kernels": [_data(each) for each in found]}
    return Outcome(WRONG if wrong else 0, {**data, "diagnostics": [to_json(each) for each in wrong]})


def _wrong(found: Validation, executed: str) -> Diagnostic | None:
    """E415 with the first trial that failed. executed: what was, in words."""
    trial = next((each for each in found.trials if not each.right), None)
    if trial is None:
        return None
    message = f"the {executed} of `{found.kernel}` fails: {_what(trial)}"
    facts = (
        ("launch", _shown(trial.sizes)),
        ("seed", str(trial.seed)),
        *((("text", f"{trial.text} of {_texts(found)} that a build chooses from"),) if _texts(found) > 1 else ()),
        *((each.kind, f"line {each.line}: {each.where} {each.what}") for each in trial.findings[:_SHOWN]),
    )
    repair = "verify the kernel; if it is proved, report this as a bug of the emitter"
    if trial.limit is not None:
        option = "--seconds" if trial.limit == "time" else "--memory"
        repair = f"give a higher `{option}`, or smaller `--sizes`; if neither helps, {repair}"
    return Diagnostic("E415", "error", message, facts=facts, help=repair, kernel=found.kernel)


def _texts(found: Validation) -> int:
    return max((each.text for each in found.trials), default=1)


def _what(trial: Trial) -> str:
    if trial.difference is not None:
        each = trial.difference
        at = ", ".join(map(str, each.index))
        return f"`{each.tensor}`[{at}] is {each.found}, expected {each.expected}; {each.count:,} elements differ"
    if trial.ended:
        return trial.ended
    return f"{trial.findings[0].where} {trial.findings[0].what}"


def _lines(found: Validation) -> Iterator[str]:
    wrong = sum(not each.right for each in found.trials)
    exact = all(each.exact for each in found.trials)
    yield f"{found.kernel} ({found.target}): {f'{wrong} of {len(found.trials)} runs fail' if wrong else 'agrees'}"
    yield f"  runs            {len(found.trials)}, at {'; '.join(dict.fromkeys(_shown(t.sizes) for t in found.trials))}"
    if _texts(found) > 1:
        yield f"  texts           {_texts(found)}, of which a build takes the one with fewer registers in memory"
    yield f"  compared        {sum(t.elements for t in found.trials):,} elements, {_how(exact)}"
    yield f"  time            {found.seconds[0]:.2f} s to build, {found.seconds[1]:.2f} s to run and compare"


def _how(exact: bool) -> str:
    return "bit for bit" if exact else "within the bound of rounding"


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "fixed sizes"


def _data(found: Validation) -> dict[str, object]:
    return {
        "kernel": found.kernel,
        "target": found.target,
        "right": found.right,
        "seconds": list(found.seconds),
        "trials": [{**asdict(each), "right": each.right} for each in found.trials],
    }
