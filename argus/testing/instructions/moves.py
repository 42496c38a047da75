"""Test kernels of one copy instruction each."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.atom import Atom
from argus.core.atoms.sm_90a import tma, warp
from argus.core.dtype import bf16, e4m3, f16, f32
from argus.language import (
    TV,
    Layout,
    Tensor,
    barrier,
    bulk,
    copy,
    cp_async,
    elected,
    fence,
    load,
    registers,
    shared,
    spread,
    sync,
)
from argus.testing.instructions.trial import Trial, trial

_SPANS = (32, 64, 128)
_TILE = (64, 64)


def move_trials() -> Iterator[Trial]:
    yield from _loads_and_stores()
    for place, atom in enumerate(warp.MATRICES):
        yield _matrices(atom, _SPANS[place % 3])
    for atom in warp.cp_async:
        yield _staged(atom, cut=False)
        yield _staged(atom, cut=True)
    for atom in (*tma.tma_load, *tma.tma_load_more):
        yield _box_loaded(atom)
    for atom in (*tma.tma_store, *tma.tma_store_more):
        yield _box_stored(atom)
    yield _run_loaded(tma.bulk_load_1d)
    yield _run_stored(tma.bulk_store_1d)


# -- loads and stores ----------------------------------------------------------------------------------------


def _loads_and_stores() -> Iterator[Trial]:
    for atom in (*_LOADS, *_STORES):
        yield _global(atom, cut=False)
        yield _global(atom, cut=True)
    for atom in (*warp.ld_shared, *warp.st_shared):
        yield _shared(atom)


_LOADS, _STORES = (*warp.ld_global, warp.ld_global_b8), (*warp.st_global, warp.st_global_b8)
_ELEMENTS = {8: e4m3, 16: bf16, 32: f16, 64: f32, 128: e4m3}
"""The dtype on which an access of this many bits is tested."""


def _global(atom: Atom, *, cut: bool) -> Trial:
    """C = A by way of registers; cut: the second tile of 64 rows, of which 36 exist; the rest reads 1.5."""
    dtype, at = _ELEMENTS[atom.vector_bits], (1, 0) if cut else (0, 0)
    by = spread(_TILE, threads=128, vector=atom.vector_bits // dtype.bits)
    loads = atom in _LOADS

    def move(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        held = registers(dtype, by)
        copy(A.tile(_TILE, at), held, via=atom if loads else None, edge=1.5 if cut else None)
        if loads:
            copy(held, C)
        else:
            copy(held, C.tile(_TILE, at), via=atom, edge=0 if cut else None)

    shape = "M 64" if cut else "64 64"
    what = f"{atom.name} cut" if cut else atom.name
    return trial(what, "ld st", move, {"A": (shape, dtype), "C": ("64 64" if loads else shape, dtype)})


def _shared(atom: Atom) -> Trial:
    """C = A by way of a swizzled tile in shared memory."""
    dtype = _ELEMENTS[atom.vector_bits]
    span = 64 * dtype.bits // 8
    by = spread(_TILE, threads=128, vector=atom.vector_bits // dtype.bits)
    loads = atom in warp.ld_shared

    def move(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        tile = shared(dtype, _TILE, swizzle=span if span in _SPANS else None)
        copy(load(A, by), tile, via=None if loads else atom)
        sync()
        copy(load(tile, by, via=atom if loads else None), C)

    return trial(atom.name, "ld st", move, {"A": ("64 64", dtype), "C": ("64 64", dtype)})


# -- ldmatrix and stmatrix -----------------------------------------------------------------------------------


def _fragment(rows: int, transposed: bool) -> TV:
    """The fragment of 8 columns: pairs along a row or, transposed, along a column; a quarter of the rows per warp."""
    matrices = rows // 32
    if transposed:
        return TV(Layout((4, 8, 4), (2, rows, rows // 4)), Layout((2, matrices), (1, 8)), (rows, 8))
    return TV(Layout((4, 8, 4), (2 * rows, 1, rows // 4)), Layout((2, matrices), (rows, 8)), (rows, 8))


def _matrices(atom: Atom, span: int) -> Trial:
    """Copy the last 8 columns of a swizzled tile to registers, or back."""
    memory = next(operand for operand in atom.operands.values() if operand.space == "shared")
    rows, columns = 4 * memory.tile[1], span // 2
    fragment, whole = _fragment(rows, atom.name.endswith("_trans")), spread((rows, columns), threads=128, vector=2)
    loads = atom in warp.LOADED
    dtype = bf16 if loads else f16

    def read(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        tile, held = shared(dtype, (rows, columns), swizzle=span), registers(dtype, fragment)
        copy(load(A, whole), tile)
        sync()
        copy(tile.tile((rows, 8), (0, columns // 8 - 1)), held, via=atom)
        copy(held, C)

    def write(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        tile = shared(dtype, (rows, columns), swizzle=span)
        copy(load(A, whole), tile)
        sync()
        held = load(A.tile((rows, 8), (0, 0)), fragment)
        copy(held, tile.tile((rows, 8), (0, columns // 8 - 1)), via=atom)
        sync()
        copy(load(tile, whole), C)

    full = f"{rows} {columns}"
    tensors = {"A": (full, dtype), "C": (f"{rows} 8" if loads else full, dtype)}
    family = "ldmatrix" if loads else "stmatrix"
    return trial(f"{atom.name} span {span}", family, read if loads else write, tensors)


# -- cp.async and TMA ----------------------------------------------------------------------------------------


def _staged(atom: Atom, *, cut: bool) -> Trial:
    by, at = spread(_TILE, threads=128, vector=atom.vector_bits // 16), (1, 0) if cut else (0, 0)

    def move(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        tile = shared(bf16, _TILE, swizzle=128)
        copy(A.tile(_TILE, at), tile, via=atom, by=by, edge=0 if cut else None)
        cp_async.commit()
        cp_async.wait(0)
        sync()
        copy(load(tile, by), C)

    what = f"{atom.name} cut" if cut else atom.name
    return trial(what, "cp.async", move, {"A": ("M 64" if cut else "64 64", bf16), "C": ("64 64", bf16)})


def _box(atom: Atom) -> tuple[int, str, tuple[int, ...]]:
    """Columns of a box, the shape of a tensor whose second box along both axes is partial, and the matrix's index."""
    assert atom.box is not None
    columns = (atom.box.span or 64) // 2
    before = atom.box.axes - 2
    return columns, " ".join([*("2", "3", "2")[:before], "M", str(columns + 8)]), (1, 2, 1)[:before]


def _box_loaded(atom: Atom) -> Trial:
    columns, shape, before = _box(atom)
    by = spread((64, columns), threads=128, vector=8)

    def move(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        tile, full = shared(bf16, (64, columns), swizzle=_swizzle(atom)), barrier(1)
        matrix = A[before] if before else A
        with elected():
            full.arrive(bytes=64 * columns * 2)
            copy(matrix.tile((64, columns), (1, 1)), tile, via=atom, edge=0, signal=full)
        full.wait(0)
        copy(load(tile, by), C)

    return trial(atom.name, "tma", move, {"A": (shape, bf16), "C": (f"64 {columns}", bf16)})


def _box_stored(atom: Atom) -> Trial:
    columns, shape, before = _box(atom)
    by = spread((64, columns), threads=128, vector=8)

    def move(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        tile = shared(bf16, (64, columns), swizzle=_swizzle(atom))
        copy(load(A, by), tile)
        fence("async proxy")
        sync()
        matrix = C[before] if before else C
        with elected():
            copy(tile, matrix.tile((64, columns), (1, 1)), via=atom, edge=0)
            bulk.commit()
            bulk.wait(0)

    return trial(atom.name, "tma", move, {"A": (f"64 {columns}", bf16), "C": (shape, bf16)})


def _swizzle(atom: Atom) -> int | None:
    assert atom.box is not None
    return atom.box.span or None


_RUN = 512
_OF_RUN = TV(Layout(128, 4), Layout(4, 1), (_RUN,))


def _run_loaded(atom: Atom) -> Trial:
    def move(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        run, full = shared(bf16, (_RUN,)), barrier(1)
        with elected():
            full.arrive(bytes=2 * _RUN)
            copy(A.tile((_RUN,), (1,)), run, via=atom, signal=full)
        full.wait(0)
        copy(load(run, _OF_RUN), C)

    return trial(atom.name, "bulk", move, {"A": ("N", bf16), "C": (str(_RUN), bf16)})


def _run_stored(atom: Atom) -> Trial:
    def move(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        run = shared(bf16, (_RUN,))
        copy(load(A, _OF_RUN), run)
        fence("async proxy")
        sync()
        with elected():
            copy(run, C.tile((_RUN,), (1,)), via=atom)
            bulk.commit()
            bulk.wait(0)

    return trial(atom.name, "bulk", move, {"A": (str(_RUN), bf16), "C": ("N", bf16)})
