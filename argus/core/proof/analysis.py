"""All that must be proved of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Read
from argus.core.ir import Alloc, Assume, Buffer, Copy, Kernel, Mma, Stmt, Sync, Tag, walk
from argus.core.proof.dataflow import reads
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.dataflow.flattened_views import FlattenedKernel, flatten_views
from argus.core.proof.dataflow.loop_invariants import LoopCarried, connect_carried, loop_carried
from argus.core.proof.dataflow.path_split import control_paths
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.timeline import NotModelled, Timeline, divides_safely, timeline
from argus.core.proof.limits import boxes, budgets, divisors, indirect_index, integers, memory
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import claims, programs, writes
from argus.core.proof.outputs.data_contracts import Promised, promised
from argus.core.proof.outputs.programs import ALONE, Others
from argus.core.proof.prover import Prover
from argus.core.proof.sync import divergent_waves, epochs, races, visibility
from argus.core.proof.sync.interlaunch import reading
from argus.core.proof.sync.roles import cluster_stores
from argus.core.proof.sync.roles.context import RefusedError
from argus.core.proof.sync.roles.isolation import apart, parts
from argus.core.proof.sync.roles.obligations import unrolled
from argus.core.proof.values import elementwise
from argus.core.proof.values.content import Left
from argus.core.proof.values.recognisers import folding, scales
from argus.core.proof.values.sums import Accumulator
from argus.core.query import Unsat
from argus.core.walk import mentions, symbols


@frozen(eq=False)
class Analysis:
    """What was found. unmodelled: constructs that leave every flow-based invariant open.

    assumptions: the kernel's own. facts: those, and that the block lies in the grid. promised: what knows more of the
    integers from memory that questions speak of; None if there are none. leaves: what each tensor that it writes holds
    afterwards, if all obligations are proved.
    """

    timeline: Timeline
    obligations: tuple[Obligation, ...]
    unmodelled: tuple[NotModelled, ...]
    assumptions: tuple[Cond, ...]
    facts: tuple[Cond, ...]
    promised: Promised | None = None
    leaves: Mapping[Buffer, Left] = field(factory=dict[Buffer, Left])


def analyse(kernel: Kernel, prover: Prover, others: Others = ALONE) -> Analysis:
    """Abstractly interpret the kernel and list what must hold; `prover` answers the questions on the way.

    others: the launches before and after it, where it is part of a program.
    """
    known = promised(kernel, prover)
    try:
        return evolve(_analyse(kernel, known or prover, others), promised=known)
    except ZeroDivisionError:
        return _unread(kernel, NotModelled(kernel.body[0], "something is divided by a number that may be zero"))


def _analyse(kernel: Kernel, prover: Prover, others: Others) -> Analysis:
    taken = programs.integers_taken(kernel, others)
    if taken is not None:
        return _unread(kernel, NotModelled(taken, "integers that a launch before wrote are not built yet"))
    if kernel.roles is None:
        rows = flatten_views(kernel) if others is ALONE else FlattenedKernel(kernel)
        alone = Agent(rows.kernel.body, kernel.threads, "cta", frozenset())
        found = _analysed(rows, prover, alone, others, lambda _: budgets.shared_memory_obligations(kernel))
        if not rows.seen or found.unmodelled:
            return found
        placed = _where_elements_lie(kernel, rows, prover)
        if isinstance(placed, NotModelled):
            return evolve(found, obligations=(), unmodelled=(placed,))
        return evolve(found, obligations=(*divisors.divisor_obligations(timeline(kernel)), *placed, *found.obligations))
    staged = next(filter(_is_staged, walk(kernel.body)), None)
    if staged is not None:
        return _unread(kernel, NotModelled(staged, "groups of `cp.async` in roles are not built yet in the verifier"))
    read = unrolled(kernel, prover)
    if isinstance(read, RefusedError):
        return _unread(kernel, NotModelled(read.stmt, read.reason))
    role, rings = read.role, read.rings
    agent = Agent(read.body, role.agent, role.name, rings)

    def more(found: Sequence[Accesses]) -> Iterator[Obligation]:
        yield from read.owed
        yield from apart(found, role, rings)
        for copies in read.fills:
            yield from parts(found[0], copies)
        if read.exchanged is not None:
            yield from cluster_stores.apart(found[0], read.exchanged)

    analysed = _analysed(FlattenedKernel(read.line), prover, agent, others, more)
    return evolve(
        analysed,
        obligations=(
            *budgets.role_register_obligations(kernel),
            *budgets.shared_memory_obligations(kernel),
            *analysed.obligations,
        ),
    )


def _is_staged(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.atom.completion.queue == "cp_async"


@frozen(eq=False)
class Agent:
    """Whose accesses `visibility` follows: its body, threads, the barrier where they meet, buffers left to rings."""

    body: tuple[Stmt, ...]
    threads: int
    meets: str
    rings: frozenset[Buffer]


def _where_elements_lie(kernel: Kernel, rows: FlattenedKernel, prover: Prover) -> tuple[Obligation, ...] | NotModelled:
    """What the loads owe whose elements lie where a view says, of the kernel as it is."""
    if not rows.gathered:
        return ()
    owed: list[Obligation] = []
    for line in _lines(kernel, prover):
        refused = next((each for each in line.unmodelled if not isinstance(each.stmt, Tag)), None)
        if refused is not None:
            return refused
        owed += memory.access_obligations(line, Accesses(line), rows.gathered.__contains__)
    return tuple(owed)


def _unread(kernel: Kernel, why: NotModelled) -> Analysis:
    """What can be said of a kernel whose roles have no reading: what needs none."""
    outside = tuple(stmt for stmt in kernel.prologue if isinstance(stmt, Alloc | Assume))
    line = timeline(evolve(kernel, prologue=outside, roles=None, epilogue=()))
    first = (
        *budgets.role_register_obligations(kernel),
        *budgets.shared_memory_obligations(kernel),
        *budgets.stage_obligations(kernel),
    )
    owed = (*budgets.budget_obligations(line, Accesses(line)), *first)
    return Analysis(line, owed, (why,), line.assumptions, line.facts)


def _analysed(
    rows: FlattenedKernel,
    prover: Prover,
    agent: Agent,
    others: Others,
    more: Callable[[Sequence[Accesses]], Iterator[Obligation]],
) -> Analysis:
    lines = _lines(rows.kernel, prover)
    first = lines[0]
    known = (first.assumptions, first.common)
    unmodelled = (*_data(rows.kernel), *(each for line in lines for each in line.unmodelled))
    found = tuple(Accesses(line) for line in lines)
    if unmodelled:
        return Analysis(first, tuple(budgets.budget_obligations(first, found[0])), unmodelled, *known)
    owed = [*more(found)]
    leaves: dict[Buffer, Left] = {}
    for line, accesses in zip(lines, found, strict=True):
        flow = Flow(
            line, prover, line.facts, accesses, elementwise.content, folding.content, ways=found, seen=rows.seen
        )
        flow.given.update(reading(flow, others.brought))
        owed += _obligations(flow, agent, others)
        leaves |= programs.leaves(flow, others)
    return Analysis(first, tuple(owed), (), *known, leaves=leaves)


def _data(kernel: Kernel) -> Iterator[NotModelled]:
    """What no launcher can check of integers from memory, or can count blocks by."""
    if any(not divides_safely(buffer.promise, ()) for buffer in kernel.parameters):
        yield NotModelled(kernel.body[0], "a promise that divides by a size, which may be zero")
    if any(mentions(extent, (Read,)) for extent in kernel.grid):
        yield NotModelled(kernel.body[0], "a grid that integers from memory count")


def _lines(kernel: Kernel, prover: Prover) -> tuple[Timeline, ...]:
    """The lines that blocks run, those that no block does left out."""
    ways = control_paths(kernel)
    lines = tuple(epochs.checked(divergent_waves.apart(timeline(way.kernel, way.given))) for way in ways)
    taken = tuple(line for line in lines if not line.given or not isinstance(prover.check(line.facts), Unsat))
    return taken or lines[:1]


def _obligations(flow: Flow, agent: Agent, others: Others) -> Iterator[Obligation]:
    """Those of one line; in what blocks of it owe, what decides that they run it is given."""
    for each in _owed(flow, agent, others):
        decided = flow.timeline.facts if each.given == "facts" and len(flow.ways) > 1 else ()
        yield evolve(each, hypotheses=(*each.hypotheses, *decided)) if decided else each


def _owed(flow: Flow, agent: Agent, others: Others) -> Iterator[Obligation]:
    line = flow.timeline
    sums = tuple(Accumulator(flow, buffer) for buffer in _accumulators(line))
    for accumulator in sums:
        flow.sums[accumulator.buffer] = accumulator.content
    tiles = LoopCarried(flow, loop_carried(line))
    connect_carried(flow, tiles)
    yield from programs.of_programs(_by_itself(flow, sums, tiles, agent), others, flow.sums)
    yield from programs.obligations(flow, others)


def _by_itself(flow: Flow, sums: tuple[Accumulator, ...], tiles: LoopCarried, agent: Agent) -> Iterator[Obligation]:
    line, accesses = flow.timeline, flow.accesses
    yield from budgets.budget_obligations(line, accesses)
    yield from divisors.divisor_obligations(line)
    yield from integers.control_width_obligations(line)
    yield from indirect_index.indirect_index_obligations(line)
    apart = {each.flat for each in flow.seen if each.gathered}
    yield from memory.access_obligations(line, accesses, lambda buffer: buffer not in apart)
    yield from _barriers(line)
    yield from _global_order(line)
    yield from reads.read_obligations(flow)
    if "lds" in line.kernel.target.queues:
        yield from races.obligations(flow)
    else:
        yield from visibility.obligations(accesses, agent.body, agent.threads, agent.meets, agent.rings)
        yield from boxes.descriptor_obligations(line)
    for accumulator in sums:
        yield from accumulator.obligations()
    yield from tiles.obligations()
    yield from claims.products(flow, (*sums, *tiles.sums.values()))
    yield from elementwise.agreements(flow)
    yield from scales.obligations(flow)
    yield from claims.asserted(flow, sums)
    yield from writes.unclaimed(flow)


def _accumulators(line: Timeline) -> tuple[Buffer, ...]:
    found: dict[Buffer, None] = {}
    elsewhere = loop_carried(line)
    for step in line.steps:
        if isinstance(step.stmt, Mma) and step.stmt.target.buffer not in elsewhere:
            found[step.stmt.target.buffer] = None
    return tuple(found)


def _barriers(line: Timeline) -> Iterator[Obligation]:
    """I32: every wave arrives equally often; of barriers that waves see differently, in all."""
    for step in line.steps:
        if isinstance(step.stmt, Sync) and line.kernel.thread not in symbols(step.guard):
            plain = step.stmt.barrier == "cta" and step.stmt.how == "meet" and step.stmt.threads is None
            yield Obligation(
                "I32",
                "every wave arrives at this barrier equally often",
                step.stmt,
                algebra.TRUE if plain else algebra.FALSE,
                step.context,
                unknown="" if plain else "only barriers of the whole block are modelled",
            )
    yield from epochs.obligations(line)


def _global_order(line: Timeline) -> Iterator[Obligation]:
    """Tensors that are both read and written would need an order between blocks, which is not modelled."""
    read = {s.stmt.source.buffer for s in line.steps if isinstance(s.stmt, Copy)}
    for step in line.steps:
        if not isinstance(step.stmt, Copy) or step.stmt.target.buffer.space != "global":
            continue
        name = step.stmt.target.buffer.name
        both = step.stmt.target.buffer in read
        yield Obligation(
            "I38" if not both else "I5",
            f"`{name}` is not read by the kernel that writes it",
            step.stmt,
            algebra.FALSE if both else algebra.TRUE,
            step.context,
            unknown="reads and writes of one global tensor are not modelled" if both else "",
        )
