"""Statements of the language: storage, copies, matrix instructions, waits, barriers, policies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from argus.core import algebra
from argus.core.atom import Atom, Queue
from argus.core.dsl.atoms import choose
from argus.core.dsl.faults import fault
from argus.core.dsl.fragments import Fragment, fresh
from argus.core.dsl.handles import Bool, Int, as_cond
from argus.core.dsl.tracer import current
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.ir import Alloc, Buffer, Copy, Fence, Mma, Policy, Reset, Staged, Sync, View, Wait, whole
from argus.core.layout import TV, Swizzle, row_major
from argus.core.tiling import TiledMma
from argus.core.tiling import spread as spread_layout


def shared(dtype: DType, shape: tuple[int, ...], *, swizzle: Swizzle | None = None, banks: int | None = None) -> Tensor:
    """Shared memory of the block, row-major, uninitialised.

    swizzle permutes element offsets. banks declares the largest bank-conflict degree allowed (1: none).
    """
    tracer = current("shared")
    layout = row_major(tuple(int(extent) for extent in shape))
    if swizzle is not None and layout.size % swizzle.period != 0:
        fault(
            "E211",
            f"{swizzle} permutes blocks of {swizzle.period} elements, which do not divide {layout.size}",
            help="make the tile a multiple of the swizzle's period or choose a smaller swizzle",
        )
    extents = tuple(algebra.const(extent) for extent in shape)
    buffer = Buffer(
        tracer.name("shared"), "shared", dtype, extents, Staged(layout, swizzle), 1024, banks=banks, span=tracer.span()
    )
    tracer.emit(Alloc(buffer, span=tracer.span()))
    return Tensor(whole(buffer))


Place = Tensor | Fragment
Via = Atom | tuple[Atom, ...]


def copy(
    source: Place, target: Place, *, via: Via | None = None, by: TV | None = None, edge: float | None = None
) -> None:
    """Move a tile between registers and memory.

    via: an instruction, or several of which the widest that fits is taken. by: who moves what, where neither
    side is a register tile. edge: outside the source's tensor this value is read, outside the target's
    nothing is written; without it the copy must be in bounds.
    """
    tracer = current("copy")
    _check_target(target)
    tv = _movers(source, target, by)
    _check_shapes(source.view, target.view)
    atom = choose(tracer.target, source.view, target.view, tv, via)
    tracer.emit(Copy(atom, source.view, target.view, tv, edge, span=tracer.span()))


def _check_target(target: Place) -> None:
    if isinstance(target, Fragment) and not target.mutable:
        fault("E106", f"`{target.view.buffer.name}` is an immutable value", help="copy into `registers(...)`")


def _movers(source: Place, target: Place, by: TV | None) -> TV:
    held = [side.layout for side in (source, target) if isinstance(side, Fragment)]
    if by is not None:
        held.append(by)
    if not held:
        fault("E106", "a copy between memories says nowhere who moves what", help="give `by=spread(...)`")
    for layout in held[1:]:
        if layout != held[0]:
            fault("E205", f"the copy's sides are held by different threads: {held[0]} and {layout}")
    return held[0]


def _check_shapes(source: View, target: View) -> None:
    if source.shape != target.shape:
        shapes = [f"({', '.join(map(repr, (Int(e) for e in view.shape)))})" for view in (source, target)]
        fault(
            "E203",
            f"a copy of shape {shapes[0]} into shape {shapes[1]}",
            here=f"`{source.buffer.name}` is {shapes[0]}, `{target.buffer.name}` is {shapes[1]}",
            help="take tiles of one shape on both sides",
        )


def load(view: Tensor, layout: TV, *, via: Via | None = None, edge: float | None = None) -> Fragment:
    """A new register value: the view's elements under a thread-value layout."""
    value = fresh(view.dtype, layout, "load")
    tracer = current("load")
    _check_shapes(view.view, value.view)
    atom = choose(tracer.target, view.view, value.view, layout, via)
    tracer.emit(Copy(atom, view.view, value.view, layout, edge, span=tracer.span()))
    return value


@frozen
class MatrixInstruction:
    """An instruction that multiplies; `over` spreads it."""

    atom: Atom

    def over(self, *, waves: tuple[int, int], tile: tuple[int, int], k: int, k_run: int | None = None) -> TiledMma:
        """The instruction over waves (along m, n) and a tile (m, n, k); see `TiledMma`."""
        tv = self.atom.operands["a"].tv
        assert tv is not None
        try:
            return TiledMma(self.atom, waves, tile, k_run or tv.values.size, k)
        except ValueError as problem:
            fault("E109", str(problem), help="choose tile extents that are whole multiples of the instruction's")


def mfma(atom: Atom) -> MatrixInstruction:
    """The matrix instruction, to be spread with `.over(...)`."""
    if atom.mnk is None:
        fault("E106", f"`{atom}` is not a matrix instruction")
    return MatrixInstruction(atom)


def mma(mm: TiledMma, acc: Fragment, a: Fragment, b: Fragment, *, init: Bool | bool = False) -> None:
    """acc = (init ? 0 : acc) + a b^T in place, register by register as the hardware does."""
    tracer = current("mma")
    _check_target(acc)
    for role, fragment in (("a", a), ("b", b), ("c", acc)):
        _check_operand(mm, role, fragment)
    tracer.emit(Mma(mm.atom, mm.tiling, acc.view, a.view, b.view, as_cond(init), span=tracer.span()))


def _check_operand(mm: TiledMma, role: str, fragment: Fragment) -> None:
    wanted = {"a": mm.A, "b": mm.B, "c": mm.C}[role]
    name = fragment.view.buffer.name
    if fragment.layout.values.size != wanted.values.size or fragment.layout.threads.size != wanted.threads.size:
        fault(
            "E206",
            f"operand {role} of `{mm.atom}` wants {wanted.values.size} registers in {wanted.threads.size} threads, "
            f"`{name}` has {fragment.layout.values.size} in {fragment.layout.threads.size}",
            help=f"make `{name}` with the layout `mm.{role.upper()}`",
        )
    dtype = mm.atom.operands[role].dtype
    if dtype is not None and fragment.dtype != dtype:
        fault("E206", f"operand {role} of `{mm.atom}` is {dtype}, `{name}` is {fragment.dtype}", help="convert it")


def spread(tile: tuple[int, int], *, threads: int, vector: int) -> TV:
    """Threads over the rows of a tile, `vector` consecutive columns each."""
    try:
        return spread_layout(tile, threads, vector)
    except ValueError as problem:
        fault("E109", str(problem), help="change the tile, the threads or the vector so that they divide")


@frozen
class CompletionQueue:
    """A queue of asynchronous operations, in order; each statement is one entry."""

    queue: Queue

    def wait(self, pending: int = 0) -> None:
        """Until at most `pending` statements of this wave are outstanding, the youngest."""
        tracer = current(f"{self.queue}.wait")
        if pending < 0:
            fault("E106", f"a wait for {pending} pending operations", help="`pending` counts from 0")
        if self.queue not in tracer.target.queues:
            fault("E210", f"{tracer.target} has no queue `{self.queue}`")
        tracer.emit(Wait(self.queue, pending, span=tracer.span()))


vmem = CompletionQueue("vmem")
lds = CompletionQueue("lds")


def sync() -> None:
    """A barrier of the block: the n-th of every wave meets."""
    tracer = current("sync")
    tracer.emit(Sync(span=tracer.span()))


def fence(kind: str) -> None:
    """A memory fence."""
    tracer = current("fence")
    if kind != "device":
        fault("E106", f"{tracer.target} has no fence `{kind}`")
    tracer.emit(Fence("device", span=tracer.span()))


def reset(tensor: Place) -> None:
    """The storage is uninitialised again, as far as tags go."""
    tracer = current("reset")
    tracer.emit(Reset(tensor.view.buffer, span=tracer.span()))


@contextmanager
def priority(level: int) -> Iterator[None]:
    """Waves in the body issue with this priority (0 to 3)."""
    tracer = current("priority")
    tracer.emit(Policy("priority", (level,), span=tracer.span()))
    yield
    tracer.emit(Policy("priority", (0,), span=tracer.span()))


def sched_barrier() -> None:
    """The compiler moves nothing across."""
    tracer = current("sched_barrier")
    tracer.emit(Policy("sched_barrier", (0,), span=tracer.span()))


__all__ = [
    "CompletionQueue",
    "copy",
    "fence",
    "lds",
    "load",
    "mfma",
    "mma",
    "priority",
    "reset",
    "sched_barrier",
    "shared",
    "spread",
    "sync",
    "vmem",
]
