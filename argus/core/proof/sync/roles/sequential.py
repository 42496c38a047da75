"""Builds the sequential kernel of a kernel of roles: each wait for a stage is replaced by the copies that fill it.

The protocol proves that a read of use V sees exactly what the fill of use V wrote. Both are use `base + k` of the same
tile, so the fill's coordinates are those of the reader's tile and trip. A persistent kernel becomes one block per tile:
the tile's number replaces `block + i * blocks`, which enumerates all tiles once (`rounds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import Bin, Const, Index, Symbol
from argus.core.ir import (
    Alloc,
    Arrive,
    Assert,
    Await,
    Copy,
    Fence,
    Fold,
    For,
    If,
    Kernel,
    Map,
    Mma,
    One,
    Stmt,
    Sync,
    bodies,
    walk,
    with_bodies,
)
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.proof.sync.roles.agent_exchange import AgentExchange
from argus.core.proof.sync.roles.cluster_stores import Exchange
from argus.core.proof.sync.roles.clusters import received_copies
from argus.core.proof.sync.roles.context import fresh_block_symbol, refuse
from argus.core.proof.sync.roles.extract_protocol import ExtractedProtocol, protocol_name
from argus.core.proof.sync.roles.hilbert_tiles import COLUMN, ROW, find_hilbert_order, substitute_coordinates
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage
from argus.core.protocol.ring import Copy as Copied
from argus.core.walk import substitute, symbols


@frozen(eq=False)
class TileEnumeration:
    """The tiles of a persistent block. number: a tile's number among `total` tiles. own: the loop variable.

    block: the grid coordinate among whose `blocks` values the tiles are divided; None if every block takes all tiles.
    """

    number: Symbol
    total: Index
    own: Symbol
    block: Symbol | None
    blocks: int = 1

    @property
    def names(self) -> dict[Symbol, Index]:
        """The substitution of the block coordinate (or of the loop variable) by the tile's number."""
        if self.block is None:
            return {self.own: algebra.sym(self.number)}
        own = algebra.mul(algebra.sym(self.own), self.blocks)
        return {self.block: algebra.sub(algebra.sym(self.number), own)}

    @property
    def eliminated(self) -> tuple[Symbol, ...]:
        """The symbols that must not remain in the sequential kernel."""
        return (self.own,) if self.block is None else (self.block, self.own)


def tile_enumeration(kernel: Kernel, role: ParsedRole) -> TileEnumeration | None:
    """The enumeration of tiles; None for one tile per block. Raises RefusedError if it is not `block + i * blocks`."""
    loop = role.tile_loop.tiles
    if loop is None:
        return None
    number = fresh_block_symbol(kernel, "tile")
    if not symbols(loop.stop) & frozenset(kernel.blocks):
        return TileEnumeration(number, loop.stop, loop.symbol, None)
    sharing = [(b, n) for b, n in zip(kernel.blocks, kernel.grid, strict=True) if b in symbols(loop.stop)]
    block, count_ = sharing[0]
    if len(sharing) != 1 or not isinstance(count_, Const):
        refuse(loop, "a loop over tiles in a grid whose number of blocks is not constant")
    blocks = count_.value
    stop = loop.stop
    top = stop.left if isinstance(stop, Bin) and stop.op == "//" and stop.right is count_ else stop
    total = algebra.sub(algebra.add(top, algebra.sym(block)), blocks - 1)
    count = algebra.ceil_div(algebra.sub(total, algebra.sym(block)), blocks)
    if block in symbols(total) or count is not stop:
        refuse(loop, "a loop over tiles whose trip count is not that of the tiles `block + i * blocks`")
    return TileEnumeration(number, total, loop.symbol, block, blocks)


def sequential_kernel(
    kernel: Kernel,
    consumer: ParsedRole,
    rings: Sequence[RingStorage],
    extracted: ExtractedProtocol,
    tiles: TileEnumeration | None,
    exchanged: Exchange | None = None,
    met: AgentExchange | None = None,
) -> Kernel:
    """The kernel of one agent of the role on one tile. Raises RefusedError.

    Stores into other blocks of the cluster are replaced by the stores that the agent's own block receives, and those of
    which other agents read parts by the stores of all agents.
    """
    for stmt in walk((*consumer.tile_loop.before, *consumer.tile_loop.after)):
        if isinstance(stmt, Copy | Map | Mma | Fold | Assert):
            refuse(stmt, "data that is copied, computed or claimed outside the loop over tiles")
    role = consumer.role
    tile = consumer.tile_loop.tile
    tile = tile if met is None else met.of_one_agent(met.with_received(tile))
    body = (
        *_prologue(kernel),
        *(stmt for stmt in consumer.tile_loop.before if isinstance(stmt, Alloc)),
        *_with_received(tuple(_line(kernel, tile, consumer, rings, extracted)), exchanged),
        *(stmt for stmt in kernel.epilogue if not isinstance(stmt, Sync)),
    )
    names: dict[Symbol, Index] = {} if tiles is None else tiles.names
    grid, blocks = _grid(kernel, tiles)
    if role.agents == 1:
        names = {**names, role.number: algebra.const(0)}
    elif consumer.tile_loop.tiles is None or consumer.tile_loop.tiles.step == 1:
        grid, blocks = (*grid, algebra.const(role.agents)), (*blocks, role.number)
    made = tuple(rewrite_stmt(stmt, names) for stmt in body) if names else body
    eliminated = () if tiles is None else tiles.eliminated
    found = None if tiles is None else find_hilbert_order(made, tiles.number, tiles.total)
    if found is not None and {ROW, COLUMN} & set(kernel.blocks):
        refuse(kernel.body[0], "grid coordinates with the reserved names of a tile's row and column")
    if found is not None and tiles is not None:
        made, eliminated = substitute_coordinates(made, found), (*eliminated, tiles.number)
        places = {tiles.number: ((found.rows, ROW), (found.columns, COLUMN))}
        pairs = [p for n, b in zip(grid, blocks, strict=True) for p in places.get(b, ((n, b),))]
        grid, blocks = tuple(n for n, _ in pairs), tuple(b for _, b in pairs)
    _check_independent(made, eliminated)
    return evolve(
        kernel, threads=role.agent, grid=grid, blocks=blocks, thread=role.thread, prologue=made, roles=None, epilogue=()
    )


def _grid(kernel: Kernel, tiles: TileEnumeration | None) -> tuple[tuple[Index, ...], tuple[Symbol, ...]]:
    if tiles is None:
        return kernel.grid, kernel.blocks
    if tiles.block is None:
        return (*kernel.grid, tiles.total), (*kernel.blocks, tiles.number)
    rest = [(n, b) for n, b in zip(kernel.grid, kernel.blocks, strict=True) if b != tiles.block]
    return (*(n for n, _ in rest), tiles.total), (*(b for _, b in rest), tiles.number)


def _prologue(kernel: Kernel) -> Iterator[Stmt]:
    """The statements before the roles, without barriers and their publication."""
    for stmt in kernel.prologue:
        barrier = isinstance(stmt, Alloc) and stmt.buffer.space == "barrier"
        known = isinstance(stmt, Fence | Sync) and stmt.origin is not None and stmt.origin.construct == "barriers"
        known = known or (isinstance(stmt, Sync) and stmt.barrier == "cluster")
        known = known or (isinstance(stmt, Fence) and stmt.kind == "barrier_init")
        if not barrier and not known:
            yield stmt


def _line(
    kernel: Kernel, body: tuple[Stmt, ...], role: ParsedRole, rings: Sequence[RingStorage], extracted: ExtractedProtocol
) -> Iterator[Stmt]:
    for stmt in body:
        match stmt:
            case Await(event=event):
                ring = next((each for each in rings if each.full is event.buffer), None)
                if ring is not None:
                    yield from _fill(kernel, role, ring, stmt, extracted)
            case Arrive():
                continue
            case Sync(barrier=barrier, how=how, threads=threads):
                if (barrier, how, threads) != (role.role.name, "meet", role.role.agent):
                    refuse(stmt, "a barrier that is not for exactly the agent's threads")
                yield evolve(stmt, barrier="cta", threads=None)
            case One(body=inner):
                yield One(tuple(_line(kernel, inner, role, rings, extracted)), span=stmt.span, origin=stmt.origin)
            case For() | If():
                yield with_bodies(
                    stmt, tuple(tuple(_line(kernel, part, role, rings, extracted)) for part in bodies(stmt))
                )
            case _:
                yield stmt


def _with_received(line: tuple[Stmt, ...], exchanged: Exchange | None) -> Iterator[Stmt]:
    """The statements with this block's remote stores replaced by the stores received from all blocks."""
    sent = [stmt for stmt in line if isinstance(stmt, Copy) and stmt.target.peer is not None]
    if exchanged is None:
        yield from line
        return
    if len(sent) != len(exchanged.sends):
        refuse(exchanged.sends[0], "stores into another block's memory that are not all in the role's tile")
    for stmt in line:
        if stmt is sent[0]:
            yield from exchanged.received
        elif stmt not in sent:
            yield stmt


def _fill(
    kernel: Kernel, role: ParsedRole, ring: RingStorage, wait: Await, extracted: ExtractedProtocol
) -> Iterator[Copy]:
    """The copies of the awaited use, with the reader's tile and trip in place of the producer's."""
    producer = ring.producer
    moved = _tile_names(producer, role)
    if wait not in extracted.uses:
        refuse(wait, "a wait for a slot of an unknown use")
    use = extracted.uses[wait]
    for each in (placed for placed in extracted.placed[_role_index(extracted, producer)] if placed.stmt in ring.copies):
        assert isinstance(each.op, Copied)
        assert isinstance(each.stmt, Copy)
        trips_before = algebra.mul(algebra.sub(use, each.op.ahead), producer.loop.step)
        trip = (
            {}
            if ring.per_tile
            else {producer.loop.symbol: algebra.add(trips_before, substitute(producer.loop.start, moved))}
        )
        names: dict[Symbol, Index] = {**trip, **moved}
        for copy in received_copies(kernel, each.stmt):
            made = rewrite_stmt(copy, names)
            assert isinstance(made, Copy)
            yield evolve(made, signal=None)


def _role_index(extracted: ExtractedProtocol, role: ParsedRole) -> int:
    return [each.name for each in extracted.protocol.roles].index(protocol_name(role, 0))


def _tile_names(producer: ParsedRole, role: ParsedRole) -> dict[Symbol, Index]:
    mine, theirs = role.tile_loop.tiles, producer.tile_loop.tiles
    if mine is None or theirs is None:
        return {}
    return {theirs.symbol: algebra.sym(mine.symbol)}


def _check_independent(body: tuple[Stmt, ...], eliminated: tuple[Symbol, ...]) -> None:
    """Raises RefusedError if an expression depends on the block or its tile counter other than by the tile's number."""
    for stmt in walk(body):
        for root in expressions(stmt):
            if any(symbol in symbols(root) for symbol in eliminated):
                refuse(stmt, "a tile's coordinates depend on the block other than by the tile's number")
