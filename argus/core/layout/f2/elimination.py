"""Elimination over F2: vectors are ints, bit k is coordinate k, xor is the sum."""

from __future__ import annotations

from attrs import frozen


@frozen
class Echelon:
    """The reduced echelon form of some columns.

    pivots: (bit, vector, combination) ascending: `bit` is the highest of the vector and set in no other one, and
    the columns that `combination` names sum to the vector. Only columns that no earlier ones generate are named.
    kernel: a basis of the combinations whose columns sum to 0, ascending; the first is the smallest of all but 0.
    """

    pivots: tuple[tuple[int, int, int], ...]
    kernel: tuple[int, ...]

    def coordinates(self, vector: int) -> int | None:
        """The smallest combination of columns that sums to the vector; None if there is none.

        Two combinations differ by one of the kernel, whose highest bit is never named here: so this is smallest.
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
    return Echelon(tuple(_reduced(found)), tuple(kernel))


def _reduced(found: dict[int, tuple[int, int]]) -> list[tuple[int, int, int]]:
    pivots: list[tuple[int, int, int]] = []
    for bit in sorted(found):
        vector, names = found[bit]
        # The vectors below are reduced already: each clears its own bit and sets no other pivot.
        for low, base, combination in pivots:
            if vector >> low & 1:
                vector ^= base
                names ^= combination
        pivots.append((bit, vector, names))
    return pivots


def combined(columns: tuple[int, ...], names: int) -> int:
    """The sum of the columns that the bits of `names` name; bits beyond the columns must be 0."""
    total = 0
    while names:
        lowest = names & -names
        total ^= columns[lowest.bit_length() - 1]
        names ^= lowest
    return total
