"""Kernels of files for mining: how they are named, timed and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.search.designs.mining import Erased, Time, Tools, Verify
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.kernel_file import extents_of
from argus.search.problems.references import find_change
from argus.verifier.loader import load


def is_file(what: str) -> bool:
    """Whether a text names a file, or a kernel of one, rather than a configuration."""
    return Path(what).is_file() or what.partition(":")[0].endswith(".py")


def mined_kernel(what: str) -> Erased:
    """The kernel of FILE or FILE:NAME. Raises ArgusError: E00x, E1xx and E2xx of the file, E903 for several kernels."""
    exported = load(what)
    if len(exported) != 1:
        names = ", ".join(each.name for each in exported)
        message = f"`{what}` has {len(exported)} kernels, expected one"
        raise ArgusError(Diagnostic("E903", "error", message, help=f"name one as FILE:KERNEL: there are {names}"))
    return Erased(exported[0].name, exported[0].trace())


def kernel_tools(
    what: str,
    sizes: str,
    table: str | None,
    expert: Kernel,
    judge: Verify,
    predicted: Callable[[Kernel, Mapping[str, int]], float],
) -> Tools:
    """How a file's kernel is mined: simpler ones must equal the expert's outputs bit by bit, at small sizes.

    sizes: for times by the static model; empty: steps have no times. Raises ArgusError (E903).
    """
    if table is not None:
        message = "a table of times names configurations, and not kernels of a file"
        raise ArgusError(Diagnostic("E903", "error", message, help="leave --times out, and give --sizes"))
    extents = dict(extents_of(sizes, expert)) if sizes else None

    def time(_name: str, made: Kernel) -> float | None:
        return None if extents is None else predicted(made, extents)

    def disagrees(made: Kernel) -> str:
        return "" if made is expert else find_change(expert, made, SEEDS)

    timed: Time = time
    command = f"argus kb mine {what}" + (f" --sizes {sizes}" if sizes else "")
    return Tools(judge, disagrees, timed, "static model", command, sizes)
