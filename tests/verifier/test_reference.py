from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core import algebra
from argus.core.ir import Assert, Covers, Kernel, Tag, WrittenOnce
from argus.kernels.batched import bmm_nn_shared, bmm_nt, bmm_tn
from argus.kernels.gemm import gemm
from argus.language import (
    DType,
    Int,
    Template,
    Tensor,
    assert_covers,
    assert_written_once,
    bf16,
    block_id,
    ceil_div,
    copy,
    e4m3,
    eq,
    f16,
    f32,
    gfx942,
    global_load,
    kernel,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    tag,
    vmem,
)
from argus.verifier import reference
from argus.verifier.reference import claimed_contraction, compare, compare_with_claims, compare_with_interpreter

Array = np.ndarray[Any, Any]


@kernel(target=gfx942, threads=64)
def transposed(B: Tensor["N K", bf16], A: Tensor["M K", bf16], C: Tensor["M N", f32]) -> None:
    """The factors in the other order, and names of their own."""
    depth = ceil_div(A.shape[1], 8)
    tag(B, lambda n, k: dict(column=n, step=k))
    tag(A, lambda m, k: dict(row=m, step=k))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(32, 32), k=8)
    m, n = block_id((ceil_div(C.shape[0], 32), ceil_div(C.shape[1], 32)))
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)

    def fetch(k: Int | int) -> None:
        copy(A.tile((32, 8), (m, k)), a, via=global_load[:1], edge=0)
        copy(B.tile((32, 8), (n, k)), b, via=global_load[:1], edge=0)

    for k in loop(depth):
        fetch(k)
        vmem.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
    assert_covers(acc.tag.step, 0, A.shape[1])
    copy(acc, C.tile((32, 32), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(row=m, column=n))


@pytest.mark.parametrize("traced", [gemm.trace("cdna3"), gemm.trace("narrow")], ids=lambda k: k.name)
def test_the_claims_of_the_family_say_what_it_computes(traced: Kernel) -> None:
    found = claimed_contraction(traced)

    assert found is not None
    assert (found.left.name, found.right.name, found.output.name) == ("A", "B", "C")
    assert found.equation == "mk,nk->mn"
    assert found.rounding == 2.0**-8


def test_the_order_and_the_names_of_the_factors_are_free() -> None:
    found = claimed_contraction(transposed.trace())

    assert found is not None
    assert (found.left.name, found.right.name, found.rounding) == ("A", "B", 2.0**-24)


@pytest.mark.parametrize(
    ("family", "equation", "of_a", "of_b"),
    [
        (bmm_nt, "zmk,znk->zmn", (2, 5, 3), (2, 4, 3)),
        (bmm_tn, "zkm,zkn->zmn", (2, 3, 5), (2, 3, 4)),
        (bmm_nn_shared, "mk,zkn->zmn", (5, 3), (2, 3, 4)),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_batches_of_products_say_what_they_compute(
    family: Template, equation: str, of_a: tuple[int, ...], of_b: tuple[int, ...]
) -> None:
    found = claimed_contraction(family.trace("interleaved"))
    assert found is not None
    assert found.equation == equation

    random = np.random.default_rng(0)
    arrays = {"A": random.integers(-3, 4, of_a).astype(np.float32), "B": random.integers(-3, 4, of_b)}
    output = np.einsum(equation, arrays["A"], arrays["B"]).astype(np.float32)
    assert compare_with_claims(found, arrays, output, 0, most=2).right  # two rows of each product
    output[1, [0, -1]] += 1
    assert compare_with_claims(found, arrays, output, 0, most=2).outside == 2 * 4


def claims(kind: type[object]) -> Callable[[object], bool]:
    return lambda stmt: isinstance(stmt, Assert) and isinstance(stmt.claim, kind)


def tags(stmt: object) -> bool:
    return isinstance(stmt, Tag)


@pytest.mark.parametrize(
    "gone",
    [claims(Covers), claims(WrittenOnce), tags],
    ids=["cover", "written once", "tags"],
)
def test_without_one_of_the_claims_nothing_is_known(gone: Callable[[object], bool]) -> None:
    made = gemm.trace("narrow")

    assert claimed_contraction(evolve(made, prologue=tuple(stmt for stmt in made.prologue if not gone(stmt)))) is None


def test_a_claim_about_some_elements_does_not_determine_all() -> None:
    made = gemm.trace("narrow")
    claim = next(stmt for stmt in made.prologue if isinstance(stmt, Assert) and isinstance(stmt.claim, WrittenOnce))
    some = evolve(claim, claim=evolve(claim.claim, where=algebra.eq(algebra.mod(algebra.coord(1), 2), 0)))

    assert claimed_contraction(made) is not None
    assert claimed_contraction(evolve(made, prologue=tuple(some if s is claim else s for s in made.prologue))) is None


def test_a_sum_claimed_for_some_elements_does_not_determine_all() -> None:
    made = gemm.trace("narrow")
    claim = next(stmt for stmt in made.prologue if isinstance(stmt, Assert) and isinstance(stmt.claim, Covers))
    some = evolve(claim, claim=evolve(claim.claim, where=algebra.lt(0, algebra.sym(made.sizes[0]))))

    assert claimed_contraction(evolve(made, prologue=(*made.prologue, some))) is None


def test_a_tag_of_a_shifted_view_does_not_determine_the_matrix() -> None:
    made = gemm.trace("narrow")
    tag = next(stmt for stmt in made.prologue if isinstance(stmt, Tag))
    shifted = evolve(tag.view, at=(algebra.add(tag.view.at[0], 1), tag.view.at[1]))
    other = evolve(tag, view=shifted)

    assert claimed_contraction(evolve(made, prologue=tuple(other if s is tag else s for s in made.prologue))) is None


def test_arithmetic_after_the_sum_is_not_in_the_claims() -> None:
    @kernel(target=gfx942, threads=64)
    def doubled(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]) -> None:
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B, lambda n, k: dict(n=n, k=k))
        mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(32, 32), k=8)
        acc = registers(f32, mm.C)
        acc[:] = acc + acc
        assert_covers(acc.tag.k, 0, A.shape[1])
        copy(acc, C.tile((32, 32), (0, 0)), edge=0)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    assert claimed_contraction(doubled.trace()) is None


def inputs(m: int, n: int, k: int) -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {name: random.standard_normal(shape).astype(bfloat16) for name, shape in (("A", (m, k)), ("B", (n, k)))}


def test_a_right_result_is_within_its_bounds_and_a_wrong_one_is_not() -> None:
    claimed = claimed_contraction(gemm.trace("narrow"))
    assert claimed is not None
    arrays = inputs(30, 20, 50)
    right = (arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32).T).astype(bfloat16)

    found = compare_with_claims(claimed, arrays, right, seed=0)
    assert (found.right, found.elements, found.outside) == (True, 600, 0)
    assert 0 < found.share <= 1
    assert found.with_what == "the sum over K of A * B in float64"

    wrong = right.copy()
    wrong[3, 4] += bfloat16(1)
    assert compare_with_claims(claimed, arrays, wrong, seed=0).outside == 1


def test_some_rows_of_a_large_result_are_compared() -> None:
    claimed = claimed_contraction(gemm.trace("narrow"))
    assert claimed is not None
    arrays = inputs(100, 20, 50)
    right = (arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32).T).astype(bfloat16)
    wrong = right.copy()
    wrong[99, 0] += bfloat16(1)

    found = compare_with_claims(claimed, arrays, wrong, seed=0, most=10 * 20 * 50)

    assert (found.elements, found.outside) == (200, 1)
    assert found.with_what.endswith("10 of 100 rows")


@pytest.mark.parametrize(
    ("found", "expected", "outside"),
    [
        ([1.0, 2.0], [1.0, 2.5], 1),
        ([np.nan, 2.0], [1.0, 2.0], 1),
        ([np.nan, 2.0], [np.nan, 2.0], 0),
        ([np.inf, -np.inf], [np.inf, -np.inf], 0),
        ([np.inf, 2.0], [-np.inf, 2.0], 1),
    ],
)
def test_nans_are_compared_too(found: list[float], expected: list[float], outside: int) -> None:
    result = compare(np.array(found), np.array(expected), np.array([0.1, 0.1]), "a list")

    assert (result.outside, result.right) == (outside, outside == 0)


def test_an_empty_output_is_right() -> None:
    nothing = np.zeros(0)

    assert compare(nothing, nothing, nothing, "a list").right


def test_outputs_are_compared_with_the_interpreter_up_to_some_roundings() -> None:
    expected = {"Y": np.array([1.0, 100.0], np.float32), "I": np.array([3], np.int32)}
    near = {"Y": expected["Y"] + np.array([0, 2.0**-17], np.float32), "I": expected["I"]}
    far = {"Y": expected["Y"] * np.float32(1.001), "I": expected["I"]}
    off = {"Y": expected["Y"], "I": expected["I"] + 1}

    assert compare_with_interpreter(near, expected).right
    assert compare_with_interpreter(far, expected).outside == 2
    assert compare_with_interpreter(off, expected).outside == 1


@pytest.mark.parametrize(("dtype", "normal"), [(f16, 2.0**-14), (e4m3, 2.0**-6)], ids=str)
def test_the_bound_of_subnormal_numbers_is_half_of_their_distance(
    dtype: DType, normal: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all of them, and what lies between two: rounding is within the bound, and the next but one is not."""
    kind = dtype.numpy
    least = float(np.nextafter(np.zeros((), kind), np.ones((), kind)))
    exact = np.arange(0, 2 * round(normal / least) * 8) / 8 * least
    none = np.zeros_like(exact)
    errors = np.abs(exact.astype(kind).astype(np.float64) - exact)
    assert (errors <= reference.when_stored(exact, none, kind)).all()
    subnormal = exact < normal
    assert (least > reference.when_stored(exact, none, kind))[subnormal].all()
    monkeypatch.setattr(reference, "_SUBNORMAL_ROUNDINGS", {})
    assert not (errors <= reference.when_stored(exact, none, kind)).all()
