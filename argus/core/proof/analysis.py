"""Runs the abstract interpretation of a kernel and collects every proof obligation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Read
from argus.core.ir import Alloc, Assume, Buffer, Copy, Kernel, Mma, Stmt, Sync, Tag
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.dataflow.flattened_views import FlattenedKernel, flatten_views
from argus.core.proof.dataflow.path_split import control_paths
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.timeline import NotModelled, Timeline, divides_safely, timeline
from argus.core.proof.limits import boxes, budgets, divisors, indirect_index, integers, memory
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import programs, writes
from argus.core.proof.outputs.data_contracts import PromiseProver, promise_prover
from argus.core.proof.outputs.program_context import NO_PROGRAM, ProgramContext
from argus.core.proof.outputs.supertile_forms import with_supertile_forms
from argus.core.proof.prover import Prover
from argus.core.proof.sync import cluster_exchange, divergent_waves, epochs, races, visibility
from argus.core.proof.sync.drained_loops import iterations_as_blocks
from argus.core.proof.sync.roles import agent_exchange, cluster_stores
from argus.core.proof.sync.roles.context import RefusedError
from argus.core.proof.sync.roles.isolation import disjoint_fill_obligations, isolation_obligations
from argus.core.proof.sync.roles.nested_tiles import OneLoop, in_one_loop
from argus.core.proof.sync.roles.obligations import sequentialise
from argus.core.proof.tile_claims import TileClaims, tile_claims
from argus.core.proof.values.content import TensorContent, TensorData
from argus.core.proof.values.held.between import Left
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.query import Unsat
from argus.core.walk import mentions, symbols


@frozen(eq=False)
class Analysis:
    """The result of `analyse`.

    unmodelled: constructs outside the model; if there are any, every data-flow invariant is undecided.
    assumptions: those that the kernel states. facts: the assumptions, and that the block lies in the grid.
    promise_prover: a prover that adds the promises on integers from memory; None if the kernel reads none.
    tensors_after: the content of each written tensor after the kernel, provided that all obligations are proved.
    flows: the data flow of each control path, after its obligations were listed. values_after: the value of each
    written tensor after a launch of a program that claims formulas, or why that is not known.
    """

    timeline: Timeline
    obligations: tuple[Obligation, ...]
    unmodelled: tuple[NotModelled, ...]
    assumptions: tuple[Cond, ...]
    facts: tuple[Cond, ...]
    promise_prover: PromiseProver | None = None
    tensors_after: Mapping[Buffer, TensorContent] = field(factory=dict[Buffer, TensorContent])
    flows: tuple[ValueFlow, ...] = ()
    values_after: Mapping[Buffer, Left | str] = field(factory=dict[Buffer, "Left | str"])


def analyse(kernel: Kernel, prover: Prover, others: ProgramContext = NO_PROGRAM) -> Analysis:
    """Interpret the kernel abstractly and list its obligations. prover: decides the queries of the interpretation.

    others: the launches before and after this one, if the kernel is part of a program.
    """
    try:
        nested = in_one_loop(kernel)
    except RefusedError as why:
        return _unmodelled_kernel(kernel, NotModelled(why.stmt, why.reason, why.advice))
    kernel = kernel if nested is None else nested.kernel
    known = promise_prover(kernel, prover, others.integers)
    try:
        return evolve(_analyse(with_supertile_forms(kernel), known or prover, others, nested), promise_prover=known)
    except ZeroDivisionError:
        return _unmodelled_kernel(kernel, NotModelled(kernel.body[0], "a divisor that may be zero"))
    except RecursionError:
        return _unmodelled_kernel(
            kernel, NotModelled(kernel.body[0], "a value of too many operations, one after another")
        )


def _analyse(kernel: Kernel, prover: Prover, others: ProgramContext, nested: OneLoop | None) -> Analysis:
    integer = programs.reads_integer_of_program(kernel, others)
    if integer is not None:
        reason = "integers written by an earlier launch are not supported yet"
        return _unmodelled_kernel(kernel, NotModelled(integer, reason))
    if any(mentions(extent, (Read,)) for extent in kernel.grid):
        reason = "a grid extent that depends on integers from memory"
        return _unmodelled_kernel(kernel, NotModelled(kernel.body[0], reason))
    if kernel.roles is None:
        return _analyse_block(kernel, prover, others)
    read = sequentialise(kernel, prover, None if nested is None else nested.pairs)
    if isinstance(read, RefusedError):
        return _unmodelled_kernel(kernel, NotModelled(read.stmt, read.reason, read.advice))
    role, met = read.role, read.met
    covered = read.rings | (frozenset[Buffer]() if met is None else met.buffers)
    agent = Agent(read.body if met is None else met.of_one_agent(read.body), role.agent, role.name, covered)

    def extra_obligations(found: Sequence[Accesses]) -> Iterator[Obligation]:
        yield from read.obligations
        yield from () if nested is None else nested.obligations
        yield from isolation_obligations(found, role, covered)
        if met is not None:
            yield from agent_exchange.exchange_obligations(found[0], read.body, met)
        for copies in read.fills:
            yield from disjoint_fill_obligations(found[0], copies)
        if read.exchange is not None:
            yield from cluster_stores.disjoint_store_obligations(found[0], read.exchange.received)

    analysed = _analyse_agent(FlattenedKernel(read.kernel), prover, agent, others, extra_obligations)
    return evolve(
        analysed,
        obligations=(
            *budgets.role_register_obligations(kernel),
            *budgets.shared_memory_obligations(kernel),
            *analysed.obligations,
        ),
    )


def _analyse_block(kernel: Kernel, prover: Prover, others: ProgramContext) -> Analysis:
    """`_analyse` of a kernel without roles."""
    try:
        exchanging = cluster_exchange.block_of_cluster(kernel)
    except RefusedError as why:
        return _unmodelled_kernel(kernel, NotModelled(why.stmt, why.reason, why.advice))
    launched, kernel = kernel, iterations_as_blocks(kernel if exchanging is None else exchanging.kernel)
    flattened = flatten_views(kernel) if others is NO_PROGRAM else FlattenedKernel(kernel)

    def extra_obligations(found: Sequence[Accesses]) -> Iterator[Obligation]:
        yield from budgets.shared_memory_obligations(launched)
        if exchanging is not None:
            yield from cluster_exchange.exchange_obligations(exchanging, found[0])

    block = Agent(flattened.kernel.body, kernel.threads, "cta", frozenset())
    found = _analyse_agent(flattened, prover, block, others, extra_obligations)
    if not flattened.replaced or found.unmodelled:
        return found
    gathered = _gather_obligations(kernel, flattened, prover)
    if isinstance(gathered, NotModelled):
        return evolve(found, obligations=(), unmodelled=(gathered,))
    return evolve(found, obligations=(*divisors.divisor_obligations(timeline(kernel)), *gathered, *found.obligations))


@frozen(eq=False)
class Agent:
    """The threads whose shared-memory accesses `visibility` checks: the block, or one role.

    threads: their number. barrier: the barrier that synchronises them.
    rings: buffers that the ring protocol covers instead.
    """

    body: tuple[Stmt, ...]
    threads: int
    barrier: str
    rings: frozenset[Buffer]


def _gather_obligations(
    kernel: Kernel, flattened: FlattenedKernel, prover: Prover
) -> tuple[Obligation, ...] | NotModelled:
    """Access obligations of gathered loads, computed on the kernel before its views are flattened."""
    if not flattened.gathered:
        return ()
    obligations: list[Obligation] = []
    for line in _feasible_timelines(kernel, prover):
        refused = next((each for each in line.unmodelled if not isinstance(each.stmt, Tag)), None)
        if refused is not None:
            return refused
        obligations += memory.access_obligations(line, Accesses(line), flattened.gathered.__contains__)
    return tuple(obligations)


def _unmodelled_kernel(kernel: Kernel, why: NotModelled) -> Analysis:
    """The analysis of a kernel that is not modelled: only the obligations that need no data flow."""
    declarations = tuple(stmt for stmt in kernel.prologue if isinstance(stmt, Alloc | Assume))
    line = timeline(evolve(kernel, prologue=declarations, roles=None, epilogue=()))
    first = (
        *budgets.role_register_obligations(kernel),
        *budgets.shared_memory_obligations(kernel),
        *budgets.stage_obligations(kernel),
    )
    obligations = (*budgets.budget_obligations(line, Accesses(line)), *first)
    return Analysis(line, obligations, (why,), line.assumptions, line.facts)


def _analyse_agent(
    flattened: FlattenedKernel,
    prover: Prover,
    agent: Agent,
    others: ProgramContext,
    extra_obligations: Callable[[Sequence[Accesses]], Iterator[Obligation]],
) -> Analysis:
    lines = _feasible_timelines(flattened.kernel, prover)
    first = lines[0]
    known = (first.assumptions, first.common)
    unmodelled = (*_unsupported_promises(flattened.kernel), *(each for line in lines for each in line.unmodelled))
    found = tuple(Accesses(line) for line in lines)
    if unmodelled:
        return Analysis(first, tuple(budgets.budget_obligations(first, found[0])), unmodelled, *known)
    obligations = [*extra_obligations(found)]
    after: dict[Buffer, TensorContent] = {}
    left: dict[Buffer, Left | str] = {}
    flows: list[ValueFlow] = []
    for line, accesses in zip(lines, found, strict=True):
        flow = Flow(
            line,
            prover,
            line.facts,
            accesses,
            path_accesses=found,
            replaced=flattened.replaced,
            decided=others.decided,
        )
        flow.launch_records.update({b: c.names for b, c in others.before.items() if isinstance(c, TensorData)})
        mine = programs.values_after(flow, others)
        here = evolve(others, left=mine)
        tiles = tile_claims(flow, here)
        obligations += _conditional_obligations(flow, agent, tiles, here)
        after |= tiles.left
        left |= mine
        flows.append(tiles.flow)
    return Analysis(first, tuple(obligations), (), *known, tensors_after=after, flows=tuple(flows), values_after=left)


def _unsupported_promises(kernel: Kernel) -> Iterator[NotModelled]:
    """Reasons to refuse a kernel: promises that a launcher cannot check."""
    if any(not divides_safely(buffer.promise, ()) for buffer in kernel.parameters):
        yield NotModelled(kernel.body[0], "a promise that divides by a size that may be zero")


def _feasible_timelines(kernel: Kernel, prover: Prover) -> tuple[Timeline, ...]:
    """One timeline per control path, without the paths whose conditions are unsatisfiable."""
    paths = control_paths(kernel)
    lines = tuple(
        epochs.check_divergence(divergent_waves.split_divergent_steps(timeline(path.kernel, path.path_condition)))
        for path in paths
    )
    feasible = tuple(
        line for line in lines if not line.path_condition or not isinstance(prover.check(line.facts), Unsat)
    )
    return feasible or lines[:1]


def _conditional_obligations(
    flow: Flow, agent: Agent, tiles: TileClaims, others: ProgramContext
) -> Iterator[Obligation]:
    """The obligations of one control path, with the path condition as a hypothesis if there are several paths."""
    for each in _path_obligations(flow, agent, tiles, others):
        path = flow.timeline.facts if each.premises == "facts" and len(flow.path_accesses) > 1 else ()
        yield evolve(each, hypotheses=(*each.hypotheses, *path)) if path else each


def _path_obligations(flow: Flow, agent: Agent, tiles: TileClaims, others: ProgramContext) -> Iterator[Obligation]:
    """The obligations of one control path, without its path condition."""
    own = _kernel_obligations(flow, agent, tiles)
    yield from programs.split_reduction_obligations(own, others, _accumulators(flow.timeline))
    yield from programs.program_obligations(tiles.flow, others, tiles.left)


def _kernel_obligations(flow: Flow, agent: Agent, tiles: TileClaims) -> Iterator[Obligation]:
    """The obligations of one launch on one control path, besides those towards other launches."""
    line, accesses = flow.timeline, flow.accesses
    yield from budgets.budget_obligations(line, accesses)
    yield from divisors.divisor_obligations(line)
    yield from integers.control_width_obligations(line)
    yield from indirect_index.indirect_index_obligations(line)
    gathered = {each.flat for each in flow.replaced if each.gathered}
    yield from memory.access_obligations(line, accesses, lambda buffer: buffer not in gathered)
    yield from _barrier_obligations(line)
    yield from _global_order_obligations(line)
    if "lds" in line.kernel.target.queues:
        yield from races.race_obligations(flow)
    else:
        yield from visibility.visibility_obligations(accesses, agent.body, agent.threads, agent.barrier, agent.rings)
        yield from boxes.descriptor_obligations(line)
    yield from tiles.obligations
    yield from writes.unclaimed_output_obligations(tiles.flow)


def _accumulators(line: Timeline) -> frozenset[Buffer]:
    return frozenset(step.stmt.target.buffer for step in line.steps if isinstance(step.stmt, Mma))


def _barrier_obligations(line: Timeline) -> Iterator[Obligation]:
    """I32: all waves arrive equally often at each barrier; in total if waves take different branches."""
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
    yield from epochs.barrier_balance_obligations(line)


def _global_order_obligations(line: Timeline) -> Iterator[Obligation]:
    """I38: no tensor is both read and written, because the order between blocks is not modelled."""
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
