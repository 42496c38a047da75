"""A disk cache of compiled code and verdicts for kernels and programs.

Each kernel has a folder whose key digests everything that code and verdict depend on: the emitted text, the kernel with
its claims, and the sources of Argus itself. Code compiled on one machine is valid on another with the same Argus; a
verdict is believed only on the machine that found it, and is found without answers from disk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter, thread_time

from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.index_text import show
from argus.core.ir import Kernel, Program
from argus.core.ir.pretty import pretty
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.query import Budget
from argus.core.verdict import Unknown, Verdict
from argus.emit.build import build
from argus.emit.build_program import build_program
from argus.emit.cuda.nvrtc import compile_ahead
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import compiled_texts
from argus.emit.names import file_stem
from argus.report.summary import assumptions, verdict_word
from argus.runtime.proof_records import (
    Attempt,
    CachedVerdict,
    read_attempt,
    read_record,
    write_attempt,
    write_record,
)
from argus.solvers.base import identity
from argus.solvers.cache import default_folder
from argus.solvers.choice import resolve
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program

_NO_SOLVER = ("E601", "E602")
_CODE = {"sm_90a": ".cubin", "gfx942": ".hsaco"}
"""The suffix of files with code, by target."""
LAUNCH = evolve(Budget(), terms=30_000_000)
"""What a proof before a launch may take, once on a machine: the default, but for terms of normal forms.

Kernels that decode on pages of 16 keys join what several blocks have found of short pages: that takes some 7,000,000
terms, more than the default, which is meant for someone who waits.
"""

_PATIENCE = 1.0
"""Seconds that a proof may wait for the processor, besides as many as it had it, and still count as an attempt."""

UNVERIFIED = CachedVerdict("unverified")


def build_cached(kernel: Kernel, folder: Path | None = None) -> Path:
    """The path of the kernel's description (NAME.json), compiled now unless it is cached.

    folder: the cache folder; the user's by default.
    Raises ArgusError like `build`: E302, E303, E304, E501.
    """
    place, stem = _folder_of(kernel, folder)
    description = place / f"{stem}.json"
    if not description.is_file() or not description.with_suffix(_CODE[kernel.target.name]).is_file():
        build(kernel, directory=place)
    return description


def build_ahead(traced: Kernel | Program) -> None:
    """Begin to compile what `build_cached` or `build_program_cached` will be asked for, unless it is on disk.

    Raises ArgusError (E501) for a construct without an emitted form.
    """
    if traced.target.name != "sm_90a":
        return
    place, stem = _folder_of(traced, None) if isinstance(traced, Kernel) else (_folder_of_program(traced, None), "")
    if (place / f"{stem or traced.name}.json").is_file():
        return
    kernels = [traced] if isinstance(traced, Kernel) else [each.kernel for each in launch_contexts(traced)]
    for each in kernels:
        made = cuda_text(each)
        compile_ahead(made.text, made.symbol)


def verify_cached(kernel: Kernel, folder: Path | None = None, budget: Budget | None = None) -> CachedVerdict:
    """The verdict on the kernel, verified now unless this machine has before.

    "unknown" is believed of the same solver with at least this budget, and asked for again with another or a larger;
    also where the proof waited for the processor so long that limits of wall-clock time may have ended it.
    """
    place, _ = _folder_of(kernel, folder)

    def compute(limits: Budget) -> CachedVerdict:
        report = verify(kernel, budget=limits)
        word = "unclaimed" if report.uncovered else verdict_word(report.verdict)
        return CachedVerdict(word, report.solver, assumptions(report.verdict), _reason(report.verdict))

    return _verdict(place, kernel.name, compute, budget or LAUNCH)


def _reason(verdict: Verdict) -> str:
    return verdict.reason if isinstance(verdict, Unknown) else ""


def _verdict(place: Path, name: str, compute: Callable[[Budget], CachedVerdict], budget: Budget) -> CachedVerdict:
    cached = read_record(place)
    if cached is not None:
        return cached
    try:
        solver = resolve(None)
        known = identity(solver)
        before = read_attempt(place) if known else None
        if before is not None and before.solver == known and budget.within(before.budget):
            return CachedVerdict("unknown", solver.name, reason=before.reason)
        wall, own = perf_counter(), thread_time()
        found = compute(budget)
        own = thread_time() - own
        waited = perf_counter() - wall - own
    except ArgusError as problem:
        if problem.diagnostic.code in _NO_SOLVER:
            return UNVERIFIED
        raise
    if found.verdict != "unknown":
        write_record(place, name, found)
    elif known and waited <= own + _PATIENCE:
        write_attempt(place, name, Attempt(known, budget, found.reason))
    return found


def build_program_cached(program: Program, folder: Path | None = None) -> Path:
    """The path of a program's description, compiled now unless it is cached. Raises ArgusError like `build_cached`."""
    place = _folder_of_program(program, folder)
    description = place / f"{program.name}.json"
    return description if description.is_file() else build_program(program, place).description


def verify_program_cached(program: Program, folder: Path | None = None, budget: Budget | None = None) -> CachedVerdict:
    """The verdict on all launches of a program, cached like that on a kernel."""
    place = _folder_of_program(program, folder)

    def compute(limits: Budget) -> CachedVerdict:
        report = verify_program(program, budget=limits)
        listed = tuple(dict.fromkeys(each for launch in report.launches for each in assumptions(launch.verdict)))
        claimed = not report.launches[-1].uncovered
        solver = report.launches[0].solver
        word = verdict_word(report.verdict) if claimed else "unclaimed"
        return CachedVerdict(word, solver, listed, _reason(report.verdict))

    return _verdict(place, program.name, compute, budget or LAUNCH)


def _folder_of(kernel: Kernel, folder: Path | None) -> tuple[Path, str]:
    """The kernel's cache folder, and the stem of its files."""
    stem = file_stem(kernel)
    text = _remembered(kernel, lambda: sha256("\0".join((_texts(kernel), pretty(kernel))).encode()).hexdigest())
    key = sha256(f"{sources_digest()}\0{text}".encode()).hexdigest()[:20]
    return (default_folder() / "kernels" if folder is None else folder) / f"{stem}-{key}", stem


def _folder_of_program(program: Program, folder: Path | None) -> Path:
    """The program's cache folder; its key covers its workspaces, and its launches in order with their tensors."""
    text = _remembered(program, lambda: _text_of_program(program))
    key = sha256(f"{sources_digest()}\0{text}".encode()).hexdigest()[:20]
    return (default_folder() / "kernels" if folder is None else folder) / f"{program.name}-{key}"


def _text_of_program(program: Program) -> str:
    """A digest of all that a program's verdict and code depend on, besides Argus itself."""
    parts = [f"{each.name} {each.dtype} {list(map(show, each.shape))}" for each in program.workspaces]
    for each in launch_contexts(program):
        given = sorted((parameter.name, tensor.name) for parameter, tensor in each.arguments.items())
        parts += [_texts(each.kernel), pretty(each.kernel), str(given)]
    return sha256("\0".join(parts).encode()).hexdigest()


def _texts(kernel: Kernel) -> str:
    """All that a build compiles."""
    return "\0".join(compiled_texts(kernel)) if kernel.target.name == "gfx942" else cuda_text(kernel).text


_KEYS: dict[int, tuple[Kernel | Program, str]] = {}
_MOST_KEYS = 512


def _remembered(of: Kernel | Program, made: Callable[[], str]) -> str:
    """A key that costs an emission, once for the same object: it is verified, checked again and built."""
    found = _KEYS.get(id(of))
    if found is None:
        while len(_KEYS) >= _MOST_KEYS:
            del _KEYS[next(iter(_KEYS))]
        found = _KEYS[id(of)] = of, made()
    return found[1]


@cache
def sources_digest() -> str:
    """A digest of the package's source files: another version may emit, describe and verify differently."""
    root = Path(__file__).parents[1]
    found = sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(sha256(path.read_bytes()).digest())
    return found.hexdigest()
