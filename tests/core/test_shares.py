"""Registers of roles against those of the block (I21), and stages against the period of their swizzle (I18)."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.ir import Kernel, Policy
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.dataflow.timeline import timeline
from argus.core.proof.limits.budgets import budget_obligations, launch_registers, role_register_obligations
from argus.core.proof.obligation import Obligation
from argus.language import (
    Tensor,
    bf16,
    ceil_div,
    copy,
    cp_async,
    fence,
    kernel,
    loop,
    role,
    shared,
    sm_90a,
    spread,
    warpgroup,
    warpgroups,
)


def staged(made: Kernel) -> list[Obligation]:
    """The obligations of stages, as those of a line that is not modelled."""
    line = timeline(made)
    assert line.unmodelled
    return [each for each in budget_obligations(line, Accesses(line)) if each.invariant == "I18"]


def roles(threads: int, load: int | None, math: int | None, groups: int) -> Kernel:
    """One warpgroup that loads and others that multiply, as far as registers go."""

    def probe(A: Tensor["M N", bf16]) -> None:
        del A
        with role("load", warpgroup(0).elected, registers=load):
            pass
        with role("math", warpgroups(*range(1, 1 + groups)), registers=math):
            pass

    return kernel(target=sm_90a, threads=threads)(probe).trace()


@pytest.mark.parametrize(("threads", "registers"), [(128, 256), (256, 256), (384, 168), (512, 128), (1024, 64)])
def test_a_launch_shares_the_file_in_whole_eights(threads: int, registers: int) -> None:
    assert launch_registers(threads) == registers


@pytest.mark.parametrize(
    ("load", "math", "groups", "fits"),
    [
        (24, 240, 2, True),
        (40, 232, 2, True),
        (40, 240, 2, False),
        (32, 240, 2, False),
        (None, 168, 2, True),
        (None, 176, 2, False),
        (24, None, 2, True),
        (32, 160, 3, True),
        (40, 160, 3, False),
        (56, 256, 1, True),
    ],
)
def test_shares_fit_what_the_block_was_launched_with(
    load: int | None, math: int | None, groups: int, *, fits: bool
) -> None:
    *own, obligation = role_register_obligations(roles(128 * (1 + groups), load, math, groups))
    assert all(each.goal is algebra.TRUE for each in own)
    assert obligation.goal is (algebra.TRUE if fits else algebra.FALSE)
    assert isinstance(obligation.stmt, Policy)
    assert obligation.stmt.name == "registers"


def test_warps_of_no_role_keep_theirs() -> None:
    *_, obligation = role_register_obligations(roles(512, 24, 240, 2))
    assert obligation.goal is algebra.FALSE
    assert dict(obligation.witness)["needs"] == "load 128 x 24, math 256 x 240, other warps 128 x 128"


def test_roles_that_ask_for_nothing_owe_nothing() -> None:
    assert list(role_register_obligations(roles(384, None, None, 2))) == []


@pytest.mark.parametrize(("rows", "whole"), [(4, False), (8, True), (12, False), (16, True)])
def test_a_stage_is_a_whole_period_where_accesses_are_not_modelled(rows: int, *, whole: bool) -> None:
    def probe(A: Tensor["M N", bf16]) -> None:
        tiles = shared(bf16, (4, rows, 64), swizzle=128)
        by = spread((rows, 64), threads=8 * rows, vector=8)
        fence("async proxy")
        (M, N) = A.shape
        for m in loop(ceil_div(M, rows)):
            for n in loop(ceil_div(N, 64)):  # within another loop: nothing is known of accesses
                copy(A.tile((rows, 64), (m, n)), tiles[1], via=cp_async, by=by, edge=0)

    (obligation,) = staged(kernel(target=sm_90a, threads=8 * rows)(probe).trace())
    assert obligation.goal is (algebra.TRUE if whole else algebra.FALSE)
