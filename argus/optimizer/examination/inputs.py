"""Operands that a candidate cannot foresee: normal numbers, and such as defeat a shortcut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, frozen
from ml_dtypes import bfloat16

Halves = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Shape = tuple[int, int, int]
_DRAWN = 4_194_301
"""Normal numbers that are drawn for one matrix; a prime, so that rows of a larger one differ."""
_DIRECTLY = 1 << 18
"""Elements of a matrix whose numbers are drawn one by one."""
_EXPONENTS = 20


@frozen(eq=False)
class Case:
    """left: A (m, k); right: B (n, k), of bfloat16. statistical: normal numbers, whose errors have known statistics."""

    left: Halves
    right: Halves
    statistical: bool = False

    @property
    def shape(self) -> Shape:
        return self.left.shape[0], self.right.shape[0], self.left.shape[1]


@define(slots=False)
class Draws:
    """Numbers from a seed; constant: the same ones each time."""

    seed: int
    constant: bool = False
    drawn: int = 0

    def generator(self) -> np.random.Generator:
        """Another one each time."""
        self.drawn += 1
        return np.random.default_rng([self.seed, self.drawn])

    def normal(self, shape: Shape) -> Case:
        """Normal numbers; large matrices are pieces of one, from a place and with signs of rows that nobody knows."""
        m, n, k = shape
        if self.constant:
            return normal(np.random.default_rng(0), shape)
        if max(m, n) * k <= _DIRECTLY:
            return normal(self.generator(), shape)
        generator = self.generator()
        return Case(self._piece(generator, m, k), self._piece(generator, n, k), statistical=True)

    def _piece(self, generator: np.random.Generator, rows: int, columns: int) -> Halves:
        start = int(generator.integers(0, _DRAWN))
        found = np.resize(np.roll(self._pool, start), (rows, columns)).view(np.uint16)
        found ^= generator.integers(0, 2, (rows, 1), np.uint16) << np.uint16(15)
        return found.view(bfloat16)

    @cached_property
    def _pool(self) -> Halves:
        return self.generator().standard_normal(_DRAWN, np.float32).astype(bfloat16)

    def odd_shapes(self, count: int) -> list[Shape]:
        """One smallest shape, and some that are no multiples of tiles; rows of operands are of 16 bytes."""
        found: list[Shape] = [(1, 8, 8)]
        for _ in range(count):
            generator = self.generator()
            m, n, k = generator.integers(2, 300), generator.integers(1, 36), generator.integers(1, 40)
            found.append((2 * int(m) + 1, 8 * int(n), 8 * int(k)))
        return found


def normal(generator: np.random.Generator, shape: Shape) -> Case:
    """Operands whose numbers are drawn one by one."""
    m, n, k = shape
    left, right = (generator.standard_normal((rows, k), np.float32).astype(bfloat16) for rows in (m, n))
    return Case(left, right, statistical=True)


@frozen(slots=False)
class _Hostile:
    """Operands of one shape, each kind with its own reason."""

    generator: np.random.Generator
    shape: Shape

    @cached_property
    def plain(self) -> tuple[Floats, Floats]:
        m, n, k = self.shape
        draw = self.generator.standard_normal
        return draw((m, k), np.float32), draw((n, k), np.float32)

    def zeros_but_few(self) -> tuple[Floats, Floats]:
        """All zeros but a tenth of the rows, never the first: who looks at some elements sees zeros."""
        left, right = self.plain
        kept = self.generator.random(len(left)) < 0.1
        kept[0], kept[-1] = False, True
        return left * kept[:, None], right

    def alike_but_one(self) -> tuple[Floats, Floats]:
        """Equal numbers everywhere but in one place of each row."""
        left, right = self.plain
        same = np.ones_like(left)
        same[np.arange(len(left)), self.generator.integers(0, left.shape[1], len(left))] = 3
        return same, right

    def one_hot(self) -> tuple[Floats, Floats]:
        """Each row picks a column of the other operand: results are exact."""
        left, right = self.plain
        picked = np.zeros_like(left)
        picked[np.arange(len(left)), self.generator.integers(0, left.shape[1], len(left))] = 1
        return picked, right

    def huge_range(self) -> tuple[Floats, Floats]:
        left, right = self.plain
        scales = self.generator.integers(-_EXPONENTS, _EXPONENTS, left.shape)
        return np.ldexp(left, scales).astype(np.float32), right

    def cancelled(self) -> tuple[Floats, Floats]:
        """Large numbers that cancel, so that small ones remain."""
        left, right = self.plain
        half = left.shape[1] // 2
        left[:, half : 2 * half] = -left[:, :half]
        right[:, half : 2 * half] = right[:, :half]
        left[:, :half] *= 1024
        left[:, half : 2 * half] *= 1024
        right[:, 0] *= 2
        return left, right

    def repeated_rows(self) -> tuple[Floats, Floats]:
        """Few rows, in random order and with random signs."""
        left, right = self.plain
        order = self.generator.integers(0, min(3, len(left)), len(left))
        return left[order] * self.generator.choice([-1.0, 1.0], (len(left), 1)).astype(np.float32), right


_KINDS: Mapping[str, Callable[[_Hostile], tuple[Floats, Floats]]] = {
    "zeros but in few rows": _Hostile.zeros_but_few,
    "equal numbers but one a row": _Hostile.alike_but_one,
    "one-hot rows": _Hostile.one_hot,
    "a huge range": _Hostile.huge_range,
    "cancelling numbers": _Hostile.cancelled,
    "repeated rows": _Hostile.repeated_rows,
}


def adversarial(draws: Draws, shape: Shape) -> Mapping[str, Case]:
    """Inputs by what they are."""
    found: dict[str, Case] = {}
    for name, kind in _KINDS.items():
        left, right = kind(_Hostile(draws.generator(), shape))
        found[name] = Case(left.astype(bfloat16), right.astype(bfloat16))
    return found
