"""Helpers of the proof tests: a solver session, and the stages of the analysis of a kernel's roles."""

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
from argus.core.proof.sync.roles.nested_tiles import in_one_loop
from argus.core.proof.sync.roles.obligations import SequentialKernel, sequentialise
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, find_rings, parse_role
from argus.core.query import Unsat
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3


def session() -> Session:
    return Session(Z3())


def proof_context(*facts: Cond) -> ProofContext:
    return ProofContext(session(), facts)


@frozen(eq=False)
class Extracted:
    """A kernel's parsed roles, its rings and its extracted protocol."""

    roles: tuple[ParsedRole, ...]
    rings: tuple[RingStorage, ...]
    extracted: ExtractedProtocol
    proof: ProofContext


def extract(kernel: Kernel) -> Extracted:
    """Extracts the protocol of a kernel. Raises RefusedError where the roles are outside the model."""
    assert kernel.roles is not None
    asked = proof_context(*(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume)))
    roles = tuple(parse_role(role, asked) for role in kernel.roles.roles)
    rings = find_rings(roles)
    turning = frozenset(role for role in roles if check_agent_order(kernel, role, asked))
    return Extracted(roles, rings, extract_protocol(kernel, roles, rings, turning, asked), asked)


def read(kernel: Kernel) -> SequentialKernel:
    nested = in_one_loop(kernel)
    found = (
        sequentialise(kernel, session()) if nested is None else sequentialise(nested.kernel, session(), nested.pairs)
    )
    assert isinstance(found, SequentialKernel), found.reason
    return found


def refusal(kernel: Kernel) -> tuple[str, Stmt]:
    """Why a kernel of roles is outside the model, and at which statement."""
    found = sequentialise(kernel, session())
    assert isinstance(found, RefusedError)
    return found.reason, found.stmt


def obligations_of(kernel: Kernel) -> tuple[Obligation, ...]:
    """All obligations of a kernel inside the model."""
    found = analyse(kernel, session())
    assert not found.unmodelled, found.unmodelled[0].reason
    return found.obligations


def failing(kernel: Kernel) -> set[str]:
    """The invariants with an obligation that does not follow or is unknown."""
    asked = session()
    found = analyse(kernel, asked)
    assert not found.unmodelled, found.unmodelled[0].reason
    given = {"facts": found.facts, "assumptions": found.assumptions, "nothing": ()}
    return {
        each.invariant
        for each in found.obligations
        if each.unknown or not holds(asked, (*given[each.premises], *each.hypotheses), each.goal)
    }


def holds(asked: Session, hypotheses: Sequence[Cond], goal: Cond) -> bool:
    return goal is TRUE or isinstance(asked.prove(hypotheses, goal), Unsat)
