"""Sequentialises a kernel of roles and collects the obligations that justify it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.check.parts import views
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
from argus.core.proof.obligation import Obligation
from argus.core.proof.prover import Prover
from argus.core.proof.sync.roles import cluster_stores, clusters, hilbert_tiles
from argus.core.proof.sync.roles.agent_exchange import AgentExchange, find_agent_exchange
from argus.core.proof.sync.roles.agent_order import check_agent_order
from argus.core.proof.sync.roles.cluster_stores import Exchange, find_exchange
from argus.core.proof.sync.roles.context import TILE, ProofContext, RefusedError, refuse
from argus.core.proof.sync.roles.counter_bounds import counter_bound_obligations
from argus.core.proof.sync.roles.events import MmaEvent, ReadEvent
from argus.core.proof.sync.roles.extract_protocol import ExtractedProtocol, extract_protocol, protocol_name
from argus.core.proof.sync.roles.in_flight_mma import in_flight_obligations
from argus.core.proof.sync.roles.nested_tiles import Pairs
from argus.core.proof.sync.roles.omitted_integers import divisor_obligations, width_obligations
from argus.core.proof.sync.roles.one_stage import with_stage_axes
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, find_rings, parse_role
from argus.core.proof.sync.roles.rounds import enumeration_lemmas, in_plain_rounds
from argus.core.proof.sync.roles.sequential import TileEnumeration, sequential_kernel, tile_enumeration
from argus.core.proof.sync.roles.tile_coordinates import Coordinates, coordinate_obligations, with_coordinates
from argus.core.protocol.graph import check_event_graph
from argus.core.protocol.lemma import Certified
from argus.core.protocol.obligations import Question, certify_shape, protocol_obligations
from argus.core.protocol.outcome import Fails, Unknown
from argus.core.protocol.ring import ArriveFull, Release, WaitEmpty, WaitFull
from argus.core.query import GaveUp, Sat
from argus.core.tile_rounds import TileRounds
from argus.core.walk import substitute


@frozen(eq=False)
class SequentialKernel:
    """A sequentialised kernel of roles.

    kernel: the sequential kernel of one consumer agent on one tile. body: all statements of that agent. rings: the
    buffers that the ring protocol covers. fills: for each ring, the copies into a stage. obligations: the conditions of
    the sequentialisation. exchange: the stores of a cluster's blocks into each other, if any. met: what the agents of
    the role exchange, if anything.
    """

    kernel: Kernel
    role: Role
    body: tuple[Stmt, ...]
    rings: frozenset[Buffer]
    fills: tuple[tuple[Copy, ...], ...]
    obligations: tuple[Obligation, ...]
    exchange: Exchange | None = None
    met: AgentExchange | None = None


def sequentialise(kernel: Kernel, prover: Prover, pairs: Pairs | None = None) -> SequentialKernel | RefusedError:
    """The sequentialised kernel, or the statement that is outside the model. pairs: what the tiles are, if known."""
    assert kernel.roles is not None
    facts = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    proof = ProofContext(prover, facts)
    try:
        return _sequentialise(kernel, proof, pairs)
    except RefusedError as why:
        return why


def _sequentialise(kernel: Kernel, proof: ProofContext, pairs: Pairs | None) -> SequentialKernel:
    kernel = with_stage_axes(kernel)
    plain = in_plain_rounds(kernel)
    kernel = kernel if plain is None else plain
    if kernel.peers > 1:
        kernel = clusters.with_rank_axis(kernel)
    met = find_agent_exchange(kernel)
    exchanged = find_exchange(kernel)
    kernel = kernel if exchanged is None else exchanged.rest
    assert kernel.roles is not None
    roles = tuple(parse_role(role, proof) for role in kernel.roles.roles if not _idle(role))
    if not roles:
        refuse(kernel.roles, "roles that do nothing")
    consumers = [role for role in roles if not role.fills]
    if len(consumers) != 1:
        refuse(kernel.roles, f"{len(consumers)} consumer roles; exactly one is modelled")
    for stmt in kernel.prologue:
        if isinstance(stmt, Copy | Map | Mma | Fold | For | If):
            refuse(stmt, "work before the roles begin")
        whole = isinstance(stmt, Sync) and (stmt.barrier, stmt.how, stmt.threads) == ("cta", "meet", None)
        if isinstance(stmt, Sync) and not whole and stmt.barrier != "cluster":
            refuse(stmt, "a barrier before the roles that is not for the whole block")
    for stmt in kernel.epilogue:
        if not isinstance(stmt, Assert) and not (isinstance(stmt, Sync) and stmt.barrier == "cluster"):
            refuse(stmt, "work after the roles have ended")
    for role in roles:
        if role.fills:
            _check_producer(role)
    rings = find_rings(roles)
    for role in roles if kernel.peers > 1 else ():
        clusters.check_rank_independence(kernel, role)
    _check_consumer(consumers[0], frozenset(buffer for ring in rings for buffer in ring.buffers), met)
    turning = frozenset(role for role in roles if check_agent_order(kernel, role, proof))
    extracted = extract_protocol(kernel, roles, rings, turning, proof)
    consumer = consumers[0]
    tiles = tile_enumeration(kernel, consumer)
    line = sequential_kernel(kernel, consumer, rings, extracted, tiles, exchanged, met)
    line, coordinates = (line, ()) if tiles is None else with_coordinates(line, tiles.number, pairs)
    conditions = (
        *(each for role in roles for each in in_flight_obligations(role, rings, proof)),
        *_protocol_obligations(extracted, proof),
        *_same_tiles_obligations(roles, consumer),
        *_enumeration_obligations(tiles, consumer, zigzag=plain is not None),
        *_initialisation_obligation(kernel),
        *width_obligations(roles, pairs),
        *divisor_obligations(kernel, roles, tiles, line, coordinates),
        *_order_obligations(line, consumer, tiles, coordinates),
        *counter_bound_obligations(kernel, roles, rings, tiles, proof),
        *(_cluster_obligations(kernel, rings, extracted) if kernel.peers > 1 else ()),
        *(() if exchanged is None else cluster_stores.exchange_obligations(kernel, exchanged)),
    )
    buffers = frozenset(buffer for ring in rings for buffer in ring.buffers)
    fills = tuple(
        tuple(made for copy in ring.copies for made in clusters.received_copies(kernel, copy)) for ring in rings
    )
    return SequentialKernel(line, consumer.role, consumer.statements, buffers, fills, conditions, exchanged, met)


def _cluster_obligations(
    kernel: Kernel, rings: Sequence[RingStorage], extracted: ExtractedProtocol
) -> Iterator[Obligation]:
    producers = {protocol_name(ring.producer, 0) for ring in rings}
    finishes = all(role.finishes for role in extracted.protocol.roles if role.name in producers)
    return clusters.cluster_obligations(kernel, rings, finishes=finishes)


def _idle(role: Role) -> bool:
    """Whether a role has no observable effect."""
    return all(isinstance(stmt, Policy) for stmt in role.body)


def _check_producer(role: ParsedRole) -> None:
    """Raises RefusedError if a producer role does anything but fill rings."""
    for stmt in walk(role.role.body):
        plain = isinstance(stmt, Let | Advance | Await | Arrive | For | If | One | Policy | Fence)
        fill = isinstance(stmt, Copy) and stmt.signal is not None
        if not plain and not fill and not (isinstance(stmt, Alloc) and stmt.buffer.space == "counter"):
            refuse(stmt, f"role `{role.role.name}` fills rings and does something else too")


def _check_consumer(role: ParsedRole, rings: frozenset[Buffer], met: AgentExchange | None) -> None:
    """Raises RefusedError if the consumer accesses stages other than by its events, or uses others' barriers.

    Shared memory that is in no ring is its own: producers do nothing but fill rings. So it is checked as that of a
    kernel without roles, whatever its index is, and that agents keep apart.
    """
    seen = (*role.prologue, *(event for run in role.use_loops for event in run.events), *role.epilogue)
    known = {event.stmt for event in seen if isinstance(event.action, MmaEvent | ReadEvent)}
    for stmt in walk(role.statements):
        if isinstance(stmt, Edit) and role.role.agents > 1:
            refuse(stmt, "a tensor map that several agents edit")
        touched = {view.buffer for view in views(stmt)} & rings
        if touched and stmt not in known and not isinstance(stmt, Alloc):
            what = "an access to a slot of a ring other than by a product or load of the awaited use"
            refuse(stmt, what, _STORED if isinstance(stmt, Copy) and stmt.atom.proxy == "async" else "")
        if isinstance(stmt, Copy) and stmt.target.buffer in rings:
            refuse(stmt, "a slot of a ring that its consumer writes")
        if isinstance(stmt, Sync) and not _is_known_barrier(stmt, role.role, met):
            refuse(stmt, "a barrier that is not for exactly the agent's threads")


_STORED = (
    "load the stage into registers, release it once all threads have read it, and store from a tile outside the ring: "
    '`copy(slot.a, x)`, the release, `copy(x, box)`, `fence("async proxy")`, `sync()`, then the bulk store of `box`; '
    '`bulk.wait(0, of="reads")` before `box` is written again'
)


def _is_known_barrier(stmt: Sync, role: Role, met: AgentExchange | None) -> bool:
    """Whether a barrier is of exactly the agent's threads, or of those of all agents."""
    of_all = met is not None and met.meets(stmt)
    return of_all or (stmt.barrier, stmt.how, stmt.threads) == (role.name, "meet", role.agent)


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


def _protocol_obligations(extracted: ExtractedProtocol, proof: ProofContext) -> Iterator[Obligation]:
    """The protocol's queries to the solver, the lemma on one stage, and the event graph."""
    conditions = protocol_obligations(extracted.protocol)
    if isinstance(conditions, Fails | Unknown):
        yield _outcome_obligation(extracted, conditions)
        return
    for question in conditions.questions:
        yield _question_obligation(extracted, question, proof)
    for shape in conditions.shapes:
        found = certify_shape(shape)
        what = "on one slot, every read sees its own use and no wait blocks for ever"
        if isinstance(found, Certified):
            yield Obligation("I5", what, extracted.stmt_of(WaitFull), algebra.TRUE, compared=found.states)
        else:
            yield _outcome_obligation(extracted, found)
    if conditions.incomplete:
        yield _outcome_obligation(extracted, Unknown(conditions.incomplete))
    outcome = check_event_graph(extracted.protocol)
    if isinstance(outcome, Fails | Unknown):
        yield _outcome_obligation(extracted, outcome)
        return
    for code, what in _GRAPH:
        yield Obligation(code, what, extracted.stmt_of(WaitFull), algebra.TRUE)


_GRAPH = (
    ("I5", "each use is read after its copies have completed and before its slot is filled again"),
    ("I6", "no barrier is two phases ahead of a wait"),
    ("I9", "no waits form a cycle"),
)


def _blamed_stmt(extracted: ExtractedProtocol, claim: str) -> Stmt:
    match claim:
        case "parity" | "window" | "cursor" | "slot" | "RAW" | "exists":
            return extracted.stmt_of(WaitFull)
        case "bytes":
            return extracted.stmt_of(ArriveFull)
        case "arrivals" | "release":
            return extracted.stmt_of(Release)
        case _:
            return extracted.stmt_of(WaitEmpty)


def _outcome_obligation(extracted: ExtractedProtocol, outcome: Fails | Unknown) -> Obligation:
    if isinstance(outcome, Unknown):
        what = "the ring's protocol holds"
        return Obligation("I5", what, extracted.stmt_of(WaitFull), algebra.FALSE, unknown=outcome.reason)
    stmt = _blamed_stmt(extracted, outcome.claim)
    return Obligation(_CODES[outcome.claim], outcome.what, stmt, algebra.FALSE, witness=_cycle(outcome))


def _cycle(outcome: Fails) -> tuple[tuple[str, str], ...]:
    return tuple(("waits", each) for each in outcome.cycle)


def _question_obligation(extracted: ExtractedProtocol, question: Question, proof: ProofContext) -> Obligation:
    code, stmt = _CODES[question.claim], _blamed_stmt(extracted, question.claim)
    if question.wanted is Sat:
        answer = proof.prover.check(question.query.assertions)
        reason = f"{answer.solver} gave up: {answer.reason}" if isinstance(answer, GaveUp) else ""
        good = algebra.TRUE if isinstance(answer, Sat) else algebra.FALSE
        return Obligation(code, f"not so: {question.what}", stmt, good, unknown=reason, premises="nothing")
    goal = algebra.negate(algebra.all_of(question.query.assertions))
    return Obligation(code, f"not so: {question.what}", stmt, goal, premises="nothing", fault=question.what)


# -- other conditions --------------------------------------------------------------------------------------------


def _same_tiles_obligations(roles: Sequence[ParsedRole], consumer: ParsedRole) -> Iterator[Obligation]:
    """I9: producers and consumer process the same tiles, with equally many uses of each."""
    for role in roles:
        if role is consumer:
            continue
        uses = algebra.eq(*(_over_tile_number(each, each.per_tile) for each in (role, consumer)))
        facts = () if role.tile_loop.tiles is None else _of_tiles(role.tile_loop.tiles)
        yield Obligation(
            "I9", "a slot is filled as often as it is consumed, tile by tile", role.loop, uses, facts, consumer.loop
        )
        if role.active is not algebra.TRUE or consumer.active is not algebra.TRUE:
            both = algebra.eq(*(_over_tile_number(each, algebra.pick(each.active, 1, 0)) for each in (role, consumer)))
            yield Obligation("I9", "all roles skip the same tiles", role.loop, both, facts, consumer.loop)
        mine, theirs = role.tile_loop.tiles, consumer.tile_loop.tiles
        if mine is not None and theirs is not None:
            goal = algebra.eq(mine.stop, theirs.stop)
            yield Obligation("I9", "all roles process the same tiles", mine, goal, (), theirs, premises="assumptions")
        elif mine is not theirs:
            refuse(role.loop, "one role has a loop over tiles, another does not")


def _over_tile_number(role: ParsedRole, of_tile: Index) -> Index:
    """An expression over a role's tile loop variable, over the tile's number in its block."""
    tiles = role.tile_loop.tiles
    return of_tile if tiles is None else substitute(of_tile, {tiles.symbol: algebra.sym(TILE)})


def _of_tiles(tiles: For) -> tuple[Cond, ...]:
    return (algebra.lt(algebra.sym(TILE), tiles.stop),)


def _enumeration_obligations(
    tiles: TileEnumeration | None, consumer: ParsedRole, *, zigzag: bool
) -> Iterator[Obligation]:
    if tiles is None or tiles.block is None:
        return
    assert consumer.tile_loop.tiles is not None
    for what, goal, hypotheses in enumeration_lemmas(TileRounds(tiles.blocks, zigzag)):
        yield Obligation("I4", what, consumer.tile_loop.tiles, goal, hypotheses, premises="nothing")


def _order_obligations(
    line: Kernel, consumer: ParsedRole, tiles: TileEnumeration | None, coordinates: Sequence[Coordinates]
) -> Iterator[Obligation]:
    """The obligations of a sequential kernel with a tile's coordinates in place of its number."""
    if tiles is not None and consumer.tile_loop.tiles is not None:
        yield from hilbert_tiles.hilbert_obligations(line, tiles.total, consumer.tile_loop.tiles)
        yield from coordinate_obligations(line, coordinates, consumer.tile_loop.tiles)


def _initialisation_obligation(kernel: Kernel) -> Iterator[Obligation]:
    """I14: after the last barrier is initialised come a fence for the async proxy, and a barrier of all threads."""
    made = [place for place, stmt in enumerate(kernel.prologue) if _is_barrier(stmt)]
    used = any(isinstance(stmt, Await) for stmt in walk(kernel.body))
    if not made or not used:
        return
    rest = kernel.prologue[made[-1] + 1 :]
    fence = next((p for p, s in enumerate(rest) if isinstance(s, Fence) and s.kind == "barrier_init"), None)
    published = fence is not None and any(
        isinstance(s, Sync) and s.barrier == "cta" and s.how == "meet" for s in rest[fence:]
    )
    if kernel.peers > 1:
        published = clusters.publishes_barrier_init(rest)
    yield Obligation(
        "I14",
        "barriers are initialised, fenced, and published by a barrier of all threads before the roles begin",
        kernel.prologue[made[-1]],
        algebra.TRUE if published else algebra.FALSE,
        fault="barriers are used before all threads see them: no fence and barrier follow their initialisation",
        help=_PUBLISH if kernel.peers == 1 else _PUBLISH_TO_CLUSTER,
        replayable=kernel.peers > 1,
    )


_PUBLISH = 'put `fence("barrier_init")` and `sync()` after the last barrier is created'
_PUBLISH_TO_CLUSTER = 'put `fence("barrier init")` and then `cluster.sync()` after the last barrier is created'


def _is_barrier(stmt: Stmt) -> bool:
    return isinstance(stmt, Alloc) and stmt.buffer.space == "barrier"
