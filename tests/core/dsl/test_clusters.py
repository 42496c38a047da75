"""Clusters in the language: ranks, grids of whole clusters, cluster barriers, multicasts and rings with multicast."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argus.core.check import clusters
from argus.core.diagnostic import ArgusError
from argus.core.dsl.kernel import Template
from argus.core.index_text import show
from argus.core.ir import Alloc, Arrive, Copy, Fence, Kernel, Sync, walk
from argus.core.ir.pretty import pretty
from argus.language import (
    Ring,
    Tensor,
    barrier,
    bf16,
    block_id,
    ceil_div,
    cluster,
    copy,
    fence,
    kernel,
    loop,
    persistent,
    role,
    shared,
    sm_90a,
    sync,
    tma,
    warpgroup,
    when,
)
from tests.verifier.switched_off_checks import NOT_KNOWN, always, load

REJECTED = NOT_KNOWN.parent / "rejected"


def template(body: Callable[[Tensor], None], sizes: tuple[int, ...] = (2, 1)) -> Template:
    @kernel(target=sm_90a, threads=256, cluster=sizes)
    def made(A: Tensor["M K", bf16]) -> None:
        body(A)

    return made


def pair(A: Tensor) -> None:
    """A ring that two blocks fill for each other."""
    ring = Ring(2, a=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((ceil_div(A.shape[0], 16),), blocks=8)
    with role("load", warpgroup(0).elected):
        for (m,) in tiles:
            for _ in loop(3):
                with ring.fill() as slot:
                    half = A.tile((16, 16), (m, 0)).part(0, cluster.rank, 2)
                    copy(half, slot.a.part(0, cluster.rank, 2), via=tma.multicast((0, 1)), edge=0)
        ring.finish()
    with role("math", warpgroup(1)):
        for _ in tiles:
            for _ in loop(3):
                ring.wait()
                ring.release()


def traced() -> Kernel:
    return template(pair, (2,)).trace()


def test_the_rank_is_an_axis_of_a_persistent_grid() -> None:
    made = traced()
    assert made.peers == 2
    assert [show(count) for count in made.grid] == ["2", "4"]
    assert show(made.rank) == made.blocks[0].name
    assert "clusters of (2, 1)" in pretty(made)


def test_the_rank_of_a_grid_by_hand_counts_within_the_cluster() -> None:
    def body(A: Tensor) -> None:
        block_id((2 * ceil_div(A.shape[0], 32), 4))

    made = template(body, (2, 2)).trace()
    assert made.cluster == (2, 2)
    assert made.peers == 4
    assert show(made.rank) == "(block_0 % 2) + 2*(block_1 % 2)"


def test_a_release_arrives_at_every_block_that_fills_the_slot() -> None:
    made = traced()
    (given,) = {stmt.count for stmt in walk(made.body) if isinstance(stmt, Alloc) and "empty" in stmt.buffer.name}
    peers = [show(s.event.peer) for s in walk(made.body) if isinstance(s, Arrive) and s.event.peer is not None]
    announced = [show(s.bytes) for s in walk(made.body) if isinstance(s, Arrive) and "full" in s.event.buffer.name]
    assert given == 2
    assert peers == ["0", "1"]
    assert announced == [str(16 * 16 * 2)]
    assert [show(s.peers) for s in walk(made.body) if isinstance(s, Copy) and s.peers is not None] == ["3"]


def test_a_cluster_barrier_follows_barrier_initialisation() -> None:
    made = traced()
    assert [stmt.barrier for stmt in made.prologue if isinstance(stmt, Sync)] == ["cluster"]


def test_no_barrier_is_inserted_after_an_explicit_fence() -> None:
    def body(A: Tensor) -> None:
        block_id((2 * ceil_div(A.shape[0], 32),))
        barrier(1)
        fence("barrier init")
        cluster.arrive()
        cluster.wait()
        sync()

    made = template(body, (2,)).trace()
    assert [(s.barrier, s.how) for s in made.prologue if isinstance(s, Sync)] == [
        ("cluster", "arrive"),
        ("cluster", "wait"),
        ("cta", "meet"),
    ]
    assert len([s for s in made.prologue if isinstance(s, Fence)]) == 1


def nine_blocks(A: Tensor) -> None:
    block_id((9 * ceil_div(A.shape[0], 16),))


def an_odd_grid(A: Tensor) -> None:
    block_id((ceil_div(A.shape[0], 16), 4))


def a_rank_too_many(A: Tensor) -> None:
    block_id((2 * ceil_div(A.shape[0], 32), 1))
    barrier(1).of(cluster.rank + 1).arrive()


def meets_in_a_role(A: Tensor) -> None:
    block_id((2 * ceil_div(A.shape[0], 32), 1))
    with role("math", warpgroup(0)):
        cluster.sync()


def meets_in_a_branch(A: Tensor) -> None:
    m, _ = block_id((2 * ceil_div(A.shape[0], 32), 1))
    with when(m > 0):
        cluster.sync()


def arrives_twice(A: Tensor) -> None:
    block_id((2 * ceil_div(A.shape[0], 32), 1))
    cluster.arrive()
    cluster.arrive()
    cluster.wait()


def waits_alone(A: Tensor) -> None:
    block_id((2 * ceil_div(A.shape[0], 32), 1))
    cluster.wait()


def never_waits(A: Tensor) -> None:
    block_id((2 * ceil_div(A.shape[0], 32), 1))
    cluster.arrive()


def rank_without_a_grid(A: Tensor) -> None:
    assert A is not None
    block_id((cluster.rank, 1))


def sent_to_nobody(A: Tensor) -> None:
    block_id((2 * ceil_div(A.shape[0], 32), 1))
    done = barrier(1)
    with role("load", warpgroup(0).elected):
        copy(A.tile((16, 16), (0, 0)), shared(bf16, (16, 16)), via=tma.multicast(()), signal=done, edge=0)


def waits_for_a_peer(A: Tensor) -> None:
    block_id((2 * ceil_div(A.shape[0], 32), 1))
    done = barrier(1)
    with role("load", warpgroup(0).elected):
        done.of(1).wait(0)


REFUSED: tuple[tuple[Callable[[Tensor], None], tuple[int, ...], str], ...] = (
    (nine_blocks, (9,), "E230"),
    (an_odd_grid, (2, 1), "E230"),
    (a_rank_too_many, (2, 1), "E230"),
    (nine_blocks, (2, 1), "E230"),
    (meets_in_a_role, (2, 1), "E231"),
    (meets_in_a_branch, (2, 1), "E231"),
    (meets_in_a_branch, (1,), "E106"),
    (arrives_twice, (2, 1), "E231"),
    (waits_alone, (2, 1), "E231"),
    (never_waits, (2, 1), "E231"),
    (rank_without_a_grid, (2, 1), "E106"),
    (sent_to_nobody, (2, 1), "E106"),
    (waits_for_a_peer, (2, 1), "E501"),
)


@pytest.mark.parametrize(("body", "sizes", "code"), REFUSED, ids=[f"{c}-{b.__name__}-{len(s)}" for b, s, c in REFUSED])
def test_ill_formed_clusters_are_refused(body: Callable[[Tensor], None], sizes: tuple[int, ...], code: str) -> None:
    with pytest.raises(ArgusError) as caught:
        template(body, sizes).trace()
    assert caught.value.diagnostic.code == code


def test_without_the_check_a_grid_of_part_of_a_cluster_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """E230 alone refuses MB blocks in clusters of two."""
    odd = load("cluster_over_any_count", REJECTED)
    with pytest.raises(ArgusError) as caught:
        odd.trace()
    assert caught.value.diagnostic.code == "E230"
    assert "MB blocks along one axis are not always whole clusters of 2" in caught.value.diagnostic.message

    monkeypatch.setattr(clusters, "always_multiple", always)

    assert show(odd.trace().grid[0]) == "MB"
