"""The default solver of `verify`, and `use_solver`, which changes it within a `with` block."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from argus.solvers import registry
from argus.solvers.base import Solver

_CHOSEN: ContextVar[str | Solver] = ContextVar("argus_solver", default="portfolio")


@contextmanager
def use_solver(solver: str | Solver) -> Generator[Solver]:
    """Make this solver the default of `verify` within the `with` block.

    solver: "z3", "cvc5", "enumerate", "portfolio", "all", the name of an installed backend, or a backend.
    Applies to the thread or task that entered the block. Raises ArgusError E601 or E602 on entry.
    """
    backend = resolve(solver)
    token = _CHOSEN.set(backend)
    try:
        yield backend
    finally:
        _CHOSEN.reset(token)


def resolve(solver: str | Solver | None) -> Solver:
    """The backend with this name, or the backend given; None means that of the innermost `use_solver`.

    Outside every `use_solver` block, None means the portfolio.
    """
    chosen = _CHOSEN.get() if solver is None else solver
    return registry.get(chosen) if isinstance(chosen, str) else chosen
