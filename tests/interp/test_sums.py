"""Sums of products: from zeros, added to each other, of different products; untracked values are not checked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from argus.core.ir import Kernel
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations, run
from argus.interp.search.schedule import DIRECTED
from argus.interp.search.search import sizes_in_order
from argus.language import (
    Fragment,
    Int,
    Tensor,
    assert_covers,
    assert_written_once,
    bf16,
    copy,
    exp2,
    f32,
    gfx942,
    global_load,
    global_store,
    kernel,
    maximum,
    mfma,
    mfma_f32_16x16x16_bf16,
    mma,
    registers,
    tag,
    vmem,
    where,
    zeros,
)
from property_tests.programs import CORPUS, templates
from tests.interp.programs import m_and_k, m_and_n, n_and_k

MM = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16), k=16)
PROVED = sorted((CORPUS / "proved").glob("*.py"))
RUNNABLE = [path for path in PROVED if path.stem != "descriptor_of_its_largest_span"]
"""Without the kernel whose only shape is too large to run."""


def named(path: Path) -> str:
    return path.stem


@pytest.mark.share(540)
@pytest.mark.parametrize("path", RUNNABLE, ids=named)
def test_correct_kernels_violate_nothing(path: Path) -> None:
    (template,) = templates(path)
    traced = template.trace()
    prepared = Prepared(traced)
    sizes = list(sizes_in_order(traced))
    for size in (*islice(sizes, 2), sizes[len(sizes) // 2]):
        for schedule in DIRECTED:
            assert find_violations(prepared, size, schedule) == (), (size, schedule)


@pytest.mark.parametrize("name", ["zeroed_sum", "zeroed_sum_unguarded"])
def test_a_sum_of_nothing_is_zero(name: str) -> None:
    (template,) = templates(CORPUS / "proved" / f"{name}.py")
    outcome = run(template.trace(), {"M": 3, "N": 5, "K": 0})
    assert outcome.violations == ()
    assert not outcome.arrays["C"].astype("f4").any()


Step = Callable[[Fragment, Fragment, Fragment], Fragment]


def summed(step: Step, tags_of_b: Callable[[Int, Int], dict[str, Int]] = n_and_k) -> Kernel:
    """`step(acc, a, b)` on an accumulator of zeros, where a and b hold the first 16 of k; then claims and a store."""

    @kernel(target=gfx942, threads=64)
    def sums(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]) -> None:
        tag(A, m_and_k)
        tag(B, tags_of_b)
        a, b = registers(bf16, MM.A), registers(bf16, MM.B)
        copy(A.tile((16, 16), (0, 0)), a, via=global_load[0], edge=0)
        copy(B.tile((16, 16), (0, 0)), b, via=global_load[0], edge=0)
        vmem.wait(0)
        result = step(zeros(f32, MM.C), a, b)
        assert_covers(result.tag.k, 0, A.shape[1])
        copy(result, C.tile((16, 16), (0, 0)), via=global_store, edge=0)
        assert_written_once(C, m_and_n)

    return sums.trace()


def messages(traced: Kernel, k: int = 16) -> list[tuple[str, str]]:
    return [(v.code, v.message) for v in run(traced, {"M": 9, "N": 16, "K": k}, values=False).violations]


def product(a: Fragment, b: Fragment) -> Fragment:
    acc = zeros(f32, MM.C)
    mma(MM, acc, a, b)
    return acc


def finished(how: Callable[[Fragment], Fragment]) -> Step:
    return lambda _, a, b: how(product(a, b))


@pytest.mark.parametrize(
    "step",
    [
        finished(lambda x: x),
        finished(lambda x: x + zeros(f32, MM.C)),
        finished(lambda x: -x / 4.0),
        finished(lambda x: x * x),
        finished(lambda x: x + x),
        finished(lambda x: x - x * 0.5),
        finished(exp2),
        finished(lambda x: maximum(x, 0.0)),
        finished(lambda x: where(x.index[0] < 3, 0.0, x)),
        finished(lambda x: where(x.index[0] < 3, x * 0.5, x)),
        finished(lambda x: maximum(where(x.index[0] < 3, 1.0, x), 0.0) + 1.0),
    ],
)
def test_untracked_values_are_not_checked(step: Step) -> None:
    for k in (0, 1, 16):
        assert messages(summed(step), k) == []


def sum_added_to_twice(acc: Fragment, a: Fragment, b: Fragment) -> Fragment:
    mma(MM, acc, a, b)
    acc += product(a, b)
    return acc


def test_sums_that_overlap_count_twice() -> None:
    assert messages(summed(sum_added_to_twice)) == [("I3", "the sum over `k` is not [0, K): k = 0 is counted twice")]


def scaled_between(acc: Fragment, a: Fragment, b: Fragment) -> Fragment:
    mma(MM, acc, a, b)
    acc *= -1.0
    mma(MM, acc, a, b)
    mma(MM, acc, a, b)
    return acc


def test_products_of_different_weights_are_not_counted() -> None:
    assert messages(summed(scaled_between)) == []


def ones_first(acc: Fragment, a: Fragment, b: Fragment) -> Fragment:
    acc += 1.0
    mma(MM, acc, a, b)
    mma(MM, acc, a, b)
    return acc


def test_a_sum_that_starts_from_numbers_is_not_counted() -> None:
    assert messages(summed(ones_first)) == []


def plain_second(acc: Fragment, a: Fragment, b: Fragment) -> Fragment:
    mma(MM, acc, a, b)
    mma(MM, acc, ones(), ones())
    return acc


def ones() -> Fragment:
    return zeros(bf16, MM.A) + 1.0


def test_a_value_computed_from_zeros_alone_is_not_tracked() -> None:
    assert messages(summed(plain_second)) == []


def n_and_q(n: Int, q: Int) -> dict[str, Int]:
    return {"n": n, "q": q}


def test_data_without_a_sum_covers_nothing() -> None:
    @kernel(target=gfx942, threads=64)
    def loaded(C: Tensor["M N", f32]) -> None:
        tag(C, m_and_n)
        held = registers(f32, MM.C)
        copy(C.tile((16, 16), (0, 0)), held, via=global_load, edge=0)
        vmem.wait(0)
        assert_covers(held.tag.k, 0, C.shape[0])

    found = run(loaded.trace(), {"M": 3, "N": 4}, values=False).violations
    assert [(v.code, v.message) for v in found] == [("I3", "`held` is not a sum of products")]


def only_k(_: Int, k: Int) -> dict[str, Int]:
    return {"k": k}


def mixed(first: str, second: str, *, claimed: bool = True) -> Kernel:
    """acc = A @ B^T + D @ E^T, each pair of operands with the tags of its letter; "" is none."""
    letters: dict[str, tuple[Callable[[Int, Int], dict[str, Int]], ...]] = {
        "k": (m_and_k, n_and_k),
        "q": (lambda m, q: {"m": m, "q": q}, n_and_q),
        "row": (only_k, n_and_k),
        "other": (lambda m, k: {"m": m + 1, "k": k}, n_and_k),
    }

    @kernel(target=gfx942, threads=64)
    def sums(
        A: Tensor["16 16", bf16],
        B: Tensor["16 16", bf16],
        D: Tensor["16 16", bf16],
        E: Tensor["16 16", bf16],
        C: Tensor["16 16", f32],
    ) -> None:
        acc = zeros(f32, MM.C)
        for pair, letter in (((A, B), first), ((D, E), second)):
            a, b = registers(bf16, MM.A), registers(bf16, MM.B)
            for tensor, held, names in zip(pair, (a, b), letters.get(letter, (None, None)), strict=True):
                if names is not None:
                    tag(tensor, names)
                copy(tensor.tile((16, 16), (0, 0)), held, via=global_load[0])
            vmem.wait(0)
            mma(MM, acc, a, b)
        assert_covers(acc.tag.k, 0, 16)
        copy(acc, C.tile((16, 16), (0, 0)), via=global_store)
        if claimed:
            assert_written_once(C, m_and_n)

    return sums.trace()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("k", "row", "the accumulator's `m` changes from 0 to nothing"),
        ("row", "k", "the accumulator's `m` changes from nothing to 0"),
        ("k", "other", "the accumulator's `m` changes from 0 to 1"),
        ("k", "", "products without `k` are added to a sum of products over it"),
        ("k", "q", "products without `k` are added to a sum of products over it"),
        ("q", "k", "products without `q` are added to a sum of products over it"),
    ],
)
def test_products_over_different_names_do_not_add_up(first: str, second: str, message: str) -> None:
    found = [(v.code, v.message) for v in run(mixed(first, second), {}, values=False).violations]
    assert ("I2", message) in found


def test_products_of_several_rows_are_no_fault_without_a_claim_about_rows() -> None:
    found = run(mixed("k", "other", claimed=False), {}, values=False).violations
    assert [(v.code, v.message) for v in found] == [("I3", "the sum over `k` is not [0, 16): k = 0 is counted twice")]


def test_products_without_the_name_are_named() -> None:
    found = {v.code: v.message for v in run(mixed("k", "q"), {}, values=False).violations}
    assert found["I3"] == "the sum over `k` is not [0, 16): it contains products without `k`"


@pytest.mark.parametrize("tags", ["none", "own", "wrong"])
def test_a_sum_may_start_from_memory(tags: str) -> None:
    @kernel(target=gfx942, threads=64)
    def added(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32], D: Tensor["M N", f32]) -> None:
        tag(A, m_and_k)
        tag(B, n_and_k)
        if tags != "none":
            tag(D, m_and_n if tags == "own" else lambda m, n: {"m": m + 1, "n": n})
        a, b, acc = registers(bf16, MM.A), registers(bf16, MM.B), registers(f32, MM.C)
        copy(A.tile((16, 16), (0, 0)), a, via=global_load[0], edge=0)
        copy(B.tile((16, 16), (0, 0)), b, via=global_load[0], edge=0)
        copy(D.tile((16, 16), (0, 0)), acc, via=global_load, edge=0)
        vmem.wait(0)
        mma(MM, acc, a, b)
        mma(MM, acc, a, b)
        assert_covers(acc.tag.k, 0, A.shape[1])
        copy(acc, C.tile((16, 16), (0, 0)), via=global_store, edge=0)
        assert_written_once(C, m_and_n)

    found = messages(added.trace())
    if tags == "wrong":
        assert ("I2", "the accumulator's `m` changes from 1 to 0") in found
    else:
        assert found == []
