"""The public functions on kernels and programs: `interpret`, `verify` and `build`, for traced or untraced ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import thread_time
from typing import Any, overload

import numpy.typing as npt

from argus.core.dsl.kernel import Template
from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Kernel, Program
from argus.core.query import Budget
from argus.core.target import Target
from argus.core.verdict import ProgramReport, Report
from argus.emit.artifact import Artifact
from argus.emit.build import build as build_kernel
from argus.interp.interpret import interpret as interpret_kernel
from argus.interp.interpret import interpret_program
from argus.interp.search.schedule import Schedule
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.solvers.choice import resolve
from argus.verifier.kernel import verify as verify_kernel
from argus.verifier.nearest import with_nearest
from argus.verifier.program import verify_program

Array = npt.NDArray[Any]


def interpret(
    kernel: Kernel | Template | Program | ProgramTemplate,
    *arrays: Array,
    config: str | None = None,
    schedule: Schedule = Schedule("late", 0, "lowest"),  # noqa: B008 reason: frozen
    tags: bool = True,
    given_sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """Run a kernel, or a program's launches, on one array per parameter, in order; returns new arrays by output name.

    An output array's contents are ignored (unless the kernel also reads them); its shape binds sizes.
    config: which instance of a family, by default the first. schedule: when asynchronous operations take effect.
    tags: whether to check tags, and the other invariants that a run can violate. given_sizes: of a kernel, by name,
    those of no array at least.

    Raises:
        ArgusError: the first violated invariant (I1, ...) if tags are checked, E401 for an array of the wrong shape or
            type, E402 for sizes that violate an assumption, E501 for a construct that the interpreter does not support,
            E1xx when the kernel cannot be traced.
    """
    if isinstance(kernel, ProgramTemplate):
        kernel = kernel.trace(config or kernel.instances()[0])
    if isinstance(kernel, Program):
        return interpret_program(kernel, *arrays, schedule=schedule, tags=tags)
    return interpret_kernel(
        trace_instance(kernel, config), *arrays, schedule=schedule, tags=tags, given_sizes=given_sizes
    )


@overload
def verify(
    kernel: Kernel | Template,
    *,
    solver: str | Solver | None = None,
    budget: Budget | None = None,
    config: str | None = None,
    cache: Cache | None = None,
) -> Report: ...


@overload
def verify(
    kernel: Program | ProgramTemplate,
    *,
    solver: str | Solver | None = None,
    budget: Budget | None = None,
    config: str | None = None,
    cache: Cache | None = None,
) -> ProgramReport: ...


def verify(
    kernel: Kernel | Template | Program | ProgramTemplate,
    *,
    solver: str | Solver | None = None,
    budget: Budget | None = None,
    config: str | None = None,
    cache: Cache | None = None,
) -> Report | ProgramReport:
    """Prove every invariant of a kernel, or of every launch of a program, or refute one by a replayed counterexample.

    solver: "z3", "cvc5", "enumerate", "portfolio", "all", the name of an installed backend, or a backend;
    by default the portfolio, or what `use_solver` has chosen.
    config: which instance of a family, by default the first. cache: solver answers on disk; None uses no cache.
    Of a kernel that is neither proved nor refuted the report names the nearest variant that is proved (`nearest`), if
    one is found in what is left of the seconds of one query (`budget`).
    Raises ArgusError when the kernel cannot be traced or the solver is unknown.
    """
    if isinstance(kernel, Program | ProgramTemplate):
        return verify_program(kernel, solver=solver, budget=budget, config=config, cache=cache)
    begun, traced, backend = thread_time(), trace_instance(kernel, config), resolve(solver)
    report = verify_kernel(traced, solver=backend, budget=budget, cache=cache)
    return with_nearest(report, traced, backend, budget or Budget(), cache, thread_time() - begun)


def build(
    kernel: Kernel | Template,
    target: Target | str | None = None,
    directory: Path | str | None = None,
    *,
    config: str | None = None,
    read_code: bool = False,
) -> Artifact:
    """Emit a kernel, compile it, and read its register and memory usage from the compiler's report.

    target: the machine, or its name; the kernel's own by default. directory: where NAME.hip, NAME.s, NAME.hsaco
    and NAME.json go; by default a folder of the user's cache. config: as for `interpret`.
    read_code: whether to read from sm_90a code where the compiler broke the schedule.

    Raises:
        ArgusError: E301 for a target that is unknown or not the kernel's, E302 if the output cannot be written,
            E303 without a compiler, E304 if it fails, E307 if it warns, E501 for a construct that is not emitted yet,
            E1xx when the kernel cannot be traced.
    """
    place = None if directory is None else Path(directory)
    return build_kernel(trace_instance(kernel, config), target, place, read_code=read_code)


def trace_instance(kernel: Kernel | Template, config: str | None = None) -> Kernel:
    """The kernel itself, or the instance of a family that `config` names, by default the first."""
    return kernel if isinstance(kernel, Kernel) else kernel.trace(config or kernel.instances()[0])
