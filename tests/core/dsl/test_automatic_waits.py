"""Which waits `@kernel(waits="automatic")` and `copy(..., wait=True)` insert, and where."""

# ruff: noqa: ARG001
# Reason: a name in quotes is the name of a size; bodies share one signature.
# pyright: reportArgumentType=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

from argus.core.ir import Copy, Wait, walk
from argus.language import (
    Tensor,
    assert_covers,
    bf16,
    block_id,
    buffer_load_lds,
    bulk,
    bulk_copy,
    copy,
    cp_async,
    elected,
    eq,
    f32,
    fence,
    kernel,
    load,
    loop,
    mma,
    registers,
    reset,
    shared,
    sm_90a,
    spread,
    sync,
    tag,
    vmem,
    warp_mma,
    wgmma,
    when,
)
from tests.core.dsl.waiting import BY, order, traced

# -- where, and how many may be left -------------------------------------------------------------------------


def test_a_wait_stands_before_the_first_use_and_leaves_younger_loads() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        first, second = load(X[0], BY), load(X[1], BY)
        copy(first * 2.0, Y[0])
        copy(second * 2.0, Y[1])

    loaded, stored = "global->register", "register->global"
    # A store is not in order with loads: it does not count for the second wait.
    assert order(traced(body)) == [loaded, loaded, "vmem(1)", stored, "vmem(0)", stored]


def test_the_wait_has_the_line_of_the_use() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        x = load(X[0], BY)
        copy(x, Y[0])

    made = traced(body)
    (wait,) = (stmt for stmt in walk(made.body) if isinstance(stmt, Wait))
    *_, store = (stmt for stmt in walk(made.body) if isinstance(stmt, Copy))

    assert wait.span == store.span
    assert wait.origin is not None


def test_what_was_waited_for_by_hand_is_not_waited_for_again() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        x = load(X[0], BY)
        vmem.wait(0)
        copy(x, Y[0])

    assert order(traced(body)) == ["global->register", "vmem(0)", "register->global"]


def test_nothing_is_inserted_by_default() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        copy(load(X[0], BY), Y[0])

    assert order(traced(body, waits="manual")) == ["global->register", "register->global"]


def test_a_barrier_follows_the_completion_of_accesses_to_shared_memory_alone() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box, x, y = shared(f32, (64,)), load(X[0], BY), load(X[1], BY)
        copy(x, box)
        sync()
        z = load(box, BY)
        sync()
        copy(y, box)
        copy(z, Y[0])

    stored, read = "register->shared", "shared->register"
    assert order(traced(body)) == [
        *["global->register"] * 2, "vmem(1)", stored, "lds(0)", "sync", read, "lds(0)", "sync", "vmem(0)", stored,
        "register->global",
    ]  # fmt: skip


def test_one_wave_reads_back_what_it_has_stored_in_order() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box = shared(f32, (64,))
        copy(load(X[0], BY), box)
        copy(load(box, BY), Y[0])

    assert order(traced(body))[1:] == ["vmem(0)", "register->shared", "shared->register", "lds(0)", "register->global"]


def test_a_direct_load_is_not_in_order_with_reads_of_shared_memory() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box = shared(f32, (64,))
        copy(X[0], box, via=buffer_load_lds, by=BY)
        x = load(box, BY)
        copy(X[1], box, via=buffer_load_lds, by=BY)
        copy(x, Y[0])

    direct, read = "global->shared", "shared->register"
    assert order(traced(body)) == [direct, "vmem(0)", read, "lds(0)", direct, "register->global"]


def test_a_loop_waits_in_each_iteration_for_what_it_issues() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        following, current = registers(f32, BY), registers(f32, BY)
        copy(X[0], following)
        for i in loop(X.shape[0]):
            current[:] = following
            copy(X[i], following)
            copy(current, Y[i])

    # The registers of the store are read when it is issued: the load of the next row stays in flight.
    loaded = "global->register"
    assert order(traced(body)) == [loaded, "loop[", "vmem(0)", loaded, "register->global", "]"]


def test_an_operation_in_a_branch_may_be_missing_from_the_count() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        x, y = load(X[0], BY), registers(f32, BY)
        y[:] = 0.0
        with when(X.shape[0] > 1):
            copy(X[1], y)
        copy(x, Y[0])
        copy(y, Y[1])

    loaded, stored = "global->register", "register->global"
    assert order(traced(body)) == [loaded, "when[", loaded, "]", "vmem(0)", stored, stored]


def test_parts_of_registers_with_other_constants_are_waited_for_apart() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box = shared(f32, (2, 64))
        copy(load(X[0], BY), box[0])
        copy(load(X[1], BY), box[1])
        first, second = load(box[0], BY), load(box[1], BY)
        copy(first, Y[0])
        copy(second, Y[1])

    assert order(traced(body))[-4:] == ["lds(1)", "register->global", "lds(0)", "register->global"]


def test_global_memory_that_the_kernel_reads_and_writes_is_ordered() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        x = load(X[0], BY, wait=True)
        copy(x, Y[0])
        sync()
        copy(load(Y[1], BY), Y[2])

    made = order(traced(body))
    assert made[:5] == ["global->register", "vmem(0)", "register->global", "vmem(0)", "sync"]


def test_claims_and_resets_wait_for_what_they_are_about() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        tag(X, lambda m, k: dict(m=m, k=k))
        box, x = shared(f32, (64,)), load(X[0], BY)
        assert_covers(x.tag.k, 0, 64)
        copy(x, box)
        reset(box)

    assert order(traced(body)) == ["global->register", "vmem(0)", "register->shared", "lds(0)"]


# -- sm_90a --------------------------------------------------------------------------------------------------


def test_loads_of_sm_90a_need_none() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        copy(load(X[0], BY, wait=True), Y[0], wait=True)

    assert order(traced(body, sm_90a)) == ["global->register", "register->global"]


def test_groups_count_from_their_commit() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        first, second = shared(f32, (64,)), shared(f32, (64,))
        for i, box in enumerate((first, second)):
            copy(X[i], box, via=cp_async, by=BY)
            cp_async.commit()
        copy(load(first, BY), Y[0])
        copy(load(second, BY), Y[1])

    direct, read, stored = "global->shared", "shared->register", "register->global"
    made = order(traced(body, sm_90a))
    assert made == [direct, direct, "cp_async(1)", read, stored, "cp_async(0)", read, stored]


def test_stores_by_bulk_copies_are_complete_before_the_kernel_ends() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box = shared(f32, (64,))
        copy(load(X[0], BY), box)
        fence("async proxy")
        sync()
        with elected():
            copy(box, Y[0], via=bulk_copy)
            bulk.commit()

    assert order(traced(body, sm_90a))[-1] == "bulk(0)"


def test_products_in_flight_are_waited_for_before_their_sums_are_read() -> None:
    @kernel(target=sm_90a, threads=128, waits="automatic")
    def multiplied(A: Tensor["64 16", bf16], B: Tensor["16 16", bf16], C: Tensor["64 16", f32]) -> None:
        block_id((1,))
        mm = wgmma(bf16, n=16, k=16)
        a, b = shared(bf16, (64, 16), swizzle=32), shared(bf16, (16, 16), swizzle=32)
        copy(load(A, spread((64, 16), vector=8)), a)
        copy(load(B, spread((16, 16), vector=2)), b)
        fence("async proxy")
        sync()
        acc = registers(f32, mm.C)
        mma(mm, acc, a, b, init=True)
        mma(mm, acc, a, b)
        copy(acc, C)

    assert order(multiplied.trace())[-4:] == ["mma", "mma", "wgmma(0)", "register->global"]


# -- a copy's own wait ---------------------------------------------------------------------------------------


def test_a_copy_waits_for_itself_if_asked() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        box = shared(f32, (64,))
        x = load(X[0], BY, wait=True)
        copy(x, box, wait=True)
        copy(load(box, BY, wait=True), Y[0])

    assert order(traced(body, waits="manual")) == [
        "global->register", "vmem(0)", "register->shared", "lds(0)", "shared->register", "lds(0)", "register->global",
    ]  # fmt: skip


def test_a_copy_is_left_out_if_asked() -> None:
    def body(X: Tensor, Y: Tensor) -> None:
        first, second = load(X[0], BY, wait=False), load(X[1], BY)
        copy(first, Y[0])
        copy(second, Y[1])

    loaded, stored = "global->register", "register->global"
    assert order(traced(body)) == [loaded, loaded, stored, "vmem(0)", stored]


def test_the_first_iteration_counts_what_the_last_one_issued() -> None:
    """A load of the iteration before is the youngest at the loop's start: nothing may be left."""

    def body(X: Tensor, Y: Tensor) -> None:
        mm = warp_mma(bf16).over(waves=(1, 1), tile=(32, 32), k=32)
        a, acc = registers(bf16, mm.A), registers(f32, mm.C)
        a[:] = 1.0
        x = registers(f32, BY)
        copy(X[0], x)
        for i in loop(X.shape[0]):
            mma(mm, acc, a, a, init=eq(i, 0))
            copy(x, Y[i])
            copy(X[i], x)

    assert order(traced(body)) == [
        "global->register", "loop[", "mma", "vmem(0)", "register->global", "global->register", "]",
    ]  # fmt: skip
