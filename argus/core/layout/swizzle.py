"""`Swizzle`: a permutation of integers that XORs some bits of an integer into others."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, too_large
from argus.core.layout.inttuple import integer
from argus.core.layout.values import IntArray, Integers, indices_of

_MAX_BIT = 1000
"""The highest bit that a swizzle may read or write; bounds the length of its text."""


def _parameter(value: int) -> int:
    return integer(value, "a parameter of a swizzle")


@frozen
class Swizzle:
    """CuTe's `Sw<bits, base, shift>`, an involution of the integers.

    With shift > 0, bits [base+shift, base+shift+bits) are XORed into bits [base, base+bits); with shift < 0, bits
    [base, base+bits) are XORed into bits [base-shift, base-shift+bits). Shift 0 requires bits 0, the identity.
    Raises LayoutError (E808) unless bits >= 0, base >= 0 and |shift| >= bits.
    """

    bits: int = field(converter=_parameter)
    base: int = field(converter=_parameter)
    shift: int = field(converter=_parameter)

    def __attrs_post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits or self.base + abs(self.shift) > _MAX_BIT:
            raise LayoutError(
                "E808",
                f"{self}: the bits that it reads and those that it writes must not overlap, nor exceed bit {_MAX_BIT}",
                help="use bits >= 0, base >= 0 and abs(shift) >= bits",
            )

    @property
    def period(self) -> int:
        """The size of the aligned blocks, in elements, that the swizzle permutes internally."""
        return 1 << (self.base + abs(self.shift) + self.bits)

    def size(self) -> int:
        """CuTe's size of the domain: one period. The swizzle is defined on all integers."""
        return self.period

    def cosize(self) -> int:
        return self.period

    @property
    def source(self) -> int:
        """Mask of the bits that the swizzle reads."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    def __call__(self, offset: int) -> int:
        read = offset & self.source
        return offset ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def table(self) -> IntArray:
        """The images of one period. Raises LayoutError (E810) above TABLE_LIMIT elements."""
        if self.period > TABLE_LIMIT:
            raise too_large(f"{self} has a period of {self.period}")
        return self.images(np.arange(self.period, dtype=np.int64))

    def images(self, offsets: Integers) -> IntArray:
        """The image of each offset. Raises LayoutError: E801 for non-integers, E810 beyond 62 bits."""
        found = indices_of(offsets)
        if self.period >> 62:
            raise too_large(f"{self} has a period of {self.period}")
        read = found & self.source
        return found ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def at(self, offset: Index) -> Index:
        """The swizzled offset as an expression."""
        if self.bits == 0:
            return offset
        first = self.base + max(0, self.shift)
        read = algebra.mod(algebra.floordiv(offset, 1 << first), 1 << self.bits)
        return algebra.bit_xor(offset, algebra.mul(read, 1 << (first - self.shift)))

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


def make_swizzle(read: int, written: int) -> Swizzle:
    """The swizzle that XORs the bits of mask `read` into those of `written`, CuTe's make_swizzle<Y, Z>.

    Raises LayoutError (E808) unless the masks are runs of equally many bits that do not overlap.
    """
    sources, targets = integer(read, "a mask"), integer(written, "a mask")
    if sources == targets == 0:
        return Swizzle(0, 0, 0)
    if min(sources, targets) > 0:
        first, last = _lowest_bit(sources), _lowest_bit(targets)
        bits, base = sources.bit_count(), min(first, last)
        run = (1 << bits) - 1
        if (sources, targets) == (run << first, run << last) and abs(first - last) >= bits:
            return Swizzle(bits, base, first - last)
    raise LayoutError(
        "E808",
        f"the masks {sources:#b} and {targets:#b}: expected two runs of equally many bits that do not overlap",
        help="give masks such as 0b11000000 and 0b00000110",
    )


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
