"""Statements of the language: storage, copies, matrix instructions, waits, barriers, policies."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from attrs import frozen

from argus.core import algebra
from argus.core.atom import Atom, Queue
from argus.core.dsl.atoms import choose
from argus.core.dsl.faults import described, fault
from argus.core.dsl.fragments import Fragment, check_dtype, check_layout, fresh
from argus.core.dsl.handles import Bool, IntLike, as_cond, extent, extents, number
from argus.core.dsl.place import leaves_early, user_frame
from argus.core.dsl.tracer import current, left_early
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.index import Const
from argus.core.ir import Alloc, Buffer, Copy, Fence, Mma, Policy, Reset, Staged, Sync, View, Wait, whole
from argus.core.layout import TV, Swizzle, row_major
from argus.core.tiling import TiledMma
from argus.core.tiling import spread as spread_layout
from argus.core.walk import show


def shared(dtype: DType, shape: tuple[int, ...], *, swizzle: Swizzle | None = None, banks: int | None = None) -> Tensor:
    """Shared memory of the block, row-major, uninitialised.

    swizzle permutes element offsets. banks declares the largest bank-conflict degree allowed (1: none).
    """
    tracer = current("shared")
    check_dtype(dtype)
    sizes = extents(shape, "`shared`")
    layout = row_major(sizes)
    if swizzle is not None and layout.size() % swizzle.period != 0:
        fault(
            "E211",
            f"{swizzle} permutes blocks of {swizzle.period} elements, which do not divide {layout.size()}",
            help="make the tile a multiple of the swizzle's period or choose a smaller swizzle",
        )
    name, span = tracer.name("shared"), tracer.span()
    shape_ = tuple(algebra.const(size) for size in sizes)
    degree = None if banks is None else extent(banks, "the degree of bank conflicts")
    buffer = Buffer(name, "shared", dtype, shape_, Staged(layout, swizzle), 1024, banks=degree, span=span)
    tracer.emit(Alloc(buffer, span=span))
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
    for side in (source, target):
        _check_place(side)
    _check_target(target)
    tv = _movers(source, target, by)
    _check_shapes(source.view, target.view, tv)
    atom = choose(tracer.target, source.view, target.view, tv, _instructions(via))
    tracer.emit(Copy(atom, source.view, target.view, tv, _outside(edge), span=tracer.span()))


def _check_place(side: Place) -> None:
    if not isinstance(side, Tensor | Fragment):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"expected a tensor or a register tile, found {described(side)}")


def _check_target(target: Place) -> None:
    if isinstance(target, Fragment) and not target.mutable:
        fault("E106", f"`{target.view.buffer.name}` is an immutable value", help="copy into `registers(...)`")


def _instructions(via: Via | None) -> tuple[Atom, ...] | None:
    if via is None:
        return None
    named = via if isinstance(via, tuple) else (via,)
    for atom in named:
        if not isinstance(atom, Atom):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
            fault("E106", f"`via` names instructions, found {described(atom)}", help="write `via=global_load`")
    return named


def _outside(edge: float | None) -> float | None:
    if edge is not None and not isinstance(edge, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`edge` is the number read outside the tensor, found {described(edge)}", help="write `edge=0`")
    return edge


def _movers(source: Place, target: Place, by: TV | None) -> TV:
    held = [side.layout for side in (source, target) if isinstance(side, Fragment)]
    if by is not None:
        check_layout(by)
        held.append(by)
    if not held:
        fault("E106", "a copy between memories says nowhere who moves what", help="give `by=spread(...)`")
    for layout in held[1:]:
        if layout != held[0]:
            fault(
                "E205",
                f"the copy's sides are held by different threads: {held[0]} and {layout}",
                help="give both sides one thread-value layout, or go through shared memory",
            )
    return held[0]


def _check_shapes(source: View, target: View, by: TV) -> None:
    shapes = [f"({', '.join(show(size) for size in view.shape)})" for view in (source, target)]
    if source.shape != target.shape:
        fault(
            "E203",
            f"a copy of shape {shapes[0]} into shape {shapes[1]}",
            here=f"`{source.buffer.name}` is {shapes[0]}, `{target.buffer.name}` is {shapes[1]}",
            help="take tiles of one shape on both sides",
        )
    symbolic = next((size for size in source.shape if not isinstance(size, Const)), None)
    if symbolic is not None:
        fault(
            "E209",
            f"a copy of the symbolic extent {show(symbolic)}",
            help="copy tiles of static shape: `.tile((rows, columns), ...)`",
        )
    if source.shape != tuple(algebra.const(size) for size in by.tile):
        fault(
            "E203",
            f"a copy of shape {shapes[0]} by a layout of the tile {by.tile}",
            help="give the views and the layout one shape",
        )


def load(view: Tensor, layout: TV, *, via: Via | None = None, edge: float | None = None) -> Fragment:
    """A new register value: the view's elements under a thread-value layout."""
    tracer = current("load")
    _check_place(view)
    value = fresh(view.dtype, layout, "load")
    _check_shapes(view.view, value.view, layout)
    atom = choose(tracer.target, view.view, value.view, layout, _instructions(via))
    tracer.emit(Copy(atom, view.view, value.view, layout, _outside(edge), span=tracer.span()))
    return value


@frozen
class MatrixInstruction:
    """An instruction that multiplies; `over` spreads it."""

    atom: Atom

    def over(self, *, waves: tuple[int, int], tile: tuple[int, int], k: int, k_run: int | None = None) -> TiledMma:
        """The instruction over waves (along m, n) and a tile (m, n, k); see `TiledMma`."""
        tv = self.atom.operands["a"].tv
        assert tv is not None
        across, covered = _pair(waves, "`waves`"), _pair(tile, "`tile`")
        run = tv.values.size() if k_run is None else extent(k_run, "`k_run`")
        try:
            return TiledMma(self.atom, across, covered, run, extent(k, "`k`"))
        except ValueError as problem:
            fault("E109", str(problem), help="choose tile extents that are whole multiples of the instruction's")


def _pair(values: tuple[IntLike, IntLike], what: str) -> tuple[int, int]:
    found = extents(values, what)
    if len(found) != 2:
        fault("E106", f"{what} is a pair, found {len(found)} integers", help="write `(rows, columns)`")
    return found[0], found[1]


def mfma(atom: Atom) -> MatrixInstruction:
    """The matrix instruction, to be spread with `.over(...)`."""
    if not isinstance(atom, Atom) or atom.mnk is None:  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`{atom}` is not a matrix instruction", help="write `mfma(mfma_f32_32x32x8_bf16)`")
    return MatrixInstruction(atom)


def mma(mm: TiledMma, acc: Fragment, a: Fragment, b: Fragment, *, init: Bool | bool = False) -> None:
    """acc = (init ? 0 : acc) + a b^T in place, register by register as the hardware does."""
    tracer = current("mma")
    if not isinstance(mm, TiledMma):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`mma` takes a tiled instruction, found {described(mm)}", help="write `mfma(...).over(...)`")
    for fragment in (acc, a, b):
        if not isinstance(fragment, Fragment):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
            fault(
                "E106",
                f"`mma` multiplies register tiles, found {described(fragment)}",
                help="copy into `registers(...)`",
            )
    _check_target(acc)
    for role, fragment in (("a", a), ("b", b), ("c", acc)):
        _check_operand(mm, role, fragment)
    tracer.emit(Mma(mm.atom, mm.tiling, acc.view, a.view, b.view, as_cond(init), span=tracer.span()))


def _check_operand(mm: TiledMma, role: str, fragment: Fragment) -> None:
    wanted = {"a": mm.A, "b": mm.B, "c": mm.C}[role]
    name = fragment.view.buffer.name
    if fragment.layout.values.size() != wanted.values.size() or fragment.layout.threads.size() != wanted.threads.size():
        fault(
            "E206",
            f"operand {role} of `{mm.atom}` wants {wanted.values.size()} registers in {wanted.threads.size()} threads, "
            f"`{name}` has {fragment.layout.values.size()} in {fragment.layout.threads.size()}",
            help=f"make `{name}` with the layout `mm.{role.upper()}`",
        )
    dtype = mm.atom.operands[role].dtype
    if dtype is not None and fragment.dtype != dtype:
        fault("E206", f"operand {role} of `{mm.atom}` is {dtype}, `{name}` is {fragment.dtype}", help="convert it")


def spread(tile: tuple[int, int], *, threads: int, vector: int) -> TV:
    """Threads over the rows of a tile, `vector` consecutive columns each."""
    covered, among, width = _pair(tile, "`tile`"), extent(threads, "`threads`"), extent(vector, "`vector`")
    try:
        return spread_layout(covered, among, width)
    except ValueError as problem:
        fault("E109", str(problem), help="change the tile, the threads or the vector so that they divide")


@frozen
class CompletionQueue:
    """A queue of asynchronous operations, in order; each statement is one entry."""

    queue: Queue

    def wait(self, pending: int = 0) -> None:
        """Until at most `pending` statements of this wave are outstanding, the youngest."""
        tracer = current(f"{self.queue}.wait")
        allowed = number(pending, "`pending`")
        if allowed < 0:
            fault("E106", f"a wait for {allowed} pending operations", help="`pending` counts from 0")
        if self.queue not in tracer.target.queues:
            known = ", ".join(tracer.target.queues)
            fault("E210", f"{tracer.target} has no queue `{self.queue}`", help=f"its queues are {known}")
        tracer.emit(Wait(self.queue, allowed, span=tracer.span()))


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
        fault("E106", f"{tracer.target} has no fence {kind!r}", help='write `fence("device")`')
    tracer.emit(Fence("device", span=tracer.span()))


def reset(tensor: Place) -> None:
    """The storage is uninitialised again, as far as tags go."""
    tracer = current("reset")
    _check_place(tensor)
    tracer.emit(Reset(tensor.view.buffer, span=tracer.span()))


@contextmanager
def priority(level: int) -> Generator[None]:
    """Waves in the body issue with this priority (0 to 3)."""
    tracer = current("priority")
    chosen = number(level, "a priority")
    if not 0 <= chosen <= 3:
        fault("E106", f"a priority of {chosen}", help="priorities are 0 to 3")
    span = tracer.span()
    tracer.emit(Policy("priority", (chosen,), span=span))
    yield
    frame = user_frame()
    if frame is not None and leaves_early(frame):
        left_early("priority", span)
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
