"""Coalescing of global accesses: the memory segments that each wave or warp moves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from attrs import frozen

from argus.core.layout import IntArray, LayoutError, LayoutLike
from argus.core.memory.lane_accesses import Access, access_of, executions
from argus.core.target import Target


@frozen
class Segments:
    """The segments that an access to global memory moves.

    segment_bytes: of the target. counts: segments moved, by wave, then by vector of a thread. execution: wave and
    vector of the worst execution, the one with the most segments and, among these, the fewest useful bytes. Of the
    worst execution: touched, its segments from the buffer's start; lanes, the first lane that accesses each; requested,
    bytes summed over its lanes; useful, distinct bytes among them. all_useful: useful bytes of all executions.
    """

    segment_bytes: int
    counts: tuple[tuple[int, ...], ...]
    execution: tuple[int, int]
    touched: tuple[int, ...]
    lanes: tuple[int, ...]
    requested: int
    useful: int
    all_useful: int

    @property
    def count(self) -> int:
        """Segments that the worst execution moves."""
        return len(self.touched)

    @property
    def efficiency(self) -> Fraction:
        """Useful bytes of the worst execution over bytes moved."""
        return Fraction(self.useful, self.count * self.segment_bytes)

    @property
    def all_efficiency(self) -> Fraction:
        """Useful bytes over bytes moved, summed over all executions."""
        return Fraction(self.all_useful, sum(map(sum, self.counts)) * self.segment_bytes)


def coalescing(
    access: LayoutLike | Access,
    *,
    target: Target,
    element_bits: int,
    vector: int = 1,
    threads: int | None = None,
) -> Segments:
    """Segments touched in each execution of an access to a buffer that begins at a segment.

    access: thread -> first element of its vector, or (thread, value) -> element where `threads` is given; an
    `Access` carries vector and threads itself. Vectors may straddle segments.
    Raises LayoutError: E803 if a vector is not contiguous; E807 unless waves, vectors and bytes are whole; E810 if an
    offset in bits exceeds 62 bits.
    """
    given = access_of(access, vector, "read", threads, element_bits)
    width = given.vector * element_bits
    offsets = executions(given, target, element_bits)
    if width % 8 != 0 or np.any(offsets * element_bits % 8):
        raise LayoutError(
            "E807",
            f"vectors of {given.vector} elements of {element_bits} bits at {given.offsets} are not whole bytes",
            help="move a whole number of bytes, beginning at a byte",
        )
    addresses = (offsets * element_bits // 8).reshape(-1, target.unit)
    return _segments(addresses, width // 8, target, offsets.shape[1])


def _segments(addresses: IntArray, width: int, target: Target, vectors: int) -> Segments:
    """The segments of all executions. addresses: bytes, shape (executions, lanes). width: bytes of a vector."""
    # All addresses and sizes are multiples of the grain, so the code counts grains instead of bytes.
    grain = int(np.gcd.reduce(addresses, axis=None, initial=np.gcd(width, target.segment_bytes)))
    grains = (addresses // grain)[:, :, None] + np.arange(width // grain)
    segments = grains // (target.segment_bytes // grain)
    useful, moved = _count_distinct(grains) * grain, _count_distinct(segments)
    worst = int(np.lexsort((useful, -moved))[0])
    first = _first_lanes(segments[worst])
    return Segments(
        segment_bytes=target.segment_bytes,
        counts=tuple(map(tuple, moved.reshape(-1, vectors).tolist())),
        execution=divmod(worst, vectors),
        touched=tuple(first),
        lanes=tuple(first.values()),
        requested=target.unit * width,
        useful=int(useful[worst]),
        all_useful=int(useful.sum()),
    )


def _count_distinct(values: IntArray) -> IntArray:
    """Number of distinct values per execution, the first axis of `values`."""
    ordered = np.sort(values.reshape(len(values), -1), axis=1)
    return 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)


def _first_lanes(segments: IntArray) -> dict[int, int]:
    """Segment -> the first lane that accesses it, ascending. segments: shape (lanes, grains)."""
    first: dict[int, int] = {}
    for lane, row in enumerate(segments.tolist()):
        for segment in row:
            first.setdefault(segment, lane)
    return dict(sorted(first.items()))
