"""One line of steps in place of roles: where a slot is waited for stands the copy that fills it.

That a read of use V sees what the fill of use V wrote, and nothing else, is what the protocol proves; both are use
`base + k` of the same tile, so the fill's coordinates are those of the reader's tile and trip. A persistent kernel is
read as one block a tile: the tile's number takes the place of `block + i * blocks`, which runs through all tiles once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import Bin, Cond, Const, Index, Symbol
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
from argus.core.ir.rewrite import in_stmt
from argus.core.proof.sync.roles.cluster_stores import Exchange
from argus.core.proof.sync.roles.clusters import landed
from argus.core.proof.sync.roles.context import block_of_its_own, refuse
from argus.core.proof.sync.roles.extract_protocol import Spoken, name_of
from argus.core.proof.sync.roles.hilbert_tiles import COLUMN, ROW, by_place, curve_of
from argus.core.proof.sync.roles.parsed import Parsed, Storage
from argus.core.protocol.ring import Copy as Copied
from argus.core.walk import substitute, symbols


@frozen(eq=False)
class Tiles:
    """How a block walks over tiles. number: of a tile among all; total: of them; own: the loop's variable.

    block: which of so many `blocks` shares them out; None where each block of the grid takes all.
    """

    number: Symbol
    total: Index
    own: Symbol
    block: Symbol | None
    blocks: int = 1

    @property
    def names(self) -> dict[Symbol, Index]:
        """The block in terms of the tile's number, where it takes its `own`-th tile; or the loop's variable."""
        if self.block is None:
            return {self.own: algebra.sym(self.number)}
        own = algebra.mul(algebra.sym(self.own), self.blocks)
        return {self.block: algebra.sub(algebra.sym(self.number), own)}

    @property
    def gone(self) -> tuple[Symbol, ...]:
        """The symbols that a tile's own line may not speak of."""
        return (self.own,) if self.block is None else (self.block, self.own)


def tiles_of_block(kernel: Kernel, role: Parsed) -> Tiles | None:
    """None for a kernel with one tile a block. Raises RefusedError for another walk than `block + i * blocks`."""
    loop = role.laps.tiles
    if loop is None:
        return None
    number = block_of_its_own(kernel, "tile")
    if not symbols(loop.stop) & frozenset(kernel.blocks):
        return Tiles(number, loop.stop, loop.symbol, None)
    sharing = [(b, n) for b, n in zip(kernel.blocks, kernel.grid, strict=True) if b in symbols(loop.stop)]
    block, count_ = sharing[0]
    if len(sharing) != 1 or not isinstance(count_, Const):
        refuse(loop, "a loop over tiles in a grid that is not a fixed number of blocks")
    blocks = count_.value
    stop = loop.stop
    top = stop.left if isinstance(stop, Bin) and stop.op == "//" and stop.right is count_ else stop
    total = algebra.sub(algebra.add(top, algebra.sym(block)), blocks - 1)
    count = algebra.ceil_div(algebra.sub(total, algebra.sym(block)), blocks)
    if block in symbols(total) or count is not stop:
        refuse(loop, "a loop over tiles whose number is not that of every so many-th tile from the block's own on")
    return Tiles(number, total, loop.symbol, block, blocks)


def sequential(
    kernel: Kernel,
    drainer: Parsed,
    rings: Sequence[Storage],
    said: Spoken,
    tiles: Tiles | None,
    exchanged: Exchange | None = None,
) -> Kernel:
    """The kernel that one agent of the role runs on one tile; of stores into other blocks, it has those that come to
    its own. Raises RefusedError.
    """
    for stmt in walk((*drainer.laps.before, *drainer.laps.after)):
        if isinstance(stmt, Copy | Map | Mma | Fold | Assert):
            refuse(stmt, "data that is moved, computed or claimed outside the loop over tiles")
    role = drainer.role
    body = (
        *_prologue(kernel),
        *(stmt for stmt in drainer.laps.before if isinstance(stmt, Alloc)),
        *_received(tuple(_line(kernel, drainer.laps.tile, drainer, rings, said)), exchanged),
        *(stmt for stmt in kernel.epilogue if not isinstance(stmt, Sync)),
    )
    names: dict[Symbol, Index] = {} if tiles is None else tiles.names
    grid, blocks = _grid(kernel, tiles)
    if role.agents == 1:
        names = {**names, role.number: algebra.const(0)}
    elif drainer.laps.tiles is None or drainer.laps.tiles.step == 1:
        grid, blocks = (*grid, algebra.const(role.agents)), (*blocks, role.number)
    made = tuple(in_stmt(stmt, names) for stmt in body) if names else body
    gone = () if tiles is None else tiles.gone
    found = None if tiles is None else curve_of(made, tiles.number, tiles.total)
    if found is not None and {ROW, COLUMN} & set(kernel.blocks):
        refuse(kernel.body[0], "coordinates of blocks under the names of a tile's row and column")
    if found is not None and tiles is not None:
        made, gone = by_place(made, found), (*gone, tiles.number)
        places = {tiles.number: ((found.rows, ROW), (found.columns, COLUMN))}
        pairs = [p for n, b in zip(grid, blocks, strict=True) for p in places.get(b, ((n, b),))]
        grid, blocks = tuple(n for n, _ in pairs), tuple(b for _, b in pairs)
    _judge_closed(made, gone)
    return evolve(
        kernel, threads=role.agent, grid=grid, blocks=blocks, thread=role.thread, prologue=made, roles=None, epilogue=()
    )


def _grid(kernel: Kernel, tiles: Tiles | None) -> tuple[tuple[Index, ...], tuple[Symbol, ...]]:
    if tiles is None:
        return kernel.grid, kernel.blocks
    if tiles.block is None:
        return (*kernel.grid, tiles.total), (*kernel.blocks, tiles.number)
    rest = [(n, b) for n, b in zip(kernel.grid, kernel.blocks, strict=True) if b != tiles.block]
    return (*(n for n, _ in rest), tiles.total), (*(b for _, b in rest), tiles.number)


def _prologue(kernel: Kernel) -> Iterator[Stmt]:
    """What comes before roles, without barriers and what makes them known."""
    for stmt in kernel.prologue:
        barrier = isinstance(stmt, Alloc) and stmt.buffer.space == "barrier"
        known = isinstance(stmt, Fence | Sync) and stmt.origin is not None and stmt.origin.construct == "barriers"
        known = known or (isinstance(stmt, Sync) and stmt.barrier == "cluster")
        known = known or (isinstance(stmt, Fence) and stmt.kind == "barrier_init")
        if not barrier and not known:
            yield stmt


def _line(
    kernel: Kernel, body: tuple[Stmt, ...], role: Parsed, rings: Sequence[Storage], said: Spoken
) -> Iterator[Stmt]:
    for stmt in body:
        match stmt:
            case Await(event=event):
                ring = next((each for each in rings if each.full is event.buffer), None)
                if ring is not None:
                    yield from _fill(kernel, role, ring, stmt, said)
            case Arrive():
                continue
            case Sync(barrier=barrier, how=how, threads=threads):
                if (barrier, how, threads) != (role.role.name, "meet", role.role.agent):
                    refuse(stmt, "a meeting of others than the agent's own threads")
                yield evolve(stmt, barrier="cta", threads=None)
            case One(body=inner):
                yield One(tuple(_line(kernel, inner, role, rings, said)), span=stmt.span, origin=stmt.origin)
            case For() | If():
                yield with_bodies(stmt, tuple(tuple(_line(kernel, part, role, rings, said)) for part in bodies(stmt)))
            case _:
                yield stmt


def _received(line: tuple[Stmt, ...], exchanged: Exchange | None) -> Iterator[Stmt]:
    """With what comes from all blocks where this one's stores into them stand."""
    sent = [stmt for stmt in line if isinstance(stmt, Copy) and stmt.target.peer is not None]
    if exchanged is None:
        yield from line
        return
    if len(sent) != len(exchanged.sends):
        refuse(exchanged.sends[0], "stores into another block's memory that the role's line does not have")
    for stmt in line:
        if stmt is sent[0]:
            yield from exchanged.landed
        elif stmt not in sent:
            yield stmt


def _fill(kernel: Kernel, role: Parsed, ring: Storage, wait: Await, said: Spoken) -> Iterator[Copy]:
    """The copies of the use waited for, with the filler's tile and trip those of the reader."""
    filler = ring.filler
    moved = _tile_names(filler, role)
    if wait not in said.uses:
        refuse(wait, "a wait for a slot, of a use that is not known")
    use = said.uses[wait]
    for each in (placed for placed in said.placed[_place(said, filler)] if placed.stmt in ring.copies):
        assert isinstance(each.op, Copied)
        assert isinstance(each.stmt, Copy)
        gone = algebra.mul(algebra.sub(use, each.op.ahead), filler.loop.step)
        trip = {} if ring.once else {filler.loop.symbol: algebra.add(gone, substitute(filler.loop.start, moved))}
        names: dict[Symbol, Index] = {**trip, **moved}
        for copy in landed(kernel, each.stmt):
            made = in_stmt(copy, names)
            assert isinstance(made, Copy)
            yield evolve(made, signal=None)


def _place(said: Spoken, role: Parsed) -> int:
    return [each.name for each in said.protocol.roles].index(name_of(role, 0))


def _tile_names(filler: Parsed, role: Parsed) -> dict[Symbol, Index]:
    mine, theirs = role.laps.tiles, filler.laps.tiles
    if mine is None or theirs is None:
        return {}
    return {theirs.symbol: algebra.sym(mine.symbol)}


def _judge_closed(body: tuple[Stmt, ...], gone: tuple[Symbol, ...]) -> None:
    """Raises RefusedError if anything speaks of the block or of its own count of tiles: not of the tile alone."""
    for stmt in walk(body):
        for root in expressions(stmt):
            if any(symbol in symbols(root) for symbol in gone):
                refuse(stmt, "a tile's place depends on the block in another way than by the tile's number")


def enumerates(tiles: Tiles) -> tuple[tuple[str, Cond, tuple[Cond, ...]], ...]:
    """What makes tile numbers stand for blocks: (statement, goal, hypotheses), over an arbitrary count of tiles."""
    total, blocks = algebra.sym(Symbol("tiles", "size", 0, None)), tiles.blocks
    b, i, c, j = (algebra.sym(Symbol(name, "fresh", 0, None)) for name in ("b", "i", "b'", "i'"))
    t = algebra.sym(tiles.number)

    def taken(block: Index, own: Index) -> tuple[Cond, ...]:
        count = algebra.ceil_div(algebra.sub(total, block), blocks)
        return algebra.lt(block, blocks), algebra.lt(own, count)

    def number(block: Index, own: Index) -> Index:
        return algebra.add(block, algebra.mul(own, blocks))

    same = algebra.all_of((algebra.eq(b, c), algebra.eq(i, j)))
    owner = algebra.mod(t, blocks), algebra.floordiv(t, blocks)
    return (
        ("a block's tile is one of all tiles", algebra.lt(number(b, i), total), taken(b, i)),
        (
            "no two blocks take one tile, and no block takes one twice",
            same,
            (*taken(b, i), *taken(c, j), algebra.eq(number(b, i), number(c, j))),
        ),
        ("every tile is some block's", algebra.all_of(taken(*owner)), (algebra.lt(t, total),)),
    )
