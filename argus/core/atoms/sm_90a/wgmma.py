"""wgmma instructions: A in shared memory or registers, B in shared memory, accumulators in registers.

A and B are read, and accumulators written, after issue, until `wgmma.wait_group` covers the group. One `Mma` statement
is one group. Sources: NVIDIA PTX ISA, `wgmma.mma_async` (shapes, register fragments, matrix descriptors: swizzle,
K-major and MN-major canonical layouts); element types of 8 bits are K-major only.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from argus.core.atom import Arithmetic, Atom, Canonical, Completion, Major, Operand
from argus.core.dtype import DType, bf16, e4m3, f16, f32
from argus.core.layout import TV, Layout

COLUMNS = tuple(range(8, 257, 8))
"""The extents n that the instruction supports."""
_K_BYTES = 32
_SWIZZLES = (16, 32, 64, 128)
A_SOURCE = Literal["shared", "registers"]


@cache
def accumulator(n: int) -> TV:
    """Warp w, lane l, register 4 j + 2 i + e: row 16 w + 8 i + l // 4, column 8 j + 2 (l % 4) + e."""
    return TV(Layout((4, 8, 4), (128, 1, 16)), Layout((2, 2, n // 8), (64, 8, 512)), (64, n))


@cache
def a_fragment(dtype: DType) -> TV:
    """A in registers, (64, k) where k covers 32 bytes: runs of r elements, 4 bytes each.

    Warp w, lane l, register r (2 j + i) + e: row 16 w + 8 i + l // 4, k 4 r j + r (l % 4) + e.
    """
    run = 32 // dtype.bits
    values = Layout((run, 2, 2), (64, 8, 4 * run * 64))
    return TV(Layout((4, 8, 4), (run * 64, 1, 16)), values, (64, 8 * run))


@cache
def _read_whole(rows: int, k: int) -> TV:
    """A matrix in shared memory, all of which the instruction reads on behalf of each thread."""
    return TV(Layout(128, 0), Layout((rows, k), (1, rows)), (rows, k))


def _in_shared(dtype: DType, rows: int, k: int, majors: tuple[Major, ...]) -> Operand:
    return Operand("shared", dtype, (rows, k), _read_whole(rows, k), align=16, canonical=_canonical(majors))


@cache
def _canonical(majors: tuple[Major, ...]) -> tuple[Canonical, ...]:
    return tuple(Canonical(major, swizzle) for major in majors for swizzle in _SWIZZLES)


def _instruction(dtype: DType, n: int, a: A_SOURCE) -> Atom:
    k = 8 * _K_BYTES // dtype.bits
    majors: tuple[Major, ...] = ("k",) if dtype.bits == 8 else ("k", "mn")
    fragment = a_fragment(dtype)
    left = _in_shared(dtype, 64, k, majors) if a == "shared" else Operand("register", dtype, fragment.tile, fragment)
    transposed = "" if dtype.bits == 8 else ", {a_transposed}, {b_transposed}" if a == "shared" else ", {b_transposed}"
    text = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{dtype}.{dtype} "
    # Shared memory delivers 128 bytes per cycle; the tensor core computes 4096 products per cycle (8192 of 8-bit
    # elements), and the instruction has 64 n k of them.
    operand_cycles = (n + (64 if a == "shared" else 0)) * _K_BYTES / 128
    return Atom(
        name=f"wgmma_m64n{n}k{k}_f32_{dtype}_{'ss' if a == 'shared' else 'rs'}",
        targets=frozenset({"sm_90a"}),
        unit=128,
        operands={
            "a": left,
            "b": _in_shared(dtype, n, k, majors),
            "c": Operand("register", f32, (64, n), accumulator(n)),
        },
        mnk=(64, n, k),
        arithmetic=Arithmetic(f32, f32),
        completion=Completion(queue="wgmma", tracked=False),
        proxy="async",
        issue_cycles=max(n / 2, operand_cycles),
        spelling={"sm_90a": text + "{c}, {a}, {b}, {accumulate}, 1, 1" + transposed + ";"},
    )


ATOMS: tuple[Atom, ...] = tuple(
    _instruction(dtype, n, a) for dtype in (bf16, f16, e4m3) for a in ("shared", "registers") for n in COLUMNS
)


def find(dtype: DType, n: int, a: A_SOURCE) -> Atom | None:
    """The instruction for this element type, extent n and memory of A; None if there is none."""
    space = "shared" if a == "shared" else "register"
    return next(
        (
            atom
            for atom in ATOMS
            if atom.operands["b"].dtype == dtype
            and atom.operands["b"].tile[0] == n
            and atom.operands["a"].space == space
        ),
        None,
    )
