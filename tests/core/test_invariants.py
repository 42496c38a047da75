"""Invariants as a table: what is built can be asked for, and ranked against every other fault."""

from __future__ import annotations

from attrs import evolve

from argus.core.atoms.sm_90a.tma import tma_load
from argus.core.invariants import INVARIANTS
from argus.core.ir import Copy, Fence, Kernel, Stmt, bodies, with_bodies
from argus.core.proof.applicability import CHECKED_INVARIANTS
from argus.core.proof.obligation import INVARIANT_PRIORITY
from argus.core.verdict import Refuted
from argus.kernels.gemm import gemm
from argus.verifier.kernel import verify


def test_every_built_invariant_has_a_rank() -> None:
    assert len(set(INVARIANT_PRIORITY)) == len(INVARIANT_PRIORITY)
    assert set(INVARIANT_PRIORITY) == CHECKED_INVARIANTS
    assert {each.id for each in INVARIANTS} >= CHECKED_INVARIANTS


def code_of(kernel: Kernel) -> str:
    verdict = verify(kernel).verdict
    assert isinstance(verdict, Refuted)
    return verdict.counterexample.code


def test_barriers_that_no_fence_makes_known() -> None:
    kernel = gemm.trace("small")
    bare = tuple(stmt for stmt in kernel.prologue if not isinstance(stmt, Fence))
    assert code_of(evolve(kernel, prologue=bare)) == "I14"


def loads_of_another_swizzle(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(
        evolve(stmt, atom=tma_load[2])
        if isinstance(stmt, Copy) and stmt.signal is not None
        else with_bodies(stmt, tuple(loads_of_another_swizzle(part) for part in bodies(stmt)))
        for stmt in body
    )


def test_a_copy_that_swizzles_otherwise_than_its_tile() -> None:
    kernel = gemm.trace("small")
    assert kernel.roles is not None
    roles = tuple(evolve(role, body=loads_of_another_swizzle(role.body)) for role in kernel.roles.roles)
    assert code_of(evolve(kernel, roles=evolve(kernel.roles, roles=roles))) == "I17"
