"""Operands and registers of products in flight: the waits before them and after them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.ir import Fence, Mma
from argus.language import (
    Fragment,
    Tensor,
    bf16,
    copy,
    f32,
    fence,
    mma,
    registers,
    sync,
    wgmma,
    zeros,
)
from tests.core.proof.rings import changed, edited, every
from tests.core.proof.visibility_kernels import BY, Body, box, failed, failing, traced

# -- products ----------------------------------------------------------------------------------------------------


def multiplied(*, pending: int | None = 0, met: bool = True, again: bool = True, publish: bool = True) -> Body:
    """Two tiles of shared memory are multiplied, then written again."""

    def body(A: Tensor, C: Tensor) -> None:
        mm = wgmma(bf16, n=64)
        a, b = box(), box()
        held, acc = registers(bf16, BY), registers(f32, mm.C)
        copy(A.tile((64, 16), (0, 0)), held, edge=0)
        copy(held, a)
        copy(held, b)
        if publish:
            fence("async proxy")
        sync()
        mma(mm, acc, a, b, init=True)
        if pending is not None:
            wgmma.wait(pending)
        if met:
            sync()
        if again:
            copy(held, a)
        if pending != 0:
            wgmma.wait(0)
        copy(acc.tile((64, 16), (0, 0)).to(bf16), C.tile((64, 16), (0, 0)), edge=0)

    return body


def test_a_product_is_complete_before_its_operands_are_written() -> None:
    assert failing(multiplied()) == set()
    assert failing(multiplied(pending=None)) == {"I10"}
    assert failing(multiplied(pending=1)) == {"I10"}
    assert "I10" in failing(multiplied(met=False))
    assert failing(multiplied(pending=None, again=False)) == set()


def test_a_product_sees_what_is_published() -> None:
    assert failing(multiplied(publish=False)) == {"I12"}


def in_flight(use: Callable[[Fragment], object], *, pending: int | None) -> Body:
    def body(A: Tensor, C: Tensor) -> None:
        mm = wgmma(bf16, n=64)
        a, b = box(), box()
        held, acc = registers(bf16, BY), registers(f32, mm.C)
        copy(A.tile((64, 16), (0, 0)), held, edge=0)
        copy(held, a)
        copy(held, b)
        fence("async proxy")
        sync()
        mma(mm, acc, a, b, init=True)
        mma(mm, acc, a, b)
        if pending is not None:
            wgmma.wait(pending)
        use(acc)
        wgmma.wait(0)
        copy(acc.tile((64, 16), (0, 0)).to(bf16), C.tile((64, 16), (0, 0)), edge=0)

    return body


def reset(acc: Fragment) -> None:
    acc[:] = zeros(f32, wgmma(bf16, n=64).C)


USES: dict[str, Callable[[Fragment], object]] = {
    "read": lambda acc: acc.to(bf16),
    "written": reset,
    "read in part": lambda acc: acc.tile((64, 16), (0, 1)).to(bf16),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_registers_of_a_product_are_not_accessed_in_flight(use: Callable[[Fragment], object]) -> None:
    assert failing(in_flight(use, pending=0)) == set()
    for pending in (None, 1, 2):
        assert failing(in_flight(use, pending=pending)) == {"I11"}


def test_products_into_one_accumulator_are_in_order() -> None:
    def nothing(_: Fragment) -> None:
        """The second product adds to the first's result while that is in flight."""

    assert failing(in_flight(nothing, pending=None)) == set()


def test_a_product_needs_a_fence_after_ordinary_register_writes() -> None:
    found = traced(in_flight(lambda acc: acc.to(bf16), pending=0))
    told = [stmt for stmt in every(found, Fence) if stmt.kind == "wgmma"]
    assert told
    assert failed(found) == set()
    for stmt in told:
        without = edited(found, stmt)
        assert failed(without) == {"I11"}


def test_a_product_of_another_shape_does_not_follow_in_order() -> None:
    found = traced(in_flight(lambda _: None, pending=None))
    first, second = every(found, Mma)
    assert first.atom == second.atom
    other = wgmma_of(32)
    assert other != first.atom
    assert failed(changed(found, second, atom=evolve(second.atom, name=other))) == {"I11"}


def wgmma_of(n: int) -> str:
    return f"wgmma_m64n{n}k16_f32_bf16_ss"
