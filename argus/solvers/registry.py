"""The registry of solvers: entry points of the group `argus.solvers`, each loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.query import Answer, Budget, Query
from argus.solvers.base import Capabilities, Solver
from argus.solvers.incremental import opened

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "argus.solvers"


def available() -> tuple[str, ...]:
    """The names that `get` accepts, sorted."""
    return tuple(sorted(_declared()))


@cache
def get(name: str) -> Solver:
    """The solver with this name, one instance per process.

    An entry point names a class or function without parameters that returns a Solver. Raises ArgusError E601
    for a name that no entry point declares and E602 for a solver that does not load or lacks Solver's members.
    """
    declared = _declared()
    if name not in declared:
        raise ArgusError(_unknown(name, tuple(sorted(declared))))
    try:
        made = cast("Callable[[], object]", declared[name].load())()
    except Exception as error:  # foreign code may raise anything
        raise ArgusError(_broken(declared[name], str(error) or type(error).__name__)) from error
    lacking = [each for each in ("name", "capabilities", "check") if not hasattr(made, each)]
    if lacking:
        raise ArgusError(_broken(declared[name], f"the object it returns has no `{lacking[0]}`"))
    return cast(Solver, made)


@frozen
class Deferred:
    """The solver `get(name)`, looked up at its first use. distribution: the package whose version is the solver's."""

    name: str
    distribution: str = ""

    @property
    def version(self) -> str:
        """The installed package's version, read without loading the solver; empty if there is none."""
        if not self.distribution:
            return ""
        metadata = import_module("importlib.metadata")  # here because it is slow to load
        try:
            return str(metadata.version(self.distribution))
        except metadata.PackageNotFoundError:
            return ""

    @property
    def capabilities(self) -> Capabilities:
        return get(self.name).capabilities

    def check(self, query: Query, budget: Budget) -> Answer:
        return get(self.name).check(query, budget)

    def opened(self) -> Solver | None:
        """The solver with a stack of assertions, if it has one; loads it."""
        return opened(get(self.name))


def _declared() -> dict[str, EntryPoint]:
    """Entry points by name; where two packages declare one name, Argus's own wins, then the first."""
    declared: dict[str, EntryPoint] = {}
    # Imported here because importlib.metadata is slow to load and a program that asks no solver does not need it.
    points = cast("list[EntryPoint]", list(import_module("importlib.metadata").entry_points(group=GROUP)))
    for point in sorted(points, key=lambda point: not point.value.startswith("argus.solvers.")):
        declared.setdefault(point.name, point)
    return declared


def _unknown(name: str, names: tuple[str, ...]) -> Diagnostic:
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    choices = ", ".join(names) or "none"
    if not names:
        advice = "install the argus package, so that its solvers are declared (`pip install .`)"
    else:
        advice = f"did you mean `{nearest[0]}`?" if nearest else "choose one of these names"
    return Diagnostic(
        code="E601",
        severity="error",
        message=f"no solver is named `{name}`; expected one of: {choices}",
        help=advice,
    )


def _broken(point: EntryPoint, reason: str) -> Diagnostic:
    return Diagnostic(
        code="E602",
        severity="error",
        message=f"the solver `{point.name}` ({point.value}) does not load: {reason}",
        help="install or repair its dependencies, or choose another solver",
    )
