"""The canonical form computes what the nest does: both are evaluated, on tensors of the form's own shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus.core import algebra
from argus.core.index import Index, Sym
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.evaluate import nest_value
from argus.nests.nest import Apply, Axis, Constant, Expr, Inside, Nest, Read, Reduce, Select, TensorType, size
from argus.nests.rewrite import reads

rng = np.random.default_rng(0)


def constants(*shape: int) -> tuple[Index, ...]:
    return tuple(map(algebra.const, shape))


def axes_of(*shape: int, name: str = "a") -> tuple[Axis, ...]:
    return tuple(Axis(f"{name}{k}", extent) for k, extent in enumerate(constants(*shape)))


def check(nest: Nest, tensors: Sequence[TensorType], most_axes: int = 3) -> Canonical:
    """Both forms give the same numbers."""
    form = canonical([nest], {each.name: each for each in tensors}, most_axes=most_axes)
    data = {
        each.name: rng.integers(-9, 9, [int(computed(extent, {})) for extent in each.shape]).astype(np.float64)
        for each in tensors
    }
    sizes = {name: int(computed(extent, {})) for name, extent in form.sizes.items()}
    own = {
        each.type.name: data[each.source].reshape([int(computed(extent, sizes)) for extent in each.type.shape])
        for each in form.parameters[:-1]
    }
    wanted = nest_value(nest, data, {})
    found = nest_value(form.nests[0], own, sizes)
    assert found.size == wanted.size
    assert (found.ravel() == wanted.ravel()).all()
    return form


@given(st.data())
@settings(deadline=None)
def test_broadcast_permuted_sliced_and_flipped_reads(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    axes = axes_of(*shape)
    body: Expr = Constant(0.0)
    tensors: list[TensorType] = []
    for number in range(data.draw(st.integers(1, 3))):
        used = data.draw(st.permutations(axes))[: data.draw(st.integers(0, len(axes)))]
        if data.draw(st.booleans()):
            used = [axis for axis in axes if axis in used]
        moved = data.draw(st.sampled_from(["", "", "slice", "flip", "pad"]))
        extents = [int(computed(axis.extent, {})) for axis in used]
        index = [axis.index for axis in used]
        outside: float | None = None
        if used and moved == "slice":
            index[-1] = algebra.add(index[-1], 2)
            extents[-1] += 3
        elif used and moved == "flip":
            index[0] = algebra.sub(extents[0] - 1, index[0])
        elif used and moved == "pad":
            index[-1], outside = algebra.sub(index[-1], 1), 5.0
        tensors.append(TensorType(f"t{number}", constants(*extents), "f32"))
        body = Apply("add", (body, Read(f"t{number}", tuple(index), "f32", outside)))
    if data.draw(st.booleans()):
        body = Select(Inside(algebra.le(axes[0].index, axes[-1].index)), body, Constant(1.0))
    check(Nest("out", "f32", axes, body), tensors, data.draw(st.integers(1, 3)))


def test_all_axes_of_equal_layouts_become_one_of_any_size() -> None:
    axes = axes_of(4, 5, 6)
    form = check(
        Nest("out", "f32", axes, Read("x", tuple(a.index for a in axes), "f32")),
        [TensorType("x", constants(4, 5, 6), "f32")],
    )
    assert [each.type.extents for each in form.parameters] == [("N0",), ("N0",)]


def test_reduced_axes_merge_among_themselves_and_a_prefix_keeps_its_extent() -> None:
    rows, inner = axes_of(3, 4), axes_of(5, 6, name="k")
    x = TensorType("x", constants(3, 4, 5, 6), "f32")
    body = Reduce("add", inner, Read("x", tuple(a.index for a in (*rows, *inner)), "f32"))
    form = check(Nest("out", "f32", rows, body), [x])
    assert form.parameters[0].type.extents == ("N0", "N1")

    r, n = Axis("r", algebra.const(3)), Axis("n", algebra.const(7))
    j = Axis("j", algebra.add(n.index, 1))
    body = Reduce("add", (j,), Read("x", (r.index, j.index), "f32"))
    check(Nest("out", "f32", (r, n), body), [TensorType("x", constants(3, 7), "f32")])


def test_sizes_that_bounds_depend_on_stay_related() -> None:
    n, m = Axis("n", size("s0")), Axis("m", size("s1"))
    half = Read("x", (m.index, algebra.add(n.index, n.extent)), "f32")
    x = TensorType("x", (m.extent, algebra.mul(n.extent, 2)), "f32")
    form = canonical([Nest("out", "f32", (n, m), half)], {"x": x})
    assert form.ties == ((size("N2"), algebra.mul(size("N0"), 2)),)


@pytest.mark.parametrize("most", [1, 2])
def test_one_tensor_read_in_two_orders_is_two_parameters(most: int) -> None:
    axes = axes_of(4, 4)
    i, j = (axis.index for axis in axes)
    body = Apply("add", (Read("x", (i, j), "f32"), Read("x", (j, i), "f32")))
    form = check(Nest("out", "f32", axes, body), [TensorType("x", constants(4, 4), "f32")], most)
    assert [each.source for each in form.parameters] == ["x", "x", "out"]


def test_an_axis_of_groups_is_two_so_that_its_quotients_vanish() -> None:
    """The mean of a group of channels, read by each of its elements."""
    rows, channels = axes_of(3, 8)
    (inner,) = axes_of(4, name="k")
    group = algebra.mul(algebra.floordiv(channels.index, 4), 4)
    mean = Reduce("add", (inner,), Read("x", (rows.index, algebra.add(group, inner.index)), "f32"))
    body = Apply("sub", (Read("x", (rows.index, channels.index), "f32"), mean))
    form = check(Nest("out", "f32", (rows, channels), body), [TensorType("x", constants(3, 8), "f32")])
    assert len(form.parameters) == 2
    assert all(isinstance(index, Sym) for read in reads(form.nests[0].body) for index in read.index)


def test_of_more_elements_than_an_axis_has_inner_axes_become_one() -> None:
    axes = axes_of(112, 64, 512, 512)
    read = Read("x", tuple(axis.index for axis in axes), "f32")
    types = {"x": TensorType("x", constants(112, 64, 512, 512), "f32")}
    found = canonical([Nest("y", "f32", axes, Apply("neg", (read,)))], types)
    assert [computed(extent, {}) for extent in found.sizes.values()] == [112, 1 << 24]


def test_short_last_axes_are_joined_although_reads_take_them_apart() -> None:
    """Up to where the last axis is long enough for a block; not where it is, is not known, or is reduced."""
    axes = axes_of(40, 30, 14, 14)
    padded = Read("x", (axes[0].index, axes[1].index, algebra.sub(axes[2].index, 1), axes[3].index), "f32", 0.0)
    form = check(Nest("y", "f32", axes, padded), [TensorType("x", constants(40, 30, 14, 14), "f32")])
    assert len(form.nests[0].domain) == 1

    wide = axes_of(4, 300)
    shifted = Read("x", (wide[0].index, algebra.sub(wide[1].index, 1)), "f32", 0.0)
    form = check(Nest("y", "f32", wide, shifted), [TensorType("x", constants(4, 300), "f32")])
    assert len(form.nests[0].domain) == 2

    unknown = Axis("m", size("M")), Axis("n", size("N"))
    shifted = Read("x", (unknown[0].index, algebra.sub(unknown[1].index, 1)), "f32", 0.0)
    form = canonical([Nest("y", "f32", unknown, shifted)], {"x": TensorType("x", (size("M"), size("N")), "f32")})
    assert len(form.nests[0].domain) == 2


def test_what_each_row_of_a_joined_axis_reads_is_read_by_the_number_of_the_row() -> None:
    """The rows' axes are one before the short last one is joined to it; one of a tensor in another order stays."""
    axes = axes_of(2, 3, 8, 8)
    rows = tuple(axis.index for axis in axes[:3])
    types = [TensorType("x", constants(2, 3, 8, 8), "f32"), TensorType("y", constants(2, 3, 8), "f32")]
    body = Apply("sub", (Read("x", (*rows, axes[3].index), "f32"), Read("y", rows, "f32")))
    form = check(Nest("out", "f32", axes, body), types)
    (number,) = (axis.index for axis in form.nests[0].domain)
    assert [read.index for read in reads(form.nests[0].body)] == [(number,), (algebra.floordiv(number, 8),)]

    turned = Read("y", (rows[1], rows[0], rows[2]), "f32")
    form = check(
        Nest("out", "f32", axes, Apply("sub", (Read("x", (*rows, axes[3].index), "f32"), turned))),
        [types[0], TensorType("y", constants(3, 2, 8), "f32")],
    )
    assert len(form.parameters[1].type.shape) == 3
