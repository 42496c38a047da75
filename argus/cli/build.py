"""`argus build`: emits and compiles every kernel of a file."""

from __future__ import annotations

import click

from argus.cli.options import json_option, load_seconds_option
from argus.cli.screen import Screen
from argus.emit.cuda.nvdisasm import INSTALL
from argus.report.command_result import Outcome
from argus.report.summary import BUILD_SCHEMA, artifact_json, artifact_lines
from argus.verifier.api import build as build_kernel
from argus.verifier.loader import load


@click.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--target", required=True, help="Target architecture, such as gfx942.")
@click.option("-o", "--output", required=True, metavar="DIR", help="Output folder.")
@load_seconds_option
@json_option
def build(file: str, target: str, output: str, load_seconds: float, as_json: bool) -> Outcome:
    """Emit and compile every kernel of FILE, and print its resource use and where the compiler broke the schedule.

    Does not verify the kernels.
    """
    kernels = [each.trace(seconds=load_seconds) for each in load(file, seconds=load_seconds)]
    meant = [kernel for kernel in kernels if kernel.target.name == target] or kernels
    artifacts = [build_kernel(kernel, target, output, read_code=True) for kernel in meant]
    if not as_json:
        for artifact in artifacts:
            for warning in artifact.warnings:
                Screen().diagnostic(warning)
            Screen().lines(artifact_lines(artifact))
            if artifact.target == "sm_90a" and artifact.machine_code is None:
                Screen().lines([f"  machine code not read: no disassembler ({INSTALL})"])
    return Outcome(0, {"schema": BUILD_SCHEMA, "kernels": [artifact_json(artifact) for artifact in artifacts]})
