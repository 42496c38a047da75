"""Products with work on their sums: each epilogue is proved for its nest alone, on every schedule that has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import argus
from argus.core import algebra
from argus.core.index_text import show
from argus.core.verdict import Proved, Unknown, Verdict
from argus.interp.programs import run_program
from argus.kernels import gemm_f32, gemm_fma
from argus.kernels.gemm import CONFIGS
from argus.kernels.nests.made import program_template, template
from argus.kernels.nests.products import at_once, launches, product
from argus.kernels.schedules.parts import Parts
from argus.kernels.schedules.parts_claims import rounded_product
from argus.kernels.schedules.parts_in_ring import InRing
from argus.language import Tensor
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.evaluate import nest_value
from argus.nests.nest import Apply, Axis, Compare, Constant, Expr, Nest, Read, Reduce, Select, TensorType, size
from argus.nests.products import product_of_matrices

BEYOND_CVC5 = {("relu", "chunks")}
"""It may give up at the default budget: a bound of a choice, with blocks that are a quotient of two sizes."""
M, N, K = Axis("m", size("m")), Axis("n", size("n")), Axis("k", size("k"))
Z = Axis("z", size("z"))


def _apply(op: str, *args: Expr | float) -> Expr:
    return Apply(op, tuple(Constant(float(each)) if isinstance(each, int | float) else each for each in args))


def _read(name: str, *axes: Axis, dtype: str = "f32") -> Read:
    return Read(name, tuple(axis.index for axis in axes), dtype)


def _sums(dtype: str = "f32", *batch: Axis) -> Reduce:
    return Reduce(
        "add", (K,), _apply("mul", _read("x", *batch, M, K, dtype=dtype), _read("w", *batch, N, K, dtype=dtype))
    )


BIAS, ROW, OTHER = _read("bias", N), _read("row", M), _read("other", M, N)


def _relu(x: Expr) -> Expr:
    return Select(Compare("<", Constant(0.0), x), x, Constant(0.0))


def _gelu(x: Expr) -> Expr:
    return _apply("mul", _apply("mul", x, 0.5), _apply("add", 1, _apply("erf", _apply("mul", x, 0.5**0.5))))


def tails(s: Expr) -> dict[str, Expr]:
    """What is computed of sums; all read the same tensors, so that one's kernel can be tried for another."""
    rest = _apply("add", _apply("mul", OTHER, 0), _apply("mul", ROW, 0))
    whole = _apply("add", _apply("mul", OTHER, 0), _apply("mul", BIAS, 0))
    return {
        "relu": _apply("add", _relu(_apply("add", s, BIAS)), rest),
        "gelu": _apply("add", _gelu(_apply("add", s, BIAS)), rest),
        "scaled after the bias": _apply("add", _apply("mul", _apply("add", s, BIAS), 2), rest),
        "scaled before the bias": _apply("add", _apply("add", _apply("mul", s, 2), BIAS), rest),
        "a residual": _apply(
            "add", _apply("add", _apply("mul", s, 2), OTHER), _apply("add", whole, _apply("mul", ROW, 0))
        ),
        "a factor of rows": _apply("add", _apply("mul", s, ROW), whole),
        "a factor of columns": _apply("add", _apply("mul", s, BIAS), rest),
        "a quotient": _apply("add", _apply("div", s, BIAS), rest),
        "another quotient": _apply("add", _apply("div", BIAS, s), rest),
        "a clamp": _apply("add", _apply("min", _apply("max", _apply("add", s, BIAS), -1), 1), rest),
        "another clamp": _apply("add", _apply("min", _apply("max", _apply("add", s, BIAS), -1), 2), rest),
    }


def verdict_of(made: Any, solver: str = "portfolio") -> Verdict:  # noqa: ANN401 reason: a template of a kernel or of a program
    verify: Any = argus.verify
    return verify(made.trace(""), solver=solver).verdict


def is_proved(made: Any) -> bool:  # noqa: ANN401 reason: a template of a kernel or of a program
    return isinstance(verdict_of(made), Proved)


def form_of(body: Expr, dtype: str = "f32", *batch: Axis, beside: Expr | None = None) -> Canonical:
    """The canonical form of a nest with this body; beside: of a second one, that stores to an output of its own."""
    axes = {"x": (*batch, M, K), "w": (*batch, N, K), "bias": (N,), "row": (M,), "other": (M, N)}
    kinds = {"x": dtype, "w": dtype}
    types = {
        name: TensorType(name, tuple(axis.extent for axis in of), kinds.get(name, "f32")) for name, of in axes.items()
    }
    nests = [Nest(f"y{k}", dtype, (*batch, M, N), each) for k, each in enumerate((body, beside)) if each is not None]
    return canonical(nests, types)


F32: dict[str, Any] = {
    "parts": Parts(),
    "parts 256": gemm_f32.CONFIGS["rows_256_pairs"],
    "chunks": gemm_f32.CONFIGS["chunks_1024"],
    "in a ring": InRing(),
    "any rows": gemm_f32.CONFIGS["tiles_128_any"],
    "fmas": gemm_fma.CONFIGS["fma"],
}
HALF = {name: CONFIGS[name] for name in ("cooperative", "clustered_bands", "pingpong", "columns_128", "clustered_any")}
CASES = [(tail, config) for tail in tails(_sums()) for config in F32]
"""Of f32."""
_TWINS = {
    "relu": "gelu",
    "gelu": "relu",
    "scaled after the bias": "scaled before the bias",
    "scaled before the bias": "scaled after the bias",
    "a residual": "scaled before the bias",
    "a factor of rows": "a factor of columns",
    "a factor of columns": "a factor of rows",
    "a quotient": "another quotient",
    "a clamp": "another clamp",
}


@pytest.mark.share(432, among="products with tails")
@pytest.mark.parametrize(("tail", "config"), CASES)
def test_each_tail_of_f32_is_proved(tail: str, config: str) -> None:
    made: Any = product(form_of(tails(_sums())[tail]), F32[config], "made")

    assert is_proved(made)


def of_a_square() -> Canonical:
    """The form of a product by a matrix of as many rows as they are long, and of a number added for each."""
    k = Axis("k", N.extent)
    axes = {"x": (M, k), "w": (N, k), "bias": (N,)}
    types = {name: TensorType(name, tuple(axis.extent for axis in of), "f32") for name, of in axes.items()}
    sums = Reduce("add", (k,), _apply("mul", _read("x", M, k), _read("w", N, k)))
    return canonical([Nest("y", "f32", (M, N), _apply("add", sums, BIAS))], types)


@pytest.mark.share(432, among="products with tails")
@pytest.mark.parametrize("config", F32)
def test_a_tailof_a_square_matrix_is_proved(config: str) -> None:
    """There the end of a row of x says where columns end, and the first iteration needs no test."""
    assert is_proved(product(of_a_square(), F32[config], "made"))


@pytest.mark.share(432, among="products with tails")
@pytest.mark.parametrize("config", HALF)
@pytest.mark.parametrize("tail", ["gelu", "a residual", "a factor of rows"])
def test_each_tail_of_bf16_is_proved(tail: str, config: str) -> None:
    made: Any = product(form_of(tails(_sums("bf16"))[tail], "bf16"), HALF[config], "made")

    assert is_proved(made)


@pytest.mark.nightly
@pytest.mark.parametrize(("tail", "config"), CASES)
def test_cvc5_proves_those_of_f32_too(tail: str, config: str) -> None:
    made: Any = product(form_of(tails(_sums())[tail]), F32[config], "made")

    verdict = verdict_of(made, "cvc5")
    assert isinstance(verdict, Unknown | Proved if (tail, config) in BEYOND_CVC5 else Proved), verdict


@pytest.mark.nightly
@pytest.mark.parametrize("config", HALF)
@pytest.mark.parametrize("tail", ["gelu", "a residual", "a factor of rows"])
def test_cvc5_proves_those_of_bf16_too(tail: str, config: str) -> None:
    made: Any = product(form_of(tails(_sums("bf16"))[tail], "bf16"), HALF[config], "made")

    assert isinstance(verdict_of(made, "cvc5"), Proved)


def _of_batches(body: Expr, beside: Expr | None = None) -> Canonical:
    """The form of a batch of products of bf16; `row` and `other` have an axis of matrices, too."""
    axes = {"x": (Z, M, K), "w": (Z, N, K), "bias": (N,), "row": (Z, M), "other": (Z, M, N)}
    types = {
        name: TensorType(name, tuple(axis.extent for axis in of), "bf16" if name in "xw" else "f32")
        for name, of in axes.items()
    }
    bodies = [each for each in (body, beside) if each is not None]
    return canonical([Nest(f"y{k}", "bf16", (Z, M, N), each) for k, each in enumerate(bodies)], types)


BATCHES: dict[str, Expr] = {
    "relu": _relu(_apply("add", _sums("bf16", Z), BIAS)),
    "a residual": _apply("add", _sums("bf16", Z), _read("other", Z, M, N)),
    "a factor of rows": _apply("mul", _sums("bf16", Z), _read("row", Z, M)),
}


@pytest.mark.share(56, among="batches with tails")
@pytest.mark.parametrize("config", HALF)
@pytest.mark.parametrize("tail", BATCHES)
def test_each_tail_of_a_batch_of_bf16_is_proved(tail: str, config: str) -> None:
    assert is_proved(product(_of_batches(BATCHES[tail]), HALF[config], "made"))


@pytest.mark.share(56, among="batches with tails")
@pytest.mark.parametrize("config", ["cooperative", "pingpong", "columns_128"])
def test_rows_of_the_first_matrix_for_all_are_not_proved(config: str) -> None:
    first = _apply("mul", _sums("bf16", Z), Read("row", (algebra.const(0), M.index), "f32"))
    right, wrong = _separately(_of_batches(BATCHES["a factor of rows"], first))

    def other(_: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Any) -> None:  # noqa: ANN401 reason: the family's
        at_once(wrong, tensors, sizes, cfg)

    assert not is_proved(template(right, other, HALF[config], "made"))


def _separately(both: Canonical) -> list[Canonical]:
    """The forms of two nests over the same tensors."""
    *parameters, _ = both.parameters
    return [evolve(both, nests=(evolve(each, output="Y0"),), parameters=tuple(parameters)) for each in both.nests]


@pytest.mark.share(432, among="products with tails")
@pytest.mark.parametrize("config", ["parts", "in a ring", "fmas"])
@pytest.mark.parametrize("tail", _TWINS)
def test_a_kernel_with_another_tail_is_not_proved(tail: str, config: str) -> None:
    both, cfg = form_of(tails(_sums())[tail], beside=tails(_sums())[_TWINS[tail]]), F32[config]
    right, wrong = _separately(both)
    schedule: Any = launches if isinstance(cfg, Parts | InRing) else at_once

    def other(_: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Any) -> None:  # noqa: ANN401 reason: the family's
        schedule(wrong, tensors, sizes, cfg)

    if isinstance(cfg, Parts | InRing):
        made: Any = program_template(right, other, cfg, "made", lambda x, y: rounded_product(x, y, cfg.products))
    else:
        made = template(right, other, cfg, "made")

    assert not is_proved(made)


def test_a_batch_is_multiplied_and_its_sums_are_worked_on() -> None:
    body = _relu(_apply("add", _sums("f32", Z), OTHER))
    form = form_of(body, "f32", Z)
    of = product_of_matrices(form)

    assert of is not None
    assert of.batch is not None
    assert (of.a_transposed, of.b_transposed, of.shared) == (False, False, False)


def test_sums_of_two_products_are_no_product() -> None:
    both = _apply("add", _sums(), Reduce("add", (K,), _apply("mul", _read("x", M, K), _read("x", N, K))))

    assert product_of_matrices(form_of(both)) is None


@pytest.mark.share(3)
def test_a_run_computes_what_the_nest_says() -> None:
    form = form_of(tails(_sums())["a factor of rows"])
    sizes = {name: {"m": 20, "n": 24, "k": 40}[show(extent)] for name, extent in form.sizes.items()}
    rng = np.random.default_rng(0)
    given = {
        each.type.name: rng.standard_normal([int(computed(n, sizes)) for n in each.type.shape]).astype(np.float32)
        for each in form.parameters
    }
    made: Any = product(form, Parts(), "made")

    found = run_program(made.trace(""), sizes, given).arrays["Y0"]

    assert np.allclose(found, nest_value(form.nests[0], given, sizes), rtol=1e-5, atol=1e-5)
