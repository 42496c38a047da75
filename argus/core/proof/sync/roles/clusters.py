"""Kernels whose blocks run in clusters: what the blocks of one do to each other, and what each owes the others.

All blocks run one program, in which the rank is a symbol. A cluster's protocol is that of all its blocks: a ring and
the roles of each, where a multicast is a copy into the ring of each receiver, and an arrival at another block's barrier
gives back a slot of that block's ring. Source: proof-methods 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.check.parts import expressions
from argus.core.index import Cond, Const, Index, Node, Sym, Symbol
from argus.core.ir import Advance, Arrive, Await, Copy, Fence, For, If, Kernel, Roles, Stmt, Sync, View, walk
from argus.core.ir.rewrite import in_stmt
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import block_of_its_own, refuse
from argus.core.proof.sync.roles.events import reached
from argus.core.proof.sync.roles.parsed import Parsed, Storage
from argus.core.proof.sync.roles.prologue_epilogue import Placed
from argus.core.protocol.ring import Copy as Copied
from argus.core.protocol.ring import Meet, Op, Release, Ring, Role, WaitGroups
from argus.core.walk import substitute, symbols


def rank_of(kernel: Kernel) -> Symbol:
    """The symbol that is the block's rank. Raises RefusedError where the rank is part of an axis of the grid."""
    rank = kernel.rank
    if not isinstance(rank, Sym):
        refuse(kernel.body[0], "a rank that is no axis of the grid of its own")
    return rank.symbol


def ranked(kernel: Kernel) -> Kernel:
    """The kernel with the rank as an axis of its grid. Raises RefusedError for clusters along several axes."""
    if isinstance(kernel.rank, Sym):
        return kernel
    wide = [axis for axis, size in enumerate(kernel.cluster) if size > 1]
    if len(wide) != 1:
        refuse(kernel.body[0], "clusters along several axes of the grid")
    at, size = wide[0], kernel.peers
    block, count = kernel.blocks[at], algebra.floordiv(kernel.grid[at], size)
    rank, group = block_of_its_own(kernel, "rank", size - 1), block_of_its_own(kernel, f"{block.name}_group")
    names: dict[Symbol, Index] = {block: algebra.add(algebra.mul(algebra.sym(group), size), algebra.sym(rank))}
    roles = None if kernel.roles is None else in_stmt(kernel.roles, names)
    assert roles is None or isinstance(roles, Roles)
    return evolve(
        kernel,
        grid=(*kernel.grid[:at], algebra.const(size), count, *kernel.grid[at + 1 :]),
        blocks=(*kernel.blocks[:at], rank, group, *kernel.blocks[at + 1 :]),
        cluster=(*(1 for _ in range(at)), size),
        prologue=tuple(in_stmt(stmt, names) for stmt in kernel.prologue),
        roles=roles,
        epilogue=tuple(in_stmt(stmt, names) for stmt in kernel.epilogue),
    )


def judge_ranks(kernel: Kernel, role: Parsed) -> None:
    """Raises RefusedError unless blocks of a cluster run the same trips and barriers; data may depend on the rank."""
    rank = rank_of(kernel)
    for stmt in walk(role.laps_body):
        if isinstance(stmt, For | If | Await | Advance | Arrive) and any(
            rank in symbols(node) for node in _control(stmt)
        ):
            refuse(stmt, "what a role does to barriers depends on the block's rank")
    tiles = role.laps.tiles
    if tiles is None or tiles.symbol not in symbols(role.per_tile):
        return
    # What lap of which tile is the same for all blocks where they count laps alike.
    if rank in symbols(role.per_tile) or symbols(tiles.start, tiles.stop) & frozenset(kernel.blocks):
        refuse(role.loop, "numbers of uses that the tile decides, in a cluster")


def _control(stmt: Stmt) -> tuple[Node, ...]:
    return (*stmt.event.at, stmt.bytes) if isinstance(stmt, Arrive) else tuple(expressions(stmt))


def mask_of(kernel: Kernel, copy: Copy, rank: int) -> int:
    """The receivers of what the block of this rank sends, a bit each. Raises RefusedError for no number."""
    if copy.peers is None:
        return 1 << rank
    found = substitute(copy.peers, {rank_of(kernel): algebra.const(rank)})
    if not isinstance(found, Const):
        refuse(copy, "a multicast whose receivers are no numbers")
    return found.value


def sent_by(kernel: Kernel, copy: Copy, rank: int) -> Copy:
    """The copy as the block of this rank issues it."""
    made = in_stmt(copy, {rank_of(kernel): algebra.const(rank)})
    assert isinstance(made, Copy)
    return made


def landed(kernel: Kernel, copy: Copy) -> tuple[Copy, ...]:
    """The copies that land in a block's slot for one statement: its own, or what each block of the cluster sends.

    Raises RefusedError where not all blocks send to all.
    """
    if copy.peers is None:
        return (copy,)
    ranks = range(kernel.peers)
    if any(mask_of(kernel, copy, rank) != (1 << kernel.peers) - 1 for rank in ranks):
        refuse(copy, "a multicast that not every block of the cluster sends to all")
    return tuple(evolve(sent_by(kernel, copy, rank), peers=None) for rank in ranks)


# -- the protocol of all blocks ----------------------------------------------------------------------------------


def of_cluster(
    kernel: Kernel,
    rings: Sequence[Storage],
    sizes: Sequence[Ring],
    roles: Sequence[Role],
    placed: Sequence[tuple[Placed, ...]],
) -> tuple[tuple[Ring, ...], list[Role], list[tuple[Placed, ...]]]:
    """Rings, roles and their operations of each block, by rank: of rank 0 as they are without a cluster."""
    made: list[Role] = []
    ops: list[tuple[Placed, ...]] = []
    ranks = range(kernel.peers)
    for ring in rings:
        if ring.once:
            refuse(ring.copies[0], "a ring of which a tile is one use, in a cluster")
    for rank in ranks:
        for role, own in zip(roles, placed, strict=True):
            if role.share[1] > 1:
                refuse(own[0].stmt, "agents that share out the tiles, in a cluster")
            body = tuple(op for each in own for op in _ops(kernel, rings, each, rank))
            name = role.name if rank == 0 else f"{role.name} of rank {rank}"
            made.append(evolve(role, name=name, body=body))
            ops.append(own)
    wide = tuple(
        evolve(size, parts=tuple(part for at, part in enumerate(size.parts) for _ in _senders(kernel, ring, at)))
        for ring, size in zip(rings, sizes, strict=True)
    )
    return wide * kernel.peers, made, ops


def _senders(kernel: Kernel, ring: Storage, copy: int) -> range:
    return range(1 if ring.copies[copy].peers is None else kernel.peers)


def _ops(kernel: Kernel, rings: Sequence[Storage], each: Placed, rank: int) -> Iterator[Op]:
    """An operation as the block of this rank does it, on rings numbered over all blocks."""
    op = each.op
    match op:
        case WaitGroups() | Meet():
            yield op
        case Copied():
            assert isinstance(each.stmt, Copy)
            ring = rings[op.ring]
            before = sum(len(_senders(kernel, ring, at)) for at in range(op.part))
            part = before if each.stmt.peers is None else before + rank
            mask = mask_of(kernel, each.stmt, rank)
            for to in range(kernel.peers):
                if mask >> to & 1:
                    yield evolve(op, ring=to * len(rings) + op.ring, part=part)
        case _:
            peer = reached(each.stmt)
            to = rank if peer is None else _number(each.stmt, substitute(peer, {rank_of(kernel): algebra.const(rank)}))
            if not 0 <= to < kernel.peers:
                refuse(each.stmt, "an arrival at the barrier of a block that the cluster does not have")
            if to != rank and not isinstance(op, Release):
                refuse(each.stmt, "another block's barrier is used by more than giving back a slot")
            yield evolve(op, ring=to * len(rings) + op.ring)


def _number(stmt: Stmt, node: Index) -> int:
    if not isinstance(node, Const):
        refuse(stmt, "an arrival at the barrier of a block whose rank is no number")
    return node.value


# -- what blocks owe each other ------------------------------------------------------------------------------------


def obligations(kernel: Kernel, rings: Sequence[Storage], *, finishes: bool) -> Iterator[Obligation]:
    """I15 and I16. finishes: who fills waits at the end until every slot has been given back."""
    yield from _left(kernel, finishes=finishes)
    for ring in rings:
        for copy in ring.copies:
            if copy.peers is not None:
                yield _agreed(kernel, copy)
                yield from _shared(kernel, copy)


def _left(kernel: Kernel, *, finishes: bool) -> Iterator[Obligation]:
    """I15: copies into a block are waited for by who drains them; arrivals at it, by who fills or by all at the end."""
    stmts = [stmt for stmt in walk(kernel.body) if reached(stmt) is not None]
    good = finishes or meets(kernel.epilogue)
    for stmt in stmts:
        yield Obligation(
            "I15",
            "a block ends after the last arrival of another at its barriers",
            stmt,
            algebra.TRUE if good else algebra.FALSE,
            fault="a block may end before another arrives at its barriers",
            help="let the role that fills end with `ring.finish()`, or all of it with `cluster.sync()` after them",
        )
    if not stmts:
        yield Obligation(
            "I15", "no block reaches another's barriers but by copies waited for", kernel.body[0], algebra.TRUE
        )


def meets(body: Sequence[Stmt]) -> bool:
    """Whether the whole cluster meets there: at once, or in two halves."""
    arrived = False
    for stmt in body:
        if isinstance(stmt, Sync) and stmt.barrier == "cluster":
            if stmt.how == "meet" or (stmt.how == "wait" and arrived):
                return True
            arrived = stmt.how == "arrive"
    return False


def known(prologue: Sequence[Stmt]) -> bool:
    """I14: whether a fence of the barriers' initialisation is followed by a meeting of the whole cluster."""
    fence = next((p for p, s in enumerate(prologue) if isinstance(s, Fence) and s.kind == "barrier_init"), None)
    return fence is not None and meets(prologue[fence:])


def _agreed(kernel: Kernel, copy: Copy) -> Obligation:
    """I16, the mask: what each block sends, it sends to all."""
    masks = [mask_of(kernel, copy, rank) for rank in range(kernel.peers)]
    good = set(masks) == {(1 << kernel.peers) - 1}
    what = f"every block multicasts `{copy.source.buffer.name}` to all of the cluster"
    return Obligation(
        "I16", what, copy, algebra.TRUE if good else algebra.FALSE, help="name the same ranks in all blocks"
    )


def _shared(kernel: Kernel, copy: Copy) -> Iterator[Obligation]:
    """I16, the tile: parts that different blocks send are of one tile, which lies at one place of the tensor."""
    first = _place(sent_by(kernel, copy, 0))
    for rank in range(1, kernel.peers):
        pairs = zip(first, _place(sent_by(kernel, copy, rank)), strict=True)
        same: Cond = algebra.all_of(algebra.eq(one, other) for one, other in pairs)
        what = f"ranks 0 and {rank} multicast parts of one tile of `{copy.source.buffer.name}`"
        help_ = "multicast an operand that the tiles of all blocks of the cluster share"
        yield Obligation("I16", what, copy, same, help=help_)


def _place(copy: Copy) -> tuple[Index, ...]:
    """Where the tensor's element lies that comes to the first of the whole tile in shared memory."""
    axes = len(copy.source.shape)
    source, target = _corner(copy.source), _corner(copy.target)
    moved = (algebra.sub(a, b) for a, b in zip(source[-axes:], target[-axes:], strict=True))
    return (*source[:-axes], *moved)


def _corner(view: View) -> tuple[Index, ...]:
    zeros = (algebra.const(0),) * len(view.shape)
    return tuple(substitute(at, {}, zeros) for at in view.at)
