"""Convolutions by FMAs with work on their sums: proved for the nest, right when executed, not proved for other work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.nests import direct, made
from argus.kernels.nests.direct_tiles import Direct
from argus.language import Template, Tensor
from argus.nests.canonical import Canonical, canonical
from argus.nests.convolution import Convolution, nest_of_sizes
from argus.nests.nest import Expr, Read, TensorType
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify
from tests.kernels.nests.test_work_on_convolutions import apply, relu
from tests.kernels.test_direct import AXES, CASES, EDITS, edited, sizes_of

NO_RUNS = evolve(Budget(), runs=0)


WORK: dict[str, Callable[[Expr, Expr, Expr], Expr]] = {
    "relu after a bias": lambda s, bias, _: relu(apply("add", s, bias)),
    "relu before a bias": lambda s, bias, _: apply("add", relu(s), bias),
    "used four times": lambda s, bias, _: apply(
        "add", apply("mul", apply("mul", s, s), apply("tanh", s)), apply("mul", bias, s)
    ),
    "a residual": lambda s, _, other: apply("add", s, other),
    "a residual twice": lambda s, _, other: apply("add", s, apply("mul", other, 2)),
}
ON = [
    ("one axis, several columns", "relu after a bias"),
    ("one axis, transposed", "used four times"),
    ("padded", "relu after a bias"),
    ("padded", "a residual"),
    ("steps of two", "used four times"),
    ("three axes", "relu before a bias"),
    ("transposed steps", "used four times"),
    ("transposed steps", "a residual"),
    ("transposed steps, three axes", "relu after a bias"),
]


def form_of(conv: Convolution, work: str) -> Canonical:
    nest, types = nest_of_sizes(conv, "f32")
    bias = TensorType("bias", (nest.domain[1].extent,), "f32")
    other = TensorType("other", tuple(axis.extent for axis in nest.domain), "f32")
    of_bias = Read("bias", (nest.domain[1].index,), "f32")
    of_other = Read("other", tuple(axis.index for axis in nest.domain), "f32")
    made_of = evolve(nest, body=WORK[work](nest.body, of_bias, of_other))
    return canonical([made_of], {each.name: each for each in (*types[:2], bias, other)}, {}, AXES, join=False)


def template(name: str, work: str) -> Template:
    conv, config = CASES[name]
    return made.template(form_of(conv, work), direct.direct, config, "made")


@pytest.mark.share(24, among="direct convolutions with work")
@pytest.mark.parametrize(("name", "work"), ON)
def test_the_work_of_a_nest_is_proved(name: str, work: str) -> None:
    verdict = verify(template(name, work).trace(), solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict


@pytest.mark.share(24, among="direct convolutions with work")
@pytest.mark.parametrize(("name", "work"), ON)
def test_the_text_computes_the_claim(name: str, work: str) -> None:
    conv, _ = CASES[name]
    form = form_of(conv, work)

    found = validate(template(name, work).trace(), [sizes_of(conv, form)], seeds=1)

    assert all(each.right for each in found.trials), found
    assert any(each.elements for each in found.trials)


@pytest.mark.share(24, among="direct convolutions with work")
@pytest.mark.parametrize(
    "name", ["one axis, several columns", "padded", pytest.param("transposed steps", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize(
    ("right", "wrong"), [("relu after a bias", "relu before a bias"), ("a residual", "a residual twice")]
)
def test_other_work_is_not_proved(name: str, right: str, wrong: str) -> None:
    conv, config = CASES[name]
    form, other = form_of(conv, right), form_of(conv, wrong)
    assert [each.type for each in form.parameters] == [each.type for each in other.parameters]

    def schedule(_: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Direct) -> None:
        direct.direct(other, tensors, sizes, cfg)

    kernel = made.template(form, schedule, config, "made").trace()

    assert not isinstance(verify(kernel, solver="z3", budget=NO_RUNS).verdict, Proved)


TWINS = ["the channel before", "columns in their order", "inputs of another iteration"]


@pytest.mark.share(24, among="direct convolutions with work")
@pytest.mark.parametrize("edit", [*TWINS, pytest.param("another column", marks=pytest.mark.nightly)])
def test_work_on_other_sums_is_not_proved(edit: str) -> None:
    conv, config = CASES[EDITS[edit][0]]
    twin = made.template(form_of(conv, "used four times"), edited(edit), config, "made")

    assert not isinstance(verify(twin.trace(), solver="z3", budget=NO_RUNS).verdict, Proved)
