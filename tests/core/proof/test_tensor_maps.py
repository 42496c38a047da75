"""Tensor maps in memory: each step of an edit, its thread, and the waits that complete copies through a map."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argus.core.algebra import TRUE
from argus.core.ir import Copy, Edit
from argus.core.proof.sync.roles.context import RefusedError
from argus.core.proof.sync.roles.obligations import SequentialKernel, sequentialise
from argus.language import (
    Tensor,
    TensorMap,
    bulk,
    copy,
    elected,
    fence,
    loop,
    sync,
    tensor_map,
    tma,
    when,
)
from property_tests.role_programs import ROLES
from tests.core.proof.queries import obligations_of, session
from tests.core.proof.rings import edited, every, of_role
from tests.core.proof.visibility_kernels import Body, box, traced, write

Steps = Callable[[TensorMap, Tensor], None]


def stands(body: Body) -> set[str]:
    """Of I29: `met`, `not met` and `in doubt`, whatever of them there is."""
    found = [each for each in obligations_of(traced(body)) if each.invariant == "I29"]
    assert found
    return {"met" if each.goal is TRUE else "in doubt" if each.unknown else "not met" for each in found}


def staged(steps: Steps, *, waits: Callable[[], None], rounds: int = 2) -> Body:
    """A box stored through a map in some rounds: waits come before the map is edited, steps before the store."""

    def body(A: Tensor, C: Tensor) -> None:  # noqa: ARG001 reason: bodies share one signature
        out, tile = tensor_map(), box()
        for _ in loop(rounds):
            waits()
            sync()
            write(tile)
            fence("async proxy")
            sync()
            steps(out, C)
            with elected():
                copy(tile, C.tile((64, 16), (0, 0)), via=tma, edge=0, through=out)
                bulk.commit()
        with elected():
            bulk.wait(0)

    return body


def all_over() -> None:
    with elected():
        bulk.wait(0)


def reads_over() -> None:
    with elected():
        bulk.wait(0, of="reads")


def one_left() -> None:
    with elected():
        bulk.wait(1)


def in_order(out: TensorMap, C: Tensor) -> None:
    with elected():
        out.replace(C)
        out.release()
        out.acquire()


def acquired_first(out: TensorMap, C: Tensor) -> None:
    with elected():
        out.acquire()
        out.replace(C)
        out.release()


def not_released(out: TensorMap, C: Tensor) -> None:
    with elected():
        out.replace(C)
        out.acquire()


def not_acquired(out: TensorMap, C: Tensor) -> None:
    with elected():
        out.replace(C)
        out.release()


def never_edited(out: TensorMap, _: Tensor) -> None:
    with elected():
        out.release()
        out.acquire()


def edited_in_one_case(out: TensorMap, C: Tensor) -> None:
    with when(C.shape[0] < 64), elected():
        out.replace(C)
        out.release()
        out.acquire()


def by_all(out: TensorMap, C: Tensor) -> None:
    out.replace(C)
    out.release()
    out.acquire()


def of_a_part(out: TensorMap, C: Tensor) -> None:
    with elected():
        out.replace(C.tile((64, 16), (1, 0)))
        out.release()
        out.acquire()


def test_an_edit_is_released_acquired_and_used() -> None:
    assert stands(staged(in_order, waits=all_over)) == {"met"}


@pytest.mark.parametrize(
    "steps", [acquired_first, not_released, not_acquired, never_edited, edited_in_one_case], ids=lambda s: s.__name__
)
def test_a_copy_through_another_map_state_fails(steps: Steps) -> None:
    assert "not met" in stands(staged(steps, waits=all_over))


@pytest.mark.parametrize("steps", [by_all, of_a_part], ids=lambda s: s.__name__)
def test_unmodelled_map_uses_are_unknown(steps: Steps) -> None:
    assert "in doubt" in stands(staged(steps, waits=all_over))


def test_a_copy_is_complete_before_its_map_is_edited() -> None:
    assert "not met" in stands(staged(in_order, waits=one_left))
    assert stands(staged(in_order, waits=reads_over)) == {"met", "in doubt"}
    assert stands(staged(in_order, waits=lambda: None)) == {"met", "not met"}


def test_agents_that_edit_one_map_are_refused() -> None:
    (edit, *_) = every(ROLES["grouped_gemm_by_an_edited_map"], Edit)
    assert isinstance(sequentialise(ROLES["grouped_gemm_by_an_edited_map"], session()), SequentialKernel)
    kernel = ROLES["cooperative"]
    store = of_role(kernel, "math", Copy)[-1]
    found = sequentialise(edited(kernel, store, Edit(edit.map, "release"), store), session())
    assert isinstance(found, RefusedError)
    assert "several agents" in found.reason
