"""Accesses as layouts: the elements of a buffer that the lanes of each wave or warp access in each execution."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import frozen

from argus.core.layout import TV, ComposedLayout, IntArray, LayoutError, LayoutLike, Swizzle, make_layout
from argus.core.layout.images.tables import LARGEST
from argus.core.phases import Direction
from argus.core.target import Target


@frozen
class Access:
    """The elements of one buffer that the threads of a block access.

    offsets: thread -> first element of its vector, in elements from the buffer's start. If `threads` is given, it is
    (thread, value) -> element instead, threads first, as in CuTe's composition of a layout with a thread-value layout:
    each execution then moves the next vector of each thread's values.
    vector: consecutive elements that a lane moves in one execution.
    """

    offsets: LayoutLike
    vector: int = 1
    direction: Direction = "read"
    threads: int | None = None

    @classmethod
    def of(cls, by: TV, memory: LayoutLike, vector: int = 1, direction: Direction = "read") -> Access:
        """The access in which value v of thread t is element `memory(by(t, v))`.

        memory: a layout of the tile of `by`, first axis fastest. Raises LayoutError (E803) if their sizes differ.
        """
        elements = prod(by.tile)
        if not isinstance(memory, Swizzle) and memory.size() != elements:
            raise LayoutError(
                "E803",
                f"{memory} has {memory.size()} elements, the tile {by.tile} of {by} has {elements}",
                help="give the layout of the tile that the threads move",
            )
        fragment = make_layout(by.threads, by.values)
        return cls(ComposedLayout(memory, 0, fragment), vector, direction, by.threads.size())


def access_of(
    access: LayoutLike | Access, vector: int, direction: Direction, threads: int | None, element_bits: int
) -> Access:
    """The `Access` itself, or one from a layout and these arguments. Raises LayoutError (E807) for empty vectors."""
    given = access if isinstance(access, Access) else Access(access, vector, direction, threads)
    if element_bits < 1 or given.vector < 1:
        raise LayoutError(
            "E807",
            f"a lane moves {given.vector} elements of {element_bits} bits at {given.offsets}",
            help="give vectors of 1 element at least, and elements of 1 bit at least",
        )
    return given


def executions(access: Access, target: Target, element_bits: int = 1) -> IntArray:
    """Offsets of each vector's first element, shape (waves, vectors of a thread, lanes).

    Raises LayoutError: E807 unless waves and vectors are whole, E803 with the index if a vector is not contiguous, E810
    if an offset in bits exceeds 62 bits.
    """
    images = access.offsets.table()
    threads = len(images) if access.threads is None else access.threads
    vector = 1 if access.threads is None else access.vector
    if access.vector < 1 or threads < 1 or len(images) % (threads * vector) != 0:
        raise LayoutError(
            "E807",
            f"{access.offsets} has {len(images)} elements: not {threads} threads with vectors of {access.vector}",
            help="give each thread whole vectors",
        )
    if threads % target.unit != 0:
        raise LayoutError(
            "E807",
            f"{access.offsets} has {threads} threads, {target} runs {target.unit} together: the last are incomplete",
            help=f"give a multiple of {target.unit} threads",
        )
    vectors = images.reshape(-1, vector, threads)
    _check_contiguous(access, vectors)
    _check_bit_range(access, vectors, element_bits)
    return by_wave(vectors[:, 0, :].T, target.unit)


def _check_bit_range(access: Access, offsets: IntArray, element_bits: int) -> None:
    bits = (max(int(offsets.max()), -int(offsets.min())) + access.vector) * element_bits
    if bits >= LARGEST:
        raise LayoutError(
            "E810",
            f"{access.offsets} reaches bit {bits}, a number of {bits.bit_length()} bits; "
            f"offsets are counted in {LARGEST.bit_length() - 1}",
            help="use smaller strides, or count offsets from another element",
        )


def by_wave(firsts: IntArray, unit: int) -> IntArray:
    """Reshape (threads, vectors) to (waves, vectors, lanes)."""
    return firsts.reshape(-1, unit, firsts.shape[1]).transpose(0, 2, 1)


def _check_contiguous(access: Access, vectors: IntArray) -> None:
    """Raise LayoutError (E803) unless vectors are contiguous. vectors: offsets, shape (vectors, elements, threads)."""
    wanted: IntArray = vectors[:, :1, :] + np.arange(vectors.shape[1], dtype=np.int64)[None, :, None]
    wrong = np.flatnonzero(vectors != wanted)
    if len(wrong) == 0:
        return
    index = int(wrong[0])
    value, thread = divmod(index, vectors.shape[2])
    expected, found = int(wanted.flat[index]), int(vectors.flat[index])
    raise LayoutError(
        "E803",
        f"value {value} of thread {thread} is element {found}, expected {expected}: a vector of "
        f"{access.vector} is not contiguous",
        help="use a smaller vector, or give each thread consecutive elements",
        index=index,
        expected=expected,
        found=found,
    )
