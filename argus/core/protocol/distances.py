"""Shortest distances in an event graph, whose edges mean: a(u) happens before b(u + weight).

Part of the event-graph semantics. A node is an event and a residue of its use modulo the graph's period.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from attrs import frozen

Event = str
Edge = tuple[Event, int, Event, int]
"""(source, residue, target, weight): from the event of each use with this residue to that of the use `weight` later."""


@frozen(eq=False)
class Distances:
    """Shortest distances of all pairs; inf where nothing orders them. hop: the next node on a shortest path."""

    period: int
    index: dict[tuple[Event, int], int]
    least: npt.NDArray[np.float64]
    hop: npt.NDArray[np.int64]

    def between(self, source: Event, use: int, target: Event) -> npt.NDArray[np.float64]:
        """For each residue of the target, the shortest distance from the source's event of that use."""
        row = self.least[self.index[source, use % self.period]]
        return np.array([row[self.index[target, residue]] for residue in range(self.period)])

    def ordered(self, source: Event, use: int, target: Event, later: int) -> bool:
        """Whether source(use) happens before target(later), also if a multiple of the period is added to both."""
        if (source, use % self.period) not in self.index or (target, later % self.period) not in self.index:
            return False
        a, b = self.index[source, use % self.period], self.index[target, later % self.period]
        return bool(self.least[a, b] <= later - use)

    def cycle(self) -> tuple[Event, ...]:
        """The events of a cycle of nonpositive weight; empty if there is none."""
        stuck = np.flatnonzero(np.diagonal(self.least) <= 0)
        if not len(stuck):
            return ()
        names = {number: event for (event, _), number in self.index.items()}
        node, seen = int(stuck[0]), list[int]()
        goal = node
        while node not in seen:
            seen.append(node)
            node = int(self.hop[node, goal])
        return tuple(dict.fromkeys(names[each] for each in seen[seen.index(node) :]))


def distances(period: int, events: Iterable[Event], edges: Iterable[Edge]) -> Distances:
    """The Floyd-Warshall algorithm. The distance of a node to itself is that of its shortest cycle."""
    index = {(event, residue): 0 for event in events for residue in range(period)}
    index = {key: number for number, key in enumerate(index)}
    size = len(index)
    least = np.full((size, size), np.inf)
    hop = np.full((size, size), -1, dtype=np.int64)
    for source, residue, target, weight in edges:
        a, b = index[source, residue], index[target, (residue + weight) % period]
        if weight < least[a, b]:
            least[a, b], hop[a, b] = weight, b
    for middle in range(size):
        through = least[:, middle, None] + least[None, middle, :]
        better = through < least
        least = np.where(better, through, least)
        hop = np.where(better, hop[:, middle, None], hop)
    return Distances(period, index, least, hop)
