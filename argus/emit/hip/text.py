"""A kernel as one self-contained HIP file for gfx942.

Statements keep their order; each follows a comment with its line in the user's program. `Tag` and `Assert` emit
nothing. Every wait of the program is emitted: LLVM adds waits before register uses and barriers, but the text does not
rely on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import assert_never

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import (
    ADVICE,
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
    Buffer,
    Commit,
    Copy,
    Edit,
    Fence,
    Fold,
    For,
    If,
    Kernel,
    Let,
    Map,
    Mma,
    One,
    Policy,
    PolicyName,
    Reset,
    Roles,
    Staged,
    Stmt,
    Sync,
    Tag,
    Wait,
    walk,
)
from argus.core.memory.placement import alignment, padded_bytes
from argus.emit.address import size_in_bytes
from argus.emit.copies import copy_lines
from argus.emit.elements import CHOSEN, chooses_registers, map_lines
from argus.emit.emitted_lines import statements_of_lines
from argus.emit.faults import emitted_at, not_built
from argus.emit.fold_text import fold_lines
from argus.emit.fp8 import CONVERSIONS, CONVERSIONS_FNUZ, converts_fp8, converts_to_fnuz
from argus.emit.functions import function_texts
from argus.emit.guards import guard_text
from argus.emit.hip.accumulation import ACCUMULATION, move_to_agprs, reserve_agprs, uses_agprs
from argus.emit.hip.direct import DIRECT, direct_lines, uses_direct_loads
from argus.emit.hip.holding import Held, held_products
from argus.emit.hip.intervals import Boundary
from argus.emit.hip.lanes import LANES, reads_lanes
from argus.emit.hip.mma import INTEGERS, accumulator_type, mma_lines, multiplies_integers
from argus.emit.hip.prelude import PRELUDE, loosened
from argus.emit.hip.recompute import OPAQUE, recomputing, with_own_thread
from argus.emit.hip.reductions import REDUCTIONS, uses_reductions
from argus.emit.hip.skipped import SKIPPED, skips_ones, unless_ones
from argus.emit.hip.tile_order import AXES, REMAP, REMAPPED, block_coordinates, xcd_remap
from argus.emit.hip.unwritten import UNWRITTEN, unwritten
from argus.emit.hip.waits import wait_counts, wait_immediate
from argus.emit.names import assign_names
from argus.emit.scope import Scope, c_type, described_buffers, layout_of, scope_of
from argus.emit.shuffles import is_shuffle, shuffle_lines

_POLICIES: Mapping[PolicyName, str] = {
    "priority": "__builtin_amdgcn_s_setprio({});",
    "sched_barrier": "__builtin_amdgcn_sched_barrier({});",
    "sched_group_barrier": "__builtin_amdgcn_sched_group_barrier({}, {}, 0);",
}
FREE: PolicyName = "free_order"
_OF_OTHERS = (REMAPPED, "skip_one", FREE)
"""Advice that changes the text of another statement, or which text is taken."""


def compiled_texts(kernel: Kernel) -> tuple[str, ...]:
    """The texts that a build compiles until one spills no registers. Raises as `hip_text` does."""
    texts = hip_texts(kernel)
    return tuple(dict.fromkeys((*texts, *map(loosened, texts))))


def is_free(kernel: Kernel) -> bool:
    """Whether the first text leaves the order to the compiler: it is taken only if everything stays in its place."""
    return any(isinstance(stmt, Policy) and stmt.name == FREE for stmt in kernel.body)


@lru_cache(maxsize=32)
def hip_texts(kernel: Kernel) -> tuple[str, ...]:
    """The texts that a build chooses from, the preferred one first, each with the guards of data contracts.

    Of those that `loosened` makes of them, which differ in the prelude alone, there is one of a kernel that `is_free`:
    the first. Raises as `hip_text` does.
    """
    guards = guard_text(kernel, assign_names(kernel))
    held = tuple(dict.fromkeys(hip_text(kernel, recompute=anew) + guards for anew in (False, True)))
    return (loosened(held[0]), *held) if is_free(kernel) else held


def hip_statements(kernel: Kernel, text: str) -> tuple[Stmt | None, ...]:
    """The innermost statement that emitted each line of one of `compiled_texts`; None for lines of no statement."""
    first = hip_texts(kernel)[0]
    recompute = loosened(text) != loosened(first)
    found = statements_of_lines(kernel, lambda mark: hip_text(kernel, recompute=recompute, mark=mark))
    return found + (None,) * (text.count("\n") + 1 - len(found))


def hip_text(kernel: Kernel, *, recompute: bool = False, mark: Callable[[Stmt], str] | None = None) -> str:
    """Emit the file, without guards. Tags and assertions do not change the text.

    recompute: whether copies in loops and behind them compute their addresses anew. mark: what the comment ahead of a
    statement says, one line; by default FILE:LINE of the user's program.
    Raises ArgusError: E301 for a target other than gfx942, E501 for a construct without an emitted form.
    """
    if kernel.target.name != "gfx942":
        message = f"no HIP text for the target `{kernel.target}`: expected `gfx942`"
        raise ArgusError(Diagnostic("E301", "error", message, kernel=kernel.name))
    if len(kernel.blocks) > len(AXES) or kernel.cluster != (1,):
        raise not_built("a grid of more than three axes, or a cluster", kernel.span, kernel.name)
    scope = scope_of(kernel)
    held = held_products(kernel, scope)
    writer = _Writer(
        scope, wait_counts(kernel, scope), kernel.target.unit, recompute, held, mark or source_line, _changed(kernel)
    )
    lines = [*_heading(kernel, scope), *(f"    {line}" for line in _locals(kernel, scope))]
    lines += [f"    {line}" for line in writer.body(kernel.body)]
    parts = (
        (PRELUDE, True),
        (INTEGERS, multiplies_integers(kernel)),
        (REMAP, xcd_remap(kernel) is not None),
        (DIRECT, uses_direct_loads(kernel)),
        (CONVERSIONS, converts_fp8(kernel)),
        (CONVERSIONS_FNUZ, converts_to_fnuz(kernel)),
        (REDUCTIONS, uses_reductions(kernel)),
        (LANES, reads_lanes(kernel)),
        (ACCUMULATION, uses_agprs(kernel)),
        (CHOSEN, chooses_registers(lines)),
        (SKIPPED, skips_ones(lines)),
        (OPAQUE, any("= opaque(" in line for line in lines)),
        (UNWRITTEN, bool(unwritten(kernel))),
    )
    head = [*(part for part, used in parts if used), *function_texts("gfx942", lines)]
    return "\n".join([f"// {kernel.name} for {kernel.target}, emitted by Argus.", *head, *lines, "}", ""])


def _heading(kernel: Kernel, scope: Scope) -> Iterator[str]:
    """The signature: tensors, then sizes."""
    names = scope.names
    written = {view.target.buffer for view in _copies(kernel.body)}
    apart = set(unwritten(kernel))
    kinds = {b: "const UNWRITTEN " if b in apart else "" if b in written else "const " for b in kernel.parameters}
    tensors = [f"{kinds[b]}{c_type(b.dtype)}* {_alone(b)}{names.buffers[b]}" for b in kernel.parameters]
    sizes = [f"int {names.symbols[size]}" for size in kernel.sizes]
    waves = max(1, kernel.threads * kernel.resident // (4 * kernel.target.unit))
    yield f'extern "C" __global__ THREADS({kernel.threads}, {waves})'
    yield f"void {names.kernel}({', '.join([*tensors, *sizes])}) {{"


def _alone(tensor: Buffer) -> str:
    """For integers with a data contract, which no kernel writes (E220)."""
    return "" if tensor.promise is algebra.TRUE else "__restrict__ "


def _copies(body: tuple[Stmt, ...]) -> Iterator[Copy]:
    return (stmt for stmt in walk(body) if isinstance(stmt, Copy))


def _locals(kernel: Kernel, scope: Scope) -> Iterator[str]:
    names = scope.names
    thread = names.symbols[kernel.thread]
    yield from reserve_agprs(kernel)
    yield f"const int {thread} = __builtin_amdgcn_workitem_id_x();"
    yield f"const int wave = __builtin_amdgcn_readfirstlane({thread} / {kernel.target.unit});"
    yield from block_coordinates(kernel, scope.text)
    for buffer in described_buffers(kernel):
        name = names.buffers[buffer]
        yield f"const __amdgpu_buffer_rsrc_t {name}_buffer = descriptor({name}, {size_in_bytes(buffer, scope.text)});"


def _changed(kernel: Kernel) -> frozenset[Buffer]:
    """The registers whose elements maps in loops assign."""
    loops = (stmt for stmt in walk(kernel.body) if isinstance(stmt, For))
    return frozenset(each.target.buffer for loop in loops for each in walk(loop.body) if isinstance(each, Map))


@frozen
class _Writer:
    """changed: registers that maps in loops assign. looped: whether a loop encloses or precedes the statement."""

    scope: Scope
    waits: Mapping[Wait, int]
    unit: int
    recompute: bool
    held: Mapping[Boundary, Held]
    mark: Callable[[Stmt], str]
    changed: frozenset[Buffer]
    looped: bool = False

    def body(self, body: tuple[Stmt, ...]) -> Iterator[str]:
        writer = self
        for before, stmt in zip((None, *body), body, strict=False):
            with emitted_at(stmt.span):
                lines = [] if isinstance(stmt, Policy) and stmt.name in _OF_OTHERS else writer._stmt(stmt)
                if isinstance(stmt, Map) and isinstance(before, Policy) and before.name == "skip_one":
                    lines = unless_ones(stmt, lines, self.scope)
            if lines:
                yield f"// {self.mark(stmt)}"
                yield from lines
            if any(isinstance(each, For) for each in walk((stmt,))):
                writer = evolve(self, looped=True)

    def _stmt(self, stmt: Stmt) -> list[str]:
        match stmt:
            case Tag() | Assert() | Assume() | Reset():
                return []
            case Alloc(buffer=buffer):
                return [self._allocation(buffer, stmt)]
            case Copy() if is_shuffle(stmt):
                return shuffle_lines(stmt, self.scope, stmt.atom.unit)
            case Copy():
                lines = direct_lines if stmt.atom.direct else copy_lines
                if not (self.recompute and self.looped):
                    return lines(stmt, self.scope)
                return with_own_thread(lines(stmt, recomputing(self.scope)), self.scope)
            case Map():
                return [*map_lines(stmt, self.scope), *move_to_agprs(stmt.target.buffer, self.scope, stmt.span)]
            case Mma():
                return mma_lines(stmt, self.scope, written_out=stmt.target.buffer in self.changed)
            case Wait():
                return self._held(stmt, self._wait(stmt))
            case Sync():
                return self._held(stmt, _sync(stmt))
            case Policy():
                return [_policy(stmt)]
            case For():
                return self._for(stmt)
            case If():
                return self._if(stmt)
            case Fold():
                moved = move_to_agprs(stmt.target.buffer, self.scope, stmt.span)
                return [*fold_lines(stmt, self.scope, self.unit), *moved]
            case One(body=body):
                return [f"if ({self.scope.names.symbols[self.scope.thread]} == 0) {{", *self._inner(body), "}"]
            case Let() | Arrive() | Await() | Commit() | Fence() | Edit() | Advance() | Roles():
                raise not_built(f"the statement `{type(stmt).__name__}`", stmt.span)
            case _:
                assert_never(stmt)

    def _allocation(self, buffer: Buffer, stmt: Alloc) -> str:
        name = self.scope.names.buffers[buffer]
        if buffer.space == "shared" and isinstance(buffer.layout, Staged):
            count = padded_bytes(buffer) * 8 // buffer.dtype.bits
            return f"alignas({alignment(buffer)}) __shared__ {c_type(buffer.dtype)} {name}[{count}];"
        if buffer.space != "register":
            raise not_built(f"storage in `{buffer.space}`", stmt.span)
        values = layout_of(buffer).values.size()
        width = self.scope.accumulators.get(buffer)
        if width is not None:
            return f"{accumulator_type(buffer, width)} {name}[{values // width}];"
        return f"alignas(16) {c_type(buffer.dtype)} {name}[{values}];"

    def _held(self, stmt: Boundary, line: str) -> list[str]:
        around = self.held[stmt]
        return [*around.ahead, line, *around.behind]

    def _wait(self, stmt: Wait) -> str:
        if stmt.of != "all":
            raise not_built("a wait for reads only", stmt.span)
        count = self.waits[stmt]
        immediate = wait_immediate(stmt.queue, count)
        counter = "vmcnt" if stmt.queue == "vmem" else "lgkmcnt"
        return f"wait<0x{immediate:04X}>();  // {counter}({count})"

    def _for(self, stmt: For) -> list[str]:
        name = self.scope.names.symbols[stmt.symbol]
        start, stop = self.scope.text.index(stmt.start), self.scope.text.index(stmt.stop)
        step = f"++{name}" if stmt.step == 1 else f"{name} += {stmt.step}"
        head = f"for (int {name} = {start}; {name} {'<' if stmt.step > 0 else '>'} {stop}; {step}) {{"
        unroll = [] if stmt.unroll is None else [f"#pragma unroll {stmt.unroll}"]
        return [*unroll, head, *evolve(self, looped=True)._inner(stmt.body), "}"]

    def _if(self, stmt: If) -> list[str]:
        lines = [f"if ({self.scope.text.cond(stmt.cond)}) {{", *self._inner(stmt.then)]
        if stmt.otherwise:
            lines += ["} else {", *self._inner(stmt.otherwise)]
        return [*lines, "}"]

    def _inner(self, body: tuple[Stmt, ...]) -> list[str]:
        return [f"    {line}" for line in self.body(body)]


def source_line(stmt: Stmt) -> str:
    """FILE:LINE of a statement in the user's program."""
    frame = stmt.span.frame
    return "no source" if frame is None else f"{PurePath(frame.file).name}:{frame.line}"


def _sync(stmt: Sync) -> str:
    if stmt.barrier != "cta" or stmt.how != "meet" or stmt.threads is not None:
        raise not_built("a barrier for part of the block", stmt.span)
    return "meet();"


def _policy(stmt: Policy) -> str:
    builtin = _POLICIES.get(stmt.name)
    if builtin is None or len(stmt.args) != ADVICE[stmt.name]:
        raise not_built(f"the policy `{stmt.name}` with {len(stmt.args)} arguments", stmt.span)
    return builtin.format(*stmt.args)
