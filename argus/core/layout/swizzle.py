"""`Swizzle`: a permutation of integers that xors some bits into others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, too_large

IntArray = npt.NDArray[np.int64]


@frozen
class Swizzle:
    """CuTe's `Sw<bits, base, shift>`, an involution of the integers.

    With shift > 0, bits [base, base+bits) take the xor of bits [base+shift, base+shift+bits); with shift < 0,
    bits [base-shift, base-shift+bits) take that of bits [base, base+bits). Shift 0 needs bits 0, the identity.
    Raises LayoutError (E808) unless bits >= 0, base >= 0 and |shift| >= bits.
    """

    bits: int
    base: int
    shift: int

    def __attrs_post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise LayoutError(
                "E808",
                f"{self}: the bits that are read and those that are written must not overlap",
                help="use bits >= 0, base >= 0 and abs(shift) >= bits",
            )

    @property
    def period(self) -> int:
        """The swizzle permutes each aligned block of this many elements."""
        return 1 << (self.base + abs(self.shift) + self.bits)

    def size(self) -> int:
        """CuTe's size of the domain: one period. The swizzle is defined on all integers."""
        return self.period

    def cosize(self) -> int:
        return self.period

    @property
    def source(self) -> int:
        """The mask of the bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    def __call__(self, offset: int) -> int:
        read = offset & self.source
        return offset ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def table(self) -> IntArray:
        """The images of one period. Raises LayoutError (E810) above TABLE_LIMIT elements."""
        if self.period > TABLE_LIMIT:
            raise too_large(f"{self} has a period of {self.period}")
        return self.images(np.arange(self.period, dtype=np.int64))

    def images(self, offsets: IntArray) -> IntArray:
        """The images of some offsets."""
        read = offsets & self.source
        return offsets ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def at(self, offset: Index) -> Index:
        """The swizzled offset as an expression."""
        if self.bits == 0:
            return offset
        first = self.base + max(0, self.shift)
        read = algebra.mod(algebra.floordiv(offset, 1 << first), 1 << self.bits)
        return algebra.bit_xor(offset, algebra.mul(read, 1 << (first - self.shift)))

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"
