"""Operations on symbolic layouts; each returns its result with side conditions.

For every valuation of the symbols that satisfies the assumptions and the conditions, the result has the size and the
images of the operation of the same name in `argus.layout`, applied to the operands at that valuation. If a result has
different forms for different sizes, LayoutError (E811) names the undecided comparison; if a condition is false for all
sizes, E811 names it with an example.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Cond
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.symbolic.complement import complement
from argus.core.layout.symbolic.compose import SymbolicTiler, coalesce_modes, composition
from argus.core.layout.symbolic.divide import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from argus.core.layout.symbolic.inverse import equal_functions, left_inverse, right_inverse
from argus.core.layout.symbolic.side_conditions import Context, NormalFormsOnly, Oracle
from argus.core.layout.symbolic.values import (
    Conditional,
    Mode,
    SizeTree,
    SymbolicLayout,
    Tree,
    flat_layout,
    layout_of_modes,
    text,
    to_symbolic,
    tree_of,
    volume,
)
from argus.core.layout.values import Layout

AnyLayout = SymbolicLayout | Layout


@frozen
class Operations:
    """The operations under assumptions. oracle: decides queries that normal forms do not; none by default.

    The methods correspond to the functions of `argus.layout`. Each raises LayoutError: E811 as described above, E803
    for a tiler that does not fit.
    """

    assumptions: tuple[Cond, ...] = ()
    oracle: Oracle = field(factory=NormalFormsOnly)

    def make_layout(self, *modes: AnyLayout) -> Conditional:
        return self._run("make_layout", modes, lambda _: layout_of_modes([to_symbolic(mode) for mode in modes]))

    def coalesce(self, layout: AnyLayout) -> Conditional:
        """Merges modes where one provably continues the other; after substitution, fewer modes may suffice."""
        given = to_symbolic(layout)
        return self._run("coalesce", (given,), lambda context: flat_layout(coalesce_modes(context, given.flat_modes)))

    def composition(self, a: AnyLayout, b: SymbolicTiler) -> Conditional:
        return self._run("composition", (a, b), lambda context: composition(context, to_symbolic(a), b))

    def complement(self, layout: AnyLayout, cotarget: SizeTree = 1) -> Conditional:
        target = volume(tree_of(cotarget))
        return self._run("complement", (layout,), lambda context: complement(context, to_symbolic(layout), target))

    def right_inverse(self, layout: AnyLayout) -> Conditional:
        return self._run("right_inverse", (layout,), lambda context: right_inverse(context, to_symbolic(layout)))

    def left_inverse(self, layout: AnyLayout) -> Conditional:
        """The left inverse of a layout whose strides nest."""
        return self._run("left_inverse", (layout,), lambda context: left_inverse(context, to_symbolic(layout)))

    def logical_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("logical_divide", layout, tiler, logical_divide)

    def zipped_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("zipped_divide", layout, tiler, zipped_divide)

    def tiled_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("tiled_divide", layout, tiler, tiled_divide)

    def flat_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("flat_divide", layout, tiler, flat_divide)

    def logical_product(self, block: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("logical_product", block, tiler, logical_product)

    def zipped_product(self, block: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("zipped_product", block, tiler, zipped_product)

    def tiled_product(self, block: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("tiled_product", block, tiler, tiled_product)

    def flat_product(self, block: AnyLayout, tiler: SymbolicTiler) -> Conditional:
        return self._split("flat_product", block, tiler, flat_product)

    def blocked_product(self, block: AnyLayout, tiler: AnyLayout) -> Conditional:
        return self._run(
            "blocked_product",
            (block, tiler),
            lambda context: blocked_product(context, to_symbolic(block), to_symbolic(tiler)),
        )

    def raked_product(self, block: AnyLayout, tiler: AnyLayout) -> Conditional:
        return self._run(
            "raked_product",
            (block, tiler),
            lambda context: raked_product(context, to_symbolic(block), to_symbolic(tiler)),
        )

    def tile_to_shape(self, block: AnyLayout, target: SizeTree, order: IntTuple | None = None) -> Conditional:
        shape = tree_of(target)
        return self._run(
            "tile_to_shape", (block,), lambda context: tile_to_shape(context, to_symbolic(block), shape, order)
        )

    def functionally_equal(self, a: AnyLayout, b: AnyLayout) -> Cond:
        """A condition under which sizes and images are equal."""
        context = Context(_call_text("functionally_equal", (a, b)), self.assumptions, self.oracle)
        return equal_functions(context, to_symbolic(a), to_symbolic(b))

    def _split(
        self,
        name: str,
        layout: AnyLayout,
        tiler: SymbolicTiler,
        split: Callable[[Context, SymbolicLayout, SymbolicTiler], SymbolicLayout],
    ) -> Conditional:
        return self._run(name, (layout, tiler), lambda context: split(context, to_symbolic(layout), tiler))

    def _run(
        self, name: str, operands: tuple[SymbolicTiler, ...], make: Callable[[Context], SymbolicLayout]
    ) -> Conditional:
        context = Context(_call_text(name, operands), self.assumptions, self.oracle)
        for mode in _modes(operands):
            context.require(algebra.le(1, mode[0]), "extents are positive")
        made = make(context)
        return Conditional(
            SymbolicLayout(_normalise(context, made.shape), _normalise(context, made.stride)), tuple(context.conditions)
        )


def _modes(operand: SymbolicTiler) -> list[Mode]:
    if operand is None:
        return []
    if isinstance(operand, tuple):
        return [mode for part in operand for mode in _modes(part)]
    return list(to_symbolic(operand).flat_modes)


def _normalise(context: Context, tree: Tree) -> Tree:
    return tuple(_normalise(context, part) for part in tree) if isinstance(tree, tuple) else context.facts.normal(tree)


def _call_text(name: str, operands: tuple[SymbolicTiler, ...]) -> str:
    return f"{name}({', '.join(map(_text, operands))})"


def _text(operand: SymbolicTiler) -> str:
    if isinstance(operand, tuple):
        return f"({', '.join(map(_text, operand))})"
    if operand is None:
        return "None"
    return str(operand) if isinstance(operand, AnyLayout) else text(tree_of(operand))
