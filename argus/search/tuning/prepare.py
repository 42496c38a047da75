"""Proves and compiles candidates in a process pool; candidates that are not proved are left out."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, TypeVar

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.kernels.gemm import configuration, gemm
from argus.runtime.kernel_cache import build_cached, verify_cached

T = TypeVar("T")
State = Literal["ready", "left out"]


@frozen
class Candidate:
    """A configuration whose kernel is proved and compiled, or the reason why it is left out.

    path: description file of the built kernel if ready. proof, code: seconds for proof and compilation, near 0 on a
    cache hit.
    """

    name: str
    state: State
    why: str = ""
    path: str = ""
    proof: float = 0.0
    code: float = 0.0


def processors() -> int:
    """Number of CPUs available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prepare_all(names: Sequence[str], processes: int = 0, folder: Path | None = None) -> Iterator[Candidate]:
    """Prepare configurations by name and yield them in order of completion.

    processes: 0 for the number of CPUs; 1 runs in this process. folder: of `argus.runtime.kernel_cache`.
    """
    return each(prepare_one, names, processes, folder)


def each(
    work: Callable[[str, Path | None], T], names: Sequence[str], processes: int, folder: Path | None
) -> Iterator[T]:
    """Apply an importable function to each name in a process pool; yields results in order of completion."""
    wanted = min(processes or processors(), len(names))
    if wanted <= 1:
        for name in names:
            yield work(name, folder)
        return
    pool = ProcessPoolExecutor(wanted, get_context("spawn"), initializer=_ignore_interrupts)
    try:
        for done in as_completed([pool.submit(work, name, folder) for name in names]):
            yield done.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Worker initialiser: an interrupt of the search must not truncate a file that a worker is writing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def prepare_one(name: str, folder: Path | None = None) -> Candidate:
    """Trace, prove and compile a configuration. Diagnostics become the reason of a left-out candidate."""
    config = configuration(name)
    if config is None:
        return Candidate(name, "left out", "it is not the name of a configuration")
    start = time.perf_counter()
    try:
        kernel = gemm.instance(config, name)
        verdict = verify_cached(kernel, folder).verdict
        middle = time.perf_counter()
        if verdict != "proved":
            return Candidate(name, "left out", f"it is {verdict}", proof=middle - start)
        path = build_cached(kernel, folder)
    except ArgusError as problem:
        return Candidate(name, "left out", str(problem), proof=time.perf_counter() - start)
    return Candidate(name, "ready", "", str(path), middle - start, time.perf_counter() - middle)
