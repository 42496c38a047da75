"""Draws random operands for differential tests of layout libraries, as plain trees of shape and stride."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Literal, get_args

from attrs import frozen

from argus.core.layout import IntTuple
from argus.testing.laws.tabulated import Modes, flat

Kind = Literal["random", "compact", "pow2"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Operation = Literal["composition", "complement", "left_inverse", "right_inverse", "logical_divide", "logical_product"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

Tree = tuple[IntTuple, IntTuple]
"""(shape, stride)."""


@frozen
class Draw:
    """Two layouts with cosize(b) <= size(a), and a cotarget for the complement of `a`."""

    a: Tree
    b: Tree
    cotarget: int

    @property
    def weight(self) -> int:
        """Size of the draw, for choosing the smallest example."""
        return sum(sum(mode) for tree in (self.a, self.b) for mode in flat(*tree)) + self.cotarget

    def __str__(self) -> str:
        return f"{_text(self.a)}, {_text(self.b)}, {self.cotarget}"


def draws(kind: Kind, pairs: int, seed: int = 0) -> list[Draw]:
    """The given number of draws; deterministic in its arguments.

    All have 1 to 3 modes. random: extents 1 .. 8, strides 0 .. 12. compact: `a` random, `b` a bijection of
    [0, size) with its modes in any order. pow2: extents 1 .. 8 and strides 0 .. 16, powers of two.
    """
    return list(islice(_drawn(kind, Random(seed)), pairs))  # noqa: S311 reason: a test's draws, not a secret


def _drawn(kind: Kind, random: Random) -> Iterator[Draw]:
    first, second = _SOURCES[kind]
    while True:
        a, b = first(random), second(random)
        if _cosize(b) <= _size(a):
            yield Draw(_tree(a), _tree(b), random.randint(1, 2 * _cosize(a)))


def _any(random: Random) -> Modes:
    return tuple([(random.randint(1, 8), random.randint(0, 12)) for _ in range(random.randint(1, 3))])


def _compact(random: Random) -> Modes:
    extents = [random.randint(1, 8) for _ in range(random.randint(1, 3))]
    order = random.sample(range(len(extents)), len(extents))
    modes, below = [(0, 0)] * len(extents), 1
    for place in order:
        modes[place] = (extents[place], below)
        below *= extents[place]
    return tuple(modes)


def _power_of_two(random: Random) -> Modes:
    return tuple([(1 << random.randint(0, 3), 1 << random.randint(0, 5) >> 1) for _ in range(random.randint(1, 3))])


_SOURCES: dict[Kind, tuple[Callable[[Random], Modes], Callable[[Random], Modes]]] = {
    "random": (_any, _any),
    "compact": (_any, _compact),
    "pow2": (_power_of_two, _power_of_two),
}


def _size(modes: Modes) -> int:
    size = 1
    for extent, _ in modes:
        size *= extent
    return size


def _cosize(modes: Modes) -> int:
    return 1 + sum([(extent - 1) * stride for extent, stride in modes])


def _tree(modes: Modes) -> Tree:
    return tuple([extent for extent, _ in modes]), tuple([stride for _, stride in modes])


def _text(tree: Tree) -> str:
    return ":".join(str(part).replace(" ", "") for part in tree)
