"""Faults that need no run: storage over the machine's limits (I22) and bank conflicts beyond what is declared (I33)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

import numpy as np

from argus.core import algebra
from argus.core.banks import BANK_BYTES, Conflict, Served, best_swizzle, worst_conflict
from argus.core.ir import Alloc, Buffer, Copy, Kernel, Staged, static
from argus.core.lanes import by_wave
from argus.core.layout import TV, Swizzle
from argus.core.proof.access import Access, Accesses
from argus.core.proof.memory import slots_of, staged_offsets
from argus.core.proof.obligation import Obligation, Related
from argus.core.proof.timeline import Timeline
from argus.core.walk import IntArray, evaluate, symbols


def shared_bytes(buffer: Buffer) -> int:
    return prod(static(extent) for extent in buffer.shape) * buffer.dtype.bits // 8


def register_words(buffer: Buffer) -> int:
    """32-bit registers a thread needs for its part of a register tile."""
    assert isinstance(buffer.layout, TV)
    return -(-buffer.layout.values.size() * buffer.dtype.bits // 32)


def obligations(timeline: Timeline, accesses: Accesses) -> Iterator[Obligation]:
    yield from _storage(timeline.kernel, [s.stmt for s in timeline.steps if isinstance(s.stmt, Alloc)])
    for step in timeline.steps:
        if isinstance(step.stmt, Copy):
            for access in accesses.of(step):
                if access.view.buffer.space == "shared":
                    yield from _banks(timeline.kernel, step.stmt, access)


def _storage(kernel: Kernel, allocs: list[Alloc]) -> Iterator[Obligation]:
    target = kernel.target
    for space, limit, unit, size in (
        ("shared", target.shared_bytes, "bytes of shared memory", shared_bytes),
        ("register", target.registers, "registers a thread", register_words),
    ):
        chosen = sorted(
            {a for a in allocs if a.buffer.space == space and a.count is None}, key=lambda a: -size(a.buffer)
        )
        if not chosen:
            continue
        need = sum(size(alloc.buffer) for alloc in chosen)
        yield Obligation(
            "I22",
            f"the kernel fits {limit} {unit}",
            chosen[0],
            algebra.TRUE if need <= limit else algebra.FALSE,
            witness=(("needs", ", ".join(f"{a.buffer.name} {size(a.buffer)}" for a in chosen)),),
            fault=f"`{kernel.name}` needs {need} {unit}, {target} has {limit}",
            related=partial(_sized, chosen[1:3], size, unit),
            help="make the tiles smaller, use fewer stages, or reuse a buffer",
        )


def _sized(allocs: list[Alloc], size: Callable[[Buffer], int], unit: str) -> Related:
    return tuple((alloc, f"{size(alloc.buffer)} {unit}") for alloc in allocs)


def _banks(kernel: Kernel, stmt: Copy, access: Access) -> Iterator[Obligation]:
    buffer = access.view.buffer
    if buffer.banks is None or access.places is None or not isinstance(buffer.layout, Staged):
        return
    what = f"`{stmt.atom}` on `{buffer.name}` has bank conflicts of degree {buffer.banks} at most"
    offsets = staged_offsets(access.view, access.places)
    row = kernel.target.banks * BANK_BYTES
    shifted = any(stride * buffer.dtype.bits // 8 % row for _, stride in slots_of(access, access.places))
    if offsets is None or shifted or not stmt.atom.phases:
        moving = "a tile that moves inside one buffer, or slots that begin in different banks"
        reason = moving if stmt.atom.phases else f"`{stmt.atom}` has no phases in its table"
        yield Obligation("I33", what, stmt, algebra.FALSE, unknown=reason)
        return
    yield _judged(stmt, kernel, buffer, what, offsets)


def conflict_of(stmt: Copy, kernel: Kernel, buffer: Buffer, offsets: IntArray) -> Conflict:
    """The worst conflict of a copy whose elements lie at these offsets, shape (threads, values)."""
    size = buffer.dtype.bits // 8
    count = stmt.atom.vector_bits // buffer.dtype.bits
    addresses = by_wave(offsets[:, ::count] * size, kernel.target.unit)
    return worst_conflict(addresses, stmt.atom.phases, count * size, kernel.target.banks)


def _judged(stmt: Copy, kernel: Kernel, buffer: Buffer, what: str, offsets: IntArray) -> Obligation:
    assert buffer.banks is not None
    worst = conflict_of(stmt, kernel, buffer, offsets)
    if worst.degree <= buffer.banks:
        return Obligation("I33", what, stmt, algebra.TRUE)
    better = _swizzle_for(stmt, kernel, buffer)
    advice = (
        "" if better is None else f"; for this access `Swizzle({better.bits}, {better.base}, {better.shift})` would do"
    )
    return Obligation(
        "I33",
        what,
        stmt,
        algebra.FALSE,
        witness=(
            ("bank", f"{worst.bank} of {kernel.target.banks}, in one phase"),
            ("lanes", ", ".join(map(str, worst.lanes))),
            ("words", ", ".join(map(str, worst.words))),
        ),
        fault=f"`{stmt.atom}` on `{buffer.name}` has {worst.degree}-way bank conflicts, {buffer.banks} is declared",
        help=f"swizzle the buffer so that lanes of one phase fall into different banks{advice}",
    )


def _swizzle_for(stmt: Copy, kernel: Kernel, buffer: Buffer) -> Swizzle | None:
    """The smallest swizzle of whole vectors that brings this access within what is declared."""
    layout = buffer.layout
    assert isinstance(layout, Staged)
    assert buffer.banks is not None
    count = stmt.atom.vector_bits // buffer.dtype.bits
    firsts = by_wave(_unswizzled(stmt, buffer, layout)[:, ::count], kernel.target.unit)
    degree, swizzle = best_swizzle(
        (Served(firsts.reshape(-1, kernel.target.unit), count, stmt.atom.phases),),
        element_bits=buffer.dtype.bits,
        banks=kernel.target.banks,
        degree=buffer.banks,
        size=layout.layout.size(),
    )
    return swizzle if degree <= buffer.banks else None


def _unswizzled(stmt: Copy, buffer: Buffer, layout: Staged) -> IntArray:
    """Offsets of the copy's elements in the buffer without its swizzle, in slot 0."""
    view = stmt.source if stmt.source.buffer is buffer else stmt.target
    zero = {symbol: 0 for at in view.at for symbol in symbols(at)}
    axes = stmt.by.coordinates()
    strides = layout.layout.stride if isinstance(layout.layout.stride, tuple) else (layout.layout.stride,)
    offsets = np.zeros(axes[0].shape, np.int64)
    for at, stride in zip(view.at, strides, strict=True):
        assert isinstance(stride, int)
        offsets = offsets + np.asarray(evaluate(at, zero, axes), np.int64) * stride
    return offsets
