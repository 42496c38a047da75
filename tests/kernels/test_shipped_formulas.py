"""Formulas that results of a GPU are held against: right kernels agree with them, wrong kernels and formulas do not."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argus.core.ir import Kernel, Program
from argus.interp.interpret import interpret, interpret_program
from argus.testing.mutation import mutated, named
from benchmarks import shipped_formulas as formulas
from benchmarks.corpus_cases import DRAWS, Draw, shape_of
from benchmarks.shipped import near, shipped

SIZES = {"Z": 2, "M": 3, "N": 5, "K": 150}
"""Two scales along K for the block-scaled kernels, and a tail of every tile."""


class Numbers(np.ndarray[Any, Any]):
    """The part of torch's tensor that the formulas use, in host memory."""

    def double(self) -> Numbers:
        return numbers(self.astype(np.float64))

    def float(self) -> Numbers:
        return numbers(self.astype(np.float32))

    def to(self, dtype: Any) -> Numbers:  # noqa: ANN401 reason: as torch's
        return numbers(self.astype(dtype))

    def abs(self) -> Numbers:
        return numbers(np.abs(self))

    def clamp(self, low: int, high: int) -> Numbers:
        return numbers(self.clip(low, high))

    def repeat_interleave(self, times: int, axis: int) -> Numbers:
        return numbers(self.repeat(times, axis))

    def logical_not(self) -> Numbers:
        return numbers(np.logical_not(self))

    def nonzero(self) -> Any:  # noqa: ANN401 reason: rows of indices, as torch's
        return np.argwhere(np.asarray(self))

    def numel(self) -> int:
        return self.size


def numbers(drawn: Any) -> Numbers:  # noqa: ANN401 reason: an array or a number
    return np.asarray(drawn).view(Numbers)


class Generator:
    """torch's generator of random numbers, by that of NumPy."""

    def __init__(self, device: str) -> None:
        assert device == "cuda"

    def manual_seed(self, seed: int) -> np.random.Generator:
        return np.random.default_rng(seed)


def randint(low: int, high: int, shape: Any, *, generator: np.random.Generator, device: str) -> Numbers:  # noqa: ANN401 reason: as torch's
    assert device == "cuda"
    return numbers(generator.integers(low, high, shape))


def rand(shape: Any, *, generator: np.random.Generator, device: str) -> Numbers:  # noqa: ANN401 reason: as torch's
    assert device == "cuda"
    return numbers(generator.random(shape, np.float32))


def randn(shape: Any, *, generator: np.random.Generator, device: str) -> Numbers:  # noqa: ANN401 reason: as torch's
    assert device == "cuda"
    return numbers(generator.standard_normal(shape, np.float32))


def silu(x: Any) -> Any:  # noqa: ANN401 reason: as torch's
    return x / (1 + np.exp(-x))


def gelu(x: Any, approximate: str) -> Any:  # noqa: ANN401 reason: as torch's
    assert approximate == "tanh"
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


TORCH = SimpleNamespace(
    Generator=Generator,
    randint=randint,
    rand=rand,
    randn=randn,
    zeros_like=np.zeros_like,
    nn=SimpleNamespace(functional=SimpleNamespace(silu=silu, gelu=gelu)),
)
FAMILIES = {each.family: each for each in reversed(list(shipped()))}


Found = tuple[dict[str, Any], dict[str, Any], dict[str, Any], Numbers]
"""What `difference` takes: entry, case, inputs, and C."""


@cache
def traced(family: str) -> Kernel | Program:
    return FAMILIES[family].trace()


@cache
def run(family: str, draw: Draw) -> Found:
    """The configuration's own kernel."""
    return run_as(family, draw, traced(family))


def run_as(family: str, draw: Draw, made: Kernel | Program) -> Found:
    """A kernel in place of a configuration's."""
    own = traced(family)
    sizes = near(own, SIZES)
    shapes = {buffer.name: list(shape_of(buffer, own, sizes)) for buffer in own.parameters}
    types = {buffer.name: buffer.dtype.name for buffer in own.parameters}
    case = {"sizes": sizes, "draw": draw, "shapes": shapes}
    drawn = formulas.inputs(TORCH, types, case, seed=1) | {"C": np.zeros(shapes["C"])}
    arrays = {buffer.name: drawn[buffer.name].astype(buffer.dtype.numpy) for buffer in own.parameters}
    plain = [np.asarray(array) for array in arrays.values()]
    found = interpret(made, *plain, tags=False) if isinstance(made, Kernel) else interpret_program(made, *plain)
    del arrays["C"]
    return {"family": family, "tensors": list(types.items())}, case, arrays, numbers(found["C"])


def trouble(found: Found) -> str:
    """What is wrong with a result by the formula of its family."""
    return formulas.difference(TORCH, *found)


OWN = (
    *("gemm_bias", "gemm_bias_relu", "gemm_bias_silu", "gemm_bias_gelu", "gemm_scaled", "gemm_residual"),
    *("gemm_gated_silu", "gemm_fp8", "gemm_fp8_fnuz"),
)
"""Families with a formula of their own, but for the block-scaled one, whose scales are not in element operations."""
ON_MI300X = ("gemm_fp8_fnuz", "gemm_fp8_fnuz_blocks", "gemm_i8_scaled")
IN_PARTS = ("gemm_fp8_fnuz_streams", "gemm_i8_scaled_streams")
EXPECTED = [*OWN, "gemm_fp8_blocks", "gemm", *ON_MI300X, *IN_PARTS]
PRODUCTS = [name for name in FAMILIES if name not in EXPECTED]
OPERATIONS = named(("other_operation",))


def test_every_formula_has_a_family() -> None:
    assert set(formulas.FORMULAS) == set(EXPECTED) - {"gemm"}
    assert set(EXPECTED) < set(FAMILIES)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(
    "family", [*EXPECTED, *(pytest.param(f, marks=pytest.mark.share(80, among="shipped formulas")) for f in PRODUCTS)]
)
def test_a_right_kernel_agrees_with_its_formula(family: str, draw: Draw) -> None:
    assert trouble(run(family, draw)) == ""


@pytest.mark.share(80, among="shipped formulas")
@pytest.mark.parametrize("family", OWN)
def test_a_mutated_kernel_does_not(family: str) -> None:
    """Each operation exchanged for another or left out, in the part of the tile that such sizes reach."""
    seen, found = set[tuple[str, str]](), set[tuple[str, str]]()
    own = traced(family)
    assert isinstance(own, Kernel)
    for each in mutated(own, OPERATIONS):
        change = (each.what, str(each.place))
        seen.add(change)
        if change not in found and trouble(run_as(family, "floats", each.kernel)):
            found.add(change)

    assert seen
    assert found == seen


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("family", EXPECTED)
def test_a_formula_without_the_last_product_is_told_apart(
    family: str, draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    multiplied = formulas.multiplied

    def shorter(a: Any, b: Any, *error: float) -> formulas.Result:  # noqa: ANN401 reason: as torch's tensors
        return multiplied(a[..., :-1], b[..., :-1, :], *error)

    monkeypatch.setattr(formulas, "multiplied", shorter)

    assert "differ from the formula in float64" in trouble(run(family, draw))


@pytest.mark.parametrize(
    ("family", "formula"),
    [
        ("gemm_bias", "gemm_bias_silu"),
        ("gemm_bias", "gemm_bias_relu"),
        ("gemm_bias_relu", "gemm_bias_gelu"),
        ("gemm_bias_silu", "gemm_bias_gelu"),
        ("gemm_bias_gelu", "gemm_bias_silu"),
        ("gemm_bias", "gemm"),
        ("gemm_scaled", "gemm"),
        ("gemm_residual", "gemm"),
        ("gemm_fp8_blocks", "gemm"),
        ("gemm_fp8_fnuz_blocks", "gemm"),
        ("gemm_i8_scaled", "gemm"),
    ],
)
def test_the_formula_of_another_family_is_told_apart(
    family: str, formula: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(formulas.FORMULAS, family, formulas.FORMULAS.get(formula, formulas.product))

    assert trouble(run(family, "floats"))


@pytest.mark.parametrize("family", EXPECTED)
def test_one_element_that_is_off_is_named(family: str) -> None:
    entry, case, given, found = run(family, "floats")
    value, bound = (np.asarray(each) for each in formulas.expected(TORCH, family, given))
    found = found.copy()
    found[1, 2] = value[1, 2] + 4 * (bound[1, 2] + 2.0**-8 * (abs(value[1, 2]) + bound[1, 2]))

    shown = formulas.difference(TORCH, entry, case, given, found)
    assert shown.startswith(f"1 of {found.numel()} elements of `C` differ")
    assert "first [1, 2]" in shown


def test_an_exact_result_may_not_differ_by_one_rounding() -> None:
    entry, case, given, found = run("gemm", "integers")
    assert formulas.difference(TORCH, entry, case, given, found) == ""
    found = found.copy()
    found[1, 2] = found[1, 2] + 2.0**-7 * abs(found[1, 2])

    assert "first [1, 2]" in formulas.difference(TORCH, entry, case, given, found)
