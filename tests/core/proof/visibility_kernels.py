"""Kernels of one warpgroup without roles, and the visibility invariants that fail or are unknown for them."""

from __future__ import annotations

from collections.abc import Callable

from argus.core.algebra import TRUE
from argus.core.ir import Kernel
from argus.core.proof.obligation import Obligation
from argus.language import (
    Fragment,
    Tensor,
    bf16,
    bulk,
    copy,
    elected,
    f32,
    kernel,
    registers,
    shared,
    sm_90a,
    spread,
    stmatrix,
    tma,
    wgmma,
    zeros,
)
from tests.core.proof.queries import obligations_of

Body = Callable[[Tensor, Tensor], None]
WORDS = (
    "barrier orders",
    "proxy fence by the writers",
    "bulk store has read",
    "products that read",
    "product that uses",
)


def traced(body: Body) -> Kernel:
    @kernel(target=sm_90a, threads=128)
    def probe(A: Tensor["M 16", bf16], C: Tensor["M 16", bf16]) -> None:
        body(A, C)

    return probe.trace()


def asked(found: Kernel) -> list[Obligation]:
    return [each for each in obligations_of(found) if any(word in each.what for word in (*WORDS, "wgmma.fence"))]


def failing(body: Body) -> set[str]:
    return failed(traced(body))


def failed(found: Kernel) -> set[str]:
    every_one = asked(found)
    assert every_one, "nothing is asked at all"
    return {each.invariant for each in every_one if each.goal is not TRUE and not each.unknown}


def doubtful(body: Body) -> set[str]:
    return {each.invariant for each in asked(traced(body)) if each.unknown}


BY = spread((64, 16), threads=128, vector=8)


def box() -> Tensor:
    return shared(bf16, (64, 16), swizzle=32)


def value() -> Fragment:
    mm = wgmma(bf16, n=16)
    acc = registers(f32, mm.C)
    acc[:] = zeros(f32, mm.C)
    return acc.to(bf16)


def write(to: Tensor) -> None:
    copy(value(), to, via=stmatrix.x4)


def store(of: Tensor, C: Tensor, m: int = 0) -> None:
    with elected():
        copy(of, C.tile((64, 16), (m, 0)), via=tma, edge=0)
        bulk.commit()


def drain(pending: int = 0) -> None:
    with elected():
        bulk.wait(pending)
