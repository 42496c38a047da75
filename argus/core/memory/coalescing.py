"""Coalescing of global accesses: the segments of memory that each wave or warp moves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from attrs import frozen

from argus.core.layout import IntArray, LayoutError, LayoutLike
from argus.core.memory.lane_accesses import Access, access_of, executions
from argus.core.target import Target


@frozen
class Segments:
    """What an access to global memory moves.

    segment_bytes: the target's. counts: segments moved, by wave, then by vector of a thread. execution: wave and
    vector of the worst, which moves the most segments and, of these, has the fewest useful bytes.
    Of the worst: touched, its segments from the buffer's start; lanes, the first that touches each; requested, bytes
    summed over its lanes; useful, different bytes among them. all_useful: useful bytes summed over executions.
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
        """The same over all executions, each moving its own segments."""
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
    Raises LayoutError: E803 if a vector is not contiguous; E807 if threads are no whole waves, values no whole
    vectors, or a vector is not whole bytes; E810 if an offset in bits has more than 62 bits.
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
    """addresses: bytes, shape (executions, lanes); width in bytes."""
    # All bounds are multiples of the grain, so grains stand for bytes.
    grain = int(np.gcd.reduce(addresses, axis=None, initial=np.gcd(width, target.segment_bytes)))
    grains = (addresses // grain)[:, :, None] + np.arange(width // grain)
    segments = grains // (target.segment_bytes // grain)
    useful, moved = _different(grains) * grain, _different(segments)
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


def _different(values: IntArray) -> IntArray:
    """Per execution, the number of different values. values: first axis executions."""
    ordered = np.sort(values.reshape(len(values), -1), axis=1)
    return 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)


def _first_lanes(segments: IntArray) -> dict[int, int]:
    """Segment -> the first lane that touches it, by segment. segments: shape (lanes, grains)."""
    first: dict[int, int] = {}
    for lane, row in enumerate(segments.tolist()):
        for segment in row:
            first.setdefault(segment, lane)
    return dict(sorted(first.items()))
