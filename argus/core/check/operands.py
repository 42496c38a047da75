"""Checks of operands of copies, maps, folds and MMAs: shapes, layouts, thread counts, registers and types."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.atom import Canonical, Major, Operand
from argus.core.check.executor import Executor, error_at
from argus.core.check.folds import fold_error
from argus.core.check.register_operands import holds_operands
from argus.core.diagnostic import Diagnostic
from argus.core.index import Const, Coord, Index
from argus.core.index_text import show
from argus.core.ir import Copy, Fold, Map, Mma, Staged, Stmt, View
from argus.core.ir.element_walk import gets
from argus.core.layout import TV, Layout
from argus.core.memory.swizzle_tiles import tile_columns
from argus.core.walk import mentions


def check_operands(executor: Executor, stmt: Stmt) -> Iterator[Diagnostic]:
    """Errors of a copy, map, fold or MMA; nothing for other statements."""
    match stmt:
        case Copy():
            yield from _check_copy(executor, stmt)
        case Map():
            yield from _check_map(executor, stmt)
        case Fold():
            yield from _check_fold(executor, stmt)
        case Mma():
            yield from _check_mma(executor, stmt)
        case _:
            return


def _check_copy(executor: Executor, stmt: Copy) -> Iterator[Diagnostic]:
    if executor.kernel.target.name not in stmt.atom.targets:
        yield error_at(
            executor.kernel, stmt, "E108", f"`{stmt.atom}` is not an instruction of {executor.kernel.target}"
        )
        return
    for extent in stmt.source.shape:
        if not isinstance(extent, Const):
            yield error_at(
                executor.kernel,
                stmt,
                "E209",
                f"a copy of the symbolic extent {show(extent)}",
                "copy tiles of static shape: `.tile((rows, columns), ...)`",
            )
            return
    shape = tuple(extent.value for extent in stmt.source.shape if isinstance(extent, Const))
    if shape != stmt.by.tile:
        yield error_at(
            executor.kernel,
            stmt,
            "E203",
            f"a copy of shape {shape} by a layout of the tile {stmt.by.tile}",
            "give the views and the layout one shape",
        )
    elif stmt.atom.unit > 1 and _has_wrong_threads(executor, stmt.by.threads.size()):
        yield error_at(
            executor.kernel,
            stmt,
            "E213",
            f"a copy by {stmt.by.threads.size()} threads, run by {executor.threads} threads of {executor}",
            "give `by` a layout of the threads that run the copy",
        )


def _has_wrong_threads(executor: Executor, threads: int) -> bool:
    """Whether the copy's layout has a wrong number of threads.

    A block may copy with its first threads only; of a role, all threads of an agent copy.
    """
    return threads > executor.threads if executor.role is None else threads != executor.threads


def _check_map(executor: Executor, stmt: Map) -> Iterator[Diagnostic]:
    for get in gets(stmt.elem):
        if not holds_operands(get, stmt.target):
            yield error_at(
                executor.kernel,
                stmt,
                "E205",
                f"`{get.view.buffer.name}` is held by different threads than `{stmt.target.buffer.name}`",
                "give both tiles one thread-value layout, or go through shared memory",
            )


def _check_fold(executor: Executor, stmt: Fold) -> Iterator[Diagnostic]:
    why = fold_error(stmt, executor.kernel.target.unit)
    if why:
        names = f"`{stmt.source.buffer.name}` into `{stmt.target.buffer.name}`"
        help_ = "reduce within a warp, then across warps through shared memory"
        yield error_at(executor.kernel, stmt, "E205", f"`{stmt.op}` folds {names}: {why}", help_)


def _check_mma(executor: Executor, stmt: Mma) -> Iterator[Diagnostic]:
    needed, kernel = stmt.tiling.threads * stmt.atom.unit, executor.kernel
    if needed != executor.threads:
        yield error_at(
            kernel,
            stmt,
            "E213",
            f"`{stmt.atom}` over {stmt.tiling.waves[0]} x {stmt.tiling.waves[1]} waves needs {needed} threads, "
            f"{executor} has {executor.threads}",
            "make the number of waves times the lanes of a wave equal the number of threads",
        )
    if kernel.target.name not in stmt.atom.targets:
        yield error_at(kernel, stmt, "E108", f"`{stmt.atom}` is not an instruction of {kernel.target}")
    for role, view, first in (
        ("a", stmt.a, stmt.tiling.a),
        ("b", stmt.b, stmt.tiling.b),
        ("c", stmt.target, stmt.tiling.c),
    ):
        operand = stmt.atom.operands[role]
        if operand.space == "shared":
            yield from _check_shared_operand(executor, stmt, role, view)
        else:
            yield from _check_register_operand(executor, stmt, role, view, first)


def _check_register_operand(
    executor: Executor, stmt: Mma, role: str, view: View, first: Layout
) -> Iterator[Diagnostic]:
    """A register operand has exactly the registers that the executions of the instruction read, of its type."""
    held, operand = view.buffer.layout, stmt.atom.operands[role]
    if operand.tv is None:
        return
    if not isinstance(held, TV):
        yield error_at(executor.kernel, stmt, "E206", f"operand {role} of `{stmt.atom}` is read from registers")
        return
    needed = int(first.table().max()) + operand.tv.values.size()
    if held.values.size() != needed or view.buffer.dtype != operand.dtype:
        yield error_at(
            executor.kernel,
            stmt,
            "E206",
            f"operand {role} of `{stmt.atom}` wants {needed} registers of {operand.dtype} a thread, "
            f"`{view.buffer.name}` has {held.values.size()} of {view.buffer.dtype}",
            f"make `{view.buffer.name}` with the fragment layout of that operand",
        )


def _check_shared_operand(executor: Executor, stmt: Mma, role: str, view: View) -> Iterator[Diagnostic]:
    """A shared operand has the instruction's extents and type and a layout that a matrix descriptor can express."""
    operand, name = stmt.atom.operands[role], view.buffer.name
    wanted = (operand.tile[0], operand.tile[1] * stmt.tiling.repeat[2])
    if view.shape != tuple(algebra.const(extent) for extent in wanted) or view.buffer.dtype != operand.dtype:
        found = ", ".join(show(extent) for extent in view.shape)
        yield error_at(
            executor.kernel,
            stmt,
            "E206",
            f"operand {role} of `{stmt.atom}` is {wanted} of {operand.dtype} in shared memory, "
            f"`{name}` is ({found}) of {view.buffer.dtype}",
            "take a tile of that shape",
        )
        return
    why = canonical_layout_error(view, operand)
    if why:
        yield error_at(
            executor.kernel,
            stmt,
            "E218",
            f"operand {role} of `{stmt.atom}` has a layout that no matrix descriptor can express: {why}",
            "declare it `shared(dtype, (rows, columns), swizzle=128)` with rows of 128 bytes (or 64, or 32)",
            f"`{name}`",
        )


def canonical_layout_error(view: View, operand: Operand) -> str:
    """Why no matrix descriptor expresses a view of shape (rows, k) [PTX ISA, canonical layouts of wgmma].

    Empty if one does.
    """
    layout, dtype = view.buffer.layout, view.buffer.dtype
    if view.where is not algebra.TRUE or view.peer is not None:
        return "some of its elements are masked, or belong to another block"
    width = tile_columns(view.buffer)
    if not isinstance(layout, Staged) or len(view.buffer.shape) < 2 or width is None:
        return "its rows are not contiguous in shared memory"
    chunk = 128 // dtype.bits
    swizzle = layout.swizzle
    span = 16 if swizzle is None or swizzle.bits == 0 else 16 << swizzle.bits
    if span > 16 and swizzle is not None and (swizzle.base, swizzle.shift) != (chunk.bit_length() - 1, 3):
        return f"{swizzle} does not permute chunks of 16 bytes within 8 rows"
    row = width * dtype.bits // 8
    if row != span:
        return f"rows are {row} bytes, the swizzle spans {span}"
    major, starts = _orientation(view)
    if major is None:
        return "its axes do not follow the last two axes of the buffer"
    if Canonical(major, span) not in operand.canonical:
        return f"the instruction takes no {major}-major operand with a swizzle span of {span} bytes"
    # The instruction steps from one swizzle tile to the next: a view of several begins at a tile's first column.
    columns = chunk if view.buffer.shape[-1] is algebra.const(width) else width
    for start, step, what in ((starts[0], 8, "rows"), (starts[1], columns, "columns")):
        if algebra.mod(start, step) is not algebra.const(0):
            return f"it begins at {what} {show(start)}, which may not be a multiple of {step}"
    return _alignment_error(view, layout.layout, 8 * span * 8 // dtype.bits)


def _alignment_error(view: View, layout: Layout, period: int) -> str:
    """Why a stage of a buffer does not begin at a multiple of the swizzle's period (in elements); empty if it does."""
    strides = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    for at, stride in zip(view.at[:-2], strides, strict=False):
        if not isinstance(stride, int) or algebra.mod(algebra.mul(at, stride), period) is not algebra.const(0):
            start = f"element {show(at)} x {stride}"
            return f"its slot begins at {start}, which may not be a multiple of the swizzle's period {period}"
    return ""


def _orientation(view: View) -> tuple[Major | None, tuple[Index, Index]]:
    """The major-ness of a view (None if it is neither) and its start on the last two axes of the buffer."""
    *leading, row, column = view.at
    orientations: tuple[tuple[Major, int], ...] = (("k", 1), ("mn", 0))
    for major, inner in orientations:
        starts = algebra.sub(row, algebra.coord(1 - inner)), algebra.sub(column, algebra.coord(inner))
        if not any(mentions(node, (Coord,)) for node in (*leading, *starts)):
            return major, starts
    return None, (row, column)
