"""Loops whose iterations leave nothing behind are a grid axis; others are not."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.algebra import const
from argus.core.ir import For, walk
from argus.core.proof.sync import drained_loops
from argus.core.proof.sync.drained_loops import iterations_as_blocks
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import (
    NOT_KNOWN,
    always,
    assert_only_this_check_refutes,
    load,
    load_edited,
)

NAME = "tiles_drained_one_by_one"
END = "        vmem.wait(0)\n        lds.wait(0)\n        sync()\n"


def test_iterations_become_blocks() -> None:
    kernel = load_edited(NAME).trace()
    made = iterations_as_blocks(kernel)

    assert made.grid == (*kernel.grid, const(32))
    assert made.blocks[:-1] == kernel.blocks
    assert sum(isinstance(stmt, For) for stmt in walk(made.body)) == 1


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param((END, END.replace("        vmem.wait(0)\n", "")), id="loads may be in flight"),
        pytest.param((END, END.replace("        lds.wait(0)\n", "")), id="reads of LDS may be in flight"),
        pytest.param((END, END.replace("lds.wait(0)", "lds.wait(1)")), id="one read may be in flight"),
        pytest.param((END, END.replace("        sync()\n", "")), id="waves may be apart"),
        pytest.param(
            (END, "        sync()\n        vmem.wait(0)\n        lds.wait(0)\n"), id="waits behind the barrier"
        ),
        pytest.param(("loop(TILES):", "loop(ceil_div(N, 64)):"), id="a number of iterations that sizes determine"),
        pytest.param(("    m, group", "    sync()\n    m, group"), id="a barrier outside the loop"),
    ],
)
def test_other_loops_are_left_as_they_are(edit: tuple[str, str]) -> None:
    kernel = load_edited(NAME, edit).trace()
    assert iterations_as_blocks(kernel) is kernel


def test_statements_after_the_loop_are_never_dropped() -> None:
    kernel = load_edited(NAME).trace()
    *before, last = kernel.prologue
    moved = evolve(kernel, prologue=tuple(before), epilogue=(last,))
    assert iterations_as_blocks(moved) is moved


def test_a_race_between_iterations_is_found_because_loops_have_to_be_drained(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_only_this_check_refutes(
        load("tiles_without_a_barrier_between"),
        "I36",
        lambda patch: patch.setattr(drained_loops, "_is_drained", always),
        monkeypatch,
    )


def test_what_an_iteration_finds_in_registers_is_not_what_a_block_finds() -> None:
    kernel = load("sums_left_by_the_last_tile", NOT_KNOWN).trace()
    assert iterations_as_blocks(kernel) is not kernel
    assert not isinstance(verify(kernel, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)
