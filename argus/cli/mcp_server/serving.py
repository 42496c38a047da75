"""The server: the tools with their names, arguments and descriptions. The one file that loads the package `mcp`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from argus import __version__
from argus.cli.mcp_server.tools import Tools
from argus.core.diagnostic import ArgusError, Diagnostic

_INSTRUCTIONS = """\
Argus proves how data moves through a tile-level GPU kernel written in its Python language, or refutes it by a concrete
counterexample that has been replayed. Give each tool the whole text of a file with kernels, which begins with
`from argus.language import *`. Verify first; a refutation names the line, thread, element and sizes, and often a
repair. Then interpret it at small sizes, then build it. Exit codes: 0 proved or right, 1 refuted or wrong, 2 open,
3 refused: see `diagnostics`.
The text runs in a process without network or files, for a limited time."""


def server(tools: Tools) -> Any:  # noqa: ANN401 reason: of a package that may be absent
    """An `MCPServer` of these tools; `.run("stdio")` serves. Raises ArgusError: E814 without the package `mcp`."""
    try:
        package = import_module("mcp.server.mcpserver")
    except ImportError:
        message = "the package `mcp` is not installed, which serves tools to agents"
        raise ArgusError(Diagnostic("E814", "error", message, help="pip install 'argus[mcp]'")) from None
    made = package.MCPServer("argus", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")

    @made.tool()
    def verify(text: str, kernel: str = "", solver: str = "portfolio", seconds: float = 10.0) -> dict[str, Any]:
        """Prove every data-flow invariant of the kernels in a text for all sizes, or refute one by a counterexample.

        kernel: one of them by name; all if empty. solver: z3, cvc5, enumerate, portfolio or all. seconds: the longest
        time for one question. Answers with the schema argus.report/1: per kernel `verdict`, `findings`, `assumptions`,
        `diagnostics` with repairs, and `counterexample` (sizes, block, thread, element, chain of copies).
        """
        return tools.verify(text, kernel, solver, seconds)

    @made.tool()
    def interpret(
        text: str, sizes: dict[str, int] | None = None, kernel: str = "", seed: int = 0, reference: str = ""
    ) -> dict[str, Any]:
        """Run the kernels in a text on random inputs in the interpreter, and compare with what their claims say.

        sizes: by the names of the tensors' axes, 256 where absent; keep them small. reference: the text of another
        kernel on tensors of the same names, whose outputs on the same inputs are compared instead. `compared.outside`
        counts elements further off than rounding explains; `compared` is null where there is no reference and the
        claims do not say all of what is computed.
        """
        return tools.interpret(text, kernel, sizes or {}, seed, reference)

    @made.tool()
    def build(text: str, target: str = "", kernel: str = "", with_code: bool = False) -> dict[str, Any]:
        """Emit HIP (gfx942) or CUDA (sm_90a) for the kernels in a text and compile it, without a GPU.

        target: gfx942 or sm_90a; by default the one that the kernel is written for. Answers with the source text, the
        launch conditions and the compiler's report: registers, spills, shared memory. with_code: also the compiled
        files, in base64.
        """
        return tools.build(text, kernel, target, with_code)

    @made.tool()
    def suggest_invariants(text: str, kernel: str = "", seconds: float = 10.0) -> dict[str, Any]:
        """Propose invariants for the kernels in a text: each holds on runs, is proved, and excludes mistakes.

        `found` has lines to paste, the best first, with the place where each goes.
        """
        return tools.suggest_invariants(text, kernel, seconds)

    @made.tool()
    def search_knowledge(words: str, target: str = "", most: int = 5) -> dict[str, Any]:
        """Techniques that make kernels faster, the nearest to some words first.

        words: of what is slow or wanted, such as `bank conflicts of shared memory`. target: gfx942, sm_90a, or empty
        for both. Each has its intent, where it applies, the invariants it needs, its effect, and the experiment that
        showed it.
        """
        return tools.search_knowledge(words, target, most)

    @made.tool()
    def optimise(problem: str, target: str = "sm_90a", seconds: float = 60.0, trials: int = 20) -> dict[str, Any]:
        """Search for the fastest proved design of a problem, such as `gemm:4096x4096x4096:bf16`.

        seconds, trials: when to stop, whichever comes first. `best` is a design's name with its time, measured where
        there is a GPU and predicted elsewhere; `judged` says of each candidate how far it came, with the
        counterexample of one that is refuted. `run` goes on with `argus optimize --resume`.
        """
        return tools.optimise(problem, target, seconds, trials)

    for handler in (verify, interpret, build, suggest_invariants, search_knowledge, optimise):
        assert callable(handler)
    return made
