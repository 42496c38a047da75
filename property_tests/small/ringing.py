"""Random small kernels with roles: a hand-written mbarrier pipeline from TMA to warpgroups; some have mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Int,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    barrier,
    bf16,
    block_id,
    bulk,
    ceil_div,
    copy,
    elected,
    eq,
    f32,
    fence,
    kernel,
    loop,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    stmatrix,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)
from property_tests.small.choosing import Choose, number_of_mistakes

Array = npt.NDArray[Any]
COLUMNS, DEEP = 16, 16


@frozen
class Ringing:
    """C = A B^T by tiles of 64 rows per consumer; the values below introduce mistakes.

    stages: of the ring. agents: consumer warpgroups. lag: uses until a stage is released; pending: wgmmas left in
    flight then. empty: surplus arrival count of the empty barriers. bytes: surplus bytes of the expect-tx. full_phase,
    empty_phase: offsets of the awaited phases. full_wait, empty_wait: whether these waits exist. slot, given: offsets
    of the stage read and of the stage released. all_give: every thread releases. uses: offset of the producer's trips.
    first: the trip that initialises the accumulator. boxed: store by TMA; fenced, met, drained: whether its fence,
    barrier and last wait exist. k: offset of B's k.
    """

    stages: int = 2
    agents: int = 1
    lag: int = 0
    pending: int = 0
    empty: int = 0
    bytes: int = 0
    full_phase: int = 0
    empty_phase: int = 0
    full_wait: bool = True
    empty_wait: bool = True
    slot: int = 0
    given: int = 0
    all_give: bool = False
    uses: int = 0
    first: int = 0
    boxed: bool = False
    fenced: bool = True
    met: bool = True
    drained: bool = True
    k: int = 0
    row: bool = False

    def kernel(self) -> Kernel:
        return _traced(self)

    def expected(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The output that the claims state, in float64."""
        return {"C": arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64).T}


def draw(choose: Choose) -> Ringing:
    """A correct program, or one with one or two mistakes."""
    lag = choose((0, 0, 1))
    config: dict[str, Any] = {
        "stages": choose((2, 3, 4)),
        "agents": choose((1, 2)),
        "lag": lag,
        "pending": lag,
        "boxed": choose((False, True)),
    }
    mistakes: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("pending", (0, 1, 2)),
        ("empty", (-1, 1)),
        ("bytes", (-512, 512, 16)),
        ("full_phase", (1, -1, 2)),
        ("empty_phase", (1, -1, 2)),
        ("full_wait", (False,)),
        ("empty_wait", (False,)),
        ("slot", (1,)),
        ("given", (1, -1)),
        ("all_give", (True,)),
        ("uses", (1, -1)),
        ("first", (1,)),
        ("fenced", (False,)),
        ("met", (False,)),
        ("drained", (False,)),
        ("k", (1,)),
        ("row", (True,)),
    )
    for _ in range(number_of_mistakes(choose)):
        name, values = choose(mistakes)
        config[name] = choose(values)
    return Ringing(**config)


def _traced(cfg: Ringing) -> Kernel:
    rows, stages = 64 * cfg.agents, cfg.stages

    @kernel(target=sm_90a, threads=128 * (1 + cfg.agents))
    def ringing(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
        (M, K), (N, _) = A.shape, B.shape
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B, lambda n, k: dict(n=n, k=k))
        assume(K >= 1, K % 8 == 0, N % 8 == 0)
        mm = wgmma(bf16, n=COLUMNS)
        a = shared(bf16, (stages, rows, DEEP), swizzle=32)
        b = shared(bf16, (stages, COLUMNS, DEEP), swizzle=32)
        box = shared(bf16, (cfg.agents, 64, COLUMNS), swizzle=32)
        full, empty = barrier(1, of=stages), barrier(max(1, cfg.agents + cfg.empty), of=stages)
        m, n = block_id((ceil_div(M, rows), ceil_div(N, COLUMNS)))
        depth = ceil_div(K, DEEP)

        with role("load", warpgroup(0).elected, registers=40):
            for k in loop(depth + cfg.uses):
                if cfg.empty_wait:
                    empty[k % stages].wait(k // stages - 1 + cfg.empty_phase)
                full[k % stages].arrive(bytes=(rows + COLUMNS) * DEEP * 2 + cfg.bytes)
                copy(A.tile((rows, DEEP), (m, k)), a[k % stages], via=tma, signal=full[k % stages], edge=0)
                other = B.tile((COLUMNS, DEEP), (n, k + cfg.k))
                copy(other, b[k % stages], via=tma, signal=full[k % stages], edge=0)

        with role("math", warpgroups(*range(1, 1 + cfg.agents)), registers=232) as wg:
            acc = registers(f32, mm.C)
            for k in loop(depth):
                if cfg.full_wait:
                    full[k % stages].wait(k // stages + cfg.full_phase)
                slot = (k + cfg.slot) % stages
                mma(mm, acc, a[slot].tile((64, DEEP), (wg, 0)), b[slot], init=eq(k, cfg.first))
                wgmma.wait(cfg.pending)
                if cfg.lag:
                    with when(k >= cfg.lag):
                        _give(cfg, empty, k - cfg.lag)
                else:
                    _give(cfg, empty, k)
            if cfg.lag:
                wgmma.wait(0)
                _give(cfg, empty, depth - 1)
            assert_covers(acc.tag.k, 0, K)
            mine = m if cfg.row else cfg.agents * m + wg
            _store(cfg, acc, box[wg], C.tile((64, COLUMNS), (mine, n)))
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return ringing.trace()


def _give(cfg: Ringing, empty: Any, use: Int) -> None:  # noqa: ANN401 reason: the barriers' handle
    slot = empty[(use + cfg.given) % cfg.stages]
    if cfg.all_give:
        slot.arrive()
    else:
        with elected():
            slot.arrive()


def _store(cfg: Ringing, acc: Fragment, box: Tensor, target: Tensor) -> None:
    if not cfg.boxed:
        copy(acc.to(bf16), target, edge=0)
        return
    copy(acc.to(bf16), box, via=stmatrix.x4)
    if cfg.fenced:
        fence("async proxy")
    if cfg.met:
        sync()
    with elected():
        copy(box, target, via=tma, edge=0)
        bulk.commit()
        if cfg.drained:
            bulk.wait(0)
