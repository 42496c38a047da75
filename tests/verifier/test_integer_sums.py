"""Sums of integer products are held to the type of their accumulator, whatever they begin with, in programs too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import frozen

from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.outputs.data_contracts import promised_size
from argus.core.proof.values import integer_sums
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.verdict import Proved, Refuted, Unknown
from argus.language import (
    Bool,
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
from property_tests.programs import CORPUS, templates

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


@pytest.mark.share(3)
def test_products_of_what_an_earlier_launch_stored_fit() -> None:
    assert isinstance(verify_program(in_turn.trace(), solver="z3").verdict, Proved)


@pytest.mark.share(16, among="sums of integers")
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


@frozen
class Bounded:
    """Promises about numbers: not below `low`, and below `high` if that is given."""

    low: int
    high: int | None
    target = gfx942
    threads = 64

    def holds(self, each: Int) -> Bool:
        return each >= self.low if self.high is None else (each >= self.low) & (each < self.high)


OF_CONTRACTS = {
    "enough": Bounded(-127, 128),
    "too little": Bounded(-128, 128),
    "from below alone": Bounded(-127, None),
}


@kernel(configs=OF_CONTRACTS)
def multiply_promised(A: Tensor["M K", i8], B: Tensor["N K", i8], C: Tensor["M N", i32], *, cfg: Bounded) -> None:
    """A sum of as many products as 2^17, of which -128 * -128 is one too large."""
    promise(A, cfg.holds)
    promise(B, cfg.holds)
    (M, K), (N, _) = A.shape, B.shape
    assume(K % 32 == 0, K >= 1, K <= 1 << 17, M % 16 == 0, N % 16 == 0, M * K < 1 << 31, N * K < 1 << 31)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    acc = zeros(i32, MM.C)
    at = block_id((M // 16, N // 16))
    add_products(A, B, acc, at)
    copy(acc, C.tile((16, 16), at))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@pytest.mark.share(3)
def test_bounds_of_a_contract_are_bounds_of_a_sum() -> None:
    assert isinstance(verify(multiply_promised, config="enough", solver="z3").verdict, Proved)


@pytest.mark.share(16, among="sums of integers")
@pytest.mark.parametrize("config", ["too little", "from below alone"])
def test_what_a_contract_may_exclude_is_not_refuted(config: str) -> None:
    found = verify(multiply_promised, config=config, solver="z3").verdict

    assert isinstance(found, Unknown)
    assert "fit i32" in found.reason


SIZES = {"small": 7, "of both signs": 100, "more below": 5, "one number": 7, "from below": None}
OF_SIZES = dict(zip(SIZES, map(Bounded, (0, -100, -5, 7, -127), (8, 101, 3, 8, None)), strict=True))


@kernel(configs=OF_SIZES)
def hold(X: Tensor["M K", i8], Y: Tensor["M K", i8], *, cfg: Bounded) -> None:
    promise(X, cfg.holds)
    held = load(X.tile((1, 64), (0, 0)), spread((1, 64), threads=64, vector=1), edge=0)
    vmem.wait(0)
    copy(held, Y.tile((1, 64), (0, 0)), edge=0)


@pytest.mark.parametrize("name", SIZES)
def test_the_size_of_promised_numbers(name: str) -> None:
    x, y = hold.trace(name).parameters
    assert (promised_size(x), promised_size(y)) == (SIZES[name], None)


def is_not_claimed(flow: ValueFlow, step: Step) -> bool:
    del flow, step
    return False


@pytest.mark.share(16, among="sums of integers")
def test_a_running_sum_that_is_claimed_is_an_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the claim's word for it, a sum that wraps around may be meant."""
    (template,) = templates(CORPUS / "refuted" / "running_sum_beyond_32_bits.py")
    assert isinstance(verify(template.trace(), solver="z3").verdict, Refuted)
    monkeypatch.setattr(integer_sums, "_is_claimed", is_not_claimed)
    assert isinstance(verify(template.trace(), solver="z3").verdict, Unknown)
