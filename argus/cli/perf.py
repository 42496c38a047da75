"""`argus perf`: predicts a kernel's time from its machine code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from argus.cli.options import json_option, load_seconds_option
from argus.cli.run import parsed_sizes
from argus.cli.screen import Screen
from argus.report.command_result import Outcome
from argus.runtime.machine.performance import MACHINE, Performance, performance
from argus.verifier.loader import load

SCHEMA = "argus.perf/1"


@click.command("perf")
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--sizes", callback=parsed_sizes, default="", metavar="M=8,N=16", help="Sizes; default 256.")
@click.option(
    "--machine", default=MACHINE, show_default=True, help="MI300X, MI325X, or MI355X (the same code with its rates)."
)
@load_seconds_option
@json_option
def perf(file: str, sizes: dict[str, int], machine: str, load_seconds: float, as_json: bool) -> Outcome:
    """Predict the time of every kernel of FILE from its machine code, the unit that limits it, and the line.

    For kernels of gfx942. Nothing is verified or run.
    """
    exported = load(file, seconds=load_seconds)
    programs = dict.fromkeys(each.program for each in exported if each.program is not None)
    kernels = [each.trace(seconds=load_seconds) for each in exported if each.program is None]
    launched = [step.kernel for each in programs for step in each.launches]
    every = list(dict.fromkeys((*kernels, *launched)))
    meant = [each for each in every if each.target.name == "gfx942"] or every
    found = [performance(each, sizes, machine) for each in meant]
    if not as_json:
        for each in found:
            Screen().lines(_lines(each))
    return Outcome(0, {"schema": SCHEMA, "kernels": [_data(each) for each in found]})


def _lines(found: Performance) -> Iterator[str]:
    made, described = found.predicted, found.descriptor
    on = ", ".join((found.machine, *(f"{name}={value}" for name, value in found.sizes.items())))
    yield f"{found.kernel} on {on}: {made.microseconds:,.1f} us, limited by `{made.limit}`"
    if made.flops:
        yield f"  products        {made.tflops:,.0f} TFLOP/s at {made.clock:,.0f} MHz, all matrix instructions counted"
    yield f"  busy            {_shares(made.busy)}"
    yield f"  critical path   {_shares(made.path)}"
    yield (
        f"  resources       {described.vgprs} VGPRs, {described.agprs} AGPRs, {described.lds_bytes:,} bytes of LDS, "
        f"{described.scratch_bytes} bytes of scratch a lane; {made.resident} workgroups a compute unit "
        f"({made.occupancy_limit})"
    )
    for line in found.lines:
        yield f"  {line.share:>4.0%} at          {line.place}: `{line.instruction}`"


def _shares(shares: Mapping[str, float]) -> str:

    return ", ".join(f"{name} {share:.0%}" for name, share in shares.items())


def _data(found: Performance) -> dict[str, object]:
    made, described = found.predicted, found.descriptor
    return {
        "kernel": found.kernel,
        "machine": found.machine,
        "sizes": dict(found.sizes),
        "microseconds": made.microseconds,
        "megahertz": made.clock,
        "tflops": made.tflops,
        "limit": made.limit,
        "busy": dict(made.busy),
        "path": dict(made.path),
        "lines": [{"place": e.place, "share": e.share, "instruction": e.instruction} for e in found.lines],
        "resources": {
            "vgprs": described.vgprs,
            "agprs": described.agprs,
            "lds_bytes": described.lds_bytes,
            "scratch_bytes": described.scratch_bytes,
            "workgroups": made.resident,
            "occupancy_limit": made.occupancy_limit,
        },
        "notes": list(made.notes),
    }
