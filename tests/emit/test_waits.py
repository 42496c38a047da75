from __future__ import annotations

import pytest

from argus.core.algebra import const, eq, sym
from argus.core.atom import Queue
from argus.core.atoms import gfx942 as isa
from argus.core.diagnostic import ArgusError
from argus.core.ir import Alloc, Copy, For, If, Stmt, Wait, whole
from argus.emit.hip.waits import wait_counts, wait_immediate
from argus.emit.scope import scope_of
from tests.emit.handmade import BLOCK_M, STEP, M, kernel, registers, shared, stage, tensor, tile, vector_tv

TV8 = vector_tv(256, 8, 32)
TENSOR = tensor("A", sym(M), const(32))
HELD = registers("held", TV8)
LDS = shared("lds", (1, 64, 32))


@pytest.mark.parametrize(
    ("queue", "count", "expected"),
    [
        ("vmem", 0, 0x0F70),
        ("vmem", 3, 0x0F73),
        ("vmem", 16, 0x4F70),
        ("vmem", 63, 0xCF7F),
        ("vmem", 200, 0xCF7F),
        ("lds", 0, 0xC07F),
        ("lds", 5, 0xC57F),
        ("lds", 15, 0xCF7F),
        ("lds", 40, 0xCF7F),
    ],
)
def test_encoding(queue: Queue, count: int, expected: int) -> None:
    assert wait_immediate(queue, count) == expected


def test_other_queues_are_not_of_this_machine() -> None:
    with pytest.raises(ArgusError, match="E501"):
        wait_immediate("bulk", 0)


def _load(edge: float | None = None, *, ranged: bool = True) -> Copy:
    atom = isa.buffer_load[3] if ranged else isa.global_load[3]
    return Copy(atom, tile(TENSOR, (64, 32), (sym(BLOCK_M), const(0))), whole(HELD), TV8, edge)


def _counts(*body: Stmt) -> list[int]:
    made = kernel("waiting", (TENSOR,), (Alloc(HELD), Alloc(LDS), *body))
    return list(wait_counts(made, scope_of(made)).values())


def test_pending_counts_statements_and_the_hardware_instructions() -> None:
    assert _counts(_load(), _load(), Wait("vmem", 1)) == [1]
    wide = vector_tv(64, 8, 8)
    held = registers("held", wide)
    load = Copy(isa.buffer_load[2], tile(TENSOR, (64, 8), (sym(BLOCK_M), const(0))), whole(held), wide)
    made = kernel("waiting", (TENSOR,), (Alloc(held), load, load, Wait("vmem", 1)), threads=64)
    assert list(wait_counts(made, scope_of(made)).values()) == [1], "two of 64 bits may become one of 128"


def test_fewer_statements_than_pending_leave_what_there_is() -> None:
    assert _counts(_load(), Wait("vmem", 4)) == [1]
    assert _counts(Wait("vmem", 4)) == [0]


def test_a_predicated_load_may_issue_nothing() -> None:
    assert _counts(_load(), _load(0.0, ranged=False), Wait("vmem", 1)) == [0]
    assert _counts(_load(), _load(0.0), Wait("vmem", 1)) == [1]


def test_the_least_over_all_paths() -> None:
    maybe = If(eq(sym(BLOCK_M), 0), (_load(0.0, ranged=False),), (_load(),))
    assert _counts(_load(), maybe, Wait("vmem", 2)) == [1]
    assert _counts(_load(), If(eq(sym(BLOCK_M), 0), (_load(),)), Wait("vmem", 1)) == [1]


def test_loops_carry_statements_around() -> None:
    wait = Wait("vmem", 2)
    assert _counts(For(STEP, const(0), const(4), 1, (wait, _load()))) == [0]
    assert _counts(_load(), _load(), For(STEP, const(0), const(4), 1, (wait, _load()))) == [2]


def test_queues_are_independent() -> None:
    write = Copy(isa.ds_write_b128, whole(HELD), stage(LDS, const(0)), TV8)
    assert _counts(_load(), write, Wait("vmem", 1), write, Wait("lds", 2)) == [1, 2]
