"""Waits that cannot be inserted (E222), and wrong requests for waits (E106, E107)."""

# ruff: noqa: ARG001
# Reason: bodies share one signature.
# pyright: reportArgumentType=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

import pytest

from argus.language import (
    Tensor,
    barrier,
    bulk_copy,
    copy,
    cp_async,
    elected,
    f32,
    fence,
    load,
    role,
    shared,
    sync,
    warps,
)
from tests.core.dsl.waiting import BY, fault_of


def test_a_group_has_to_be_closed_first() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box = shared(f32, (64,))
        copy(X[0], box, via=cp_async, by=BY)
        copy(load(box, BY), Y[0])

    found = fault_of(body)
    assert (found.code, found.message) == (
        "E222",
        "`box` is needed while its group on the queue `cp_async` is open",
    )
    assert "cp_async.commit()" in found.help


def test_a_kernel_does_not_end_with_an_open_group() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box = shared(f32, (64,))
        copy(load(X[0], BY), box)
        fence("async proxy")
        sync()
        with elected():
            copy(box, Y[0], via=bulk_copy)

    found = fault_of(body)
    assert (found.code, found.primary.text) == ("E222", "the kernel ends with the group open")


def test_roles_wait_by_hand() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        with role("math", warps(0, 1)):
            sync()

    found = fault_of(body, threads=128)
    assert (found.code, found.message) == ("E222", "automatic waits in a kernel with roles")


def test_a_copy_in_a_group_does_not_wait_for_itself() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        copy(X[0], shared(f32, (64,)), via=cp_async, by=BY, wait=True)

    found = fault_of(body, waits="manual")
    assert found.code == "E222"
    assert "`cp_async.commit()` and `cp_async.wait(0)`" in found.help


def test_a_copy_on_a_barrier_does_not_wait_for_itself() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box, done = shared(f32, (64,)), barrier(1)
        with elected():
            copy(X[0], box, via=bulk_copy, signal=done, wait=True)

    found = fault_of(body, waits="manual")
    assert found.code == "E222"
    assert "completes on a barrier" in found.message


@pytest.mark.parametrize("value", [1, "yes"])
def test_a_wait_is_asked_for_by_a_truth_value(value: object) -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        load(X[0], BY, wait=value)

    assert fault_of(body).code == "E106"


def test_there_are_two_policies() -> None:
    found = fault_of(lambda X, Y: None, waits="auto")  # noqa: ARG005

    assert (found.code, 'waits="automatic"' in found.help) == ("E107", True)
