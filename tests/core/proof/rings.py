"""Kernels of one ring with configurable consumers; and selection of a kernel's statements by kind."""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve, frozen

from argus.core.ir import Alloc, Buffer, Kernel, Stmt, walk
from argus.core.ir.surgery import with_stmts
from argus.language import (
    Ring,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    kernel,
    loop,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

T = TypeVar("T", bound=Stmt)


@frozen
class Drained:
    """stages: of the ring. lag: uses until a slot goes back. products: groups that read a use. agents: that share it.

    pending: groups that may be left when a slot goes back; by default those of the uses since.
    """

    stages: int = 4
    lag: int = 0
    products: int = 1
    agents: int = 1
    pending: int | None = None


def ring(cfg: Drained) -> Kernel:
    """C = A B^T by tiles of 64 rows an agent and 16 columns, 16 of k for each product."""
    rows, deep = 64 * cfg.agents, 16 * cfg.products
    pending = cfg.lag * cfg.products if cfg.pending is None else cfg.pending

    @kernel(target=sm_90a, threads=128 * (1 + cfg.agents))
    def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
        (M, K), (N, _) = A.shape, B.shape
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B, lambda n, k: dict(n=n, k=k))
        assume(K >= 1, K % 8 == 0, N % 8 == 0)
        mm = wgmma(bf16, n=16)
        swizzle = 2 * deep
        slots = Ring(
            cfg.stages, a=shared(bf16, (rows, deep), swizzle=swizzle), b=shared(bf16, (16, deep), swizzle=swizzle)
        )
        m, n = block_id((ceil_div(M, rows), ceil_div(N, 16)))
        depth = ceil_div(K, deep)

        with role("load", warpgroup(0).elected):
            for k in loop(depth):
                with slots.fill() as slot:
                    copy(A.tile((rows, deep), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, deep), (n, k)), slot.b, via=tma, edge=0)
            slots.finish()

        with role("math", warpgroups(*range(1, 1 + cfg.agents))) as wg:
            acc = registers(f32, mm.C)
            for k in loop(depth):
                slot = slots.wait()
                for part in range(cfg.products):
                    left = slot.a.tile((64, 16), (wg, part))
                    mma(mm, acc, left, slot.b.tile((16, 16), (0, part)), init=eq(k, 0) if part == 0 else False)
                wgmma.wait(pending)
                if cfg.lag:
                    with when(k >= cfg.lag):
                        slots.release()
                else:
                    slots.release()
            if cfg.lag:
                wgmma.wait(0)
            for late in range(cfg.lag, 0, -1):
                with when(depth >= late):
                    slots.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.tile((64, 16), (cfg.agents * m + wg, n)), edge=0)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return gemm.trace()


def every(made: Kernel, kind: type[T]) -> list[T]:
    return [stmt for stmt in walk(made.body) if isinstance(stmt, kind)]


def of_role(made: Kernel, name: str, kind: type[T]) -> list[T]:
    """The statements of one role, in program order."""
    assert made.roles is not None
    (body,) = (role.body for role in made.roles.roles if role.name == name)
    return [stmt for stmt in walk(body) if isinstance(stmt, kind)]


def edited(made: Kernel, old: Stmt, *new: Stmt) -> Kernel:
    return with_stmts(made, old, new)


def changed(made: Kernel, old: Stmt, **fields: object) -> Kernel:
    return with_stmts(made, old, (evolve(old, **fields),))


def buffer(made: Kernel, name: str) -> Buffer:
    return next(stmt.buffer for stmt in every(made, Alloc) if stmt.buffer.name == name)
