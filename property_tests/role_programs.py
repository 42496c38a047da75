"""Kernels with roles that the property tests edit; small tiles, so that a run takes milliseconds."""

from __future__ import annotations

from attrs import frozen

from argus.core.ir import Kernel
from argus.language import (
    Ring,
    Tensor,
    Turns,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    bulk,
    by_rows,
    ceil_div,
    copy,
    elected,
    eq,
    f32,
    fence,
    kernel,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    stmatrix,
    super_tiled,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)
from property_tests.programs import KERNELS, WITH_ROLES, Traced


@frozen
class Small:
    """n: columns of a tile. stages: of the ring. group: rows of a super-tile, 0 for row-major tiles."""

    n: int = 16
    stages: int = 2
    group: int = 0


COOPERATIVE: dict[str, Small] = {"cooperative": Small(), "super_tiled": Small(n=32, stages=4, group=2)}
PINGPONG: dict[str, Small] = {"pingpong": Small(), "pingpong_deep": Small(n=64, stages=4, group=2)}


def _claims(A: Tensor, B: Tensor) -> None:
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(A.shape[1] >= 1, A.shape[1] % 8 == 0, B.shape[0] % 8 == 0)
    assume(ceil_div(A.shape[0], 64) * ceil_div(B.shape[0], 16) < 1 << 24)


@kernel(target=sm_90a, threads=384, configs=COOPERATIVE)
def cooperative(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Small) -> None:
    """Two warpgroups share a tile; each stores its half through its own box."""
    _claims(A, B)
    mm = wgmma(bf16, n=cfg.n)
    ring = Ring(cfg.stages, a=shared(bf16, (128, 16), swizzle=32), b=shared(bf16, (cfg.n, 16), swizzle=32))
    box = shared(bf16, (2, 64, cfg.n), swizzle=2 * cfg.n)
    rows, columns = ceil_div(A.shape[0], 128), ceil_div(B.shape[0], cfg.n)
    tiles = persistent((rows, columns), order=super_tiled(cfg.group) if cfg.group else by_rows, blocks=2)
    depth = ceil_div(A.shape[1], 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((128, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((cfg.n, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for m, n in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, 16), (wg, 0)), slot.b, init=eq(k, 0))
                wgmma.wait(1)
                with when(k > 0):
                    ring.release()
            wgmma.wait(0)
            ring.release()
            assert_covers(acc.tag.k, 0, A.shape[1])
            with elected():
                bulk.wait(0, of="reads")
            sync()
            copy(acc.to(bf16), box[wg], via=stmatrix.x4)
            fence("async proxy")
            sync()
            with elected():
                copy(box[wg], C.tile((64, cfg.n), (2 * m + wg, n)), via=tma, edge=0)
                bulk.commit()
        with elected():
            bulk.wait(0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@kernel(target=sm_90a, threads=384, configs=PINGPONG)
def pingpong(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Small) -> None:
    """Each warpgroup takes every second tile, and has its own box."""
    _claims(A, B)
    mm = wgmma(bf16, n=cfg.n)
    ring = Ring(cfg.stages, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (cfg.n, 16), swizzle=32))
    box = shared(bf16, (2, 64, cfg.n), swizzle=2 * cfg.n)
    turns = Turns(2)
    rows, columns = ceil_div(A.shape[0], 64), ceil_div(B.shape[0], cfg.n)
    tiles = persistent((rows, columns), order=super_tiled(cfg.group) if cfg.group else by_rows, blocks=2)
    depth = ceil_div(A.shape[1], 16)

    with role("load", warpgroup(0).elected, registers=24):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((cfg.n, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=240) as wg:
        acc = registers(f32, mm.C)
        ring.skip(wg * depth)
        for m, n in tiles.every(2, start=wg):
            with turns(wg):
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                    wgmma.wait(1)
                    with when(k > 0):
                        ring.release()
            wgmma.wait(0)
            ring.release()
            ring.skip(depth)
            assert_covers(acc.tag.k, 0, A.shape[1])
            with elected():
                bulk.wait(0, of="reads")
            sync()
            copy(acc.to(bf16), box[wg], via=stmatrix.x4)
            fence("async proxy")
            sync()
            with elected():
                copy(box[wg], C.tile((64, cfg.n), (m, n)), via=tma, edge=0)
                bulk.commit()
        with elected():
            bulk.wait(0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


def schedules() -> dict[str, Kernel]:
    """The kernels of this file, one per configuration."""
    made = {name: cooperative.trace(name) for name in COOPERATIVE}
    return made | {name: pingpong.trace(name) for name in PINGPONG}


SCHEDULES = schedules()
ROLES = Traced([*WITH_ROLES, *SCHEDULES], lambda name: SCHEDULES.get(name) or KERNELS[name])
"""All proved kernels with roles, of the corpus and of this file, before any edit."""
