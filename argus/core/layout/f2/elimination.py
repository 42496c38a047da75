"""Gaussian elimination over F2: vectors are ints, bit k is coordinate k, xor is the sum."""

from __future__ import annotations

from attrs import frozen


@frozen
class Echelon:
    """The reduced echelon form of a list of columns.

    pivots: (bit, vector, combination) ascending: `bit` is the highest bit of the vector and set in no other vector; the
    columns selected by the bits of `combination` sum to the vector. Combinations select only columns that are
    independent of earlier columns. kernel: a basis of the combinations whose columns sum to 0, ascending; its first
    element is the smallest nonzero one.
    """

    pivots: tuple[tuple[int, int, int], ...]
    kernel: tuple[int, ...]

    def coordinates(self, vector: int) -> int | None:
        """The smallest combination of columns that sums to the vector; None if there is none.

        Two such combinations differ by a kernel element, whose highest bit no pivot selects; so this one is the
        smallest.
        """
        combination = 0
        rest = vector
        for bit, base, names in self.pivots:
            if vector >> bit & 1:
                rest ^= base
                combination ^= names
        return None if rest else combination


def echelon(columns: tuple[int, ...]) -> Echelon:
    """The reduced echelon form of the columns."""
    found: dict[int, tuple[int, int]] = {}
    kernel: list[int] = []
    for place, column in enumerate(columns):
        rest, names = column, 1 << place
        while rest and (bit := rest.bit_length() - 1) in found:
            rest ^= found[bit][0]
            names ^= found[bit][1]
        if rest:
            found[rest.bit_length() - 1] = rest, names
        else:
            kernel.append(names)
    return Echelon(tuple(_reduce(found)), tuple(kernel))


def _reduce(found: dict[int, tuple[int, int]]) -> list[tuple[int, int, int]]:
    pivots: list[tuple[int, int, int]] = []
    for bit in sorted(found):
        vector, names = found[bit]
        # Lower vectors are already reduced: adding one clears its own pivot bit and sets no other pivot bit.
        for low, base, combination in pivots:
            if vector >> low & 1:
                vector ^= base
                names ^= combination
        pivots.append((bit, vector, names))
    return pivots


def xor_columns(columns: tuple[int, ...], names: int) -> int:
    """The xor of the columns selected by the bits of `names`; bits beyond the columns must be 0."""
    total = 0
    while names:
        lowest = names & -names
        total ^= columns[lowest.bit_length() - 1]
        names ^= lowest
    return total
