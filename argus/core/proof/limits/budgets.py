"""Faults that need no run.

Storage over the machine's limits (I22), sums over its accumulation registers (I22), registers of roles over the file
(I21), bank conflicts beyond what is declared (I33), and, of a kernel whose accesses are not modelled, stages that begin
within a period of their swizzle (I18).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import gcd

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import Coord
from argus.core.ir import Alloc, Buffer, Copy, Kernel, Mma, Policy, Role, Roles, Staged, Stmt, View, walk
from argus.core.layout import TV, Swizzle
from argus.core.memory.banks import BANK_BYTES, Conflict, PhasedAccess, best_swizzle, worst_conflict
from argus.core.memory.lane_accesses import by_wave
from argus.core.memory.placement import BASE_ALIGNMENT, bytes_of, shared_memory_plan
from argus.core.proof.dataflow.access import Access, Accesses
from argus.core.proof.dataflow.lifetimes import peak_live_tiles
from argus.core.proof.dataflow.timeline import Timeline
from argus.core.proof.limits.distinct_addresses import distinct_address_obligations
from argus.core.proof.limits.memory import axis_modes, offsets_along, staged_offsets, symbolic_axes
from argus.core.proof.obligation import Obligation, Related
from argus.core.walk import IntArray, evaluate, mentions, symbols


def register_words(buffer: Buffer) -> int:
    """32-bit registers a thread needs for its part of a register tile."""
    assert isinstance(buffer.layout, TV)
    return -(-buffer.layout.values.size() * buffer.dtype.bits // 32)


def accumulation_words(buffer: Buffer) -> int:
    """Of those, the ones that only matrix instructions sum into."""
    return register_words(buffer) if buffer.file == "accumulation" else 0


def budget_obligations(timeline: Timeline, accesses: Accesses) -> Iterator[Obligation]:
    allocs = [step.stmt for step in timeline.steps if isinstance(step.stmt, Alloc)]
    yield from _storage(timeline.kernel, allocs)
    yield from _accumulating(timeline.kernel, allocs)
    if timeline.unmodelled:
        yield from stage_obligations(timeline.kernel)
    for step in timeline.steps:
        if isinstance(step.stmt, Copy):
            for access in accesses.of(step):
                if access.view.buffer.space == "shared":
                    yield from _banks(timeline.kernel, step.stmt, access)


def _storage(kernel: Kernel, allocs: list[Alloc]) -> Iterator[Obligation]:
    target = kernel.target
    for space, limit, unit, size in (
        ("shared", target.shared_bytes, "bytes of shared memory", bytes_of),
        ("register", target.registers_of(kernel.threads), "registers a thread", register_words),
    ):
        chosen = sorted(
            {a for a in allocs if a.buffer.space == space and a.count is None}, key=lambda a: -size(a.buffer)
        )
        if not chosen or (space == "shared" and plans_shared_memory(kernel)):
            continue
        need = sum(size(alloc.buffer) for alloc in chosen)
        if space == "register" and need > limit:
            at_once = peak_live_tiles(kernel, size)
            need = sum(map(size, at_once))
            if need > limit:
                chosen = sorted((a for a in chosen if a.buffer in at_once), key=lambda a: -size(a.buffer))
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


def _accumulating(kernel: Kernel, allocs: list[Alloc]) -> Iterator[Obligation]:
    """I22 of sums in accumulation registers, of which a thread has no more however many it has in all."""
    limit = kernel.target.accumulation
    chosen = sorted(
        {alloc for alloc in allocs if alloc.buffer.file == "accumulation"}, key=lambda a: -accumulation_words(a.buffer)
    )
    if not chosen:
        return
    need = sum(accumulation_words(alloc.buffer) for alloc in chosen)
    if need > limit:
        at_once = peak_live_tiles(kernel, accumulation_words)
        chosen = [alloc for alloc in chosen if alloc.buffer in at_once]
        need = sum(map(accumulation_words, at_once))
    yield Obligation(
        "I22",
        f"the sums fit {limit} accumulation registers a thread",
        chosen[0],
        algebra.TRUE if need <= limit else algebra.FALSE,
        witness=(("needs", ", ".join(f"{a.buffer.name} {accumulation_words(a.buffer)}" for a in chosen)),),
        fault=f"the sums of `{kernel.name}` need {need} accumulation registers a thread, {kernel.target} has {limit}",
        related=partial(_sized, chosen[1:3], accumulation_words, "accumulation registers a thread"),
        help="make the tile smaller, share it among more waves, or leave it to the compiler where sums are",
    )


def needs_register_reuse(kernel: Kernel) -> bool:
    """Whether the kernel fits only if tiles that hold nothing at one time have registers in common."""
    limit = kernel.target.registers_of(kernel.threads)
    bodies = [(kernel.body, limit)]
    if kernel.roles is not None:
        bodies = [(role.body, role.registers or limit) for role in kernel.roles.roles]
    return any(_all_tiles(body) > registers for body, registers in bodies)


def _all_tiles(body: tuple[Stmt, ...]) -> int:
    tiles = {stmt.buffer for stmt in walk(body) if isinstance(stmt, Alloc) and stmt.buffer.space == "register"}
    return sum(map(register_words, tiles))


def _sized(allocs: list[Alloc], size: Callable[[Buffer], int], unit: str) -> Related:
    return tuple((alloc, f"{size(alloc.buffer)} {unit}") for alloc in allocs)


def plans_shared_memory(kernel: Kernel) -> bool:
    """Whether shared memory is placed by a plan of ours, with barriers in it, and not by the compiler."""
    return "bulk" in kernel.target.queues


def shared_memory_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """I22 within each tensor; and of a planned block: tensors, gaps that align them, barriers, room to align all."""
    yield from distinct_address_obligations(kernel)
    chosen = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Alloc) and stmt.buffer.space == "shared"]
    if not plans_shared_memory(kernel) or not chosen:
        return
    chosen.sort(key=lambda alloc: -bytes_of(alloc.buffer))
    need, limit = shared_memory_plan(kernel)[1] + BASE_ALIGNMENT, kernel.target.shared_bytes
    yield Obligation(
        "I22",
        f"the kernel fits {limit} bytes of shared memory",
        chosen[0],
        algebra.TRUE if need <= limit else algebra.FALSE,
        witness=(("needs", ", ".join(f"{a.buffer.name} {bytes_of(a.buffer)}" for a in chosen)),),
        fault=f"`{kernel.name}` needs {need} bytes of shared memory with what aligns it, {kernel.target} has {limit}",
        related=partial(_sized, chosen[1:3], bytes_of, "bytes"),
        help="make the tiles smaller, use fewer stages, or reuse a buffer",
        given="nothing",
    )


_FILE = 65_536
_GRAIN = 8
_WIDEST = 256


def launch_registers(threads: int) -> int:
    """32-bit registers that each thread of a block of so many holds at first, if a processor has one such block.

    A compiler that meets a reallocation gives all of them what the file has for each, in whole grains [PTX ISA,
    setmaxnreg: the registers of the block are those of its launch].
    """
    return min(_WIDEST, _FILE // threads // _GRAIN * _GRAIN)


def role_register_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """I21: what the roles ask for is no more than what the block was launched with."""
    roles = kernel.roles
    asking = [] if roles is None else [role for role in roles.roles if role.registers is not None]
    if roles is None or not asking:
        return
    yield from (_holds(kernel, role, roles) for role in asking)
    width, first = kernel.target.unit, launch_registers(kernel.threads)
    left = kernel.threads - width * sum(role.warps for role in asking)
    needs = [(role.name, width * role.warps, role.registers or 0) for role in asking]
    needs += [("other warps", left, first)] if left else []
    need, have = sum(threads * held for _, threads, held in needs), kernel.threads * first
    largest = max(asking, key=lambda role: width * role.warps * (role.registers or 0))
    yield Obligation(
        "I21",
        f"the registers of the roles fit the {have} of the block",
        _asks(largest, roles),
        algebra.TRUE if need <= have else algebra.FALSE,
        witness=(
            ("needs", ", ".join(f"{name} {threads} x {held}" for name, threads, held in needs)),
            ("has", f"{kernel.threads} threads launched with {first} each"),
        ),
        fault=f"the roles of `{kernel.name}` hold {need} registers, the block has {have}: one waits for ever",
        related=partial(_asked, [role for role in asking if role is not largest], roles),
        help="give the roles fewer registers, in steps of 8: 24 and 240, or 40 and 232, for one warpgroup that loads "
        "and two that multiply",
        given="nothing",
    )


def _holds(kernel: Kernel, role: Role, roles: Roles) -> Obligation:
    """I21: a role's own tiles fit the registers that it asks for."""
    tiles = peak_live_tiles(evolve(kernel, prologue=role.body, roles=None, epilogue=()), register_words)
    need, have = sum(map(register_words, tiles)), role.registers or 0
    return Obligation(
        "I21",
        f"role `{role.name}` holds no more than its {have} registers a thread",
        _asks(role, roles),
        algebra.TRUE if need <= have else algebra.FALSE,
        witness=(("holds", ", ".join(f"{buffer.name} {register_words(buffer)}" for buffer in tiles)),),
        fault=f"the tiles of role `{role.name}` take {need} registers a thread, it asks for {have}",
        help="give the role more registers, or smaller tiles",
        given="nothing",
    )


def _asks(role: Role, roles: Roles) -> Stmt:
    """Where a role asks for its registers."""
    found = (stmt for stmt in role.body if isinstance(stmt, Policy) and stmt.name == "registers")
    return next(found, roles)


def _asked(others: list[Role], roles: Roles) -> Related:
    return tuple((_asks(role, roles), f"{role.registers} registers a thread") for role in others)


def stage_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """I18 of each swizzled buffer, at the first statement that takes one of its slots."""
    judged: set[Buffer] = set()
    for stmt in walk(kernel.body):
        for view in _staged_views(stmt):
            layout = view.buffer.layout
            if view.buffer in judged or not isinstance(layout, Staged) or layout.swizzle is None:
                continue
            judged.add(view.buffer)
            size, period = _stage(view, layout), layout.swizzle.period
            yield Obligation(
                "I18",
                f"stages of `{view.buffer.name}` are whole periods of its swizzle",
                stmt,
                algebra.TRUE if size % period == 0 else algebra.FALSE,
                witness=(("period", f"{period} elements"), ("stage", f"{size} elements")),
                fault=f"stages of `{view.buffer.name}` are not whole periods of its swizzle",
                help="make each stage a multiple of the swizzle's period",
                given="nothing",
            )


def _staged_views(stmt: Stmt) -> tuple[View, ...]:
    match stmt:
        case Copy(source=source, target=target):
            found = source, target
        case Mma(a=a, b=b):
            found = a, b
        case _:
            return ()
    return tuple(view for view in found if view.buffer.space == "shared")


def _stage(view: View, layout: Staged) -> int:
    """Elements from one slot to the next: the common divisor of the strides of the axes that a tile does not cover."""
    strides = layout.layout.stride if isinstance(layout.layout.stride, tuple) else (layout.layout.stride,)
    slots = [stride for at, stride in zip(view.at, strides, strict=True) if not mentions(at, (Coord,))]
    return gcd(*(stride for stride in slots if isinstance(stride, int)))


def _banks(kernel: Kernel, stmt: Copy, access: Access) -> Iterator[Obligation]:
    buffer = access.view.buffer
    if buffer.banks is None or access.places is None or not isinstance(buffer.layout, Staged):
        return
    what = f"`{stmt.atom}` on `{buffer.name}` has bank conflicts of degree {buffer.banks} at most"
    offsets = staged_offsets(access.view, access.places)
    row = kernel.target.banks * BANK_BYTES
    shifted = any(stride * buffer.dtype.bits // 8 % row for _, stride in symbolic_axes(access, access.places))
    if offsets is None or shifted or not stmt.atom.phases:
        moving = "a tile that moves inside one buffer, or slots that begin in different banks"
        reason = moving if stmt.atom.phases else f"`{stmt.atom}` has no phases in its table"
        yield Obligation("I33", what, stmt, algebra.FALSE, unknown=reason)
        return
    yield _judged(stmt, kernel, buffer, what, offsets)


def worst_copy_conflict(stmt: Copy, kernel: Kernel, buffer: Buffer, offsets: IntArray) -> Conflict:
    """The worst conflict of a copy whose elements lie at these offsets, shape (threads, values)."""
    size = buffer.dtype.bits // 8
    count = stmt.atom.vector_bits // buffer.dtype.bits
    addresses = by_wave(offsets[:, ::count] * size, kernel.target.unit)
    return worst_conflict(addresses, stmt.atom.phases, count * size, kernel.target.banks)


def _judged(stmt: Copy, kernel: Kernel, buffer: Buffer, what: str, offsets: IntArray) -> Obligation:
    assert buffer.banks is not None
    worst = worst_copy_conflict(stmt, kernel, buffer, offsets)
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
        (PhasedAccess(firsts.reshape(-1, kernel.target.unit), count, stmt.atom.phases),),
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
    offsets = np.zeros(axes[0].shape, np.int64)
    for at, mode in zip(view.at, axis_modes(layout.layout), strict=True):
        along = offsets_along(mode, np.asarray(evaluate(at, zero, axes), np.int64))
        offsets = offsets + (0 if along is None else along)
    return offsets
