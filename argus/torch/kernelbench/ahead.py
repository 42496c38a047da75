"""Proves and builds the kernels of a problem ahead, in another process, so that the one that uses the GPU finds them.

Models and inputs are fake tensors: nothing is allocated. What is found is in the cache of kernels, which all share.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch

import argus.torch
from argus.core.diagnostic import ArgusError
from argus.core.ir import Program
from argus.nests.affine import computed
from argus.report.kernelbench import Asked, ahead_of
from argus.runtime.kernel_cache import build_cached, build_program_cached
from argus.runtime.processes.tickets import Tickets
from argus.solvers.cache import default_folder
from argus.solvers.choice import use_solver
from argus.torch.backend import Options, captured, compiled
from argus.torch.compiled import Compiled, KernelStep
from argus.torch.families import candidates
from argus.torch.kernelbench.compare import without_tf32
from argus.torch.kernelbench.problem import load

_torch: Any = torch


def prepare(path: Path, device: str) -> list[str]:
    """The names of the kernels that a problem's graphs run, each proved and built; none of operators of Argus."""
    problem = load(path)
    return prepare_model(lambda: (problem.model(0, device), problem.inputs(0, device)))


def prepare_model(made: Callable[[], tuple[Any, Sequence[Any]]]) -> list[str]:
    """The same of a model and its inputs, which are made as fake tensors."""
    return _prepare_with(made, Options())


def prepare_without_rewrites_or_tf32(path: Path, device: str) -> None:
    """Prepare a problem's kernels for sums as they are, if some were rewritten, and for convolutions without TF32."""
    problem, entries = load(path), argus.torch.report()

    def made() -> tuple[Any, Sequence[Any]]:
        return problem.model(0, device), problem.inputs(0, device)

    if any(each.rewrites for each in entries):
        _prepare_with(made, Options(rewrites=False))
    if any(each.name.startswith("convolutions") for entry in entries for each in entry.kernels):
        with without_tf32():
            _prepare_with(made, Options())


def _prepare_with(made: Callable[[], tuple[Any, Sequence[Any]]], options: Options) -> list[str]:
    found: list[str] = []

    def compiler(graph: Any, _: Any) -> Callable[..., Any]:  # noqa: ANN401 reason: torch's
        found.extend(_built(compiled(graph, options)))
        return graph.forward

    def backend(module: Any, inputs: Any) -> Any:  # noqa: ANN401 reason: torch's
        return captured(module, inputs, compiler)

    _torch.compiler.reset()
    with _torch._subclasses.FakeTensorMode(), torch.no_grad():
        model, inputs = made()
        _torch.compile(model, backend=backend)(*inputs)
    return found


def _built(graph: Compiled) -> Iterator[str]:
    hints: dict[str, int] = {}
    for step in graph.steps:
        if isinstance(step, KernelStep):
            sizes = {name: int(computed(extent, hints)) for name, extent in step.form.sizes.items()}
            traced, _ = candidates(step.family, step.form, sizes)[0].traced()
            yield traced.name
            try:
                (build_program_cached if isinstance(traced, Program) else build_cached)(traced)  # pyright: ignore[reportArgumentType]  # as the type says
            except ArgusError:
                continue  # where it is used, the error is said


def main(place: str, key: str) -> None:
    """Prepare one problem of those asked, in a process of its own, and write what it took to its ticket."""
    asked = Asked.read(Path(place))
    (problem,) = (each for each in asked.problems if each.key == key)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGTERM, _leave)
    torch.set_num_threads(1)
    known: dict[str, Any] = {"cold": asked.cold}
    with use_solver(asked.solver), _own_cache() if asked.cold else nullcontext():
        start, own = perf_counter(), process_time()
        path = Path(problem.path)
        known |= _said("error", lambda: {"kernels": prepare(path, asked.device)})
        known |= {"seconds": round(perf_counter() - start, 2), "processor": round(process_time() - own, 2)}
        entries = tuple(argus.torch.report())
        known |= _said("error without rewrites or TF32", lambda: prepare_without_rewrites_or_tf32(path, asked.device))
        known["proofs"] = round(sum(each.in_proofs for each in entries), 2)
        known["not_proved"] = sorted({each for entry in entries for each in entry.failed})
    Tickets(Path(asked.folder)).write(ahead_of(problem), known)


def _said(name: str, made: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    """What is made, or the error by a name: where the problem is run, it is said."""
    try:
        return made() or {}
    except Exception as error:  # noqa: BLE001 reason: a problem's code is the checkout's
        return {name: f"{type(error).__name__}: {str(error)[:200]}"}


def _leave(_signal: int, _frame: object) -> None:
    """End in order, so that what is proved until then is kept."""
    sys.exit(1)


@contextmanager
def _own_cache() -> Generator[None]:
    """An empty cache of kernels meanwhile; what is found there is in the shared one afterwards."""
    shared = default_folder()
    shared.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cold-", dir=shared) as folder:
        before = os.environ.get("ARGUS_CACHE_DIR")
        os.environ["ARGUS_CACHE_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["ARGUS_CACHE_DIR"]
            else:
                os.environ["ARGUS_CACHE_DIR"] = before
            _move(Path(folder) / "kernels", shared / "kernels")


def _move(source: Path, target: Path) -> None:
    """Move a folder's content into another; what is there already stays. Both lie on one disk."""
    target.mkdir(parents=True, exist_ok=True)
    for each in source.iterdir() if source.is_dir() else ():
        with suppress(OSError):  # another process has brought it meanwhile
            if not (target / each.name).exists():
                each.rename(target / each.name)
                continue
        if each.is_dir():
            _move(each, target / each.name)
