"""Builds the agents and units of the blocks of a cluster from the roles of their kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.core.index import Node, Symbol
from argus.core.ir import Copy, For, Holds, If, Kernel, Let, Map, Mma, Num, Role, Stmt, View, Wait, walk
from argus.core.walk import symbols
from argus.interp.compiled_kernel import Scalars
from argus.interp.machine.agents import Agent, Cluster, Machine, Unit
from argus.interp.machine.barriers import Barriers
from argus.interp.machine.clocks import Strands
from argus.interp.machine.waves import Frame
from argus.interp.memory.shadow import ShadowMemory
from argus.interp.search.schedule import Actor
from argus.interp.state import Launch
from argus.interp.values.nodes import parts_first
from argus.interp.violation import Path, not_built

Body = tuple[Stmt, ...]


def assemble(launch: Launch, indices: Sequence[tuple[int, ...]]) -> Cluster:
    """The cluster of the blocks with these indices, ordered by rank."""
    kernel = launch.prepared.kernel
    roles = () if kernel.roles is None else kernel.roles.roles
    leaders = {0, *(_first(role, number) for role in roles for number in range(role.agents))}
    every = {rank * kernel.threads + leader for rank in range(len(indices)) for leader in leaders}
    cluster = Cluster(launch, Strands.cut(kernel.threads * len(indices), kernel.target.unit, every))
    for rank, index in enumerate(indices):
        owner = f" of rank {rank}" if len(indices) > 1 else ""
        barriers = Barriers(len(cluster.strands.bounds), owner)
        shadow = ShadowMemory(launch.prepared, launch.reporter)
        first = rank * kernel.threads
        machine = Machine(launch, index, cluster, rank, first, cluster.strands, barriers, shadow, cluster.engine)
        cluster.machines.append(machine)
    for machine in cluster.machines:
        _populate(machine)
    return cluster


def _populate(machine: Machine) -> None:
    """Create units in program order: the prologue's, the roles', the epilogue's."""
    launch, index = machine.launch, machine.index
    kernel = launch.prepared.kernel
    roles = () if kernel.roles is None else kernel.roles.roles
    block = _block_agent(machine, kernel)
    env = {**launch.sizes, **dict(zip(kernel.blocks, index, strict=True))}
    before = _units(block, kernel.prologue if roles else kernel.body, (), env, ())
    middle: list[Unit] = []
    for position, role in enumerate(roles):
        if role.name not in launch.widths:
            _check(kernel, role)
            launch.widths[role.name] = _width(role.body, role.agent, role.unit)
        for number in range(role.agents):
            agent = _agent(machine, role, position, number)
            path = (len(kernel.prologue), position)
            middle += _units(agent, role.body, path, {role.number: number}, before)
    machine.units = [*before, *middle]
    if roles and kernel.epilogue:
        machine.units += _units(block, kernel.epilogue, (len(kernel.prologue) + 1,), {}, machine.units)


def _first(role: Role, number: int) -> int:
    """The number in the block of an agent's first thread."""
    return role.first_warp * role.unit + (0 if role.agent == 1 else number * role.agent)


def _block_agent(machine: Machine, kernel: Kernel) -> Agent:
    widths = machine.launch.widths
    if "" not in widths:
        body = kernel.body if kernel.roles is None else (*kernel.prologue, *kernel.epilogue)
        widths[""] = _width(body, kernel.threads, kernel.target.unit)
    width = widths[""]
    return Agent(
        machine.launch,
        machine.index,
        [],
        machine=machine,
        name=f"block{machine.suffix}",
        role=None,
        number=0,
        threads=kernel.threads,
        width=width,
        actor="first",
        own_scalars=Scalars(kernel.thread, kernel.threads, width, machine.launch.prepared.integers),
    )


def _agent(machine: Machine, role: Role, position: int, number: int) -> Agent:
    width = machine.launch.widths[role.name]
    # In a cluster, the first block's agents have the actors of a single block; all other blocks are "rest".
    own: Actor = "producer" if position == 0 else "first" if position == 1 and number == 0 else "rest"
    actor: Actor = own if machine.rank == 0 else "rest"
    return Agent(
        machine.launch,
        machine.index,
        [],
        base=_first(role, number),
        machine=machine,
        name=(f"`{role.name}`" if role.agents == 1 else f"`{role.name}` {number}") + machine.suffix,
        role=role,
        number=number,
        threads=role.agent,
        width=width,
        actor=actor,
        own_scalars=Scalars(role.thread, role.agent, width, machine.launch.prepared.integers),
    )


def _width(body: Body, threads: int, warp: int) -> int:
    """Threads that execute in lockstep: as many as the widest instruction of the body needs, at least a warp."""
    if threads == 1:
        return 1
    needed = [stmt.atom.unit for stmt in walk(body) if isinstance(stmt, Copy | Mma)]
    width = max([warp, *needed])
    if threads % width != 0 and threads > width:
        found = next(stmt for stmt in walk(body) if isinstance(stmt, Copy | Mma) and stmt.atom.unit == width)
        raise not_built(f"instruction of {width} threads among {threads}", found)
    return width


def _units(agent: Agent, body: Body, path: Path, env: Mapping[Symbol, int], earlier: Sequence[Unit]) -> list[Unit]:
    """One unit per `width` threads; each begins when the units of `earlier` that share threads with it have ended."""
    units: list[Unit] = []
    for number, first in enumerate(range(0, agent.threads, agent.width)):
        last = min(first + agent.width, agent.threads)
        span = range(agent.base + first, agent.base + last)
        after = tuple(unit for unit in earlier if _overlap(span, unit))
        units.append(Unit(number, first, last, dict(env), [Frame(body, path)], agent=agent, after=after))
    agent.waves = list(units)
    return units


def _overlap(span: range, unit: Unit) -> bool:
    first, last = unit.agent.base + unit.first, unit.agent.base + unit.last
    return first < span.stop and span.start < last


def _check(kernel: Kernel, role: Role) -> None:
    """Reject the block's thread number and wave numbers in a role, where threads are numbered within the agent."""
    for stmt in walk(role.body):
        for node in _nodes(stmt):
            for symbol in symbols(node):
                if symbol.kind == "wave" or symbol == kernel.thread != role.thread:
                    raise not_built(f"`{symbol.name}` inside a role", stmt)
        if isinstance(stmt, Wait) and stmt.queue in ("vmem", "lds"):
            raise not_built(f"queue {stmt.queue} inside a role", stmt)


def _nodes(stmt: Stmt) -> list[Node]:
    match stmt:
        case Copy(source=source, target=target):
            return [*_of(source), *_of(target)]
        case Mma(target=target, a=a, b=b, init=init):
            return [*_of(target), *_of(a), *_of(b), init]
        case Map(target=target, elem=elem):
            parts = parts_first(elem)
            inside = [
                part.value if isinstance(part, Num) else part.cond for part in parts if isinstance(part, Num | Holds)
            ]
            return [*_of(target), *inside]
        case For(start=start, stop=stop):
            return [start, stop]
        case If(cond=cond):
            return [cond]
        case Let(value=value):
            return _of(value.view)
        case _:
            return []


def _of(view: View) -> list[Node]:
    return [*view.at, view.where]
