"""`BinaryMatrix`: functions of power-of-two size that are linear over bits, as matrices over F2.

If f(x ^ y) = f(x) ^ f(y) for all x and y as bit vectors, f is a matrix over F2 [Zhou 2025, Linear layouts]. This holds
for all swizzles, and for layouts of power-of-two extents whose strides never carry into each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.layout.coalesce import coalesce_modes
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.f2.elimination import echelon, xor_columns
from argus.core.layout.f2.linear import columns_of, factor_swizzle, overlapping_columns
from argus.core.layout.faults import LayoutError, misplaced
from argus.core.layout.values import Layout, of_modes


@frozen
class BinaryMatrix:
    """A matrix over F2. columns: `columns[k]` is the image of 1 << k; its bit r is row r. rows: number of rows.

    Calling it on an index returns the image: the xor of the columns selected by the bits of the index.
    Raises LayoutError (E809) unless 0 <= column < 2**rows for each column.
    """

    columns: tuple[int, ...] = field(converter=tuple[int, ...])
    rows: int

    def __attrs_post_init__(self) -> None:
        wrong = [column for column in self.columns if column < 0 or column.bit_length() > self.rows]
        if wrong or self.rows < 0:
            raise LayoutError(
                "E809",
                f"a column {wrong[0]} is no vector of {self.rows} bits" if wrong else f"a matrix of {self.rows} rows",
                help="give columns from 0 to 2**rows - 1",
            )

    @classmethod
    def of(cls, f: LayoutLike, rows: int | None = None) -> BinaryMatrix:
        """The matrix of a function of power-of-two size. rows: by default as many as the images need.

        Raises LayoutError: E809 with the smallest index at which f is not linear, or for too few rows; E810.
        """
        columns = columns_of(f)
        return cls(columns, max((c.bit_length() for c in columns), default=0) if rows is None else rows)

    @classmethod
    def identity(cls, bits: int) -> BinaryMatrix:
        return cls([1 << bit for bit in range(bits)], bits)

    @classmethod
    def zeros(cls, rows: int, columns: int) -> BinaryMatrix:
        return cls([0] * columns, rows)

    @classmethod
    def from_rows(cls, rows: Sequence[int], columns: int) -> BinaryMatrix:
        """The matrix with these rows; bit k of a row is column k. Raises LayoutError (E809)."""
        return cls(rows, columns).transpose()

    @classmethod
    def from_array(cls, array: npt.ArrayLike) -> BinaryMatrix:
        """The matrix with these entries, shape (rows, columns). Raises LayoutError (E809) for others than 0 and 1."""
        entries = np.asarray(array)
        if entries.ndim != 2 or not np.isin(entries, (0, 1)).all():
            raise LayoutError(
                "E809",
                f"an array of shape {entries.shape} is no matrix of 0 and 1",
                help="give two axes, (rows, columns), and entries 0 and 1",
            )
        bits = cast(list[list[int]], entries.astype(np.int64).T.tolist())
        return cls([sum(bit << row for row, bit in enumerate(column)) for column in bits], entries.shape[0])

    def to_array(self) -> npt.NDArray[np.uint8]:
        """The entries, shape (rows, columns): `to_array() @ bits % 2` is the image of a vector of bits."""
        entries = np.zeros((self.rows, len(self.columns)), np.uint8)
        for place, column in enumerate(self.columns):
            entries[:, place] = [column >> row & 1 for row in range(self.rows)]
        return entries

    def to_layout(self) -> Layout:
        """The coalesced layout with the image of this matrix at each index.

        Raises LayoutError (E809) if and only if none exists: a layout adds images, which differs from xor where two
        columns share a set bit.
        """
        pair = overlapping_columns(self.columns)
        if pair is not None:
            raise self._overlap_error(pair, "no layout has", "use `to_layout_like`, which also tries a swizzle")
        return _layout(self.columns)

    def to_layout_like(self) -> Layout | ComposedLayout:
        """A layout, or else a swizzle after a layout, with the image of this matrix at each index.

        Raises LayoutError (E809) if no layout and no swizzle of either sign after a layout has this matrix.
        """
        pair = overlapping_columns(self.columns)
        if pair is None:
            return _layout(self.columns)
        found = factor_swizzle(self.columns)
        if found is None:
            raise self._overlap_error(pair, "no layout and no swizzled one has", "keep it, or split it into a product")
        swizzle, inner = found
        return ComposedLayout(swizzle, 0, _layout(inner))

    def _overlap_error(self, pair: tuple[int, int], refusal: str, repair: str) -> LayoutError:
        """E809: the smallest index at which the sum of images is not their xor."""
        low, high = self.columns[pair[0]], self.columns[pair[1]]
        return LayoutError(
            "E809",
            f"{refusal} this matrix: its columns {pair[0]} and {pair[1]}, {low} and {high}, have a bit in common",
            help=repair,
            index=(1 << pair[0]) | (1 << pair[1]),
            expected=low ^ high,
            found=low + high,
        )

    def __call__(self, index: int) -> int:
        """The image of an index below 2**columns. Raises LayoutError (E803) for other indices."""
        if not 0 <= index < self.size():
            raise misplaced(f"index {index} is outside a matrix of {len(self.columns)} columns", "use fewer bits")
        return xor_columns(self.columns, index)

    def size(self) -> int:
        """The number of indices, 2**columns."""
        return 1 << len(self.columns)

    def __matmul__(self, other: BinaryMatrix) -> BinaryMatrix:
        """The composition x -> self(other(x)); missing rows of `other` count as 0. Raises LayoutError (E803)."""
        if other.rows > len(self.columns):
            raise misplaced(
                f"a matrix of {len(self.columns)} columns takes no images of {other.rows} bits",
                "add columns to the left matrix, or build the right one with fewer rows",
            )
        return BinaryMatrix([xor_columns(self.columns, column) for column in other.columns], self.rows)

    def transpose(self) -> BinaryMatrix:
        rows = [
            sum((column >> row & 1) << place for place, column in enumerate(self.columns)) for row in range(self.rows)
        ]
        return BinaryMatrix(rows, len(self.columns))

    def rank(self) -> int:
        """The dimension of the image: there are 2**rank images."""
        return len(echelon(self.columns).pivots)

    def kernel(self) -> tuple[int, ...]:
        """A basis of the indices with image 0, ascending; its first element is the smallest nonzero one."""
        return echelon(self.columns).kernel

    def image(self) -> tuple[int, ...]:
        """The reduced basis of the images, ascending: equal for matrices with equal images."""
        return tuple(vector for _, vector, _ in echelon(self.columns).pivots)

    def is_injective(self) -> bool:
        return self.rank() == len(self.columns)

    def is_surjective(self) -> bool:
        """Whether each of 0 .. 2**rows - 1 is an image."""
        return self.rank() == self.rows

    def is_permutation(self) -> bool:
        """Whether the function is a permutation of 0 .. 2**rows - 1, that is, whether the matrix is regular."""
        return self.rows == len(self.columns) == self.rank()

    def inverse(self) -> BinaryMatrix:
        """The matrix X with X @ self = self @ X = identity.

        Raises LayoutError (E806) if there is none, with the smallest nonzero index of image 0 if one exists, else the
        smallest value that is not an image.
        """
        form = echelon(self.columns)
        if form.kernel:
            index = form.kernel[0]
            raise _singular(f"index {index} has the image 0, as 0 has", index, None, 0)
        if len(form.pivots) < self.rows:
            missing = next(1 << row for row in range(self.rows) if form.coordinates(1 << row) is None)
            raise _singular(f"{missing} is no image", None, missing, None)
        return self.pseudo_inverse()

    def pseudo_inverse(self) -> BinaryMatrix:
        """G with self @ G @ self = self and G @ self @ G = G; it maps each image to its smallest index.

        G is the inverse of a regular matrix, a left inverse of an injective one, a right inverse of a surjective one.
        """
        named = {bit: names for bit, _, names in echelon(self.columns).pivots}
        # G depends on the pivot bits only: it is 0 on the other unit vectors, which span a complement of the image.
        return BinaryMatrix([named.get(row, 0) for row in range(self.rows)], len(self.columns))

    def solve(self, other: BinaryMatrix) -> BinaryMatrix:
        """X with self @ X = other, whose image at each index is the smallest possible.

        Raises LayoutError (E806) with the smallest index at which the image of `other` is not an image of self.
        """
        form = echelon(self.columns)
        columns: list[int] = []
        for bit, column in enumerate(other.columns):
            coordinates = form.coordinates(column)
            if coordinates is None:
                raise _singular(f"{column}, the other's image of {1 << bit}, is no image", 1 << bit, None, column)
            columns.append(coordinates)
        return BinaryMatrix(columns, len(self.columns))

    def invert_and_compose(self, outer: BinaryMatrix) -> BinaryMatrix:
        """X with outer @ X = self, Triton's `invertAndCompose`; equals `outer.solve(self)`. Raises like `solve`."""
        return outer.solve(self)

    def __str__(self) -> str:
        """The rows as lines of 0 and 1, row 0 first."""
        return "\n".join("".join(map(str, cast(list[int], row))) for row in self.to_array().tolist())


def equal(f: LayoutLike, g: LayoutLike) -> bool:
    """Whether two functions of power-of-two size have the same size and images, compared as matrices.

    Raises LayoutError: E809 for other sizes or if neither function is linear over F2; E810 if a table is too large.
    """
    left, right = _columns_or_error(f), _columns_or_error(g)
    if isinstance(left, LayoutError) and isinstance(right, LayoutError):
        raise left
    return left == right


def _columns_or_error(f: LayoutLike) -> tuple[int, ...] | LayoutError:
    try:
        return columns_of(f)
    except LayoutError as fault:
        if fault.code == "E809" and fault.index is not None:
            return fault
        raise


def _layout(columns: tuple[int, ...]) -> Layout:
    """The layout whose images of 1, 2, 4, ... are these columns, which must be disjoint."""
    return of_modes(coalesce_modes(tuple([(2, column) for column in columns])))


def _singular(fact: str, index: int | None, expected: int | None, found: int | None) -> LayoutError:
    return LayoutError(
        "E806",
        f"the matrix has no inverse there: {fact}",
        help="use `pseudo_inverse`, which maps each image to its smallest index",
        index=index,
        expected=expected,
        found=found,
    )
