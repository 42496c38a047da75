"""The table of `argus` commands by name."""

from __future__ import annotations

import click

from argus import __version__
from argus.cli.lazy import LazyCommand, LazyGroup


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    lazy={
        "solvers": LazyCommand("argus.cli.bench.command", "solvers", "Compare solvers on the verifier's queries."),
        "kernelbench": LazyCommand("argus.cli.bench.kernelbench", "kernelbench", "Run problems of KernelBench."),
        "gemm": LazyCommand(
            "argus.cli.tune", "gemm", "Show which configuration a product gets, or search for the fastest."
        ),
    },
)
def bench() -> None:
    """Compare solvers, or GEMM configurations; run KernelBench."""


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    lazy={
        "annotate": LazyCommand("argus.cli.annotate", "annotate_command", "Insert proved claims into a kernel file."),
        "bench": LazyCommand("argus.cli.commands", "bench", "Compare solvers, or configurations of GEMM."),
        "build": LazyCommand("argus.cli.build", "build", "Emit and compile every kernel of a file."),
        "certify": LazyCommand(
            "argus.cli.certify", "certify", "Re-check the output of `argus optimize --out` from scratch."
        ),
        "conformance": LazyCommand("argus.cli.solvers", "conform", "Run the conformance suite on a solver."),
        "demo": LazyCommand(
            "argus.cli.demo.command", "demo", "Prove a GEMM, refute a broken copy, run it, compile it."
        ),
        "completion": LazyCommand("argus.cli.completion", "completion", "Print a script for completion in a shell."),
        "doctor": LazyCommand("argus.cli.doctor", "doctor", "Show what is installed, what is missing, how to fix it."),
        "kb": LazyCommand("argus.cli.kb", "knowledge", "List, show, check and mine optimisation techniques."),
        "layout": LazyCommand("argus.cli.layout", "layout", "Draw layouts in CuTe's notation."),
        "man": LazyCommand("argus.cli.man", "man", "Print the manual page."),
        "mcp": LazyCommand("argus.cli.mcp", "mcp", "Serve Argus to an agent over stdio (Model Context Protocol)."),
        "optimize": LazyCommand(
            "argus.cli.optimize", "optimize_command", "Search for the fastest proved design of a problem."
        ),
        "perf": LazyCommand("argus.cli.perf", "perf", "Predict a kernel's time from its machine code."),
        "query": LazyCommand("argus.cli.solvers", "query", "Export and check queries as SMT-LIB scripts."),
        "report": LazyCommand("argus.cli.report", "report", "Write a search run as a web page."),
        "run": LazyCommand("argus.cli.run", "run", "Run a kernel on random inputs and check what it computes."),
        "sanitize": LazyCommand(
            "argus.cli.sanitize", "sanitize_command", "Run a kernel of a gfx942 code object on the CPU under checks."
        ),
        "suggest": LazyCommand("argus.cli.suggest", "suggest", "Propose claims that hold for a file's kernels."),
        "validate": LazyCommand(
            "argus.cli.validate", "validate", "Execute emitted text on the CPU and compare it with the interpreter."
        ),
        "verify": LazyCommand("argus.cli.verify", "verify", "Prove or refute every kernel of a file."),
    },
)
@click.version_option(__version__, prog_name="argus", message="%(prog)s %(version)s")
def commands() -> None:
    """GPU kernels in Python whose data flow is proved, or refuted by a replayed counterexample."""
