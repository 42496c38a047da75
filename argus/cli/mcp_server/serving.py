"""The MCP server: the tools' names, arguments and descriptions. The only file that imports the package `mcp`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from argus import __version__
from argus.cli.mcp_server.tools import Tools
from argus.core.diagnostic import ArgusError, Diagnostic

_INSTRUCTIONS = """\
Argus proves the data flow of a tile-level GPU kernel written in its Python language, or refutes it by a concrete
counterexample that it has replayed. Pass each tool the whole text of a file of kernels, which begins with
`from argus.language import *`. Verify first: a refutation names the line, thread, element and sizes, and often a
repair. Then interpret the kernel at small sizes, then build it. Exit codes: 0 proved or correct, 1 refuted or wrong,
2 unknown, 3 bad input: see `diagnostics`.
The text runs in a sandbox without network or files, with a time limit."""


def server(tools: Tools) -> Any:  # noqa: ANN401 reason: of a package that may be absent
    """An `MCPServer` for these tools; `.run("stdio")` serves. Raises ArgusError: E814 without the package `mcp`."""
    try:
        package = import_module("mcp.server.mcpserver")
    except ImportError:
        message = "the package `mcp` is not installed, which serves tools to agents"
        raise ArgusError(Diagnostic("E814", "error", message, help="pip install 'argus[mcp]'")) from None
    made = package.MCPServer("argus", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")

    @made.tool()
    def verify(text: str, kernel: str = "", solver: str = "portfolio", seconds: float = 10.0) -> dict[str, Any]:
        """Prove every data-flow invariant of the kernels in a text for all sizes, or refute one by a counterexample.

        kernel: the name of one kernel; empty for all. solver: z3, cvc5, enumerate, portfolio or all. seconds: time
        limit per solver query. Answers in the schema argus.report/1: per kernel `verdict`, `findings`, `assumptions`,
        `diagnostics` with repairs, and `counterexample` (sizes, block, thread, element, chain of copies).
        """
        return tools.verify(text, kernel, solver, seconds)

    @made.tool()
    def interpret(
        text: str, sizes: dict[str, int] | None = None, kernel: str = "", seed: int = 0, reference: str = ""
    ) -> dict[str, Any]:
        """Run the kernels in a text on random inputs in the interpreter, and compare the outputs with their claims.

        sizes: by the names of the tensors' axes, default 256; keep them small. reference: the text of another kernel
        with tensors of the same names; its outputs on the same inputs are then the expected ones. `compared.outside`
        counts elements whose error exceeds the rounding-error bound; `compared` is null if there is no reference and
        the claims do not determine the outputs.
        """
        return tools.interpret(text, kernel, sizes or {}, seed, reference)

    @made.tool()
    def build(text: str, target: str = "", kernel: str = "", with_code: bool = False) -> dict[str, Any]:
        """Emit HIP (gfx942) or CUDA (sm_90a) for the kernels in a text and compile it, without a GPU.

        target: gfx942 or sm_90a; by default the kernel's own target. Answers with the source text, the launch
        conditions and the compiler's report: registers, spills, shared memory. with_code: also the compiled files,
        in base64.
        """
        return tools.build(text, kernel, target, with_code)

    @made.tool()
    def suggest_invariants(text: str, kernel: str = "", seconds: float = 10.0) -> dict[str, Any]:
        """Propose invariants for the kernels in a text: each is proved and rules out some mutants of the kernel.

        `found` has lines to paste, the best first, each with its place in the text.
        """
        return tools.suggest_invariants(text, kernel, seconds)

    @made.tool()
    def search_knowledge(words: str, target: str = "", most: int = 5) -> dict[str, Any]:
        """Search for techniques that make kernels faster, and for practices of families, the closest match first.

        words: what is slow or wanted, such as `bank conflicts of shared memory`. target: gfx942, sm_90a, or empty
        for both. Each technique has its intent, where it applies, the invariants it needs, its effect, and the
        experiment that supports it. Practices say what was tried on attention, decode, rows, experts and
        convolutions, where it gained and where it lost.
        """
        return tools.search_knowledge(words, target, most)

    @made.tool()
    def optimise(problem: str, target: str = "sm_90a", seconds: float = 60.0, trials: int = 20) -> dict[str, Any]:
        """Search for the fastest proved design of a problem, such as `gemm:4096x4096x4096:bf16`.

        seconds, trials: limits of the search. `best` is a design's name with its time, measured if there is a GPU and
        predicted otherwise; `judged` lists each candidate with the stage it reached, and its counterexample if it was
        refuted. `argus optimize --resume` continues the run named by `run`.
        """
        return tools.optimise(problem, target, seconds, trials)

    for handler in (verify, interpret, build, suggest_invariants, search_knowledge, optimise):
        assert callable(handler)
    return made
