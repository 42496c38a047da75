"""Laws take any implementation; false laws fall within 1,000 examples, and right ones do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from argus.core.layout import IntTuple, Layout, LayoutError
from argus.testing.implementations import adapted, implementation
from argus.testing.laws import ARGUS, LAWS, Breach, Implementation, Kind, Law, Operand
from argus.testing.operands import search

BY_NAME = {law.name: law for law in LAWS}


def refused(compute: Callable[[], bool]) -> bool:
    """Whether a statement holds; a refusal is no counterexample to a law about results."""
    try:
        return compute()
    except LayoutError:
        return True


def own(statement: str, kinds: tuple[Kind, ...], holds: Callable[..., bool]) -> Law:
    def held(on: Implementation, *given: Operand) -> bool:
        return refused(lambda: holds(on, *given))

    return Law.of(statement, kinds, held)


def injective(a: Layout) -> bool:
    return len(np.unique(a.table())) == a.size()


def sets(a: Layout) -> set[int]:
    return set(a.table().tolist())


def _image(on: Implementation, a: Layout, b: Layout) -> bool:
    return sets(on.composition(a, b)) <= sets(a)


def _without_carry(_: Implementation, a: Layout, b: Layout) -> bool:
    return all(a(b(index)) == sum(a(d * x) for d, x in digits(b, index)) for index in range(b.size()))


def digits(b: Layout, index: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for extent, stride in b.flat_modes:
        index, digit = divmod(index, extent)
        found.append((stride, digit))
    return found


def _commutes(on: Implementation, a: Layout, b: Layout) -> bool:
    one, other = on.composition(a, b), on.composition(b, a)
    return one.size() != other.size() or one.table().tolist() == other.table().tolist()


def _size(on: Implementation, a: Layout, target: int) -> bool:
    return on.complement(a, target).size() == -(-target // a.size())


def _twice(on: Implementation, a: Layout, target: int) -> bool:
    return on.complement(on.complement(a, target), target) == on.coalesce(a)


def _nests(_: Implementation, a: Layout) -> bool:
    strides = sorted((d, s) for s, d in a.flat_modes if s > 1 and d > 0)
    ends = [d * s for d, s in strides]
    return not injective(a) or all(after[0] % end == 0 for end, after in zip(ends, strides[1:], strict=False))


def _no_left(on: Implementation, a: Layout) -> bool:
    if not injective(a):
        return True
    try:
        on.left_inverse(a)
    except LayoutError:
        return False
    return True


def _same_set(on: Implementation, a: Layout, b: Layout) -> bool:
    return sets(a) != sets(b) or a.size() != b.size() or on.coalesce(a) == on.coalesce(b)


def _involution(on: Implementation, a: Layout) -> bool:
    return on.right_inverse(on.right_inverse(a)) == on.coalesce(a)


def _covers(on: Implementation, a: Layout, b: Layout) -> bool:
    return sets(on.logical_divide(a, b)) == sets(a)


def _product(on: Implementation, a: Layout, b: Layout) -> bool:
    return on.logical_product(a, b).cosize() == a.cosize() * b.cosize()


FALSE = [
    own("image(A o B) is a subset of image(A)", ("layout", "layout"), _image),
    own("A(sum of parts) = sum of A(parts) in the domain", ("layout", "inner"), _without_carry),
    own("composition commutes where sizes agree", ("layout", "inner"), _commutes),
    own("size(complement(A, m)) = ceil(m / size(A))", ("layout", "cotarget"), _size),
    own("complement is an involution", ("layout", "cotarget"), _twice),
    own("strides of injective layouts nest", ("layout",), _nests),
    own("every injective layout has a left inverse", ("layout",), _no_left),
    own("equal sets of images of equal sizes are one layout", ("layout", "layout"), _same_set),
    own("right_inverse is an involution", ("layout",), _involution),
    own("a divide keeps the set of images", ("layout", "inner"), _covers),
    own("cosizes multiply in products", ("layout", "layout"), _product),
]


@pytest.mark.share(8, among="false laws")
@pytest.mark.parametrize("law", FALSE, ids=lambda law: law.name)
@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.nightly), pytest.param(2, marks=pytest.mark.nightly)]
)
def test_false_laws_fall(law: Law, seed: int) -> None:
    breach = search(law, seed=seed, shrink=False)

    assert isinstance(breach, Breach)
    assert law.check(ARGUS, *breach.operands) is not None


@pytest.mark.nightly
def test_a_search_shrinks() -> None:
    breach = search(FALSE[1], seed=1)

    assert breach is not None
    assert sum(len(each.flat_modes) for each in breach.operands if isinstance(each, Layout)) <= 4


def test_an_own_law_that_holds_is_not_broken() -> None:
    def holds(on: Implementation, a: Layout, b: Layout) -> bool:
        return refused(lambda: on.composition(a, b).size() == b.size())

    law = Law.of("size(A o B) = size(B)", ("layout", "inner"), holds, needs=("composition",))

    assert search(law, examples=50) is None


# -- implementations -----------------------------------------------------------------------------------------


class Theirs:
    """Another library's layout: no more than a shape and a stride."""

    def __init__(self, shape: IntTuple, stride: IntTuple) -> None:
        self.shape, self.stride = shape, stride


def _truncating(a: Theirs, b: Theirs) -> Theirs:
    """Keeps the extents of B and multiplies strides: right only where nothing carries."""
    return Theirs(b.shape, _times(b.stride, a.stride[0] if isinstance(a.stride, tuple) else a.stride))


def _times(tree: IntTuple, factor: IntTuple) -> IntTuple:
    assert isinstance(factor, int)
    return tuple(_times(each, factor) for each in tree) if isinstance(tree, tuple) else tree * factor


def test_another_library_is_checked_by_its_functions() -> None:
    library = adapted("theirs", Theirs, {"composition": _truncating})
    law = BY_NAME["composition"]

    assert law.check(library, Layout(8, 3), Layout(4, 2)) is None
    breach = law.check(library, Layout((2, 4), (1, 3)), Layout(4, 1))
    assert breach is not None
    assert "at index 2 expected 3, found 2" in str(breach)
    assert search(law, library, examples=200) is not None
    with pytest.raises(LayoutError, match="E814: theirs has no `complement`"):
        BY_NAME["complement"].check(library, Layout(4), 8)


def test_what_a_library_raises_is_its_refusal() -> None:
    def failing(*_: object) -> Theirs:
        raise AssertionError("no")

    library = adapted("theirs", Theirs, {"composition": failing})

    with pytest.raises(LayoutError, match="E815: theirs refused: AssertionError: no"):
        library.composition(Layout(4), Layout(2))
    breach = BY_NAME["composition"].check(library, Layout(8), Layout(4, 2))
    assert breach is not None
    assert breach.expected == "a layout, which exists"
    assert (
        BY_NAME["coalesce is a normal form"].check(ARGUS.but(coalesce=failing_layout), Layout(4), Layout(4)) is not None
    )
    with pytest.raises(LayoutError, match="E814"):
        implementation("numpy")


def failing_layout(_: Layout) -> Layout:
    raise LayoutError("E804", "no", help="none")
