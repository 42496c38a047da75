"""Helpers for the tests of Hopper constructs."""

from __future__ import annotations

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.language import Ring, Tensor, bf16, copy, kernel, role, shared, sm_90a, tma, warpgroup
from tests.core.dsl.tracing import Body


def traced(body: Body, threads: int = 384) -> Kernel:
    def probe(A: Tensor["M K", bf16], C: Tensor["M N", bf16]) -> None:
        body(A, C)

    return kernel(target=sm_90a, threads=threads)(probe).trace()


def refused(body: Body, threads: int = 384) -> Diagnostic:
    with pytest.raises(ArgusError) as caught:
        traced(body, threads)
    return caught.value.diagnostic


def small_ring(stages: int = 2) -> Ring:
    return Ring(stages, a=shared(bf16, (64, 64), swizzle=128))


def fill_once(ring: Ring, A: Tensor) -> None:
    with role("load", warpgroup(0).elected), ring.fill() as slot:
        copy(A.tile((64, 64), (0, 0)), slot.a, via=tma, edge=0)
