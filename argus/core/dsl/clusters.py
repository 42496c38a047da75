"""Clusters: the block's rank among those that run with it, where they meet, and copies into several of them."""

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
from argus.core.ir import Sync
from argus.core.walk import show


class Cluster:
    """The blocks that run together with this one."""

    @property
    def rank(self) -> Int:
        """This block's number in its cluster. Raises E106 before the grid is declared."""
        tracer = current("cluster.rank")
        if tracer.rank is None:
            help_ = "call `persistent` or `block_id` first"
            fault("E106", "the rank of a block whose grid is not declared yet", help=help_)
        return Int(tracer.rank)

    def sync(self) -> None:
        """Until every thread of every block of the cluster is here."""
        self._meet("meet")

    def arrive(self) -> None:
        """The first half of a meeting: this thread is here."""
        self._meet("arrive")

    def wait(self) -> None:
        """The second half: until all are."""
        self._meet("wait")

    def _meet(self, how: Literal["meet", "arrive", "wait"]) -> None:
        tracer = current("cluster.sync")
        if prod(tracer.cluster) == 1:
            fault("E106", "a meeting of a cluster in a kernel without one", help="write `@kernel(cluster=(2, 1))`")
        tracer.emit(Sync("cluster", how, span=tracer.span()))


cluster = Cluster()


@frozen
class Multicast:
    """Boxes copied into the same place of several blocks of the cluster. ranks: of those blocks."""

    atoms: tuple[Atom, ...]
    ranks: tuple[IntLike, ...]


class Boxes(tuple[Atom, ...]):
    """`via=tma`: copies of boxes of a tensor."""

    __slots__ = ()

    def multicast(self, ranks: tuple[IntLike, ...]) -> Multicast:
        """A load that lands in each block of the cluster with one of these ranks, and on its barrier there."""
        return Multicast(tuple(self), tuple(axis_values(ranks, "a multicast")))


tma = Boxes((*sm_90a_tma.tma_load, *sm_90a_tma.tma_load_more, *sm_90a_tma.tma_store, *sm_90a_tma.tma_store_more))


def ranked_peer(tracer: Tracer, rank: IntLike) -> Index:
    """The rank of a block of this cluster. Raises E230 for what may be none."""
    node, blocks = uniform_index(rank), prod(tracer.cluster)
    low, high = node.range
    if low is None or high is None or low < 0 or high >= blocks:
        what = f"rank {show(node)} in a cluster of {blocks}"
        fault("E230", what, help=f"give a number that is known to be from 0 to {blocks - 1}")
    return node


def rank_mask(tracer: Tracer, ranks: Sequence[IntLike]) -> Index:
    """The blocks with these ranks, a bit each. Raises E106 for none."""
    if not ranks:
        fault("E106", "a multicast to nobody", help="name the ranks that receive it: `tma.multicast((0, 1))`")
    found: Index = algebra.const(0)
    for rank in ranks:
        found = algebra.bit_or(found, algebra.shift_left(algebra.const(1), ranked_peer(tracer, rank)))
    return found
