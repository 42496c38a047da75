"""Emit CUDA statements in program order, each after a comment with its line in the user's program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from attrs import evolve, frozen

from argus.core.algebra import const
from argus.core.check.reads import read_terms
from argus.core.index import Const, Coord, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
    Buffer,
    Commit,
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
    Peek,
    Policy,
    Reset,
    Role,
    Roles,
    Stmt,
    Sync,
    Tag,
    Wait,
    static,
    walk,
)
from argus.core.walk import mentions, symbols
from argus.emit.cuda.context import Context
from argus.emit.cuda.copies import copy_lines
from argus.emit.cuda.first_access import first_access
from argus.emit.cuda.hoist import hoistable_divisions
from argus.emit.cuda.moves import agent_scope
from argus.emit.cuda.next_divisions import LEAST, LastWait, NextDivisions, last_wait
from argus.emit.cuda.plan import register_changes, uses_pdl, uses_tma
from argus.emit.cuda.products import mma_lines, register_operands
from argus.emit.cuda.unrolling import is_unrolled, unrolled
from argus.emit.elements import map_lines
from argus.emit.faults import emitted_at, not_built
from argus.emit.fold_text import fold_lines
from argus.emit.scope import c_type, layout_of

_WORD = 32
"""Bits of a register."""


_WARP = 32


@frozen
class Writer:
    """mark: the comment ahead of a statement. in_branch: whether the statements are inside an `If`. loops: variables of
    the enclosing loops. early: lines ahead of a wait, or in its other branch. in_rounds: whether the loop is unrolled.
    """

    context: Context
    kernel: Kernel
    mark: Callable[[Stmt], str]
    in_branch: bool = False
    loops: frozenset[Symbol] = frozenset()
    early: tuple[LastWait, Sequence[str]] | None = None
    in_rounds: bool = False

    def kernel_body(self, checks: Sequence[str] = ()) -> Iterator[str]:
        """The kernel's body. checks: lines ahead of its first access to global memory.

        With PDL it waits for the previous launch before that access. Statements ahead of it, such as barrier
        initialisation and early reads, overlap the end of the previous launch.
        """
        body = self.kernel.body
        first = first_access(self.kernel)
        yield from self.body(body[:first])
        if uses_pdl(self.kernel):
            yield "await_launch_before();"
        yield from checks
        if uses_pdl(self.kernel):
            yield "let_next_begin();"
        yield from self.body(body[first:])

    def body(self, body: tuple[Stmt, ...]) -> Iterator[str]:
        before: Stmt | None = None
        writer, read = self._hoist_reads(body)
        yield from read
        for stmt in body:
            if self.early is not None and self.early[0].wait is stmt:
                yield from self.early[1]
            with emitted_at(stmt.span):
                lines = writer._stmt(stmt)
            if lines:
                yield f"// {self.mark(stmt)}"
                if self._needs_cluster_fence(stmt) and not (before is not None and self._needs_cluster_fence(before)):
                    yield "fence_for_all();"  # one fence for a run of arrivals
                yield from lines
            before = stmt

    def _needs_cluster_fence(self, stmt: Stmt) -> bool:
        """Whether the statement is a remote arrival that needs a cluster-scope fence for generic-proxy accesses."""
        return isinstance(stmt, Arrive) and stmt.event.peer is not None and self._threads_access_shared

    def _stmt(self, stmt: Stmt) -> list[str]:
        context = self.context
        match stmt:
            case Tag() | Assert() | Assume() | Reset() | Policy():
                return []
            case Alloc(buffer=buffer, count=count):
                return self._allocation(buffer, count, stmt)
            case Copy():
                return [*self._materialise_stored(stmt), *copy_lines(stmt, context)]
            case Map():
                return map_lines(stmt, agent_scope(context))
            case Mma():
                return mma_lines(stmt, context)
            case Wait():
                return self._wait(stmt)
            case Commit(queue=queue):
                return [f"{queue}_commit();"]
            case Fence(kind=kind):
                return _fence(kind, stmt)
            case Arrive():
                return [self._arrive(stmt)]
            case Await(event=event, phase=phase):
                wait = (
                    "await_parity_of_all"
                    if self._threads_access_shared and event.buffer in self._remote_barriers
                    else "await_parity"
                )
                return [f"{wait}({context.barrier_address(event, stmt.span)}, ({context.text(phase)}) & 1);"]
            case Sync():
                return [self._sync(stmt)]
            case Let(symbol=symbol, value=Peek(view=view)) if view.buffer.space == "counter":
                return [f"const int {context.names.symbols[symbol]} = (int){context.name_of(view.buffer)};"]
            case Advance(counter=counter, by=by):
                return [f"{context.name_of(counter)} += {context.text(by)};"]
            case For():
                return self._for(stmt)
            case If():
                return self._if(stmt)
            case One(body=body):
                return self._one(body)
            case Roles():
                return list(self._roles())
            case Fold():
                return fold_lines(stmt, agent_scope(context), _WARP)
            case Edit():
                return []  # `plan`: copies through a map in memory use the launcher's map of the whole tensor
            case Let():
                raise not_built(f"the statement `{type(stmt).__name__}`", stmt.span)
            case _:
                assert_never(stmt)

    def _allocation(self, buffer: Buffer, count: int | None, stmt: Alloc) -> list[str]:
        name = self.context.name_of(buffer)
        match buffer.space:
            case "shared" | "map":
                return []
            case "barrier":
                init = f"barrier_init({name} + 8 * i, {count});"
                thread = self.context.names.symbols[self.context.thread]
                return [f"if ({thread} == 0)", f"    for (int i = 0; i < {static(buffer.shape[0])}; ++i) {init}"]
            case "counter":
                # A long launch may count past 31 bits; a wrapped count still has the right stage and parity.
                return [f"u32 {name} = 0;"]
            case "register":
                return [f"alignas(16) {c_type(buffer.dtype)} {name}[{layout_of(buffer).values.size()}];"]
            case _:
                raise not_built(f"storage in `{buffer.space}`", stmt.span)

    def _wait(self, stmt: Wait) -> list[str]:
        if stmt.queue == "bulk":
            return [f"bulk_wait{'_reads' if stmt.of == 'reads' else ''}<{stmt.pending}>();"]
        if stmt.queue == "cp_async":
            return [f"cp_async_wait<{stmt.pending}>();"]
        if stmt.queue != "wgmma":
            raise not_built(f"a wait on the queue `{stmt.queue}`", stmt.span)
        used = self._in_flight_registers()
        # A single accumulator is not accessed while in flight; of several, completed ones may be accessed.
        pinned = used if stmt.pending == 0 or len(used) > 1 else []
        return [f"wgmma_wait<{stmt.pending}>();", *(f"hold({self.context.name_of(buffer)});" for buffer in pinned)]

    def _materialise_stored(self, copy: Copy) -> list[str]:
        """Pin the source registers ahead of a predicated global store.

        Otherwise ptxas may sink their computation into the branch, and if wgmma groups stay in flight across
        iterations, it serialises them once a divergent branch reads their accumulators.
        """
        source = copy.source.buffer
        if source.space != "register" or copy.target.buffer.space != "global" or copy.edge is None:
            return []
        body = self.kernel.body if self.context.role is None else self.context.role.body
        waits = [stmt for stmt in walk(body) if isinstance(stmt, Wait) and stmt.queue == "wgmma"]
        whole = layout_of(source).values.size() * source.dtype.bits % _WORD == 0
        return [f"hold({self.context.name_of(source)});"] if whole and any(each.pending for each in waits) else []

    def _in_flight_registers(self) -> list[Buffer]:
        """Registers that wgmma groups in flight may use."""
        body = self.kernel.body if self.context.role is None else self.context.role.body
        products = [stmt for stmt in walk(body) if isinstance(stmt, Mma)]
        return list(dict.fromkeys(buffer for stmt in products for buffer in register_operands(stmt)))

    @property
    def _remote_barriers(self) -> frozenset[Buffer]:
        """Barriers at which other blocks of the cluster arrive."""
        arrivals = (stmt for stmt in walk(self.kernel.body) if isinstance(stmt, Arrive))
        return frozenset(stmt.event.buffer for stmt in arrivals if stmt.event.peer is not None)

    @property
    def _threads_access_shared(self) -> bool:
        """Whether threads access, by generic-proxy loads or stores, memory that other blocks write.

        A wgmma has finished with its operands at its wait: an arrival after the wait needs no fence.
        """
        copies = [stmt for stmt in walk(self.kernel.body) if isinstance(stmt, Copy)]
        sent = {stmt.target.buffer for stmt in copies if stmt.peers is not None}
        moved = [copy for copy in copies if not uses_tma(copy)]
        stores = any(copy.target.peer is not None for copy in moved)
        return not sent or stores or any(view.buffer in sent for copy in moved for view in (copy.source, copy.target))

    def _one(self, body: tuple[Stmt, ...]) -> list[str]:
        """What one thread does; in an unrolled loop, arrivals without a branch."""
        where = f"{self.context.names.symbols[self.context.thread]} == 0"
        arrivals = [stmt for stmt in body if isinstance(stmt, Arrive) and not self._needs_cluster_fence(stmt)]
        if self.in_rounds and len(arrivals) == len(body) and all(each.bytes is const(0) for each in arrivals):
            return [self._arrive(each, where) for each in arrivals]
        return [f"if ({where}) {{", *self._inner(body), "}"]

    def _arrive(self, stmt: Arrive, where: str = "") -> str:
        """where: the condition under which a thread arrives, without a branch."""
        event = self.context.barrier_address(stmt.event, stmt.span)
        plain = isinstance(stmt.bytes, Const) and stmt.bytes.value == 0
        if where:
            rank = [] if stmt.event.peer is None else [self.context.text(stmt.event.peer)]
            how = "arrive_if" if stmt.event.peer is None else "arrive_at_if"
            return f"{how}({', '.join([where, event, *rank, str(stmt.count)])});"
        if stmt.event.peer is not None:
            if not plain:
                raise not_built("a remote arrival with expected bytes", stmt.span)
            how = "arrive_at_of_all" if self._threads_access_shared else "arrive_at"
            return f"{how}({event}, {self.context.text(stmt.event.peer)}, {stmt.count});"
        if plain:
            return f"arrive({event}{'' if stmt.count == 1 else f', {stmt.count}'});"
        if stmt.count != 1:
            raise not_built(f"an arrival with count {stmt.count} and expected bytes", stmt.span)
        return f"arrive_expect({event}, {self.context.text(stmt.bytes)});"

    def _sync(self, stmt: Sync) -> str:
        role = self.context.role
        if stmt.barrier == "cluster":
            return {"meet": "cluster_arrive(); cluster_wait();", "arrive": "cluster_arrive();"}.get(
                stmt.how, "cluster_wait();"
            )
        if stmt.barrier == "cta":
            return self._sync_block(stmt)
        threads = stmt.threads or self.context.threads
        number = str(self.context.plan.ids[stmt.barrier])
        if role is not None and role.name == stmt.barrier and role.agents > 1:
            number = f"{number} + {self.context.names.symbols[role.number]}"
        return f"meet{'_arrive' if stmt.how == 'arrive' else ''}({number}, {threads});"

    def _sync_block(self, stmt: Sync) -> str:
        if stmt.threads is not None or stmt.how == "wait":
            raise not_built("a part of the block's barrier", stmt.span)
        if stmt.how == "arrive":
            return f"meet_arrive(0, {self.kernel.threads});"
        # Inside a branch only some threads arrive, but `__syncthreads` needs all of them to converge.
        return f"meet(0, {self.kernel.threads});" if self.in_branch else "__syncthreads();"

    def _for(self, stmt: For) -> list[str]:
        name = self.context.names.symbols[stmt.symbol]
        start, stop = self.context.text(stmt.start), self.context.text(stmt.stop)
        step = f"++{name}" if stmt.step == 1 else f"{name} += {stmt.step}"
        head = f"for (int {name} = {start}; {name} {'<' if stmt.step > 0 else '>'} {stop}; {step}) {{"
        asked = [] if stmt.unroll is None else [f"#pragma unroll {stmt.unroll}"]
        once = ["#pragma unroll 1"] if any(map(_forbids_unrolling, walk(stmt.body))) else asked
        inner, divisions = self._hoist_divisions(stmt)
        if stmt.unroll is not None and is_unrolled(stmt):
            hoisted = [f"    const int {quotient} = {text};" for quotient, text in divisions]
            return unrolled(name, stop, stmt.unroll, [*hoisted, *evolve(inner, in_rounds=True)._inner(stmt.body)])
        lines = [f"const int {quotient} = {text};" for quotient, text in divisions]
        wait = last_wait(stmt)
        if wait is None or len(divisions) < LEAST:
            return [*once, head, *(f"    {line}" for line in lines), *inner._inner(stmt.body), "}"]
        ahead = NextDivisions(name, divisions, start, stop)
        inner = evolve(inner, early=(wait, ahead.later()))
        body = [*ahead.now(), *inner._inner(stmt.body)]
        return ["{", *(f"    {line}" for line in (*ahead.first(), *once, head, *body, "}")), "}"]

    def _hoist_divisions(self, loop: For) -> tuple[Writer, list[tuple[str, str]]]:
        """A writer of the loop's body that reuses hoisted divisions, and their names and texts."""
        known = frozenset((*self.kernel.sizes, *self.kernel.blocks)) | self.loops
        context, found = self.context, list[tuple[str, str]]()
        for node in hoistable_divisions(loop, known):
            text = context.scope.text
            name = f"quotient{len(text.known)}"
            found.append((name, text.index(node)))
            text = evolve(text, known={**text.known, node: name})
            context = evolve(context, scope=evolve(context.scope, text=text))
        return evolve(self, context=context, loops=self.loops | {loop.symbol}), found

    def _hoist_reads(self, body: tuple[Stmt, ...]) -> tuple[Writer, list[str]]:
        """A writer of these statements that has read their integers in memory, once each and all at first.

        The compiler would read them again after each instruction that may write memory, as it does not know that none
        does. Each is in bounds wherever the statement is executed (I37), whether or not the statement uses it.
        """
        later = {stmt.symbol for stmt in body if isinstance(stmt, Let)}
        context, lines = self.context, list[str]()
        used = (node for stmt in body if not isinstance(stmt, Tag | Assert | Assume) for node in read_terms(stmt))
        for node in used:
            text = context.scope.text
            if node not in text.known and not mentions(node, (Coord,)) and symbols(node).isdisjoint(later):
                name = f"integer{len(text.known)}"
                lines.append(f"const int {name} = {text.index(node)};")
                text = evolve(text, known={**text.known, node: name})
                context = evolve(context, scope=evolve(context.scope, text=text))
        return evolve(self, context=context), lines

    def _if(self, stmt: If) -> list[str]:
        branch = evolve(self, in_branch=True)
        lines = [f"if ({self.context.scope.text.cond(stmt.cond)}) {{", *branch._inner(stmt.then)]
        early = self.early[1] if self.early is not None and self.early[0].branch is stmt else ()
        other = [*(f"    {line}" for line in early), *branch._inner(stmt.otherwise)]
        return [*lines, *(["} else {", *other] if other else []), "}"]

    def _inner(self, body: tuple[Stmt, ...]) -> list[str]:
        return [f"    {line}" for line in self.body(body)]

    def _roles(self) -> Iterator[str]:
        """One branch per role: its warps set their register count and its agents execute the body."""
        block = self.context.names.symbols[self.kernel.thread]
        for place, (role, change) in enumerate(register_changes(self.kernel, self.context.plan)):
            first, last = role.first_warp * role.unit, (role.first_warp + role.warps) * role.unit
            own = evolve(self, context=evolve(self.context, role=role, thread=role.thread, threads=role.agent))
            yield f"{'} else ' if place else ''}if ({block} >= {first} && {block} < {last}) {{  // {role.name}"
            if change:
                yield f"    {change}"
            yield from (f"    {line}" for line in own.agents(role, block, first))
        yield "}"

    def agents(self, role: Role, block: str, first: int) -> Iterator[str]:
        """The body of a role, with the agent's index and thread index."""
        number, thread = (self.context.names.symbols[symbol] for symbol in (role.number, role.thread))
        if role.agent == 1:
            yield f"if ({block} == {first}) {{"
            yield f"    [[maybe_unused]] const int {number} = 0, {thread} = 0;"
            yield from self._inner(role.body)
            yield "}"
            return
        which = f"({block} - {first}) / {role.agent}"
        if role.agent % _WARP == 0:
            which = f"same_in_warp({which})"  # warp-uniform: stage addresses go to uniform registers
        yield f"[[maybe_unused]] const int {number} = {which};"
        yield f"[[maybe_unused]] const int {thread} = ({block} - {first}) % {role.agent};"
        yield from self.body(role.body)


def _forbids_unrolling(stmt: Stmt) -> bool:
    """Whether a loop with this statement must not be unrolled.

    Unrolling moves accumulators between registers, which wgmma in flight forbids; and an unrolled TMA or waiting loop
    needs more registers than a producer role keeps.
    """
    return isinstance(stmt, Mma | Await) or (isinstance(stmt, Copy) and uses_tma(stmt))


def _fence(kind: str, stmt: Fence) -> list[str]:
    match kind:
        case "async_proxy":
            return ["fence_async_proxy();"]
        case "barrier_init":
            return ["fence_barrier_init();"]
        case "wgmma":
            return []  # emitted with every wgmma group
        case "device":
            return ["__threadfence();"]
        case _:
            raise not_built(f"the fence `{kind}`", stmt.span)
