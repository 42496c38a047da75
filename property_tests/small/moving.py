"""Random small programs that copy a matrix through shared memory and rotate its rows; some have mistakes."""

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
    Swizzle,
    Tensor,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    ds_read,
    ds_write,
    eq,
    gfx942,
    global_load,
    kernel,
    lds,
    loop,
    registers,
    shared,
    spread,
    sync,
    tag,
    vmem,
    wave,
    when,
)
from property_tests.small.choosing import Choose, number_of_mistakes

Array = npt.NDArray[Any]


@frozen
class Moving:
    """A loop over the tiles of a block's rows.

    waves, rows, columns: of a block's tile. slots: shared-memory buffers. written, read: elements per access of a
    thread. turn: row r of the output's tile is row (r + turn) % rows of the input's; claimed: the rotation claimed.
    loaded, stored, fetched: operations that each wait leaves pending, None for no wait. before, after: whether there is
    a barrier before the tile is written, and after. start, stop: offsets of the loop bounds. guard: condition of the
    load. edge: padding.
    """

    waves: int = 1
    rows: int = 16
    columns: int = 32
    slots: int = 1
    written: int = 8
    read: int = 8
    swizzle: Swizzle | None = None
    turn: int = 0
    claimed: int = 0
    loaded: int | None = 0
    stored: int | None = 0
    fetched: int | None = 0
    before: bool = True
    after: bool = True
    half: bool = False
    start: int = 0
    stop: int = 0
    guard: str = ""
    slot_read: int = 0
    edge: bool = True
    column: int = 0

    def kernel(self) -> Kernel:
        return _traced(self)

    def expected(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The output that the claims state, in float64."""
        a = arrays["A"].astype(np.float64)
        row = np.arange(len(a))
        source = row // self.rows * self.rows + (row % self.rows + self.claimed) % self.rows
        return {"C": a[np.minimum(source, len(a) - 1)]}


def draw(choose: Choose) -> Moving:
    """A correct program, or one with one or two mistakes."""
    waves = choose((1, 1, 2, 4))
    rows, columns = choose((16, 32)), choose((16, 32, 64))
    slots = choose((1, 1, 2, 3))
    turn = choose((0, 0, 0, 1, 8))
    swizzles = (None, None, Swizzle(1, 3, 3), Swizzle(2, 3, 3))
    fits = [v for v in (2, 4, 8) if 64 * waves * v <= rows * columns]
    config: dict[str, Any] = {
        "waves": waves,
        "rows": rows,
        "columns": columns,
        "slots": slots,
        "written": choose(tuple(fits) or (2,)),
        "read": choose(tuple(fits) or (2,)),
        "swizzle": choose(swizzles),
        "turn": turn,
        "claimed": turn,
        "before": slots < 2 or choose((True, True, False)),
    }
    if not fits:
        config |= {"rows": 64, "columns": 64, "written": 8, "read": 8}
    mistakes: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("loaded", (None, 1)),
        ("stored", (None, 1)),
        ("fetched", (None, 1)),
        ("before", (False,)),
        ("after", (False,)),
        ("half", (True,)),
        ("start", (1,)),
        ("stop", (-1, 1)),
        ("guard", ("first", "even", "some")),
        ("slot_read", (1,)),
        ("edge", (False,)),
        ("column", (1, 8)),
        ("claimed", ((turn + 1) % 16,)),
    )
    for _ in range(number_of_mistakes(choose)):
        name, values = choose(mistakes)
        config[name] = choose(values)
    return Moving(**config)


def _traced(cfg: Moving) -> Kernel:
    tile = (cfg.rows, cfg.columns)

    @kernel(target=gfx942, threads=64 * cfg.waves)
    def moving(A: Tensor["M K", bf16], C: Tensor["M K", bf16]) -> None:
        tag(A, lambda m, k: dict(m=m, k=k))
        assume(A.shape[0] % cfg.rows == 0) if cfg.turn or cfg.claimed else None
        assume(A.shape[1] % 8 == 0)
        (m,) = block_id((ceil_div(A.shape[0], cfg.rows),))
        held = shared(bf16, (cfg.slots, *tile), swizzle=cfg.swizzle)
        x = registers(bf16, spread(tile, threads=64 * cfg.waves, vector=cfg.written))
        y = registers(bf16, spread(tile, threads=64 * cfg.waves, vector=cfg.read))
        edge = 0 if cfg.edge else None
        for k in loop(cfg.start, ceil_div(A.shape[1], cfg.columns) + cfg.stop):
            _under(cfg.guard, k, lambda k=k: copy(A.tile(tile, (m, k)), x, via=global_load, edge=edge))
            _wait(vmem, cfg.loaded)
            if cfg.before:
                sync()
            copy(x, held[k % cfg.slots], via=ds_write)
            _wait(lds, cfg.stored)
            _meet(cfg)
            _fetch(cfg, held[(k + cfg.slot_read) % cfg.slots], y)
            _wait(lds, cfg.fetched)
            copy(y, C.tile(tile, (m, k)), edge=0)
        assert_written_once(C, lambda m, k: dict(m=_row(m, cfg), k=k))

    return moving.trace()


def _row(m: Int, cfg: Moving) -> Int:
    if not cfg.claimed:
        return m
    return m // cfg.rows * cfg.rows + (m % cfg.rows + cfg.claimed) % cfg.rows


def _fetch(cfg: Moving, slot: Tensor, y: Fragment) -> None:
    shape = (cfg.rows, cfg.columns)
    if cfg.turn or cfg.column:
        slot = slot.gather(shape, lambda r, c: ((r + cfg.turn) % cfg.rows, (c + cfg.column) % cfg.columns))
    copy(slot, y, via=ds_read)


def _under(guard: str, k: Int, action: Any) -> None:  # noqa: ANN401 reason: a statement
    match guard:
        case "first":
            with when(k > 0):
                action()
        case "even":
            with when(eq(k % 2, 0)):
                action()
        case "some":
            with when(k < 2):
                action()
        case _:
            action()


def _wait(queue: Any, pending: int | None) -> None:  # noqa: ANN401 reason: one of the queues' handles
    if pending is not None:
        queue.wait(pending)


def _meet(cfg: Moving) -> None:
    if not cfg.after:
        return
    if cfg.half and cfg.waves > 1:
        with when(eq(wave % 2, 0)):
            sync()
    else:
        sync()
