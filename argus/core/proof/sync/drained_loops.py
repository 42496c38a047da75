"""Loops whose iterations leave nothing behind: each is a block of its own, as the values of another grid axis.

If an iteration ends with waits for all queues and then a barrier of the whole block, then whatever its threads issued
has taken effect before any of them begins the next one. What remains is the content of registers and LDS. In a block
that executes one iteration alone, these hold nothing: if such a block is correct, then it reads nothing there that it
has not written, and the iteration behaves as the block does. The order of the iterations is then one of the orders of
those blocks.
"""

from __future__ import annotations

from attrs import evolve

from argus.core import algebra
from argus.core.index import Const, Index, Symbol
from argus.core.ir import Alloc, Assert, Assume, For, Kernel, Policy, Stmt, Sync, Tag, Wait, trips, walk
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.proof.sync.roles.context import fresh_block_symbol


def iterations_as_blocks(kernel: Kernel) -> Kernel:
    """The kernel with the iterations of such a loop as a grid axis; the kernel itself if it has none.

    The loop has a constant number of iterations and contains a loop of symbolic length, nothing that copies or computes
    stands outside of it, and the target has no queues but those that waits name.
    """
    if kernel.roles is not None or kernel.epilogue or "lds" not in kernel.target.queues or _orders_blocks(kernel):
        return kernel
    loops = [stmt for stmt in kernel.prologue if isinstance(stmt, For)]
    if len(loops) != 1 or not all(isinstance(s, Alloc | Assert | Assume | For | Policy | Tag) for s in kernel.prologue):
        return kernel
    (loop,) = loops
    count = trips(loop)
    nested = any(isinstance(s, For) and not isinstance(trips(s), Const) for part in loop.body for s in walk((part,)))
    if not isinstance(count, Const) or count.value < 1 or not isinstance(loop.start, Const) or not nested:
        return kernel
    return _with_axis(kernel, loop, count.value) if _is_drained(kernel, loop.body) else kernel


def _orders_blocks(kernel: Kernel) -> bool:
    """Whether the kernel says in which order its blocks take the tiles of its grid."""
    return any(isinstance(stmt, Policy) and stmt.name == "remap_xcd" for stmt in walk(kernel.body))


def _is_drained(kernel: Kernel, body: tuple[Stmt, ...]) -> bool:
    """Whether a body ends with waits for everything on all queues, and then a barrier of the whole block."""
    *rest, last = body
    if not isinstance(last, Sync) or (last.barrier, last.how, last.threads) != ("cta", "meet", None):
        return False
    waited = set[str]()
    while rest and isinstance(rest[-1], Wait):
        wait = rest.pop()
        assert isinstance(wait, Wait)
        waited |= {wait.queue} if wait.pending == 0 and wait.of == "all" else set()
    return waited >= kernel.target.queues.keys()


def _with_axis(kernel: Kernel, loop: For, count: int) -> Kernel:
    number = fresh_block_symbol(kernel, "iteration", count - 1)
    names: dict[Symbol, Index] = {
        loop.symbol: algebra.add(loop.start, algebra.mul(algebra.sym(number), loop.step)),
    }
    body = tuple(
        each
        for stmt in kernel.prologue
        for each in ((rewrite_stmt(part, names) for part in loop.body) if stmt is loop else (stmt,))
    )
    return evolve(kernel, grid=(*kernel.grid, algebra.const(count)), blocks=(*kernel.blocks, number), prologue=body)
