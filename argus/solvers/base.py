"""The solver interface: one function from a query to an answer, with the semantics that all backends share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from attrs import frozen

from argus.core.algebra import TRUE, le
from argus.core.index import Bin, Cond, Node
from argus.core.query import Answer, Budget, Query
from argus.core.walk import topological


@frozen
class Capabilities:
    """The classes of queries that a backend decides; outside them it may answer or give up.

    unbounded: symbols without a finite range.
    nonlinear: products of symbols, and symbolic divisors.
    bitwise: `& | ^ << >>` on any operands.
    reads: elements of arrays and fragments, as uninterpreted functions of their index.
    """

    unbounded: bool
    nonlinear: bool
    bitwise: bool
    reads: bool

    def covers(self, needed: Capabilities) -> bool:
        """Whether these capabilities include all needed ones."""
        pairs = (
            (self.unbounded, needed.unbounded),
            (self.nonlinear, needed.nonlinear),
            (self.bitwise, needed.bitwise),
            (self.reads, needed.reads),
        )
        return all(has or not need for has, need in pairs)


@runtime_checkable
class Versioned(Protocol):
    """A solver that states its version; the answers of any other are not cached."""

    @property
    def version(self) -> str:
        """Changes whenever the answer to some query may change."""
        ...


def identity(solver: Solver) -> str:
    """Name and version of a solver; empty if its version is unknown."""
    version = solver.version if isinstance(solver, Versioned) else ""
    return f"{solver.name} {version}" if version else ""


class Solver(Protocol):
    """A decision procedure for queries.

    Every backend gives a query the same semantics:

    - Symbols are integers within their ranges (`Symbol.low`, `Symbol.high`, inclusive).
    - `//` and `%` are floor division and modulus. Only *defined* assignments count: those under which every
      divisor anywhere in the query is at least 1 and every shift amount at least 0, whether or not a `Pick`
      selects the branch that contains it. No backend defines division by zero or by a negative number; an
      obligation whose proof is meaningful only for positive divisors must prove separately that they are positive.
    - Bitwise operators work on two's complement of unlimited width.
    - An element of an array or of a fragment is an uninterpreted function of its name and index.

    `argus.solvers.conformance.conformance` tests a backend against this contract.
    """

    @property
    def name(self) -> str:
        """The name by which users select the backend."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    def check(self, query: Query, budget: Budget) -> Answer:
        """Decide the query; never raises for a query built by `argus.core.algebra`.

        Sat assigns every symbol of `query.symbols` and satisfies every assertion; Unsat is a proof that no
        defined assignment satisfies them; GaveUp, with the reason, is the answer to a query that the backend cannot
        express or decide within the budget. Equal arguments get equal answers, except where the wall-clock limit
        intervenes. Callable from several threads.
        """
        ...


def definedness(roots: Iterable[Node]) -> tuple[Cond, ...]:
    """The conditions under which every operator below the roots is defined.

    Innermost first: each condition is itself defined where all conditions before it hold.
    """
    conditions = dict.fromkeys(_operator_domains(roots))
    return tuple(condition for condition in conditions if condition is not TRUE)


def _operator_domains(roots: Iterable[Node]) -> Iterator[Cond]:
    for node in topological(roots):
        match node:
            case Bin(op="//" | "%", right=divisor):
                yield le(1, divisor)
            case Bin(op="<<" | ">>", right=amount):
                yield le(0, amount)
            case _:
                pass
