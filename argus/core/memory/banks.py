"""Bank conflicts in shared memory, and the search for a swizzle without them.

Shared memory has banks of 4 bytes; word w is in bank w mod banks. The lanes of one phase are served together, in as
many cycles as the most accessed bank has distinct words: the degree of the conflict. Lanes that access the same word
share it. Vectors are aligned, so a buffer's start address changes no degree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from attrs import frozen

from argus.core.layout import IntArray, LayoutError, LayoutLike, Swizzle
from argus.core.memory.lane_accesses import Access, access_of, executions
from argus.core.phases import PHASES, Direction, Phases
from argus.core.target import Target

BANK_BYTES = 4


@frozen
class Conflict:
    """The worst bank conflict of an access: `degree` distinct words of one bank in one phase.

    words: these words. lanes: one accessing lane for each. execution: wave and vector index within a thread of the
    first occurrence.
    """

    degree: int
    bank: int
    lanes: tuple[int, ...]
    words: tuple[int, ...]
    execution: tuple[int, int] = (0, 0)


def bank_conflicts(
    access: LayoutLike | Access,
    *,
    target: Target,
    element_bits: int,
    vector: int = 1,
    direction: Direction = "read",
    threads: int | None = None,
) -> Conflict:
    """The worst conflict over all waves, vectors and phases of an access to shared memory.

    access: thread -> first element of its vector, or (thread, value) -> element where `threads` is given; an
    `Access` carries vector, direction and threads itself. Every execution is checked.
    Raises LayoutError: E803 if the target has no phases for vectors of this width or a vector is not contiguous,
    E807 if threads are no whole waves, values no whole vectors, or a vector is not aligned to its width; E810 if an
    offset in bits has more than 62 bits.
    """
    given = access_of(access, vector, direction, threads, element_bits)
    phases = _phases(given, target, element_bits)
    offsets = executions(given, target, element_bits)
    _check_alignment(given, offsets)
    return worst_conflict(offsets * element_bits // 8, phases, given.vector * element_bits // 8, target.banks)


def find_swizzle(
    access: LayoutLike | Access,
    *others: LayoutLike | Access,
    target: Target,
    element_bits: int,
    vector: int = 1,
    direction: Direction = "read",
    threads: int | None = None,
    degree: int = 1,
    size: int | None = None,
) -> Swizzle:
    """The smallest swizzle of the buffer with which every access has conflicts of at most `degree`.

    access, others: accesses to one buffer, with unswizzled offsets, as for `bank_conflicts`. size: elements of the
    buffer, a multiple of the swizzle's period (None: a power of two). Smallest: fewest bits, then smallest shift, then
    smallest base; bits 0 is the identity. The swizzle keeps vectors whole and has a positive shift: a negative one only
    permutes the banks, which changes no degree. The result holds for all executions; each is checked. Raises
    LayoutError: E812 with the best that exists, E803 for offsets below 0, and as `bank_conflicts` does.
    """
    given = [access_of(each, vector, direction, threads, element_bits) for each in (access, *others)]
    served = tuple(_phased_access(access, target, element_bits) for access in given)
    reached, swizzle = best_swizzle(served, element_bits=element_bits, banks=target.banks, degree=degree, size=size)
    if reached > degree:
        room = "" if size is None else f" within {size} elements"
        what = " and ".join(str(access.offsets) for access in given)
        raise LayoutError(
            "E812",
            f"no swizzle of whole vectors{room} brings {what} to degree {degree} on "
            f"{target}; the best is {reached}, with {swizzle}",
            help=f"pad the rows, change which thread moves which element, or allow degree {reached}",
        )
    return swizzle


@frozen(eq=False)
class PhasedAccess:
    """The executions of one access: offsets of each lane's first element, shape (executions, lanes), and its phases."""

    offsets: IntArray
    vector: int
    phases: Phases


def best_swizzle(
    accesses: Sequence[PhasedAccess], *, element_bits: int, banks: int, degree: int, size: int | None
) -> tuple[int, Swizzle]:
    """(degree, swizzle): the smallest swizzle with at most `degree`, or else the smallest of the least degree."""
    reached: tuple[int, Swizzle] | None = None
    row = (banks * BANK_BYTES * 8 // element_bits).bit_length() - 1
    top = max(int(access.offsets.max()) for access in accesses).bit_length()
    first = max(access.vector for access in accesses).bit_length() - 1
    degree_of = partial(_degree_with, element_bits=element_bits, banks=banks)
    for swizzle in _candidates(first, row, top):
        if size is not None and swizzle.bits > 0 and size % swizzle.period != 0:
            continue
        found = max(degree_of(access, swizzle) for access in accesses)
        if reached is None or found < reached[0]:
            reached = found, swizzle
        if found <= degree:
            break
    assert reached is not None
    return reached


def _candidates(first: int, row: int, top: int) -> Iterator[Swizzle]:
    """Swizzles from the smallest up. Any other swizzle of whole vectors has the same degrees as one of these.

    Offsets have bits below `top` only, so higher source bits read zeros. A degree depends only on the bits below `row`,
    which select the bank; a swizzle that writes none of them, or reads only from among them, permutes the banks. That
    covers negative shifts, which write above the bits that they read.
    """
    yield Swizzle(0, first, 0)
    for bits in range(1, row - first + 1):
        for shift in range(bits, top):
            for base in range(first, min(row, top - shift) - bits + 1):
                yield Swizzle(bits, base, shift)


def _degree_with(access: PhasedAccess, swizzle: Swizzle, *, element_bits: int, banks: int) -> int:
    words = _words(swizzle.images(access.offsets) * element_bits // 8, access.vector * element_bits // 8)
    return max(int(_degrees(words[:, served, :], banks).max()) for served in access.phases)


def _phased_access(access: Access, target: Target, element_bits: int) -> PhasedAccess:
    phases = _phases(access, target, element_bits)
    offsets = executions(access, target, element_bits)
    _check_alignment(access, offsets)
    if offsets.min() < 0:
        raise LayoutError(
            "E803",
            f"{access.offsets} reaches element {int(offsets.min())}, before the buffer",
            help="count offsets from the buffer's first element",
        )
    return PhasedAccess(np.unique(offsets.reshape(-1, target.unit), axis=0), access.vector, phases)


def _phases(access: Access, target: Target, element_bits: int) -> Phases:
    width = access.vector * element_bits
    phases = PHASES.get((target.name, access.direction, width))
    if phases is None:
        known = [bits for name, direction, bits in PHASES if (name, direction) == (target.name, access.direction)]
        raise LayoutError(
            "E803",
            f"a {access.direction} of {width} bits a lane has no phases in the table of {target}",
            help=f"use vectors of {' or '.join(map(str, known))} bits" if known else "use read or write",
        )
    return phases


def _check_alignment(access: Access, offsets: IntArray) -> None:
    """offsets: shape (waves, vectors, lanes)."""
    wrong = np.argwhere(offsets % access.vector != 0)
    if len(wrong) == 0:
        return
    waves, _, lanes = offsets.shape
    # The index counts threads first, then the values of a thread.
    index, found = min(
        (wave * lanes + lane + place * access.vector * waves * lanes, int(offsets[wave, place, lane]))
        for wave, place, lane in wrong.tolist()
    )
    raise LayoutError(
        "E807",
        f"thread {index % (waves * lanes)} has a vector at element {found}, not a multiple of {access.vector}",
        help="align each vector to its width, or use a smaller one",
        index=index,
        found=found,
    )


def worst_conflict(addresses: IntArray, phases: Phases, width: int, banks: int) -> Conflict:
    """The worst conflict over all executions and phases.

    addresses: bytes, shape (waves, vectors, lanes). width: bytes of a vector.
    """
    vectors, lanes = addresses.shape[1:]
    rows, places = np.unique(addresses.reshape(-1, lanes), axis=0, return_index=True)
    words = _words(rows, width)
    worst = Conflict(0, 0, (), ())
    for served in phases:
        seen = words[:, served, :]
        degrees = _degrees(seen, banks)
        row = int(degrees.argmax())
        if degrees[row] > worst.degree:
            worst = _conflict(seen[row], served, banks, divmod(int(places[row]), vectors))
    return worst


def cycles(addresses: IntArray, phases: Phases, width: int, banks: int) -> int:
    """Shared-memory cycles of all executions: each phase takes as many cycles as its degree.

    addresses: bytes, shape (waves, vectors, lanes); width in bytes.
    """
    rows, times = np.unique(addresses.reshape(-1, addresses.shape[2]), axis=0, return_counts=True)
    words = _words(rows, width)
    return int(sum((_degrees(words[:, served, :], banks) * times).sum() for served in phases))


def _words(addresses: IntArray, width: int) -> IntArray:
    """The words of each lane's vector: from shape (executions, lanes) to (executions, lanes, words)."""
    return addresses[:, :, None] // BANK_BYTES + np.arange(max(1, width // BANK_BYTES))


def _degrees(words: IntArray, banks: int) -> IntArray:
    """Per execution, the largest number of distinct words in one bank. words: (executions, lanes, words)."""
    count = len(words)
    ordered = np.sort(words.reshape(count, -1), axis=1)
    new = np.ones(ordered.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    places = ordered % banks + banks * np.arange(count)[:, None]
    return np.bincount(places[new], minlength=count * banks).reshape(count, banks).max(axis=1)


def _conflict(words: IntArray, served: tuple[int, ...], banks: int, execution: tuple[int, int]) -> Conflict:
    lane_of_word: dict[int, dict[int, int]] = defaultdict(dict)
    for lane, row in zip(served, words, strict=True):
        for word in row:
            lane_of_word[int(word) % banks].setdefault(int(word), lane)
    bank, found = max(lane_of_word.items(), key=lambda item: len(item[1]))
    return Conflict(len(found), bank, tuple(found.values()), tuple(found), execution)
