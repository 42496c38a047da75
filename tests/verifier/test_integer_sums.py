"""Sums of integer products are held to the type of their accumulator, whatever they begin with, in programs too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from argus.core.proof.values import integer_sums
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.verdict import Proved, Unknown
from argus.language import (
    Fragment,
    Int,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    block_id,
    copy,
    gfx942,
    i8,
    i32,
    kernel,
    load,
    loop,
    mfma,
    mfma_i32_16x16x32_i8,
    mma,
    program,
    promise,
    registers,
    spread,
    tag,
    vmem,
    workspace,
    zeros,
)
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program

MM = mfma(mfma_i32_16x16x32_i8).over(waves=(1, 1), tile=(16, 16), k=32)


def add_products(A: Tensor, B: Tensor, acc: Fragment, at: tuple[Int, ...]) -> None:
    """Add a tile of A @ B^T to its sums."""
    a, b = registers(i8, MM.A), registers(i8, MM.B)
    m, n = at
    for k in loop(A.shape[1] // 32):
        copy(A.tile((16, 32), (m, k)), a)
        copy(B.tile((16, 32), (n, k)), b)
        vmem.wait(0)
        mma(MM, acc, a, b)
    assert_covers(acc.tag.k, 0, A.shape[1])


def assume_tiles(A: Tensor, B: Tensor) -> None:
    (M, K), (N, _) = A.shape, B.shape
    assume(K % 32 == 0, K >= 1, K < 1 << 16, M % 16 == 0, N % 16 == 0, M * K < 1 << 31, N * K < 1 << 31)


@kernel(target=gfx942, threads=64)
def multiply(A: Tensor["M K", i8], B: Tensor["N K", i8], C: Tensor["M N", i32]) -> None:
    """Of A that an earlier launch stores."""
    assume_tiles(A, B)
    tag(B, lambda n, k: dict(n=n, k=k))
    acc = zeros(i32, MM.C)
    at = block_id((A.shape[0] // 16, B.shape[0] // 16))
    add_products(A, B, acc, at)
    copy(acc, C.tile((16, 16), at))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@kernel(target=gfx942, threads=64)
def add(
    A: Tensor["M K", i8], B: Tensor["N K", i8], D: Tensor["N K", i8], S: Tensor["M N", i32], C: Tensor["M N", i32]
) -> None:
    """C = S + A @ B^T. D is not read."""
    del D
    assume_tiles(A, B)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(S, lambda m, n: dict(m=m, n=n))
    acc = registers(i32, MM.C)
    at = block_id((A.shape[0] // 16, B.shape[0] // 16))
    copy(S.tile((16, 16), at), acc)
    vmem.wait(0)
    add_products(A, B, acc, at)
    copy(acc, C.tile((16, 16), at))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@kernel(target=gfx942, threads=64)
def repeat(X: Tensor["M K", i8], Y: Tensor["M K", i8]) -> None:
    M, K = X.shape
    assume(M % 16 == 0, K % 32 == 0)
    tag(X, lambda m, k: dict(m=m, k=k))
    at = block_id((M // 16, K // 32))
    held = load(X.tile((16, 32), at), spread((16, 32), threads=64, vector=8))
    vmem.wait(0)
    copy(held, Y.tile((16, 32), at))
    assert_written_once(Y, lambda m, k: dict(m=m, k=k))


@program
def in_turn(X: Tensor["M K", i8], B: Tensor["N K", i8], C: Tensor["M N", i32]) -> None:
    A = workspace(i8, X.shape)
    repeat(X, A)
    multiply(A, B, C)


@program
def renamed(B: Tensor["M K", i8], D: Tensor["N K", i8], A: Tensor["M N", i32], C: Tensor["M N", i32]) -> None:
    """What the kernel calls S is A here, of 32 bits: not the A of the kernel, of 8 bits."""
    add(B, D, D, A, C)


def test_products_of_what_an_earlier_launch_stored_fit() -> None:
    assert isinstance(verify_program(in_turn.trace(), solver="z3").verdict, Proved)


def test_a_sum_that_begins_with_any_integer_may_not_fit() -> None:
    found = verify(add, solver="z3").verdict

    assert isinstance(found, Unknown)
    assert "fit i32" in found.reason


def by_names_of_the_kernel(flow: ValueFlow) -> Iterator[tuple[str, int]]:
    return ((each.name, each.dtype.bits) for each in flow.timeline.kernel.parameters if each.dtype.family == "int")


@pytest.mark.nightly
def test_the_widths_of_elements_are_those_of_the_program_s_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(verify_program(renamed.trace(), solver="z3").verdict, Unknown)

    monkeypatch.setattr(integer_sums, "_widths", by_names_of_the_kernel)
    assert isinstance(verify_program(renamed.trace(), solver="z3").verdict, Proved)


@kernel(target=gfx942, threads=64)
def multiply_promised(A: Tensor["M K", i8], B: Tensor["N K", i8], C: Tensor["M N", i32]) -> None:
    """Of numbers from 0 to 7, of which a sum of as many as K fits."""
    promise(A, lambda each: (each >= 0) & (each < 8))
    promise(B, lambda each: (each >= 0) & (each < 8))
    (M, K), (N, _) = A.shape, B.shape
    assume(K % 32 == 0, K >= 1, K <= 1 << 17, M % 16 == 0, N % 16 == 0, M * K < 1 << 31, N * K < 1 << 31)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    acc = zeros(i32, MM.C)
    at = block_id((M // 16, N // 16))
    add_products(A, B, acc, at)
    copy(acc, C.tile((16, 16), at))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


def test_what_a_contract_may_exclude_is_not_refuted() -> None:
    found = verify(multiply_promised, solver="z3").verdict

    assert isinstance(found, Unknown)
    assert "fit i32" in found.reason
