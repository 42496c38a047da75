"""Convolutions with work on their sums: proved for the nest, and not for another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from attrs import evolve

import argus
from argus.core import algebra
from argus.core.index import Index
from argus.core.verdict import Proved
from argus.kernels.nests.contraction import FoundConvolution, convolution_and_work, launches_and_work
from argus.kernels.nests.made import program_template
from argus.kernels.schedules.parts_claims import rounded_product
from argus.kernels.schedules.shifted import Shifted
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.convolution import Convolution, Taps, convolution_nest, nest_of_sizes
from argus.nests.nest import Apply, Compare, Constant, Expr, Read, Select, TensorType
from argus.nests.rewrite import reductions
from argus.torch.compiled import form_of
from argus.torch.families import FAMILIES, candidates

CONV = Convolution((Taps(3, pad=1),))
CONFIG = Shifted(pixels=64, bk=32, products=6)
NEST = nest_of_sizes(CONV, "f32")[0]
BIAS = TensorType("bias", (NEST.domain[1].extent,), "f32")
OTHER = TensorType("other", tuple(axis.extent for axis in NEST.domain), "f32")


def apply(op: str, *args: Expr | float) -> Expr:
    return Apply(op, tuple(Constant(float(each)) if isinstance(each, int | float) else each for each in args))


def relu(x: Expr) -> Expr:
    return Select(Compare("<", Constant(0.0), x), x, Constant(0.0))


WORK: dict[str, Callable[[Expr, Expr, Expr], Expr]] = {
    "relu": lambda s, bias, _: relu(apply("add", s, bias)),
    "tanh": lambda s, bias, _: apply("tanh", apply("add", s, bias)),
    "scaled after the bias": lambda s, bias, _: apply("mul", apply("add", s, bias), 2),
    "scaled before the bias": lambda s, bias, _: apply("add", apply("mul", s, 2), bias),
    "a residual": lambda s, _, other: apply("add", s, other),
    "a residual twice": lambda s, _, other: apply("add", s, apply("mul", other, 2)),
    "relu of a residual": lambda s, bias, other: relu(apply("add", apply("add", s, bias), other)),
}


def forms(*names: str) -> list[Canonical]:
    """The forms of these works on one convolution, over the same parameters."""
    nest, types = nest_of_sizes(CONV, "f32")
    bias = Read("bias", (nest.domain[1].index,), "f32")
    other = Read("other", tuple(axis.index for axis in nest.domain), "f32")
    nests = [evolve(nest, output=f"y{k}", body=WORK[name](nest.body, bias, other)) for k, name in enumerate(names)]
    both = canonical(nests, {each.name: each for each in (*types[:2], BIAS, OTHER)}, most_axes=5, join=False)
    parameters = both.parameters[: len(both.parameters) - len(names) + 1]
    return [evolve(both, nests=(evolve(each, output="Y0"),), parameters=parameters) for each in both.nests]


def found_in(form: Canonical) -> FoundConvolution:
    (sums,) = reductions(form.nests[0].body)
    types = {each.type.name: each.type for each in form.parameters}
    return FoundConvolution(CONV, sums, [types[each] for each in ("X0", "X1", "Y0")])


def is_proved(made: Any) -> bool:  # noqa: ANN401 reason: a template of a program
    verify: Any = argus.verify
    return isinstance(verify(made.trace("")).verdict, Proved)


@pytest.mark.share(56, among="work on convolutions")
@pytest.mark.parametrize("name", WORK)
def test_the_work_of_a_nest_is_proved(name: str) -> None:
    (form,) = forms(name)

    assert is_proved(convolution_and_work(form, found_in(form), CONFIG, "made"))


@pytest.mark.share(56, among="work on convolutions")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("relu", "tanh"),
        ("tanh", "relu"),
        ("scaled after the bias", "scaled before the bias"),
        ("a residual", "a residual twice"),
    ],
)
def test_other_work_is_not_proved(right: str, wrong: str) -> None:
    form, other = forms(right, wrong)

    def launches(_: Canonical, *given: Any) -> None:  # noqa: ANN401 reason: as a schedule's
        partial(launches_and_work, found_in(other))(other, *given)

    made = program_template(form, launches, CONFIG, "made", lambda x, y: rounded_product(x, y, 6))

    assert not is_proved(made)


@pytest.mark.share(56, among="work on convolutions")
@pytest.mark.parametrize(
    "shape", [(8, 96, 64, 64), (96, 1, 1), (8, 96, 64, 1)], ids=["residual", "bias", "of a column"]
)
def test_a_graph_s_convolution_adds_what_lies_at_its_elements(shape: tuple[int, ...]) -> None:
    def extents(*given: int) -> tuple[Index, ...]:
        return tuple(map(algebra.const, given))

    conv = Convolution((Taps(3, pad=1), Taps(3, pad=1)))
    x, f = TensorType("X", extents(8, 64, 64, 64), "f32"), TensorType("F", extents(96, 64, 3, 3), "f32")
    nest = convolution_nest(conv, x, f, TensorType("Y", extents(8, 96, 64, 64), "f32"))
    beside = TensorType("other", extents(*shape), "f32")
    places = [axis.index for axis in nest.domain[-len(shape) :]]
    at = tuple(algebra.const(0) if n == 1 else place for n, place in zip(shape, places, strict=True))
    of_graph = evolve(nest, body=apply("add", nest.body, Read("other", at, "f32")))
    types = {each.name: each for each in (x, f, beside)}
    family = next(each for each in FAMILIES if each.name == "convolutions")
    form = form_of((of_graph,), types, family, {})

    found, *_ = candidates(family, form, {name: int(computed(extent, {})) for name, extent in form.sizes.items()})

    verify: Any = argus.verify
    assert isinstance(verify(found.traced()[0], solver="z3").verdict, Proved)
