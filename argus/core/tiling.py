"""Tiled matrix instructions (CuTe's TiledMMA): fragments of an MMA over several waves, and registers per execution."""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.atom import Atom
from argus.core.layout import TV, IntTuple, Layout

IntArray = npt.NDArray[np.int64]


@frozen
class Operands:
    """For each element of one operand of an `Mma`, the thread and the register that hold it.

    Axes of both arrays: (wave, repeat along the rows, repeat along k, row, k) for A and B, where the rows of B are n;
    (wave, repeat along m, repeat along n, m, n) for C.
    """

    thread: IntArray
    value: IntArray


@frozen
class Tiling:
    """How one `Mma` repeats its atom, in terms of registers alone.

    waves: waves along m and n, n fastest. repeat: executions per wave along m, n and k.
    a, b, c: first register of the operand for repeat (row, k), (row, k), (m, n); 1:0 for one in shared memory.
    """

    waves: tuple[int, int]
    repeat: tuple[int, int, int]
    a: Layout
    b: Layout
    c: Layout

    @property
    def threads(self) -> int:
        """The number of waves; the agent must have this many times the threads of one execution."""
        return prod(self.waves)


def _holders(tv: TV, unit: int) -> tuple[IntArray, IntArray]:
    """The lane and the register that hold each element of an atom's operand, shaped like its tile."""
    numbers = tv.elements()
    lane = np.empty(prod(tv.tile), np.int64)
    value = np.empty(prod(tv.tile), np.int64)
    lanes, values = np.indices((unit, numbers.shape[1]), dtype=np.int64)
    lane[numbers.ravel()] = lanes.ravel()
    value[numbers.ravel()] = values.ravel()
    return lane.reshape(tv.tile, order="F"), value.reshape(tv.tile, order="F")


def operands(atom: Atom, tiling: Tiling, role: str) -> Operands:
    """Threads and registers of operand `role` ("a", "b" or "c") in every execution of the instruction."""
    tv = atom.operands[role].tv
    assert tv is not None, f"{atom} has no register layout for operand {role}"
    lane, value = _holders(tv, atom.unit)
    first, rows, columns = {
        "a": (tiling.a, tiling.repeat[0], tiling.repeat[2]),
        "b": (tiling.b, tiling.repeat[1], tiling.repeat[2]),
        "c": (tiling.c, tiling.repeat[0], tiling.repeat[1]),
    }[role]
    start = first.table().reshape((rows, columns), order="F")
    wave = np.arange(tiling.threads, dtype=np.int64) * atom.unit
    shape = (tiling.threads, rows, columns, *lane.shape)
    thread = np.broadcast_to(wave[:, None, None, None, None] + lane[None, None, None], shape)
    register = np.broadcast_to(start[None, :, :, None, None] + value[None, None, None], shape)
    return Operands(thread, register)


def _spread(tv: TV, tile: tuple[int, int], units: tuple[int, int]) -> list[tuple[int, int]]:
    """The modes (extent, stride) of an atom's threads, renumbered for a larger tile.

    units: distance in the larger tile between elements adjacent along the rows and along the columns of the atom.
    """
    modes: list[tuple[int, int]] = []
    for extent, stride in tv.threads.flat_modes:
        along_rows = stride < tv.tile[0]
        step = stride * units[0] if along_rows else stride // tv.tile[0] * units[1] * tile[0]
        modes.append((extent, step))
    return modes


def _layout(modes: list[tuple[int, int]]) -> Layout:
    shape: IntTuple = tuple(extent for extent, _ in modes)
    return Layout(shape, tuple(stride for _, stride in modes))


@frozen
class TiledMma:
    """An atom tiled over several waves; `A` (m, k), `B` (n, k) and `C` (m, n) are its fragments.

    k_run: consecutive k that one lane holds and feeds to successive executions; A and B permute k in the same way,
    which tags prove. By default as many as A has values per lane: each execution's fragments are then the atom's own,
    as those with values along the rows must be. k: extent of the fragments along k, a multiple of `k_step`.
    """

    atom: Atom
    waves: tuple[int, int]
    tile: tuple[int, int]
    k_run: int
    k: int

    def __attrs_post_init__(self) -> None:
        m, n, _ = _mnk(self.atom)
        for axis, extent, part in ((0, self.tile[0], m), (1, self.tile[1], n)):
            if extent % (part * self.waves[axis]) != 0:
                raise ValueError(
                    f"{self.atom}: tile extent {extent} is not a multiple of {part} x {self.waves[axis]} waves"
                )
        if not self._as_the_atom and any(_rows_per_lane(self.atom, role) for role in ("a", "b")):
            raise ValueError(f"{self.atom}: a lane holds several rows, so k_run {self.k_run} would permute them too")
        if self.k_run % self._per_lane != 0 or self.k % self.k_step != 0:
            raise ValueError(f"{self.atom}: k_run {self.k_run} and k {self.k} do not divide into whole executions")

    @property
    def _per_lane(self) -> int:
        tv = self.atom.operands["a"].tv
        assert tv is not None
        return tv.values.size()

    @property
    def _as_the_atom(self) -> bool:
        return self.k_run == self._per_lane

    @property
    def k_step(self) -> int:
        """The smallest extent of a fragment along k: all lanes hold one run of `k_run` each."""
        return smallest_k(self.atom, self.k_run)

    @property
    def repeat(self) -> tuple[int, int, int]:
        """Executions per wave along m, n and k."""
        m, n, k = _mnk(self.atom)
        return self.tile[0] // (m * self.waves[0]), self.tile[1] // (n * self.waves[1]), self.k // k

    @property
    def A(self) -> TV:  # noqa: N802 reason: the operand's name in every manual
        """The fragment of A, (m, k)."""
        return self._operand("a", 0)

    @property
    def B(self) -> TV:  # noqa: N802 reason: the operand's name in every manual
        """The fragment of B, (n, k)."""
        return self._operand("b", 1)

    def _operand(self, role: str, axis: int) -> TV:
        tv = _fragment(self.atom, role)
        rows, per_lane = self.tile[axis], self._per_lane
        tile = (rows, self.k)
        part = rows // self.waves[axis]
        lanes = _spread(tv, tile, (1, self.k_run // per_lane))
        wave_modes = [(self.waves[1], part if axis == 1 else 0), (self.waves[0], part if axis == 0 else 0)]
        inner = _modes_in(tv, rows) if self._as_the_atom else [(self.k_run, rows)]
        values = [*inner, (self.k // self.k_step, rows * self.k_step), (self.repeat[axis], tv.tile[0])]
        return TV(_layout(lanes + wave_modes), _layout(values), tile)

    @property
    def C(self) -> TV:  # noqa: N802 reason: the operand's name in every manual
        """The fragment of C, (m, n): the accumulators."""
        tv = self.atom.operands["c"].tv
        assert tv is not None
        rows = self.tile[0]
        lanes = _spread(tv, self.tile, (1, 1))
        wave_modes = [(self.waves[1], self.tile[1] // self.waves[1] * rows), (self.waves[0], rows // self.waves[0])]
        inner = _modes_in(tv, rows)
        m, n, _ = _mnk(self.atom)
        values = [*inner, (self.repeat[0], m), (self.repeat[1], n * rows)]
        return TV(_layout(lanes + wave_modes), _layout(values), self.tile)

    @property
    def tiling(self) -> Tiling:
        """The registers of the fragments above for each execution."""
        c_values = _fragment(self.atom, "c").values.size()
        rm, rn, _ = self.repeat
        return Tiling(
            self.waves,
            self.repeat,
            self._registers("a", rm),
            self._registers("b", rn),
            Layout((rm, rn), (c_values, c_values * rm)),
        )

    def _registers(self, role: str, repeat: int) -> Layout:
        """The first register of operand A or B for each execution along its rows and along k."""
        e, runs, per_run = _fragment(self.atom, role).values.size(), self.k // self.k_step, self.k_run // self._per_lane
        return Layout((repeat, (per_run, runs)), (e * per_run * runs, (e, e * per_run)))


def _fragment(atom: Atom, role: str) -> TV:
    tv = atom.operands[role].tv
    assert tv is not None
    return tv


def _rows_per_lane(atom: Atom, role: str) -> bool:
    """Whether a lane holds elements of several rows of an operand."""
    tv = _fragment(atom, role)
    return any(stride < tv.tile[0] for extent, stride in tv.values.flat_modes if extent > 1)


def _modes_in(tv: TV, rows: int) -> list[tuple[int, int]]:
    """The modes of an atom's values in a tile of so many rows."""
    return [(extent, s if s < tv.tile[0] else s // tv.tile[0] * rows) for extent, s in tv.values.flat_modes]


def smallest_k(atom: Atom, k_run: int) -> int:
    """The extent along k that the lanes of an instruction hold together, in runs of `k_run` each."""
    tv = atom.operands["a"].tv
    assert tv is not None
    return _mnk(atom)[2] // tv.values.size() * k_run


IN_SHARED = Layout(1, 0)
"""The register layout of an operand in shared memory, which has no registers."""


@frozen
class WarpgroupMma:
    """A wgmma repeated along k: A (64, k) in shared memory or registers, B (n, k) in shared memory.

    b_major: the index along which B is contiguous in memory, "k" or "n". `k` is the extent of a fragment of A; with A
    in shared memory, each product may have a different one.
    """

    atom: Atom
    b_major: Literal["k", "n"]
    k: int

    def __attrs_post_init__(self) -> None:
        step = _mnk(self.atom)[2]
        if self.k < 1 or self.k % step != 0:
            raise ValueError(f"{self.atom}: k {self.k} is not a multiple of {step}")

    @property
    def a_in_registers(self) -> bool:
        """Whether A is read from registers rather than shared memory."""
        return self.atom.operands["a"].space == "register"

    @property
    def A(self) -> TV:  # noqa: N802 reason: the operand's name in every manual
        """The fragment of A, (64, k). Raises ValueError where A is read from shared memory."""
        tv = self.atom.operands["a"].tv
        if tv is None or not self.a_in_registers:
            raise ValueError(f"{self.atom} reads A from shared memory")
        per_execution = prod(tv.tile)
        values = [*tv.values.flat_modes, (self.k // tv.tile[1], per_execution)]
        return TV(tv.threads, _layout(values), (tv.tile[0], self.k))

    @property
    def C(self) -> TV:  # noqa: N802 reason: the operand's name in every manual
        """The fragment of C, (64, n): the accumulators."""
        tv = self.atom.operands["c"].tv
        assert tv is not None
        return tv

    def tiling(self, k: int) -> Tiling:
        """The executions of a product over k. Raises ValueError if k is not a multiple of the instruction's."""
        step = _mnk(self.atom)[2]
        if k < 1 or k % step != 0:
            raise ValueError(f"{self.atom}: k {k} is not a multiple of {step}")
        times = k // step
        tv = self.atom.operands["a"].tv
        assert tv is not None
        registers = tv.values.size()
        a = Layout((1, times), (registers * times, registers)) if self.a_in_registers else IN_SHARED
        return Tiling((1, 1), (1, 1, times), a, IN_SHARED, Layout((1, 1), (0, 0)))


def subtile(tv: TV, shape: tuple[int, ...]) -> TV:
    """The thread-value layout of a tile of `shape` cut from a fragment at any multiple of it, in register order.

    Raises ValueError unless each thread holds a part of every such tile, and the same part of each.
    """
    if len(shape) != len(tv.tile) or any(whole % extent != 0 for whole, extent in zip(tv.tile, shape, strict=True)):
        raise ValueError(f"a fragment of {tv.tile} has no whole tiles of {shape}")
    threads = [_cut(mode, tv.tile, shape) for mode in tv.threads.flat_modes]
    if any(len(cut) != 1 or cut[0][0] != mode[0] for cut, mode in zip(threads, tv.threads.flat_modes, strict=True)):
        raise ValueError(f"tiles of {shape} are not held by all threads of {tv}")
    values = [cut for mode in tv.values.flat_modes for cut in _cut(mode, tv.tile, shape)]
    found = TV(_layout([cut[0] for cut in threads]), _layout(values or [(1, 0)]), shape)
    if len(np.unique(found.elements())) != prod(shape):
        raise ValueError(f"tiles of {shape} are not held by all threads of {tv}")
    return found


def _cut(mode: tuple[int, int], tile: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """A fragment's mode restricted to a smaller tile: no mode or one. Raises ValueError if it is neither."""
    extent, stride = mode
    if extent == 1 or stride == 0:
        return [(extent, 0)]
    below, smaller = 1, 1
    for whole, part in zip(tile, shape, strict=True):
        if stride < below * whole:
            step = stride // below
            if stride % below != 0 or step * (extent - 1) >= whole:
                raise ValueError(f"mode {mode} crosses rows of {tile}")
            if step % part == 0:
                return []
            if step * extent > part and part % step != 0:
                raise ValueError(f"mode {mode} does not divide at {part}")
            return [(min(extent, part // step), step * smaller)]
        below, smaller = below * whole, smaller * part
    return []


def _mnk(atom: Atom) -> tuple[int, int, int]:
    if atom.mnk is None:
        raise ValueError(f"{atom} is not a matrix instruction")
    return atom.mnk


def spread(tile: tuple[int, int], threads: int, vector: int) -> TV:
    """A thread-value layout over a row-major tile: each thread holds vectors of `vector` consecutive columns.

    Consecutive threads cover a row, then the next row; the pattern repeats down the tile.
    Raises ValueError unless the threads tile it exactly.
    """
    rows, columns = tile
    if columns % vector != 0 or threads % (columns // vector) != 0:
        raise ValueError(f"{threads} threads of {vector} elements do not divide rows of {columns}")
    across = columns // vector
    down = threads // across
    if rows % down != 0:
        raise ValueError(f"{threads} threads of {vector} elements cover {down} rows, which do not divide {rows}")
    return TV(Layout((across, down), (vector * rows, 1)), Layout((vector, rows // down), (rows, down)), tile)
