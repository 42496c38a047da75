"""Queues of asynchronous operations (`vmem`, `lds`, `bulk`, `cp_async`, `wgmma`) and matrix moves."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from attrs import field, frozen

from argus.core.atom import Atom, Queue
from argus.core.atoms.sm_90a import tma as sm_90a_tma
from argus.core.atoms.sm_90a import warp as sm_90a_warp
from argus.core.atoms.sm_90a import wgmma as sm_90a_wgmma
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import extent, number
from argus.core.dsl.source_location import leaves_early, user_frame
from argus.core.dsl.tiles.fragments import check_dtype
from argus.core.dsl.tracer import Tracer, current, early_exit_fault
from argus.core.dtype import DType
from argus.core.ir import Commit, Mma, Wait, walk
from argus.core.tiling import WarpgroupMma


@frozen
class CompletionQueue:
    """An in-order queue of asynchronous operations; each statement is one entry."""

    queue: Queue

    def _tracer(self, what: str) -> Tracer:
        tracer = current(f"{self.queue}.{what}")
        if self.queue not in tracer.target.queues:
            known = ", ".join(tracer.target.queues)
            fault("E210", f"{tracer.target} has no queue `{self.queue}`", help=f"its queues are {known}")
        return tracer

    def wait(self, pending: int = 0, *, of: Literal["reads", "all"] = "all") -> None:
        """Wait until at most the `pending` most recent entries are outstanding.

        An entry is a statement of this wave, warpgroup or thread, or a group that its `commit` closed. of: "reads"
        waits only until the sources have been read (queue `bulk`). Raises E106 or E210 for what the queue or target
        lacks.
        """
        tracer = current(f"{self.queue}.wait")
        allowed = number(pending, "`pending`")
        if allowed < 0:
            fault("E106", f"a wait for {allowed} pending operations", help="`pending` counts from 0")
        tracer = self._tracer("wait")
        if of not in ("reads", "all") or (of == "reads" and self.queue != "bulk"):
            fault("E106", f"`{self.queue}` has no wait for {of!r}", help='leave `of` out; `bulk` has `of="reads"`')
        tracer.emit(Wait(self.queue, allowed, of, span=tracer.span()))


@frozen
class GroupQueue(CompletionQueue):
    """A queue whose entries are groups: the operations issued since the last `commit`.

    atoms: the instructions among which a copy `via=` this queue chooses.
    """

    atoms: tuple[Atom, ...] = field(default=())

    def commit(self) -> None:
        """Close the group of operations that this thread has issued since the last commit: one entry."""
        tracer = self._tracer("commit")
        tracer.emit(Commit(self.queue, span=tracer.span()))


@frozen
class WarpgroupQueue(CompletionQueue):
    """`wgmma(...)` describes a product for `mma`; `wgmma.wait(...)` waits for issued products."""

    def __call__(
        self,
        dtype: DType,
        *,
        n: int,
        a: Literal["shared", "registers"] = "shared",
        b_major: Literal["k", "n"] = "k",
        k: int | None = None,
    ) -> WarpgroupMma:
        """The product of 64 rows of A with n rows of B.

        a: where A is read from; with registers, k is the extent of its fragment `.A`. b_major: "n" for a B of shape
        (k, n) in shared memory. Raises E108 if there is no such instruction, E109 for a k that it does not divide.
        """
        check_dtype(dtype)
        columns = extent(n, "`n`")
        if a not in ("shared", "registers") or b_major not in ("k", "n"):
            fault(
                "E106",
                f"A in {describe_value(a)}, B by {describe_value(b_major)}",
                help='write `a="registers"`, `b_major="n"`',
            )
        atom = sm_90a_wgmma.find(dtype, columns, a)
        if atom is None or (b_major == "n" and dtype.bits == 8):
            fault(
                "E108",
                f"no `wgmma` multiplies {dtype} with {columns} columns and B along {b_major}",
                help="bf16, f16 and e4m3, columns in steps of 8 up to 256; e4m3 along k only [PTX ISA]",
            )
        step = 256 // dtype.bits
        try:
            return WarpgroupMma(atom, b_major, step if k is None else extent(k, "`k`"))
        except ValueError as problem:
            fault("E109", str(problem), help=f"give a multiple of {step}")

    @contextmanager
    def group(self) -> Generator[None]:
        """Make the products of the body one entry of the queue: `wait(pending=1)` counts them as one.

        Raises E106 inside another group, E219 for a body without products.
        """
        tracer = self._tracer("group")
        if tracer.grouped:
            fault("E106", "a group of products inside another", help="end the first group before the next")
        scope, span = tracer.scopes[-1], tracer.span()
        start = len(scope.body)
        tracer.grouped = True
        yield
        tracer.grouped = False
        frame = user_frame()
        if tracer.scopes[-1] is not scope or (frame is not None and leaves_early(frame)):
            early_exit_fault("group", span)
        if not any(isinstance(stmt, Mma) for stmt in walk(tuple(scope.body[start:]))):
            fault("E219", "a group without products", span=span, help="put the products into `with wgmma.group():`")
        tracer.emit(Commit(self.queue, span=span))


@frozen
class MatrixMoves:
    """`stmatrix.x4`: the instructions that move four, two or one 8x8 matrices of 16-bit elements."""

    x4: Atom
    x4_trans: Atom
    x2: Atom
    x2_trans: Atom
    x1: Atom
    x1_trans: Atom


vmem = CompletionQueue("vmem")
lds = CompletionQueue("lds")
bulk = GroupQueue("bulk")
cp_async = GroupQueue("cp_async", sm_90a_warp.cp_async)
wgmma = WarpgroupQueue("wgmma")

bulk_copy = (sm_90a_tma.bulk_load_1d, sm_90a_tma.bulk_store_1d)
ldmatrix = MatrixMoves(*sm_90a_warp.LOADED)
stmatrix = MatrixMoves(*sm_90a_warp.STORED)
