"""`SymbolicLayout`: a shape and a stride whose leaves are integer expressions over symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Union, cast

from attrs import frozen

from argus.core import algebra
from argus.core.index import Const, Index, Symbol
from argus.core.layout.faults import LayoutError, malformed, misplaced
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.symbolic.side_conditions import Condition
from argus.core.layout.symbolic.sizes import Size, SizeLike, checked_integer, compact, node_of
from argus.core.layout.values import Layout
from argus.core.walk import evaluate, symbols

Tree = Union[Index, tuple["Tree", ...]]
SizeTree = Union[SizeLike, tuple["SizeTree", ...]]
"""A shape, a stride or a coordinate as the user writes it."""
Mode = tuple[Index, Index]
"""(extent, stride)."""


def tree_of(value: object) -> Tree:
    """The tree of expressions. Raises LayoutError (E801) for a leaf that is no integer."""
    return tuple(map(tree_of, cast(tuple[object, ...], value))) if isinstance(value, tuple) else node_of(value)


def leaves(tree: Tree) -> Iterator[Index]:
    if isinstance(tree, tuple):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def text(tree: Tree) -> str:
    if isinstance(tree, tuple):
        return f"({','.join(map(text, tree))}{',' if len(tree) == 1 else ''})"
    return compact(tree)


def volume(tree: Tree) -> Index:
    """The product of the leaves."""
    total: Index = algebra.const(1)
    for leaf in leaves(tree):
        total = algebra.mul(total, leaf)
    return total


def _profile(tree: Tree) -> object:
    return tuple(map(_profile, tree)) if isinstance(tree, tuple) else 0


@frozen(init=False, repr=False)
class SymbolicLayout:
    """`shape : stride` over symbols; column-major when the stride is left out.

    It denotes one `Layout` for each valuation of its symbols with positive extents. Calling it on an index or a
    coordinate returns the image as a `Size`; an index beyond the size extends the last mode.
    Raises LayoutError: E801 for trees that are no layout, E803 for a coordinate or a mode that does not fit.
    """

    shape: Tree
    stride: Tree

    def __init__(self, shape: SizeTree, stride: SizeTree | None = None) -> None:
        extents = tree_of(shape)
        steps = _column_major_strides(extents, algebra.const(1))[0] if stride is None else tree_of(stride)
        if _profile(extents) != _profile(steps):
            raise malformed(
                f"shape {text(extents)} and stride {text(steps)} are not congruent",
                "give a stride for each extent, in the same nesting",
            )
        for extent in leaves(extents):
            if extent.range[1] is not None and extent.range[1] < 1:
                raise malformed(f"shape {text(extents)} has the extent {compact(extent)}", "use positive extents")
        object.__setattr__(self, "shape", extents)
        object.__setattr__(self, "stride", steps)

    @property
    def flat_modes(self) -> tuple[Mode, ...]:
        """(extent, stride) of every leaf, first fastest."""
        return tuple(zip(leaves(self.shape), leaves(self.stride), strict=True))

    @property
    def symbols(self) -> frozenset[Symbol]:
        return symbols(*leaves(self.shape), *leaves(self.stride))

    def size(self) -> Size:
        """The number of elements of the domain."""
        return Size(volume(self.shape))

    def cosize(self) -> Size:
        """One more than the largest image; modes with negative strides do not count."""
        reached = [algebra.mul(algebra.sub(n, 1), algebra.maximum(d, 0)) for n, d in self.flat_modes]
        return Size(algebra.add(1, *reached))

    def __call__(self, *coord: SizeTree) -> Size:
        return Size(self._image(tree_of(coord[0] if len(coord) == 1 else coord), self.shape, self.stride))

    def _image(self, coord: Tree, shape: Tree, stride: Tree) -> Index:
        if not isinstance(coord, tuple):
            return _image_of_index(coord, list(zip(leaves(shape), leaves(stride), strict=True)))
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            raise misplaced(f"the coordinate {text(coord)} does not fit {text(shape)}", "give one number a mode")
        steps = cast(tuple[Tree, ...], stride)
        return algebra.add(*(self._image(*each) for each in zip(coord, shape, steps, strict=True)))

    def __len__(self) -> int:
        """The rank."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    def __iter__(self) -> Iterator[SymbolicLayout]:
        """The modes, each a layout."""
        if not isinstance(self.shape, tuple):
            return iter((self,))
        return iter(
            [SymbolicLayout(*pair) for pair in zip(self.shape, cast(tuple[Tree, ...], self.stride), strict=True)]
        )

    def __getitem__(self, mode: int) -> SymbolicLayout:
        modes = list(self)
        if not -len(modes) <= mode < len(modes):
            raise misplaced(f"{self} has no mode {mode}: its rank is {len(self)}", f"give one of 0 .. {len(self) - 1}")
        return modes[mode]

    def substitute(self, values: Mapping[Size, int] | Mapping[Symbol, int] | Mapping[str, int]) -> Layout:
        """The layout at these values of the symbols, keyed by symbol or name.

        Raises LayoutError: E811 for a symbol without a value or with one outside its range, E801 for a value that is
        not an integer or an extent below 1.
        """
        known = self._values(
            {str(getattr(key, "name", key)): checked_integer(value, "give an int") for key, value in values.items()}
        )

        def number(leaf: Index) -> int:
            try:
                return int(cast(int, evaluate(leaf, known)))
            except ZeroDivisionError:
                raise malformed(f"{compact(leaf)} divides by zero in {self}", "give positive sizes") from None

        def fill(tree: Tree) -> IntTuple:
            return tuple(map(fill, tree)) if isinstance(tree, tuple) else number(tree)

        return Layout(fill(self.shape), fill(self.stride))

    def _values(self, values: Mapping[str, int]) -> Mapping[Symbol, int]:
        known: dict[Symbol, int] = {}
        for symbol in sorted(self.symbols, key=lambda each: each.name):
            value = values.get(symbol.name)
            low, high = symbol.low, symbol.high
            if value is None:
                raise LayoutError("E811", f"{self} has no value for {symbol.name}", help="give a value for each symbol")
            if (low is not None and value < low) or (high is not None and value > high):
                raise LayoutError(
                    "E811",
                    f"{symbol.name} is {value} in {self}, which is not within {low} .. {high}",
                    help="give a value that the symbol may have",
                )
            known[symbol] = value
        return known

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    def __repr__(self) -> str:
        return f"SymbolicLayout({self})"


@frozen
class Conditional:
    """A layout that is right for all sizes that satisfy the assumptions and the conditions."""

    layout: SymbolicLayout
    conditions: tuple[Condition, ...]


def to_symbolic(value: SymbolicLayout | Layout | SizeLike) -> SymbolicLayout:
    """A layout as a symbolic layout; a size `n` as `n:1`."""
    if isinstance(value, SymbolicLayout):
        return value
    if isinstance(value, Layout):
        return SymbolicLayout(value.shape, value.stride)
    return SymbolicLayout(value, 1)


def layout_of_modes(modes: list[SymbolicLayout]) -> SymbolicLayout:
    """The layout with these modes."""
    return SymbolicLayout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))


def flat_layout(modes: list[Mode]) -> SymbolicLayout:
    """The flat layout of the modes: without a tuple for a single mode, `1:0` for none."""
    if not modes:
        return SymbolicLayout(1, 0)
    if len(modes) == 1:
        return SymbolicLayout(*modes[0])
    return SymbolicLayout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))


def _column_major_strides(shape: Tree, below: Index) -> tuple[Tree, Index]:
    if not isinstance(shape, tuple):
        return below, algebra.mul(below, shape)
    parts: list[Tree] = []
    for part in shape:
        steps, below = _column_major_strides(part, below)
        parts.append(steps)
    return tuple(parts), below


def _image_of_index(index: Index, modes: list[Mode]) -> Index:
    rest = index
    terms: list[Index] = []
    for extent, stride in modes[:-1]:
        if extent is not algebra.const(1):
            terms.append(algebra.mul(algebra.mod(rest, extent), stride))
            rest = algebra.floordiv(rest, extent)
    terms += [algebra.mul(rest, stride) for _, stride in modes[-1:]]
    return algebra.add(*terms)


def is_one(node: Index) -> bool:
    return isinstance(node, Const) and node.value == 1
