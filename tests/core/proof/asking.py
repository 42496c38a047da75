"""What the tests of the proof share: a session, the corpus by name, and a kernel's roles half read."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Cond
from argus.core.ir import Assume, Kernel, Stmt
from argus.core.proof.analysis import analyse
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.agent_order import check_agent_order
from argus.core.proof.sync.roles.context import ProofContext, RefusedError
from argus.core.proof.sync.roles.extract_protocol import ExtractedProtocol, extract_protocol
from argus.core.proof.sync.roles.obligations import SequentialKernel, sequentialise
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, find_rings, parse_role
from argus.core.query import Unsat
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3


def session() -> Session:
    return Session(Z3())


def ledger(*facts: Cond) -> ProofContext:
    return ProofContext(session(), facts)


@frozen(eq=False)
class Half:
    """A kernel's roles, its rings and its protocol."""

    roles: tuple[ParsedRole, ...]
    rings: tuple[RingStorage, ...]
    said: ExtractedProtocol
    ledger: ProofContext


def half(kernel: Kernel) -> Half:
    """Raises RefusedError where the roles are read as a protocol."""
    assert kernel.roles is not None
    asked = ledger(*(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume)))
    roles = tuple(parse_role(role, asked) for role in kernel.roles.roles)
    rings = find_rings(roles)
    turning = frozenset(role for role in roles if check_agent_order(kernel, role, asked))
    return Half(roles, rings, extract_protocol(kernel, roles, rings, turning, asked), asked)


def read(kernel: Kernel) -> SequentialKernel:
    found = sequentialise(kernel, session())
    assert isinstance(found, SequentialKernel), found.reason
    return found


def refusal(kernel: Kernel) -> tuple[str, Stmt]:
    """Why a kernel of roles is not read, and at which statement."""
    found = sequentialise(kernel, session())
    assert isinstance(found, RefusedError)
    return found.reason, found.stmt


def owed(kernel: Kernel) -> tuple[Obligation, ...]:
    """All obligations of a kernel that is modelled."""
    found = analyse(kernel, session())
    assert not found.unmodelled, found.unmodelled[0].reason
    return found.obligations


def failing(kernel: Kernel) -> set[str]:
    """The invariants of which some obligation does not follow, or cannot be told."""
    asked = session()
    found = analyse(kernel, asked)
    assert not found.unmodelled, found.unmodelled[0].reason
    given = {"facts": found.facts, "assumptions": found.assumptions, "nothing": ()}
    return {
        each.invariant
        for each in found.obligations
        if each.unknown or not holds(asked, (*given[each.given], *each.hypotheses), each.goal)
    }


def holds(asked: Session, hypotheses: Sequence[Cond], goal: Cond) -> bool:
    return goal is TRUE or isinstance(asked.prove(hypotheses, goal), Unsat)
