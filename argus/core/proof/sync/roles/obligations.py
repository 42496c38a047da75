"""Everything owed by a kernel of roles, and the one line of steps that its data flow is read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.check.parts import expressions, views
from argus.core.index import Cond, Index
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
    Buffer,
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
    Role,
    Stmt,
    Sync,
    walk,
)
from argus.core.proof.limits.divisors import expression_divisor_obligations
from argus.core.proof.limits.integers import loop_width_obligations, width_obligations
from argus.core.proof.obligation import Obligation
from argus.core.proof.prover import Prover
from argus.core.proof.sync.roles import cluster_stores, clusters, hilbert_tiles
from argus.core.proof.sync.roles.agent_order import turned
from argus.core.proof.sync.roles.cluster_stores import Exchange, exchange
from argus.core.proof.sync.roles.context import TILE, Ledger, RefusedError, refuse
from argus.core.proof.sync.roles.counter_bounds import bounded
from argus.core.proof.sync.roles.events import Looked, Multiplied
from argus.core.proof.sync.roles.extract_protocol import Spoken, name_of, spoken
from argus.core.proof.sync.roles.in_flight_mma import flights
from argus.core.proof.sync.roles.parsed import Parsed, Storage, parsed, storages
from argus.core.proof.sync.roles.sequential import Tiles, enumerates, sequential, tiles_of_block
from argus.core.protocol.graph import graph
from argus.core.protocol.lemma import Certified
from argus.core.protocol.obligations import Question, certified, oblige
from argus.core.protocol.outcome import Fails, Unknown
from argus.core.protocol.ring import ArriveFull, Release, WaitEmpty, WaitFull
from argus.core.query import GaveUp, Sat
from argus.core.walk import substitute


@frozen(eq=False)
class Unrolled:
    """A kernel of roles, understood. line: of one agent and tile. body: what that agent runs, tiles and all.

    rings: buffers that the protocol answers for. fills: of each ring, the copies into a slot. owed: what the reading
    presumes. exchanged: what blocks of a cluster store into each other.
    """

    line: Kernel
    role: Role
    body: tuple[Stmt, ...]
    rings: frozenset[Buffer]
    fills: tuple[tuple[Copy, ...], ...]
    owed: tuple[Obligation, ...]
    exchanged: Exchange | None = None


def unrolled(kernel: Kernel, prover: Prover) -> Unrolled | RefusedError:
    """The reading of a kernel of roles, or the statement that it has no place for."""
    assert kernel.roles is not None
    facts = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    ledger = Ledger(prover, facts)
    try:
        return _unrolled(kernel, ledger)
    except RefusedError as why:
        return why


def _unrolled(kernel: Kernel, ledger: Ledger) -> Unrolled:
    if kernel.peers > 1:
        kernel = clusters.ranked(kernel)
    exchanged = exchange(kernel)
    kernel = kernel if exchanged is None else exchanged.rest
    assert kernel.roles is not None
    roles = tuple(parsed(role, ledger) for role in kernel.roles.roles if not _idle(role))
    if not roles:
        refuse(kernel.roles, "roles that do nothing")
    drainers = [role for role in roles if not role.fills]
    if len(drainers) != 1:
        refuse(kernel.roles, f"{len(drainers)} roles that drain rings; one is modelled")
    for stmt in kernel.prologue:
        if isinstance(stmt, Copy | Map | Mma | Fold | For | If):
            refuse(stmt, "work before the roles begin")
        whole = isinstance(stmt, Sync) and (stmt.barrier, stmt.how, stmt.threads) == ("cta", "meet", None)
        if isinstance(stmt, Sync) and not whole and stmt.barrier != "cluster":
            refuse(stmt, "a meeting before the roles begin that is not the whole block's")
    for stmt in kernel.epilogue:
        if not isinstance(stmt, Assert) and not (isinstance(stmt, Sync) and stmt.barrier == "cluster"):
            refuse(stmt, "work after the roles have ended")
    for role in roles:
        if role.fills:
            _judge_filler(role)
    rings = storages(roles)
    for role in roles if kernel.peers > 1 else ():
        clusters.judge_ranks(kernel, role)
    _judge_drainer(drainers[0], frozenset(buffer for ring in rings for buffer in ring.buffers))
    turning = frozenset(role for role in roles if turned(kernel, role, ledger))
    said = spoken(kernel, roles, rings, turning, ledger)
    drainer = drainers[0]
    tiles = tiles_of_block(kernel, drainer)
    line = sequential(kernel, drainer, rings, said, tiles, exchanged)
    owed = (
        *(each for role in roles for each in flights(role, rings, ledger)),
        *_protocol(said, ledger),
        *_same_walk(roles, drainer),
        *(() if tiles is None or tiles.block is None else _tiles(tiles, drainer)),
        *_initialised(kernel),
        *_counted(kernel, roles, tiles),
        *_along(line, drainer, tiles),
        *bounded(kernel, roles, rings, tiles, ledger),
        *(_of_cluster(kernel, rings, said) if kernel.peers > 1 else ()),
        *(() if exchanged is None else cluster_stores.obligations(kernel, exchanged)),
    )
    buffers = frozenset(buffer for ring in rings for buffer in ring.buffers)
    fills = tuple(tuple(made for copy in ring.copies for made in clusters.landed(kernel, copy)) for ring in rings)
    return Unrolled(line, drainer.role, drainer.laps_body, buffers, fills, owed, exchanged)


def _of_cluster(kernel: Kernel, rings: Sequence[Storage], said: Spoken) -> Iterator[Obligation]:
    fillers = {name_of(ring.filler, 0) for ring in rings}
    finishes = all(role.finishes for role in said.protocol.roles if role.name in fillers)
    return clusters.obligations(kernel, rings, finishes=finishes)


def _idle(role: Role) -> bool:
    """Whether a role does nothing that anybody could notice."""
    return all(isinstance(stmt, Policy) for stmt in role.body)


def _judge_filler(role: Parsed) -> None:
    """Raises RefusedError if a role that fills rings does anything else."""
    for stmt in walk(role.role.body):
        plain = isinstance(stmt, Let | Advance | Await | Arrive | For | If | One | Policy | Fence)
        fill = isinstance(stmt, Copy) and stmt.signal is not None
        if not plain and not fill and not (isinstance(stmt, Alloc) and stmt.buffer.space == "counter"):
            refuse(stmt, f"role `{role.role.name}` fills rings and does something else too")


def _judge_drainer(role: Parsed, rings: frozenset[Buffer]) -> None:
    """Raises RefusedError if the role touches slots where no event stands for it, or meets others than its agent."""
    seen = (*role.ahead, *(event for run in role.runs for event in run.events), *role.behind)
    known = {event.stmt for event in seen if isinstance(event.happening, Multiplied | Looked)}
    for stmt in walk(role.laps_body):
        if isinstance(stmt, Edit) and role.role.agents > 1:
            refuse(stmt, "a tensor map that several agents edit")
        touched = {view.buffer for view in views(stmt)} & rings
        if touched and stmt not in known and not isinstance(stmt, Alloc):
            refuse(stmt, "a slot of a ring that is touched otherwise than by a product or load of the use waited for")
        if isinstance(stmt, Copy) and stmt.target.buffer in rings:
            refuse(stmt, "a slot of a ring that who drains it writes")
        if isinstance(stmt, Sync) and (stmt.barrier, stmt.how, stmt.threads) != _own_meeting(role.role):
            refuse(stmt, "a meeting of others than the agent's own threads")


def _own_meeting(role: Role) -> tuple[str, str, int]:
    return role.name, "meet", role.agent


# -- the protocol --------------------------------------------------------------------------------------------

_CODES = {
    "slot": "I5",
    "parity": "I6",
    "window": "I6",
    "cursor": "I6",
    "bytes": "I7",
    "arrivals": "I8",
    "exists": "I9",
    "sequence": "I9",
    "deadlock": "I9",
    "rank": "I9",
    "meeting": "I9",
    "lemma": "I5",
    "RAW": "I5",
    "WAR": "I5",
    "WAW": "I5",
    "release": "I10",
}


def _protocol(said: Spoken, ledger: Ledger) -> Iterator[Obligation]:
    """What a solver must answer for the protocol, its lemma on one slot, and its event graph."""
    owed = oblige(said.protocol)
    if isinstance(owed, Fails | Unknown):
        yield _outcome(said, owed)
        return
    for question in owed.questions:
        yield _question(said, question, ledger)
    for shape in owed.shapes:
        found = certified(shape)
        what = "on one slot, every read sees its own use and nobody waits for ever"
        if isinstance(found, Certified):
            yield Obligation("I5", what, said.stmt_of(WaitFull), algebra.TRUE, compared=found.states)
        else:
            yield _outcome(said, found)
    if owed.beyond:
        yield _outcome(said, Unknown(owed.beyond))
    outcome = graph(said.protocol)
    if isinstance(outcome, Fails | Unknown):
        yield _outcome(said, outcome)
        return
    for code, what in _GRAPH:
        yield Obligation(code, what, said.stmt_of(WaitFull), algebra.TRUE)


_GRAPH = (
    ("I5", "each use is read after it has landed and before its slot is filled again"),
    ("I6", "no wait meets a parity two phases off"),
    ("I9", "no wait closes a circle"),
)


def _blamed(said: Spoken, claim: str) -> Stmt:
    match claim:
        case "parity" | "window" | "cursor" | "slot" | "RAW" | "exists":
            return said.stmt_of(WaitFull)
        case "bytes":
            return said.stmt_of(ArriveFull)
        case "arrivals" | "release":
            return said.stmt_of(Release)
        case _:
            return said.stmt_of(WaitEmpty)


def _outcome(said: Spoken, outcome: Fails | Unknown) -> Obligation:
    if isinstance(outcome, Unknown):
        what = "the ring's protocol holds"
        return Obligation("I5", what, said.stmt_of(WaitFull), algebra.FALSE, unknown=outcome.reason)
    stmt = _blamed(said, outcome.claim)
    return Obligation(_CODES[outcome.claim], outcome.what, stmt, algebra.FALSE, witness=_cycle(outcome))


def _cycle(outcome: Fails) -> tuple[tuple[str, str], ...]:
    return tuple(("waits", each) for each in outcome.cycle)


def _question(said: Spoken, question: Question, ledger: Ledger) -> Obligation:
    code, stmt = _CODES[question.claim], _blamed(said, question.claim)
    if question.wanted is Sat:
        answer = ledger.prover.check(question.query.assertions)
        reason = f"{answer.solver} gave up: {answer.reason}" if isinstance(answer, GaveUp) else ""
        good = algebra.TRUE if isinstance(answer, Sat) else algebra.FALSE
        return Obligation(code, f"not so: {question.what}", stmt, good, unknown=reason, given="nothing")
    goal = algebra.negate(algebra.all_of(question.query.assertions))
    return Obligation(code, f"not so: {question.what}", stmt, goal, given="nothing", fault=question.what)


# -- what else the reading presumes ------------------------------------------------------------------------------


def _same_walk(roles: Sequence[Parsed], drainer: Parsed) -> Iterator[Obligation]:
    """I9: who fills walks over the same tiles, with as many uses of each, as who drains."""
    for role in roles:
        if role is drainer:
            continue
        uses = algebra.eq(*(_named(each, each.per_tile) for each in (role, drainer)))
        facts = () if role.laps.tiles is None else _of_tiles(role.laps.tiles)
        yield Obligation(
            "I9", "a slot is filled as often as it is drained, tile by tile", role.loop, uses, facts, drainer.loop
        )
        if role.worked is not algebra.TRUE or drainer.worked is not algebra.TRUE:
            both = algebra.eq(*(_named(each, algebra.pick(each.worked, 1, 0)) for each in (role, drainer)))
            yield Obligation(
                "I9", "tiles that one role leaves out the others leave out", role.loop, both, facts, drainer.loop
            )
        mine, theirs = role.laps.tiles, drainer.laps.tiles
        if mine is not None and theirs is not None:
            goal = algebra.eq(mine.stop, theirs.stop)
            yield Obligation("I9", "all roles walk over the same tiles", mine, goal, (), theirs, given="assumptions")
        elif mine is not theirs:
            refuse(role.loop, "one role walks over tiles, another does not")


def _named(role: Parsed, of_tile: Index) -> Index:
    """What is said of a role's tile, by the tile's number among those of its block."""
    tiles = role.laps.tiles
    return of_tile if tiles is None else substitute(of_tile, {tiles.symbol: algebra.sym(TILE)})


def _of_tiles(tiles: For) -> tuple[Cond, ...]:
    return (algebra.lt(algebra.sym(TILE), tiles.stop),)


def _tiles(tiles: Tiles, drainer: Parsed) -> Iterator[Obligation]:
    assert drainer.laps.tiles is not None
    for what, goal, hypotheses in enumerates(tiles):
        yield Obligation("I4", what, drainer.laps.tiles, goal, hypotheses, given="nothing")


def _along(line: Kernel, drainer: Parsed, tiles: Tiles | None) -> Iterator[Obligation]:
    """What is owed where the line has a tile's row and column in the place of its number."""
    counts = dict(zip(line.blocks, line.grid, strict=True))
    if tiles is None or drainer.laps.tiles is None or hilbert_tiles.ROW not in counts:
        return
    yield from hilbert_tiles.obligations(
        counts[hilbert_tiles.ROW], counts[hilbert_tiles.COLUMN], tiles.total, drainer.laps.tiles
    )


def _initialised(kernel: Kernel) -> Iterator[Obligation]:
    """I14: after the last barrier is initialised come the fence that tells the copies' unit, and a meeting of all."""
    made = [place for place, stmt in enumerate(kernel.prologue) if _is_barrier(stmt)]
    used = any(isinstance(stmt, Await) for stmt in walk(kernel.body))
    if not made or not used:
        return
    rest = kernel.prologue[made[-1] + 1 :]
    fence = next((p for p, s in enumerate(rest) if isinstance(s, Fence) and s.kind == "barrier_init"), None)
    met = fence is not None and any(
        isinstance(s, Sync) and s.barrier == "cta" and s.how == "meet" for s in rest[fence:]
    )
    if kernel.peers > 1:
        met = clusters.known(rest)
    yield Obligation(
        "I14",
        "barriers are initialised, fenced, and made known to all by a meeting before roles begin",
        kernel.prologue[made[-1]],
        algebra.TRUE if met else algebra.FALSE,
        fault="barriers are used before they are known to all: no fence and meeting follow their initialisation",
        help=_KNOWN if kernel.peers == 1 else _KNOWN_TO_ALL,
        replayable=kernel.peers > 1,
    )


_KNOWN = 'put `fence("barrier_init")` and `sync()` after the last barrier is made'
_KNOWN_TO_ALL = 'after the last barrier is made put `fence("barrier init")`, and after it `cluster.sync()`'


def _counted(kernel: Kernel, roles: Sequence[Parsed], tiles: Tiles | None) -> Iterator[Obligation]:
    """I28 of what the line leaves out: loops over tiles, and all that the other roles compute but their copies' places.

    There a tile's number is block + i * blocks, in the line one symbol: a multiple of it that fits, fits in its parts.
    """
    pairs = zip(kernel.blocks, kernel.grid, strict=True)
    assumed = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    known = (*assumed, *(algebra.lt(algebra.sym(block), count) for block, count in pairs))
    for role in roles:
        inside = set(walk(role.laps.tile))
        for stmt in walk(role.laps_body):
            roots = expressions(stmt) if isinstance(stmt, For | If | Await | Arrive) else ()
            facts = (*known, *_runs(role, tiles)) if stmt in inside else known
            yield from expression_divisor_obligations(stmt, roots, facts)
            if isinstance(stmt, For):
                yield from loop_width_obligations(stmt, role.facts if stmt in inside else ())
            elif isinstance(stmt, If):
                yield from width_obligations((stmt.cond,), stmt, role.inside, "a condition")


def _runs(role: Parsed, tiles: Tiles | None) -> tuple[Cond, ...]:
    """What holds where a tile is worked on: it is one of the role's, and there is one at all."""
    return role.facts if tiles is None else (*role.facts, algebra.le(1, tiles.total))


def _is_barrier(stmt: Stmt) -> bool:
    return isinstance(stmt, Alloc) and stmt.buffer.space == "barrier"
