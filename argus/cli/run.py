"""`argus run`: runs a kernel on the GPU or in the interpreter, and checks its results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

import click

from argus.cli.run_text import as_data, lines, where
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.report.command_result import Outcome
from argus.report.diagnostic_text import to_json
from argus.runtime.run import On, RunResult, runs_on_gpu
from argus.runtime.run import run as run_kernel
from argus.verifier.loader import Exported, load

SCHEMA = "argus.run/1"
WRONG = 1
LONGEST_SECONDS = 86_400


def parsed_sizes(_context: click.Context, _parameter: click.Parameter, text: str) -> dict[str, int]:
    """Parse sizes such as `M=8,N=16`."""
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*([0-9]{1,10})\s*", part)
        if match is None or match[1] in found:
            raise click.BadParameter(f"expected sizes such as M=8,N=16, each once, found {text[:60]}")
        found[match[1]] = int(match[2])
    return found


@click.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--config", metavar="NAME", help="Configuration of a family; default: the first that the GPU runs.")
@click.option("--sizes", callback=parsed_sizes, default="", metavar="M=8,N=16", help="Sizes by name; default 256.")
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
    help="Time limit on the GPU.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def run(
    file: str, config: str | None, sizes: dict[str, int], seed: int, on: On, seconds: float, as_json: bool
) -> Outcome:
    """Run a kernel of FILE (or of a module such as argus.kernels.gemm) on random inputs, and check its results."""
    kernel = _chosen(load(file), config, file)
    ran = run_kernel(kernel, sizes, seed=seed, on=on, seconds=seconds)
    wrong = _wrong(ran)
    if not as_json:
        if wrong is not None:
            Screen().diagnostic(wrong)
        Screen().lines(lines(ran))
    return Outcome(0 if wrong is None else WRONG, {"schema": SCHEMA, "run": as_data(ran), "diagnostics": _data(wrong)})


def _chosen(exported: Sequence[Exported], config: str | None, file: str) -> Kernel:
    """The named configuration, else the first that the GPU can run, else the first. Raises ArgusError (E005)."""
    meant = [each for each in exported if config is None or each.config == config]
    if not meant:
        known = [each.config for each in exported if each.config]
        message = f"`{file}` has no configuration `{config}`, found {', '.join(known) or 'none'}"
        nearest = get_close_matches(config or "", known, n=1)
        advice = f"did you mean `--config {nearest[0]}`?" if nearest else "choose one of these, or leave it out"
        raise ArgusError(Diagnostic("E005", "error", message, help=advice))
    if len(meant) == 1:
        return meant[0].trace()
    kernels = [each.trace() for each in meant]
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
    advice = f"verify it first; `--seed {ran.seed}` repeats the inputs"
    return Diagnostic("E412", "error", message, facts=facts, help=advice, kernel=ran.kernel)


def _data(wrong: Diagnostic | None) -> list[object]:
    return [] if wrong is None else [to_json(wrong)]
