"""Test kernels of one matrix instruction each."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.algebra import FALSE
from argus.core.atom import Atom
from argus.core.atoms.sm_90a import warp
from argus.core.atoms.sm_90a import wgmma as table
from argus.core.dsl.tracer import current
from argus.core.dtype import f32
from argus.core.ir import Mma
from argus.core.tiling import Tiling
from argus.language import (
    Layout,
    Tensor,
    copy,
    fence,
    load,
    mma,
    registers,
    shared,
    spread,
    sync,
    wgmma,
)
from argus.testing.instructions.trial import Trial, trial

_SPANS = (32, 64, 128)
_ACROSS = 2048
"""Bytes that 128 threads load at once, 16 each."""


@frozen
class _Placed:
    """A matrix (rows, k) in shared memory: part `part` of a tile of `extents`, with a swizzle of `span` bytes.

    mn_major: the tile is MN-major, (k, rows). span 16: no swizzle. slabs: number of adjacent swizzle spans per row.
    """

    rows: int
    k: int
    size: int
    span: int
    mn_major: bool
    slabs: int = 1

    @property
    def extents(self) -> tuple[int, int]:
        """Extents that 128 threads load evenly; twice the rows of a small matrix."""
        across, down = self.slabs * self.span // self.size, self.k if self.mn_major else self.rows
        needed = 2 * down if down <= 128 else down
        step = _ACROSS // self.span
        return -(-needed // step) * step, across

    @property
    def shape(self) -> tuple[int, int]:
        return (self.k, self.rows) if self.mn_major else (self.rows, self.k)

    @property
    def part(self) -> tuple[int, int]:
        """The second part from the top, if there is one, and the last along the rows."""
        (down, across), (rows, columns) = self.extents, self.shape
        return (1 if down >= 2 * rows else 0), across // columns - 1

    def text(self) -> str:
        return " ".join(map(str, self.extents))

    def staged(self, source: Tensor) -> Tensor:
        """Copy the matrix to shared memory by way of registers."""
        dtype, vector = source.dtype, 16 // self.size
        tile = shared(dtype, self.extents, swizzle=None if self.span == 16 else self.span)
        copy(load(source, spread(self.extents, threads=128, vector=vector)), tile)
        return tile.tile(self.shape, self.part)


def warpgroup_trials() -> Iterator[Trial]:
    """Every wgmma instruction once, and some with all layouts of operands."""
    for place, atom in enumerate(table.ATOMS):
        yield _warpgroup(atom, span=_SPANS[place % 3], init=place % 2 == 0)
    for atom in table.ATOMS:
        _, n, k = _mnk(atom)
        if n == 64:
            yield _warpgroup(atom, span=128, init=True, steps=128 // 32)
            yield _warpgroup(atom, span=64, init=False, steps=64 // 32)
            yield _warpgroup(atom, span=128, init=True, steps=2 * (128 // 32), slabs=2)
        if k == 16 and n in (128, 256):
            yield _warpgroup(atom, span=128, init=True, b_mn=True, steps=2, slabs=n // 64)
        if k == 16 and n in (8, 16, 32, 64):
            yield _warpgroup(atom, span=128, init=False, b_mn=True)
        if k == 16 and n == 64:
            yield _warpgroup(atom, span=128, init=True, b_mn=True, steps=4)
        if k == 16 and n in (8, 64) and atom.operands["a"].space == "shared":
            yield _warpgroup(atom, span=128, init=True, a_mn=True)
            yield _warpgroup(atom, span=128, init=False, a_mn=True, b_mn=True, steps=2)
        if k == 16 and n in (64, 128, 256) and atom.operands["a"].space == "shared":
            yield _warpgroup(atom, span=128, init=True, a_mn=True, steps=4, wide=2)
            yield _warpgroup(atom, span=128, init=True, a_mn=True, b_mn=True, steps=4, slabs=n // 64, wide=2)


def _mnk(atom: Atom) -> tuple[int, int, int]:
    assert atom.mnk is not None
    return atom.mnk


def _warpgroup(
    atom: Atom,
    *,
    span: int,
    init: bool,
    steps: int = 1,
    slabs: int = 1,
    a_mn: bool = False,
    b_mn: bool = False,
    wide: int = 1,
) -> Trial:
    """steps: wgmmas along k. slabs: of B, and of A if B is K-major. init: whether the accumulator starts at zero.

    wide: number of slabs of the tile of which an M-major A is the last.
    """
    _, n, k = _mnk(atom)
    dtype = atom.operands["b"].dtype
    assert dtype is not None
    size, depth = dtype.bits // 8, k * steps
    in_registers = atom.operands["a"].space == "register"
    a = _Placed(
        64,
        depth,
        size,
        64 * size if a_mn else span,
        a_mn,
        wide if a_mn else 1 if b_mn else slabs,
    )
    b = _Placed(n, depth, size, n * size // slabs if b_mn else span, b_mn, slabs)
    mm = wgmma(dtype, n=n, a="registers" if in_registers else "shared", b_major="n" if b_mn else "k", k=depth)
    assert mm.atom is atom

    def multiply(A: Tensor, B: Tensor, C: Tensor, D: Tensor | None) -> None:  # noqa: N803 reason: matrices
        left = load(A, mm.A) if in_registers else a.staged(A)
        right = b.staged(B)
        acc = registers(f32, mm.C)
        if D is not None:
            copy(D, acc)
        fence("async proxy")
        sync()
        mma(mm, acc, left.T if a_mn and isinstance(left, Tensor) else left, right, init=init)
        wgmma.wait(0)
        copy(acc, C)

    def anew(A: Tensor, B: Tensor, C: Tensor) -> None:  # noqa: N803 reason: matrices
        multiply(A, B, C, None)

    def adds(A: Tensor, B: Tensor, D: Tensor, C: Tensor) -> None:  # noqa: N803 reason: matrices
        multiply(A, B, C, D)

    forms = [f"span {span}" if not (a_mn and b_mn) else "", f"steps {steps}" if steps > 1 else ""]
    forms += [f"slabs {slabs}" if slabs > 1 else ""]
    forms += [
        f"of {wide}" if wide > 1 else "",
        "a mn" if a_mn else "",
        "b mn" if b_mn else "",
        "" if init else "adds",
    ]
    what = " ".join([atom.name, *(form for form in forms if form)])
    sums = (f"64 {n}", f32)
    factors = {"A": (f"64 {depth}" if in_registers else a.text(), dtype), "B": (b.text(), dtype)}
    tensors = {**factors, "C": sums} if init else {**factors, "D": sums, "C": sums}
    family = f"wgmma {dtype} {'rs' if in_registers else 'ss'}"
    return trial(what, family, anew if init else adds, tensors, determined="sums")


def warp_trials() -> Iterator[Trial]:
    for atom in (atom for atom in warp.ATOMS if atom.mnk is not None):
        yield _warp(atom)


def _warp(atom: Atom) -> Trial:
    once = Layout((1, 1), (0, 0))
    tiling = Tiling((1, 1), (1, 1, 1), once, once, once)
    operands = {role: atom.operands[role] for role in "abc"}

    def multiply(A: Tensor, B: Tensor, D: Tensor, C: Tensor) -> None:  # noqa: N803 reason: matrices
        held = {role: (operand.tv, operand.dtype) for role, operand in operands.items()}
        fragments = [registers(dtype, tv) for tv, dtype in held.values() if tv is not None and dtype is not None]
        a, b, c = fragments
        for source, fragment in zip((A, B, D), (a, b, c), strict=True):
            copy(source, fragment)
        current("mma").emit(Mma(atom, tiling, c.view, a.view, b.view, FALSE))
        copy(c, C)

    shapes = {role: " ".join(map(str, operand.tile)) for role, operand in operands.items()}
    types = {"A": "a", "B": "b", "D": "c", "C": "c"}
    tensors = {
        name: (shapes[role], dtype) for name, role in types.items() if (dtype := operands[role].dtype) is not None
    }
    return trial(atom.name, "mma.sync", multiply, tensors, threads=32, determined="sums")
