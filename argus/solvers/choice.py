"""Which solver `verify` asks when its caller names none."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from argus.solvers import registry
from argus.solvers.base import Solver

_CHOSEN: ContextVar[str | Solver] = ContextVar("argus_solver", default="portfolio")


@contextmanager
def use_solver(solver: str | Solver) -> Generator[Solver]:
    """Make `verify` ask this solver within the `with` block, unless its caller names another.

    solver: "z3", "cvc5", "enumerate", "portfolio", "all", the name of an installed backend, or a backend.
    Holds for the thread or task that entered the block. Raises ArgusError E601 or E602 at its start.
    """
    backend = resolve(solver)
    token = _CHOSEN.set(backend)
    try:
        yield backend
    finally:
        _CHOSEN.reset(token)


def resolve(solver: str | Solver | None) -> Solver:
    """The backend meant: by name, itself, or for None that of the innermost `use_solver`, else the portfolio."""
    meant = _CHOSEN.get() if solver is None else solver
    return registry.get(meant) if isinstance(meant, str) else meant
