"""Convolutions with axes of one element have kernels on matrix units: proved, right when executed, no others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

import argus
from argus.core.dtype import DTYPES
from argus.core.ir import Buffer, Program
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.core.walk import evaluate
from argus.interp.programs import launch_sizes
from argus.kernels.nests.contraction import FoundConvolution, launches_and_work
from argus.kernels.nests.made import program_template
from argus.kernels.schedules.shifted import Shifted
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.convolution import Taps, convolution_of
from argus.nests.evaluate import nest_value
from argus.nests.nest import Apply, Constant, Expr, Read, Select, TensorType
from argus.nests.nest import Compare as Is
from argus.nests.rewrite import reductions
from argus.ops.call_path import Candidate
from argus.runtime.cpu.validate import run_text
from argus.torch.compiled import form_of
from argus.torch.families import FAMILIES, Family, candidates
from tests.nests.convolutions_of_one import ONE_CHANNEL, PADDED, SEVERAL, SHAPES, Shape, at_zero, extents, nest_of, of

Array = npt.NDArray[np.generic]
(BF16,) = (each.numpy for each in DTYPES if each.name == "bf16")
ALL = {**SHAPES, **ONE_CHANNEL}
SHARE = pytest.mark.share(48, among="convolutions of one")


def family(name: str) -> Family:
    return next(each for each in FAMILIES if each.name == name)


def form_and_kernels(shape: Shape, of_family: str = "convolutions") -> tuple[Canonical, tuple[Candidate, ...]]:
    """As of a graph that reads at 0."""
    nest, types = nest_of(shape)
    form = form_of((at_zero(nest, "n"),), types, family(of_family), {})
    return form, candidates(family(of_family), form, sizes_of(form))


def sizes_of(form: Canonical) -> dict[str, int]:
    return {name: int(computed(extent, {})) for name, extent in form.sizes.items()}


def is_proved(program: Any) -> bool:  # noqa: ANN401 reason: a kernel or a program
    verify: Any = argus.verify
    return isinstance(verify(program, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)


SLOW = {"one input, transposed", "one input, three axes"}
PROVED = [pytest.param(each, marks=pytest.mark.nightly if each in SLOW else ()) for each in ALL]


@SHARE
@pytest.mark.parametrize("name", PROVED)
def test_a_kernel_on_matrix_units_is_proved(name: str) -> None:
    _, (kernel, *_) = form_and_kernels(ALL[name])
    assert is_proved(kernel.traced()[0])


@SHARE
@pytest.mark.parametrize("name", ALL)
def test_the_text_of_its_launches_computes_the_formula(name: str) -> None:
    shape, drawn = ALL[name], np.random.default_rng(0)
    form, (kernel, *_) = form_and_kernels(shape)
    given = {
        each: drawn.standard_normal(of).astype(np.float32).astype(BF16)
        for each, of in (("X", shape.inputs), ("F", shape.filters))
    }

    found = run(kernel.traced()[0], form, given)

    nest, _ = nest_of(shape)
    expected = nest_value(nest, {each: array.astype(np.float64) for each, array in given.items()}, {})
    assert np.abs(found.reshape(shape.outputs).astype(np.float64) - expected).max() <= 5e-3 * np.abs(expected).max()


def run(program: Program | Any, form: Canonical, given: Mapping[str, Array]) -> Array:  # noqa: ANN401 reason: untyped
    """What the texts of the launches compute, in memory that holds NaN."""
    sizes = sizes_of(form)
    env = {symbol: sizes[symbol.name] for symbol in program.sizes}
    sources = {each.type.name: given.get(each.source) for each in form.parameters}
    memory: dict[Buffer, Array] = {}
    for each in (*program.parameters, *program.workspaces):
        shape = [int(np.asarray(evaluate(extent, env))) for extent in each.shape]
        array = sources.get(each.name)
        empty = np.full(shape, np.nan, np.float32).astype(each.dtype.numpy)
        memory[each] = empty if array is None else array.reshape(shape)
    for launch in program.launches:
        own = {symbol.name: n for symbol, n in launch_sizes(launch, env).items()}
        made = run_text(launch.kernel, {n: memory[b] for n, b in launch.arguments.items()}, own)
        memory |= {launch.arguments[name]: array for name, array in made.items()}
    return next(array for buffer, array in memory.items() if buffer.name == form.parameters[-1].type.name)


ONE_IMAGE = Shape(PADDED, (4, 5), n=1)


def with_work(*, scaled: float) -> Canonical:
    """The form of a graph that scales the sums of one image, adds a bias and a residual, and keeps what is positive."""
    nest, types = nest_of(ONE_IMAGE)
    zero, (n, o, y, x) = Constant(0.0), (axis.index for axis in nest.domain)
    beside = Read("R", (n, o, y, x), "bf16"), Read("B", (o,), "bf16")
    body: Expr = Apply("mul", (nest.body, Constant(scaled)))
    for each in beside:
        body = Apply("add", (body, each))
    types = {
        **types,
        "R": TensorType("R", extents(*ONE_IMAGE.outputs), "bf16"),
        "B": TensorType("B", extents(ONE_IMAGE.o), "bf16"),
    }
    whole = evolve(nest, body=Select(Is("<", zero, body), body, zero))
    return form_of((at_zero(whole),), types, family("convolutions"), {})


@pytest.mark.nightly
def test_work_on_the_sums_of_one_image_is_proved() -> None:
    form = with_work(scaled=2.0)
    (kernel, *_) = candidates(family("convolutions"), form, sizes_of(form))
    assert is_proved(kernel.traced()[0])


@SHARE
@pytest.mark.parametrize("other", [pytest.param("scaled", marks=pytest.mark.nightly), "padded"])
def test_a_kernel_of_another_graph_is_not_proved(other: str) -> None:
    """The claim is of the graph's nest: with other work, or with other windows, it does not hold."""
    if other == "scaled":
        form, of_other = with_work(scaled=2.0), with_work(scaled=4.0)
    else:
        form, _ = form_and_kernels(ONE_IMAGE)
        of_other, _ = form_and_kernels(evolve(ONE_IMAGE, conv=of(Taps(3, pad=1), Taps(3, pad=2))))

    def launches(_: Canonical, *given: Any) -> None:  # noqa: ANN401 reason: as a schedule's
        partial(launches_and_work, found_in(of_other))(of_other, *given)

    assert not is_proved(program_template(form, launches, Shifted(pixels=64), "made").trace(""))


def found_in(form: Canonical) -> FoundConvolution:
    (nest,), types = form.nests, {each.type.name: each.type for each in form.parameters}
    (sums,) = reductions(nest.body)
    found = convolution_of(evolve(nest, body=sums), types)
    assert found is not None
    return FoundConvolution(found[0], sums, [types[each] for each in (*found[1:], nest.output)])


@pytest.mark.parametrize("name", ["one input, two axes", "one filter", "one row", "one channel", "one of all"])
def test_f32_has_a_kernel_of_fmas(name: str) -> None:
    _, kernels = form_and_kernels(evolve(ALL[name], dtype="f32"), "direct")
    assert kernels
    assert not form_and_kernels(evolve(ALL["one input, two axes"], dtype="f32"))[1]


@pytest.mark.parametrize("shape", [Shape(PADDED, (4, 5), c=1), Shape(of(Taps(1), Taps(1)), (4, 5), c=8, o=1)])
def test_a_thread_sums_few_products_of_one_channel(shape: Shape) -> None:
    """Matrix units would multiply zeros, and tiles of FMAs share little."""
    assert not form_and_kernels(shape)[1]
    assert not form_and_kernels(evolve(shape, dtype="f32"), "direct")[1]
    assert form_and_kernels(shape, "windows")[1] or form_and_kernels(shape, "reductions")[1]
    assert form_and_kernels(evolve(shape, c=SEVERAL, o=SEVERAL))[1]
