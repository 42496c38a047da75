"""The pointwise template: nests of every kind of read are proved, and another nest's kernel is not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import argus
from argus.core import algebra
from argus.core.verdict import Proved
from argus.interp.run import run
from argus.kernels.nests.fragments import TYPES
from argus.kernels.nests.made import template
from argus.kernels.nests.pointwise import Pointwise, config_for, pointwise
from argus.language import Template, Tensor
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.evaluate import nest_value
from argus.nests.nest import (
    Apply,
    Axis,
    Compare,
    Constant,
    Coordinate,
    Expr,
    Inside,
    Nest,
    Read,
    Select,
    TensorType,
    size,
)
from argus.nests.rewrite import placed

I, J, K = (  # noqa: E741 reason: axes, as in formulas
    Axis(name, algebra.const(extent)) for name, extent in (("i", 3), ("j", 10), ("k", 256))
)
X = Read("x", (I.index, J.index, K.index), "f32")
H = Read("h", (I.index, J.index, K.index), "bf16")
TENSORS = {
    each.name: each
    for each in (
        TensorType("x", (I.extent, J.extent, K.extent), "f32"),
        TensorType("h", (I.extent, J.extent, K.extent), "bf16"),
        TensorType("bias", (J.extent,), "f32"),
        TensorType("last", (K.extent,), "f32"),
        TensorType("turned", (K.extent, I.extent, J.extent), "f32"),
        TensorType("wide", (algebra.const(5), J.extent, algebra.const(514)), "f32"),
    )
}


def _values(form: Canonical) -> dict[str, int]:
    return {name: int(computed(extent, {})) for name, extent in form.sizes.items()}


def _apply(op: str, *args: Expr | float) -> Expr:
    return Apply(op, tuple(Constant(each) if isinstance(each, int | float) else each for each in args))


def _sigmoid(x: Expr) -> Expr:
    return _apply("div", 1.0, _apply("add", 1.0, _apply("exp", _apply("neg", x))))


BODIES: dict[str, Expr] = {
    "relu": Select(Compare("<", Constant(0.0), X), X, Constant(0.0)),
    "swish of bf16": _apply("mul", H, _sigmoid(H)),
    "tanh of a sum with one number a channel": _apply("tanh", _apply("add", X, Read("bias", (J.index,), "f32"))),
    "a row added": _apply("add", X, Read("last", (K.index,), "f32")),
    "another order of axes": _apply("mul", X, Read("turned", (K.index, I.index, J.index), "f32")),
    "a part, every second element": Read(
        "wide", (algebra.add(I.index, 2), J.index, algebra.add(algebra.mul(K.index, 2), 1)), "f32"
    ),
    "flipped": Read("x", (I.index, algebra.sub(9, J.index), algebra.sub(255, K.index)), "f32"),
    "padded": Read("x", (I.index, algebra.sub(J.index, 1), algebra.add(K.index, 1)), "f32", -1.0),
    "above a diagonal": Select(Inside(algebra.le(J.index, K.index)), X, Constant(0.0)),
    "coordinates": _apply("add", Coordinate(algebra.add(I.index, K.index)), X),
    "a constant": Constant(2.5),
}


def made(body: Expr, claimed: Expr | None = None, dtype: str = "f32") -> tuple[Canonical, Template]:
    """The kernel of a body; it claims another one, if that is given."""
    form = canonical([Nest("out", dtype, (I, J, K), body)], TENSORS)
    config = config_for(form, _values(form))
    assert config is not None
    if claimed is None:
        return form, template(form, pointwise, config, "pointwise")
    wanted = canonical([Nest("out", dtype, (I, J, K), claimed)], TENSORS)
    assert [each.type for each in wanted.parameters] == [each.type for each in form.parameters]
    return wanted, template(wanted, partial(_instead, form), config, "pointwise")


def _instead(
    form: Canonical, _: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Pointwise
) -> None:
    pointwise(form, tensors, sizes, cfg)


@pytest.mark.share(12)
@pytest.mark.parametrize("name", BODIES)
def test_a_nest_is_proved_and_its_run_agrees(name: str) -> None:
    form, kernel = made(BODIES[name])
    traced = kernel.trace()
    assert isinstance(argus.verify(traced).verdict, Proved)

    sizes = {each: int(computed(extent, {})) for each, extent in form.sizes.items()}
    rng = np.random.default_rng(1)
    given = {
        each.type.name: rng.uniform(-2, 2, [int(computed(extent, sizes)) for extent in each.type.shape]).astype(
            TYPES[each.type.dtype].numpy
        )
        for each in form.parameters[:-1]
    }
    found = run(traced, sizes, given).arrays["Y0"]
    assert np.allclose(found, nest_value(form.nests[0], given, sizes), rtol=1e-5, atol=1e-6)


@pytest.mark.share(2, among="short last axes")
@pytest.mark.parametrize("body", ["padded", "tanh of a sum with one number a channel"])
def test_short_last_axes_are_one_with_those_before(body: str) -> None:
    """Threads of a block have elements of several rows, and compute the coordinates that reads need apart."""
    short = Axis("s", algebra.const(24))
    nest = placed(BODIES[body], {K.symbol: short.index})
    types = {**TENSORS, "x": TensorType("x", (I.extent, J.extent, short.extent), "f32")}
    form = canonical([Nest("out", "f32", (I, J, short), nest)], types)
    config = config_for(form, _values(form))
    assert config is not None
    assert len(form.nests[0].domain) == 1
    assert isinstance(argus.verify(template(form, pointwise, config, "pointwise").trace()).verdict, Proved)


def test_a_step_through_a_padded_tensor_bounds_the_elements() -> None:
    """Coordinates are compared with extents in 32 bits: twice the coordinate of the largest size does not fit these."""
    axis, extent = Axis("k", size("K")), size("W")
    read = Read("x", (algebra.sub(algebra.mul(axis.index, 2), 1),), "f32", 0.0)
    form = canonical([Nest("out", "f32", (axis,), read)], {"x": TensorType("x", (extent,), "f32")})

    config = config_for(form, dict.fromkeys(form.sizes, 1 << 20))
    assert config is not None
    assert config_for(form, dict.fromkeys(form.sizes, 1 << 30)) is None
    verdict = argus.verify(template(form, pointwise, config, "pointwise").trace()).verdict
    assert isinstance(verdict, Proved)
    assert f"{form.nests[0].type.extents[0]} <= {1 << 29}" in verdict.assumptions


@pytest.mark.share(3)
def test_a_kernel_with_another_claim_is_refused() -> None:
    strict = Select(Inside(algebra.lt(J.index, K.index)), X, Constant(0.0))
    for body, claimed in (
        (BODIES["relu"], _apply("abs", X)),
        (BODIES["above a diagonal"], strict),
        (BODIES["padded"], Read("x", (I.index, algebra.sub(J.index, 1), K.index), "f32", -1.0)),
    ):
        verdict = argus.verify(made(body, claimed)[1].trace()).verdict
        assert not isinstance(verdict, Proved), verdict


@pytest.mark.parametrize(("last", "vector"), [(24, 4), (6, 2), (7, 1), (1 << 20, 4)])
def test_vectors_divide_the_last_axis(last: int, vector: int) -> None:
    axis = Axis("n", algebra.const(last))
    form = canonical(
        [Nest("out", "f32", (axis,), Read("v", (axis.index,), "f32"))], {"v": TensorType("v", (axis.extent,), "f32")}
    )
    config = config_for(form, _values(form))
    assert config is not None
    assert config.vector == vector
    assert last % vector == 0


@pytest.mark.parametrize(("outer", "in_order"), [(65535, True), (65536, False)])
def test_blocks_are_in_order_where_a_grid_has_room(outer: int, in_order: bool) -> None:
    axes = Axis("m", algebra.const(outer)), Axis("n", algebra.const(480))
    read = Read("v", (axes[0].index, axes[1].index), "f32")
    body = _apply("add", read, Read("r", (axes[1].index,), "f32"))
    types = {
        "v": TensorType("v", (axes[0].extent, axes[1].extent), "f32"),
        "r": TensorType("r", (axes[1].extent,), "f32"),
    }
    form = canonical([Nest("out", "f32", axes, body)], types)
    config = config_for(form, _values(form))
    assert config is not None
    assert config.in_order == in_order
    grid = template(form, pointwise, config, "pointwise").trace().grid
    first = str(grid[0])
    assert ("ceil" in first or "//" in first) == in_order, grid
