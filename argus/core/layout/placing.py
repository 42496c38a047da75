"""Complements and products under a law that is chosen by name; the result states each post-condition and its answer.

`covering` is the law of `complement` and of the products: the sums of images cover an interval exactly once. `cute`
asks for less, as CuTe's documentation does [CUTLASS 4, media/docs/cpp/cute/02_layout_algebra.md, Complement]: disjoint,
ordered, bounded and reaching, of which its algorithm, and so `cute`, keeps the first two always. So a padded tile,
which leaves gaps that no copy of it can fill, has a complement, too.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Literal, get_args

from attrs import define, field, frozen

from argus.core.layout import divide
from argus.core.layout.complement import complement, cotarget_size
from argus.core.layout.compose import Tiler
from argus.core.layout.faults import LayoutError, malformed
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.values import Layout, layout_of, of_modes
from argus.core.layout.witness import Answer, Missed

PlacingLaw = Literal["covering", "cute"]
LAWS: tuple[PlacingLaw, ...] = get_args(PlacingLaw)


@frozen
class Condition:
    """A post-condition of the complement R of a layout A in a cotarget m, and whether it holds."""

    name: Literal["disjoint", "ordered", "bounded", "reaching", "covering"]
    statement: str
    answer: Answer

    def __str__(self) -> str:
        return f"{self.name} ({self.statement}): {self.answer}"


@frozen
class Placement:
    """A complement or product, the law that it was made by, and the post-conditions of each complement behind it."""

    layout: Layout
    law: PlacingLaw
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.layout} by the law `{self.law}`", *[f"  {each}" for each in self.conditions]])


@frozen
class Placing:
    """The operations under one law; each returns a `Placement`. Arguments and errors are those of the plain functions.

    Under `cute`, LayoutError (E805) names strides at which copies of the layout would overlap: each stride must reach
    beyond the next smaller one times its extent.
    """

    law: PlacingLaw

    def __attrs_post_init__(self) -> None:
        if self.law not in LAWS:
            raise malformed(f"the law {self.law!r} of a complement", f"choose {' or '.join(map(repr, LAWS))}")

    def complement(self, layout: Layout, cotarget: IntTuple | None = None) -> Placement:
        given, target = layout_of(layout), cotarget_size(cotarget)
        made = _complement(self.law, given, target)
        return Placement(made, self.law, _conditions(given, made, target))

    def logical_product(self, block: Layout, tiler: Tiler) -> Placement:
        return self._placed(lambda split: split(layout_of(block), tiler))

    def zipped_product(self, block: Layout, tiler: Tiler) -> Placement:
        return self._placed(lambda split: divide.hier_unzip(split, layout_of(block), tiler))

    def tiled_product(self, block: Layout, tiler: Tiler) -> Placement:
        return self._placed(lambda split: divide.splice_rests(divide.hier_unzip(split, layout_of(block), tiler)))

    def flat_product(self, block: Layout, tiler: Tiler) -> Placement:
        return self._placed(lambda split: divide.splice_both(divide.hier_unzip(split, layout_of(block), tiler)))

    def blocked_product(self, block: Layout, tiler: Layout) -> Placement:
        return self._placed(lambda split: divide.interleave(split, layout_of(block), tiler, raked=False))

    def raked_product(self, block: Layout, tiler: Layout) -> Placement:
        return self._placed(lambda split: divide.interleave(split, layout_of(block), tiler, raked=True))

    def tile_to_shape(self, block: Layout, target: IntTuple, order: IntTuple | None = None) -> Placement:
        copies = divide.copies_to_fill(layout_of(block), target, order)
        return self._placed(lambda split: divide.interleave(split, *copies, raked=False))

    def _placed(self, build: Callable[[divide.Splitter], Layout]) -> Placement:
        product = _Product(self.law)
        return Placement(build(product), self.law, tuple(product.conditions))


@define
class _Product:
    """`logical_product` under a law; gathers the conditions of the complements that it needed."""

    law: PlacingLaw
    conditions: list[Condition] = field(factory=list[Condition])

    def __call__(self, block: Layout, tiler: Tiler) -> Layout:
        return divide.product_by(self._rest, block, tiler)

    def _rest(self, block: Layout, tile: Layout) -> Layout:
        target = block.size() * tile.cosize()
        rest = _complement(self.law, block, target, copies=tile.cosize())
        self.conditions += _conditions(block, rest, target)
        return rest


def by_law(law: PlacingLaw) -> Placing:
    """Complement and products under a law: `covering` (as the plain functions), or `cute` (as CuTe documents them).

    Raises LayoutError (E801) for another name.
    """
    return Placing(law)


# -- the complement of the law `cute`
# -----------------------------------------------------------------------------------------------


def _complement(law: PlacingLaw, layout: Layout, target: int, copies: int = 1) -> Layout:
    if law == "covering":
        return complement(layout, target)
    gaps: list[tuple[int, int]] = []
    filled, places = 1, 1
    for extent, stride in _moving(layout):
        gap = stride // filled
        if gap < 1:
            raise LayoutError(
                "E805",
                f"{layout} has no complement: the stride {stride} is below {filled}, the length of the modes with "
                "smaller strides, so images may coincide",
                help="use strides of at least the next smaller stride times its extent",
                expected=filled,
                found=stride,
            )
        if gap > 1:
            gaps.append((gap, filled))
            places *= gap
        filled = stride * extent
    # A padded layout leaves fewer gaps than its length has room for: repeat it until every copy has a place.
    left = max(-(-target // filled), -(-copies // places))
    return of_modes([*gaps, (left, filled)] if left > 1 else gaps)


def _moving(layout: Layout) -> list[tuple[int, int]]:
    """The modes that have more than one image, by ascending stride."""
    return sorted([mode for mode in layout.flat_modes if mode[0] > 1 and mode[1] != 0], key=itemgetter(1, 0))


# -- post-conditions
# --------------------------------------------------------------------------------------------------


def _conditions(layout: Layout, rest: Layout, target: int) -> tuple[Condition, ...]:
    """The post-conditions of a complement; both laws make sums of images distinct, and `rest` ascending."""
    together, above = layout.cosize() + rest.cosize() - 1, -(-target // layout.cosize()) * layout.cosize()
    reaches = together >= target
    bounded = rest.cosize() <= above
    return (
        Condition(
            "disjoint", "A(i) + R(j) are distinct for distinct A(i)", Answer(holds=True, reason="strides ascend")
        ),
        Condition("ordered", "R(j - 1) < R(j)", Answer(holds=True, reason=f"the strides of {rest} ascend")),
        Condition(
            "bounded",
            "cosize(R) <= round_up(m, cosize(A))",
            Answer(bounded, f"{rest.cosize()} {'<=' if bounded else '>'} {above}"),
        ),
        Condition(
            "reaching",
            "cosize((A, R)) >= m",
            Answer(reaches, f"{together} {'>=' if reaches else '<'} {target}"),
        ),
        Condition("covering", "A(i) + R(j) cover [0, m)", _covering(layout, rest, target)),
    )


def _covering(layout: Layout, rest: Layout, target: int) -> Answer:
    """Whether the sums cover [0, target): by ascending stride, each mode must begin where those below it end."""
    filled = 1
    for extent, stride in _moving(Layout((layout.shape, rest.shape), (layout.stride, rest.stride))):
        if filled >= target:
            break
        if stride > filled:
            return Answer(holds=False, reason=f"{filled} is no sum of images", witness=Missed(filled))
        filled += (extent - 1) * stride
    if filled < target:
        return Answer(holds=False, reason=f"{filled} is no sum of images", witness=Missed(filled))
    return Answer(holds=True, reason=f"the sums include all of [0, {target})")
