"""Clusters in the language: a block's rank, cluster barriers and TMA multicasts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from attrs import frozen

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.atoms.sm_90a import tma as sm_90a_tma
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import Int, IntLike, axis_values, uniform_index
from argus.core.dsl.tracer import Tracer, current
from argus.core.index import Index
from argus.core.index_text import show
from argus.core.ir import Sync


class Cluster:
    """The cluster of the executing block."""

    @property
    def rank(self) -> Int:
        """This block's number in its cluster. Raises E106 before the grid is declared."""
        tracer = current("cluster.rank")
        if tracer.rank is None:
            help_ = "call `persistent` or `block_id` first"
            fault("E106", "the rank of a block whose grid is not declared yet", help=help_)
        return Int(tracer.rank)

    def sync(self) -> None:
        """A barrier of all threads of the cluster: arrive and wait."""
        self._emit("meet")

    def arrive(self) -> None:
        """Arrive at the cluster barrier without waiting."""
        self._emit("arrive")

    def wait(self) -> None:
        """Wait until all threads of the cluster have arrived."""
        self._emit("wait")

    def _emit(self, how: Literal["meet", "arrive", "wait"]) -> None:
        tracer = current("cluster.sync")
        if prod(tracer.cluster) == 1:
            fault("E106", "a cluster barrier in a kernel without clusters", help="write `@kernel(cluster=(2, 1))`")
        tracer.emit(Sync("cluster", how, span=tracer.span()))


cluster = Cluster()


@frozen
class Multicast:
    """TMA loads into the same shared memory offset of several blocks. ranks: of these blocks in the cluster."""

    atoms: tuple[Atom, ...]
    ranks: tuple[IntLike, ...]


class Boxes(tuple[Atom, ...]):
    """The instructions of `via=tma`, which copy boxes of a tensor."""

    __slots__ = ()

    def multicast(self, ranks: tuple[IntLike, ...]) -> Multicast:
        """A load that writes the shared memory, and completes on the barrier, of each block with one of these ranks."""
        return Multicast(tuple(self), tuple(axis_values(ranks, "a multicast")))


tma = Boxes((*sm_90a_tma.tma_load, *sm_90a_tma.tma_load_more, *sm_90a_tma.tma_store, *sm_90a_tma.tma_store_more))


def ranked_peer(tracer: Tracer, rank: IntLike) -> Index:
    """A rank in this cluster. Raises E230 unless its range is known to be within the cluster."""
    node, blocks = uniform_index(rank), prod(tracer.cluster)
    low, high = node.range
    if low is None or high is None or low < 0 or high >= blocks:
        what = f"rank {show(node)} in a cluster of {blocks}"
        fault("E230", what, help=f"give a rank whose range is within 0 to {blocks - 1}")
    return node


def rank_mask(tracer: Tracer, ranks: Sequence[IntLike]) -> Index:
    """The bit mask of these ranks. Raises E106 for no ranks."""
    if not ranks:
        fault("E106", "a multicast without receivers", help="name the ranks that receive it: `tma.multicast((0, 1))`")
    found: Index = algebra.const(0)
    for rank in ranks:
        found = algebra.bit_or(found, algebra.shift_left(algebra.const(1), ranked_peer(tracer, rank)))
    return found
