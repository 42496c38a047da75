"""Thread block clusters: the ring protocol of all blocks of a cluster, and the obligations between them (I15, I16).

All blocks run one program, in which the rank is a symbol. A cluster's protocol has the rings and the roles of each of
its blocks, where a multicast is a copy into the ring of each receiver, and an arrival at another block's barrier
releases a stage of that block's ring. Source: proof-methods 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.check.parts import expressions
from argus.core.index import Cond, Const, Index, Node, Sym, Symbol
from argus.core.ir import Advance, Arrive, Await, Copy, Fence, For, If, Kernel, Roles, Stmt, Sync, View, walk
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import fresh_block_symbol, refuse
from argus.core.proof.sync.roles.events import arrival_peer
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage
from argus.core.proof.sync.roles.prologue_epilogue import PlacedOp
from argus.core.protocol.ring import Copy as Copied
from argus.core.protocol.ring import NamedBarrierOp, Op, Release, Ring, Role, WaitGroups
from argus.core.walk import substitute, symbols


def rank_of(kernel: Kernel) -> Symbol:
    """The symbol of the block's rank. Raises RefusedError where the rank is only part of a grid axis."""
    rank = kernel.rank
    if not isinstance(rank, Sym):
        refuse(kernel.body[0], "a rank that is not a grid axis of its own")
    return rank.symbol


def with_rank_axis(kernel: Kernel) -> Kernel:
    """The kernel with the rank as a grid axis. Raises RefusedError for clusters along several axes."""
    if isinstance(kernel.rank, Sym):
        return kernel
    wide = [axis for axis, size in enumerate(kernel.cluster) if size > 1]
    if len(wide) != 1:
        refuse(kernel.body[0], "clusters along several axes of the grid")
    at, size = wide[0], kernel.peers
    block, count = kernel.blocks[at], algebra.floordiv(kernel.grid[at], size)
    rank, group = fresh_block_symbol(kernel, "rank", size - 1), fresh_block_symbol(kernel, f"{block.name}_group")
    names: dict[Symbol, Index] = {block: algebra.add(algebra.mul(algebra.sym(group), size), algebra.sym(rank))}
    roles = None if kernel.roles is None else rewrite_stmt(kernel.roles, names)
    assert roles is None or isinstance(roles, Roles)
    return evolve(
        kernel,
        grid=(*kernel.grid[:at], algebra.const(size), count, *kernel.grid[at + 1 :]),
        blocks=(*kernel.blocks[:at], rank, group, *kernel.blocks[at + 1 :]),
        cluster=(*(1 for _ in range(at)), size),
        prologue=tuple(rewrite_stmt(stmt, names) for stmt in kernel.prologue),
        roles=roles,
        epilogue=tuple(rewrite_stmt(stmt, names) for stmt in kernel.epilogue),
    )


def check_rank_independence(kernel: Kernel, role: ParsedRole) -> None:
    """Raises RefusedError unless the control flow and barriers are equal for all ranks; data may depend on the rank."""
    rank = rank_of(kernel)
    for stmt in walk(role.statements):
        if isinstance(stmt, For | If | Await | Advance | Arrive) and any(
            rank in symbols(node) for node in _control(stmt)
        ):
            refuse(stmt, "a role's barrier operations depend on the block's rank")
    tiles = role.tile_loop.tiles
    if tiles is None or tiles.symbol not in symbols(role.per_tile):
        return
    # Blocks are at the same tile only if they count tiles from the same start.
    if rank in symbols(role.per_tile) or symbols(tiles.start, tiles.stop) & frozenset(kernel.blocks):
        refuse(role.loop, "numbers of uses that depend on the tile, in a cluster")


def _control(stmt: Stmt) -> tuple[Node, ...]:
    return (*stmt.event.at, stmt.bytes) if isinstance(stmt, Arrive) else tuple(expressions(stmt))


def mask_of(kernel: Kernel, copy: Copy, rank: int) -> int:
    """The receiver bit mask of the copy issued by the block of this rank. Raises RefusedError if not constant."""
    if copy.peers is None:
        return 1 << rank
    found = substitute(copy.peers, {rank_of(kernel): algebra.const(rank)})
    if not isinstance(found, Const):
        refuse(copy, "a multicast whose receivers are not constant")
    return found.value


def at_rank(kernel: Kernel, copy: Copy, rank: int) -> Copy:
    """The copy as the block of this rank issues it."""
    made = rewrite_stmt(copy, {rank_of(kernel): algebra.const(rank)})
    assert isinstance(made, Copy)
    return made


def received_copies(kernel: Kernel, copy: Copy) -> tuple[Copy, ...]:
    """The copies into a block's stage for one statement: its own, or one from each block of the cluster.

    Raises RefusedError where not every block sends to all.
    """
    if copy.peers is None:
        return (copy,)
    ranks = range(kernel.peers)
    if any(mask_of(kernel, copy, rank) != (1 << kernel.peers) - 1 for rank in ranks):
        refuse(copy, "a multicast that some block of the cluster does not send to all")
    return tuple(evolve(at_rank(kernel, copy, rank), peers=None) for rank in ranks)


# -- the protocol of all blocks ----------------------------------------------------------------------------------


def cluster_protocol(
    kernel: Kernel,
    rings: Sequence[RingStorage],
    sizes: Sequence[Ring],
    roles: Sequence[Role],
    placed: Sequence[tuple[PlacedOp, ...]],
) -> tuple[tuple[Ring, ...], list[Role], list[tuple[PlacedOp, ...]]]:
    """The rings, roles and operations of every block, ordered by rank; those of rank 0 as without a cluster."""
    made: list[Role] = []
    ops: list[tuple[PlacedOp, ...]] = []
    ranks = range(kernel.peers)
    for ring in rings:
        if ring.per_tile:
            refuse(ring.copies[0], "a ring with one use per tile, in a cluster")
    for rank in ranks:
        for role, own in zip(roles, placed, strict=True):
            if role.share[1] > 1:
                refuse(own[0].stmt, "agents that divide the tiles among them, in a cluster")
            body = tuple(op for each in own for op in _ops_of_rank(kernel, rings, each, rank))
            name = role.name if rank == 0 else f"{role.name} of rank {rank}"
            made.append(evolve(role, name=name, body=body))
            ops.append(own)
    wide = tuple(
        evolve(size, parts=tuple(part for at, part in enumerate(size.parts) for _ in _senders(kernel, ring, at)))
        for ring, size in zip(rings, sizes, strict=True)
    )
    return wide * kernel.peers, made, ops


def _senders(kernel: Kernel, ring: RingStorage, copy: int) -> range:
    return range(1 if ring.copies[copy].peers is None else kernel.peers)


def _ops_of_rank(kernel: Kernel, rings: Sequence[RingStorage], each: PlacedOp, rank: int) -> Iterator[Op]:
    """An operation of the block of this rank, on rings numbered over all blocks."""
    op = each.op
    match op:
        case WaitGroups() | NamedBarrierOp():
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
            peer = arrival_peer(each.stmt)
            to = rank if peer is None else _number(each.stmt, substitute(peer, {rank_of(kernel): algebra.const(rank)}))
            if not 0 <= to < kernel.peers:
                refuse(each.stmt, "an arrival at the barrier of a rank outside the cluster")
            if to != rank and not isinstance(op, Release):
                refuse(each.stmt, "an operation on another block's barrier other than the release of a stage")
            yield evolve(op, ring=to * len(rings) + op.ring)


def _number(stmt: Stmt, node: Index) -> int:
    if not isinstance(node, Const):
        refuse(stmt, "an arrival at the barrier of a block whose rank is not constant")
    return node.value


# -- obligations between blocks ------------------------------------------------------------------------------------


def cluster_obligations(kernel: Kernel, rings: Sequence[RingStorage], *, finishes: bool) -> Iterator[Obligation]:
    """I15 and I16. finishes: the producers wait at their end until every stage has been released."""
    yield from _lifetime_obligations(kernel, finishes=finishes)
    for ring in rings:
        for copy in ring.copies:
            if copy.peers is not None:
                yield _mask_obligation(kernel, copy)
                yield from _multicast_tile_obligations(kernel, copy)


def _lifetime_obligations(kernel: Kernel, *, finishes: bool) -> Iterator[Obligation]:
    """I15: consumers wait for copies into their block; arrivals are awaited by the producers, or by all at the end."""
    stmts = [stmt for stmt in walk(kernel.body) if arrival_peer(stmt) is not None]
    good = finishes or has_cluster_barrier(kernel.epilogue)
    for stmt in stmts:
        yield Obligation(
            "I15",
            "a block ends after the last arrival of another at its barriers",
            stmt,
            algebra.TRUE if good else algebra.FALSE,
            fault="a block may end before another arrives at its barriers",
            help="end the producer with `ring.finish()`, or put `cluster.sync()` after all roles",
        )
    if not stmts:
        yield Obligation(
            "I15", "blocks use each other's barriers only by copies that are waited for", kernel.body[0], algebra.TRUE
        )


def has_cluster_barrier(body: Sequence[Stmt]) -> bool:
    """Whether statements contain a barrier of the whole cluster, as one statement or as arrive and wait."""
    arrived = False
    for stmt in body:
        if isinstance(stmt, Sync) and stmt.barrier == "cluster":
            if stmt.how == "meet" or (stmt.how == "wait" and arrived):
                return True
            arrived = stmt.how == "arrive"
    return False


def publishes_barrier_init(prologue: Sequence[Stmt]) -> bool:
    """I14: whether a fence of the barriers' initialisation is followed by a barrier of the whole cluster."""
    fence = next((p for p, s in enumerate(prologue) if isinstance(s, Fence) and s.kind == "barrier_init"), None)
    return fence is not None and has_cluster_barrier(prologue[fence:])


def _mask_obligation(kernel: Kernel, copy: Copy) -> Obligation:
    """I16, the mask: each block sends to all."""
    masks = [mask_of(kernel, copy, rank) for rank in range(kernel.peers)]
    good = set(masks) == {(1 << kernel.peers) - 1}
    what = f"every block multicasts `{copy.source.buffer.name}` to all of the cluster"
    return Obligation(
        "I16", what, copy, algebra.TRUE if good else algebra.FALSE, help="use the same mask in all blocks"
    )


def _multicast_tile_obligations(kernel: Kernel, copy: Copy) -> Iterator[Obligation]:
    """I16, the tile: the parts sent by different blocks belong to one tile, at one position in the tensor."""
    first = _tensor_index(at_rank(kernel, copy, 0))
    for rank in range(1, kernel.peers):
        pairs = zip(first, _tensor_index(at_rank(kernel, copy, rank)), strict=True)
        same: Cond = algebra.all_of(algebra.eq(one, other) for one, other in pairs)
        what = f"ranks 0 and {rank} multicast parts of one tile of `{copy.source.buffer.name}`"
        help_ = "multicast an operand that all blocks of the cluster share"
        yield Obligation("I16", what, copy, same, help=help_)


def _tensor_index(copy: Copy) -> tuple[Index, ...]:
    """The tensor index that is copied to the first element of the whole tile in shared memory."""
    axes = len(copy.source.shape)
    source, target = _corner(copy.source), _corner(copy.target)
    moved = (algebra.sub(a, b) for a, b in zip(source[-axes:], target[-axes:], strict=True))
    return (*source[:-axes], *moved)


def _corner(view: View) -> tuple[Index, ...]:
    zeros = (algebra.const(0),) * len(view.shape)
    return tuple(substitute(at, {}, zeros) for at in view.at)
