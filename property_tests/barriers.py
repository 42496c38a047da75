"""Kernels of barriers, waits and accesses to one shared tile, encoded as strings of letters."""

from __future__ import annotations

from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Int,
    Tensor,
    assert_written_once,
    bf16,
    block_id,
    ceil_div,
    copy,
    ds_read_b128,
    ds_write_b128,
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

WAVES, ROWS = 4, 16
"""Rows of the tile per wave."""


def m_and_i(m: Int, i: Int) -> dict[str, Int]:
    return {"m": m, "i": i}


def program(before: str, body: str, after: str) -> Kernel:
    """Fill the tile, then execute `before`, `body` once per row of D, and `after`.

    w: each wave writes its rows. 0 to 3: it reads the rows of the wave that many further on. d: wait for LDS
    operations. s: barrier of all waves; p: executed by the second row of waves only, q: by the first only.
    """

    @kernel(target=gfx942, threads=64 * WAVES)
    def letters(A: Tensor["M 32", bf16], D: Tensor["K 8", bf16], C: Tensor["M 32", bf16]) -> None:
        tag(A, m_and_i)
        by = spread((ROWS * WAVES, 32), threads=64 * WAVES, vector=8)
        (m,) = block_id((ceil_div(A.shape[0], ROWS * WAVES),))
        tile = shared(bf16, (ROWS * WAVES, 32))
        x, y = registers(bf16, by), registers(bf16, by)
        copy(A.tile((ROWS * WAVES, 32), (m, 0)), x, via=global_load, edge=0)
        vmem.wait(0)
        _run("wds" + before, tile, x, y)
        for _ in loop(D.shape[0]):
            _run(body, tile, x, y)
        _run(after, tile, x, y)
        copy(x, C.tile((ROWS * WAVES, 32), (m, 0)), edge=0)
        assert_written_once(C, m_and_i)

    return letters.trace()


def _run(letters: str, tile: Tensor, x: Fragment, y: Fragment) -> None:
    for letter in letters:
        match letter:
            case "w":
                copy(x, tile, via=ds_write_b128)
            case "d":
                lds.wait(0)
            case "s":
                sync()
            case "p" | "q":
                with when(eq(wave // 2, int(letter == "p"))):
                    sync()
            case _:
                copy(_rotated(tile, int(letter)), y, via=ds_read_b128)


def _rotated(tile: Tensor, by: int) -> Tensor:
    """The tile rotated: row r of the result is row (r + 16 by) % size."""
    size = ROWS * WAVES
    return tile.gather((size, 32), lambda row, column: ((row + ROWS * by) % size, column))
