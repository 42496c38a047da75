"""Code objects and verdicts of kernels for sm_90a on disk: made when first wanted, taken from there afterwards.

One folder a kernel, under a key of all that they depend on: the emitted text, the program with its claims, and the
sources of Argus itself. A folder made on one machine serves another with the same Argus.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path

from attrs import asdict, frozen

from argus.build import build
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.pretty import pretty
from argus.emit.cuda.text import cuda_text
from argus.emit.toolchain import write_files
from argus.solvers.cache import Cache, default_folder
from argus.summary import assumptions, word
from argus.verify import verify

_VERDICT = "verdict.json"
_NO_SOLVER = ("E601", "E602")


@frozen
class Judged:
    """What `verify` said, by which solver, under which assumptions.

    verdict: as a report has it; "unclaimed" if an output has no assertion, "unverified" where no solver is installed.
    """

    verdict: str
    solver: str = ""
    assumptions: tuple[str, ...] = ()


UNVERIFIED = Judged("unverified")


def built(kernel: Kernel, folder: Path | None = None) -> Path:
    """The description (NAME.json) of the kernel's code object, compiled now unless it is there.

    folder: where folders of kernels are; the user's cache by default.
    Raises ArgusError as `build` does: E302, E303, E304, E501.
    """
    place, symbol = _place(kernel, folder)
    description = place / f"{symbol}.json"
    if not description.is_file() or not description.with_suffix(".cubin").is_file():
        build(kernel, directory=place)
    return description


def judged(kernel: Kernel, folder: Path | None = None) -> Judged:
    """The verdict on the kernel, found now unless it is there; what is not decided is not kept, and asked again."""
    place, _ = _place(kernel, folder)
    kept = _kept(place / _VERDICT)
    if kept is not None:
        return kept
    try:
        report = verify(kernel, cache=Cache())
    except ArgusError as problem:
        if problem.diagnostic.code in _NO_SOLVER:
            return UNVERIFIED
        raise
    said = "unclaimed" if report.uncovered else word(report.verdict)
    found = Judged(said, report.solver, assumptions(report.verdict))
    if found.verdict != "unknown":
        write_files({_VERDICT: json.dumps(asdict(found), indent=2) + "\n"}, place, kernel.name)
    return found


def _kept(path: Path) -> Judged | None:
    """The verdict in a file; None if there is none, or it is damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Judged(str(data["verdict"]), str(data["solver"]), tuple(map(str, data["assumptions"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _place(kernel: Kernel, folder: Path | None) -> tuple[Path, str]:
    """The kernel's folder, and the stem of its files."""
    made = cuda_text(kernel)
    key = sha256("\0".join((sources_digest(), made.text, pretty(kernel))).encode()).hexdigest()[:20]
    return (default_folder() / "kernels" if folder is None else folder) / f"{made.symbol}-{key}", made.symbol


@cache
def sources_digest() -> str:
    """A digest of the package's files: another Argus may emit, describe and judge otherwise."""
    root = Path(__file__).parent
    found = sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(sha256(path.read_bytes()).digest())
    return found.hexdigest()
