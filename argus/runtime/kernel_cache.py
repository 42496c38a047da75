"""Code objects and verdicts of kernels for sm_90a on disk: made when first wanted, taken from there afterwards.

One folder a kernel, under a key of all that they depend on: the emitted text, the program with its claims, and the
sources of Argus itself. A folder made on one machine serves another with the same Argus.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

from attrs import asdict, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel, Program
from argus.core.ir.pretty import pretty
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.walk import show
from argus.emit.build import build
from argus.emit.build_program import build_program
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.toolchain import write_files
from argus.report.summary import assumptions, verdict_word
from argus.solvers.cache import Cache, default_folder
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program

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

    def asked() -> Judged:
        report = verify(kernel, cache=Cache())
        said = "unclaimed" if report.uncovered else verdict_word(report.verdict)
        return Judged(said, report.solver, assumptions(report.verdict))

    return _judged(place, kernel.name, asked)


def _judged(place: Path, name: str, asked: Callable[[], Judged]) -> Judged:
    kept = _kept(place / _VERDICT)
    if kept is not None:
        return kept
    try:
        found = asked()
    except ArgusError as problem:
        if problem.diagnostic.code in _NO_SOLVER:
            return UNVERIFIED
        raise
    if found.verdict != "unknown":
        write_files({_VERDICT: json.dumps(asdict(found), indent=2) + "\n"}, place, name)
    return found


def built_program(program: Program, folder: Path | None = None) -> Path:
    """The description of a program's launches, compiled now unless it is there. Raises ArgusError as `built` does."""
    place = _place_of_program(program, folder)
    description = place / f"{program.name}.json"
    return description if description.is_file() else build_program(program, place).description


def judged_program(program: Program, folder: Path | None = None) -> Judged:
    """The verdict on a program, of all its launches; kept as that on a kernel is."""
    place = _place_of_program(program, folder)

    def asked() -> Judged:
        report = verify_program(program, cache=Cache())
        told = tuple(each for launch in report.launches for each in assumptions(launch.verdict))
        claimed = not report.launches[-1].uncovered
        solver = report.launches[0].solver
        return Judged(verdict_word(report.verdict) if claimed else "unclaimed", solver, tuple(dict.fromkeys(told)))

    return _judged(place, program.name, asked)


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


def _place_of_program(program: Program, folder: Path | None) -> Path:
    """The program's folder: what it launches, in order, and on what."""
    room = (f"{each.name} {each.dtype} {list(map(show, each.shape))}" for each in program.workspaces)
    told = [sources_digest(), *room]
    for each in launch_contexts(program):
        given = sorted((parameter.name, tensor.name) for parameter, tensor in each.arguments.items())
        told += [cuda_text(each.kernel).text, pretty(each.kernel), str(given)]
    key = sha256("\0".join(told).encode()).hexdigest()[:20]
    return (default_folder() / "kernels" if folder is None else folder) / f"{program.name}-{key}"


@cache
def sources_digest() -> str:
    """A digest of the package's files: another Argus may emit, describe and judge otherwise."""
    root = Path(__file__).parents[1]
    found = sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(sha256(path.read_bytes()).digest())
    return found.hexdigest()
