"""Obligations on static resources: shared memory and registers (I22), registers of roles (I21), bank conflicts (I33).

For kernels whose accesses are not modelled, also stages that are not whole periods of their swizzle (I18).
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
from argus.core.memory.placement import BASE_ALIGNMENT, bytes_of, padded_bytes, shared_memory_plan
from argus.core.proof.dataflow.access import Access, Accesses
from argus.core.proof.dataflow.lifetimes import peak_live_tiles
from argus.core.proof.dataflow.timeline import Timeline
from argus.core.proof.limits.added_products import added_products_obligations
from argus.core.proof.limits.distinct_addresses import distinct_address_obligations
from argus.core.proof.limits.memory import axis_modes, offsets_along, staged_offsets, symbolic_axes
from argus.core.proof.obligation import Obligation, Related
from argus.core.walk import IntArray, evaluate, mentions, symbols


def register_words(buffer: Buffer) -> int:
    """32-bit registers per thread that a register tile needs."""
    assert isinstance(buffer.layout, TV)
    return -(-buffer.layout.values.size() * buffer.dtype.bits // 32)


def accumulation_words(buffer: Buffer) -> int:
    """32-bit accumulation registers per thread that a register tile needs; 0 if it is not in that file."""
    return register_words(buffer) if buffer.file == "accumulation" else 0


def budget_obligations(timeline: Timeline, accesses: Accesses) -> Iterator[Obligation]:
    """I22 and I40 for the kernel's storage, I33 for its copies; I18 if a construct of the kernel is not modelled."""
    allocs = [step.stmt for step in timeline.steps if isinstance(step.stmt, Alloc)]
    yield from _storage_obligations(timeline.kernel, allocs)
    yield from _accumulation_obligations(timeline.kernel, allocs)
    yield from added_products_obligations(timeline.kernel)
    if timeline.unmodelled:
        yield from stage_obligations(timeline.kernel)
    for step in timeline.steps:
        if isinstance(step.stmt, Copy):
            for access in accesses.of(step):
                if access.view.buffer.space == "shared":
                    yield from _bank_obligations(timeline.kernel, step.stmt, access)


def _storage_obligations(kernel: Kernel, allocs: list[Alloc]) -> Iterator[Obligation]:
    target, resident = kernel.target, kernel.resident
    for space, limit, unit, size in (
        ("shared", target.shared_of(resident), "bytes of shared memory", padded_bytes),
        ("register", target.registers_of(kernel.threads * resident), "registers a thread", register_words),
    ):
        stored = dict.fromkeys(a for a in allocs if a.buffer.space == space and a.count is None)
        chosen = sorted(stored, key=lambda a: -size(a.buffer))
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
            fault=f"`{kernel.name}` needs {need} {unit}, {target} has {limit}{_beside(kernel)}",
            related=partial(_sizes_of, chosen[1:3], size, unit),
            help="make the tiles smaller, use fewer stages, or reuse a buffer",
        )


def _accumulation_obligations(kernel: Kernel, allocs: list[Alloc]) -> Iterator[Obligation]:
    """I22 for accumulation registers, whose number per thread is a limit of its own."""
    limit = kernel.target.accumulation
    stored = dict.fromkeys(alloc for alloc in allocs if alloc.buffer.file == "accumulation")
    chosen = sorted(stored, key=lambda alloc: -accumulation_words(alloc.buffer))
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
        related=partial(_sizes_of, chosen[1:3], accumulation_words, "accumulation registers a thread"),
        help="make the tile smaller, share it among more waves, or let the compiler choose the registers of the sums",
    )


def _beside(kernel: Kernel) -> str:
    return "" if kernel.resident == 1 else f" for each of {kernel.resident} resident blocks"


def needs_register_reuse(kernel: Kernel) -> bool:
    """Whether the kernel fits only if tiles with disjoint lifetimes share registers."""
    limit = kernel.target.registers_of(kernel.threads * kernel.resident)
    bodies = [(kernel.body, limit)]
    if kernel.roles is not None:
        bodies = [(role.body, role.registers or limit) for role in kernel.roles.roles]
    return any(_total_tile_registers(body) > registers for body, registers in bodies)


def _total_tile_registers(body: tuple[Stmt, ...]) -> int:
    tiles = {stmt.buffer for stmt in walk(body) if isinstance(stmt, Alloc) and stmt.buffer.space == "register"}
    return sum(map(register_words, tiles))


def _sizes_of(allocs: list[Alloc], size: Callable[[Buffer], int], unit: str) -> Related:
    return tuple((alloc, f"{size(alloc.buffer)} {unit}") for alloc in allocs)


def plans_shared_memory(kernel: Kernel) -> bool:
    """Whether Argus, not the compiler, places tensors and barriers in shared memory."""
    return "bulk" in kernel.target.queues


def shared_memory_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """I22: distinct addresses within each tensor; if Argus places shared memory, also its size with barriers."""
    yield from distinct_address_obligations(kernel)
    chosen = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Alloc) and stmt.buffer.space == "shared"]
    if not plans_shared_memory(kernel) or not chosen:
        return
    chosen.sort(key=lambda alloc: -bytes_of(alloc.buffer))
    need, limit = shared_memory_plan(kernel)[1] + BASE_ALIGNMENT, kernel.target.shared_of(kernel.resident)
    yield Obligation(
        "I22",
        f"the kernel fits {limit} bytes of shared memory",
        chosen[0],
        algebra.TRUE if need <= limit else algebra.FALSE,
        witness=(("needs", ", ".join(f"{a.buffer.name} {bytes_of(a.buffer)}" for a in chosen)),),
        fault=f"`{kernel.name}` needs {need} bytes of shared memory with its padding, {kernel.target} has {limit}"
        + _beside(kernel),
        related=partial(_sizes_of, chosen[1:3], bytes_of, "bytes"),
        help="make the tiles smaller, use fewer stages, or reuse a buffer",
        premises="nothing",
    )


_REGISTER_FILE = 65_536
_ALLOCATION_UNIT = 8
_MAX_REGISTERS = 256


def launch_registers(threads: int) -> int:
    """32-bit registers per thread at launch of a block of `threads` threads that reallocates registers.

    The block is alone on its multiprocessor: a compiler that sees `setmaxnreg` divides the register file evenly, in
    whole allocation units [PTX ISA, setmaxnreg: the registers of the block are those of its launch].
    """
    return min(_MAX_REGISTERS, _REGISTER_FILE // threads // _ALLOCATION_UNIT * _ALLOCATION_UNIT)


def role_register_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """I21: the registers that the roles request do not exceed those with which the block is launched."""
    roles = kernel.roles
    requesting = [] if roles is None else [role for role in roles.roles if role.registers is not None]
    if roles is None or not requesting:
        return
    yield from (_role_tiles_obligation(kernel, role, roles) for role in requesting)
    width, first = kernel.target.unit, launch_registers(kernel.threads)
    left = kernel.threads - width * sum(role.warps for role in requesting)
    needs = [(role.name, width * role.warps, role.registers or 0) for role in requesting]
    needs += [("other warps", left, first)] if left else []
    need, have = sum(threads * registers for _, threads, registers in needs), kernel.threads * first
    largest = max(requesting, key=lambda role: width * role.warps * (role.registers or 0))
    yield Obligation(
        "I21",
        f"the registers of the roles fit the {have} of the block",
        _register_request(largest, roles),
        algebra.TRUE if need <= have else algebra.FALSE,
        witness=(
            ("needs", ", ".join(f"{name} {threads} x {registers}" for name, threads, registers in needs)),
            ("has", f"{kernel.threads} threads launched with {first} each"),
        ),
        fault=f"the roles of `{kernel.name}` request {need} registers, the block has {have}: one role waits for ever",
        related=partial(_other_requests, [role for role in requesting if role is not largest], roles),
        help="give the roles fewer registers, in steps of 8: 24 and 240, or 40 and 232, for one warpgroup that loads "
        "and two that multiply",
        premises="nothing",
    )


def _role_tiles_obligation(kernel: Kernel, role: Role, roles: Roles) -> Obligation:
    """I21: the live tiles of a role fit into the registers that it requests."""
    tiles = peak_live_tiles(evolve(kernel, prologue=role.body, roles=None, epilogue=()), register_words)
    need, have = sum(map(register_words, tiles)), role.registers or 0
    return Obligation(
        "I21",
        f"the tiles of role `{role.name}` fit into its {have} registers a thread",
        _register_request(role, roles),
        algebra.TRUE if need <= have else algebra.FALSE,
        witness=(("holds", ", ".join(f"{buffer.name} {register_words(buffer)}" for buffer in tiles)),),
        fault=f"the tiles of role `{role.name}` take {need} registers a thread, it requests {have}",
        help="give the role more registers, or smaller tiles",
        premises="nothing",
    )


def _register_request(role: Role, roles: Roles) -> Stmt:
    """The statement with which a role requests registers; the roles statement if there is none."""
    found = (stmt for stmt in role.body if isinstance(stmt, Policy) and stmt.name == "registers")
    return next(found, roles)


def _other_requests(others: list[Role], roles: Roles) -> Related:
    return tuple((_register_request(role, roles), f"{role.registers} registers a thread") for role in others)


def stage_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """I18 for each swizzled buffer, at the first statement that uses one of its slots."""
    seen: set[Buffer] = set()
    for stmt in walk(kernel.body):
        for view in _staged_views(stmt):
            layout = view.buffer.layout
            if view.buffer in seen or not isinstance(layout, Staged) or layout.swizzle is None:
                continue
            seen.add(view.buffer)
            size, period = _stage_elements(view, layout), layout.swizzle.period
            yield Obligation(
                "I18",
                f"stages of `{view.buffer.name}` are whole periods of its swizzle",
                stmt,
                algebra.TRUE if size % period == 0 else algebra.FALSE,
                witness=(("period", f"{period} elements"), ("stage", f"{size} elements")),
                fault=f"stages of `{view.buffer.name}` are not whole periods of its swizzle",
                help="make each stage a multiple of the swizzle's period",
                premises="nothing",
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


def _stage_elements(view: View, layout: Staged) -> int:
    """Elements from one slot to the next: the gcd of the strides of the axes that select a slot."""
    strides = layout.layout.stride if isinstance(layout.layout.stride, tuple) else (layout.layout.stride,)
    slots = [stride for at, stride in zip(view.at, strides, strict=True) if not mentions(at, (Coord,))]
    return gcd(*(stride for stride in slots if isinstance(stride, int)))


def _bank_obligations(kernel: Kernel, stmt: Copy, access: Access) -> Iterator[Obligation]:
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
    yield _bank_conflict_obligation(stmt, kernel, buffer, what, offsets)


def worst_copy_conflict(stmt: Copy, kernel: Kernel, buffer: Buffer, offsets: IntArray) -> Conflict:
    """The worst bank conflict of a copy. offsets: of its elements in shared memory, shape (threads, values)."""
    size = buffer.dtype.bits // 8
    count = stmt.atom.vector_bits // buffer.dtype.bits
    addresses = by_wave(offsets[:, ::count] * size, kernel.target.unit)
    return worst_conflict(addresses, stmt.atom.phases, count * size, kernel.target.banks)


def _bank_conflict_obligation(stmt: Copy, kernel: Kernel, buffer: Buffer, what: str, offsets: IntArray) -> Obligation:
    assert buffer.banks is not None
    worst = worst_copy_conflict(stmt, kernel, buffer, offsets)
    if worst.degree <= buffer.banks:
        return Obligation("I33", what, stmt, algebra.TRUE)
    better = _swizzle_within_degree(stmt, kernel, buffer)
    advice = (
        "" if better is None else f"; for this access `Swizzle({better.bits}, {better.base}, {better.shift})` suffices"
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


def _swizzle_within_degree(stmt: Copy, kernel: Kernel, buffer: Buffer) -> Swizzle | None:
    """The smallest swizzle of whole vectors with which the access stays within the declared degree, if any."""
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
