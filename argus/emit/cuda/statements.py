"""The text of statements, in their order, each after a comment with its place in the user's program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from attrs import evolve, frozen

from argus.core.check.reads import reads
from argus.core.index import Const, Symbol
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
from argus.emit.cuda.context import Context
from argus.emit.cuda.copies import copy_lines
from argus.emit.cuda.hoist import quotients
from argus.emit.cuda.moves import own_scope
from argus.emit.cuda.plan import begins_early, moves_boxes, register_changes
from argus.emit.cuda.products import mma_lines, register_operands
from argus.emit.elements import map_lines
from argus.emit.faults import not_built
from argus.emit.hip.text import place_of
from argus.emit.scope import c_type, layout_of

_WORD = 32
"""Bits of a register."""


_WARP = 32


@frozen
class Writer:
    """branched: whether the statements are within a branch of the program. loops: variables of the loops around."""

    context: Context
    kernel: Kernel
    branched: bool = False
    loops: frozenset[Symbol] = frozenset()

    def whole(self) -> Iterator[str]:
        """The kernel's body, which waits for the launch before it where it first may touch a tensor.

        All that is ahead of that, such as the making of barriers, runs beside the end of that launch.
        """
        body = self.kernel.body
        first = next((place for place, stmt in enumerate(body) if touches_tensors(stmt)), len(body))
        yield from self.body(body[:first])
        if begins_early(self.kernel):
            yield "await_launch_before();"
            yield "let_next_begin();"
        yield from self.body(body[first:])

    def body(self, body: tuple[Stmt, ...]) -> Iterator[str]:
        before: Stmt | None = None
        for stmt in body:
            lines = self._stmt(stmt)
            if lines:
                yield f"// {place_of(stmt)}"
                if self._tells_others(stmt) and not (before is not None and self._tells_others(before)):
                    yield "fence_for_all();"  # one for all arrivals that follow one another
                yield from lines
            before = stmt

    def _tells_others(self, stmt: Stmt) -> bool:
        """Whether it arrives at another block's barrier to tell of ordinary accesses."""
        return isinstance(stmt, Arrive) and stmt.event.peer is not None and self._touched

    def _stmt(self, stmt: Stmt) -> list[str]:
        context = self.context
        match stmt:
            case Tag() | Assert() | Assume() | Reset() | Policy():
                return []
            case Alloc(buffer=buffer, count=count):
                return self._declared(buffer, count, stmt)
            case Copy(through=Buffer()):
                raise not_built("a copy through a tensor map in memory", stmt.span)
            case Copy():
                return [*self._settled(stmt), *copy_lines(stmt, context)]
            case Map():
                return map_lines(stmt, own_scope(context))
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
                wait = "await_parity_of_all" if self._touched and event.buffer in self._reached else "await_parity"
                return [f"{wait}({context.event(event, stmt.span)}, ({context.text(phase)}) & 1);"]
            case Sync():
                return [self._sync(stmt)]
            case Let(symbol=symbol, value=Peek(view=view)) if view.buffer.space == "counter":
                return [f"const int {context.names.symbols[symbol]} = (int){context.own(view.buffer)};"]
            case Advance(counter=counter, by=by):
                return [f"{context.own(counter)} += {context.text(by)};"]
            case For():
                return self._for(stmt)
            case If():
                return self._if(stmt)
            case One(body=body):
                return [f"if ({context.names.symbols[context.thread]} == 0) {{", *self._inner(body), "}"]
            case Roles():
                return list(self._roles())
            case Let() | Fold() | Edit():
                raise not_built(f"the statement `{type(stmt).__name__}`", stmt.span)
            case _:
                assert_never(stmt)

    def _declared(self, buffer: Buffer, count: int | None, stmt: Alloc) -> list[str]:
        name = self.context.own(buffer)
        match buffer.space:
            case "shared":
                return []
            case "barrier":
                init = f"barrier_init({name} + 8 * i, {count});"
                thread = self.context.names.symbols[self.context.thread]
                return [f"if ({thread} == 0)", f"    for (int i = 0; i < {static(buffer.shape[0])}; ++i) {init}"]
            case "counter":
                # Uses of a long launch may pass 31 bits; a count that wraps has the right slot and parity all the same.
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
        used = self._in_flight()
        # One sum that is still under way is not touched; of several, those that are complete may be.
        held = used if stmt.pending == 0 or len(used) > 1 else []
        return [f"wgmma_wait<{stmt.pending}>();", *(f"hold({self.context.own(buffer)});" for buffer in held)]

    def _settled(self, copy: Copy) -> list[str]:
        """Of a store that some threads skip, what is stored, before they part.

        Else the assembler may put off computing it until after they have, and where products stay under way from step
        to step, it lets none overlap another once such a branch reads their sums.
        """
        source = copy.source.buffer
        if source.space != "register" or copy.target.buffer.space != "global" or copy.edge is None:
            return []
        body = self.kernel.body if self.context.role is None else self.context.role.body
        waits = [stmt for stmt in walk(body) if isinstance(stmt, Wait) and stmt.queue == "wgmma"]
        whole = layout_of(source).values.size() * source.dtype.bits % _WORD == 0
        return [f"hold({self.context.own(source)});"] if whole and any(each.pending for each in waits) else []

    def _in_flight(self) -> list[Buffer]:
        """Registers that products under way may use."""
        body = self.kernel.body if self.context.role is None else self.context.role.body
        products = [stmt for stmt in walk(body) if isinstance(stmt, Mma)]
        return list(dict.fromkeys(buffer for stmt in products for buffer in register_operands(stmt)))

    @property
    def _reached(self) -> frozenset[Buffer]:
        """Barriers at which other blocks arrive."""
        arrivals = (stmt for stmt in walk(self.kernel.body) if isinstance(stmt, Arrive))
        return frozenset(stmt.event.buffer for stmt in arrivals if stmt.event.peer is not None)

    @property
    def _touched(self) -> bool:
        """Whether threads themselves load or store what other blocks reach, beside products and the copy engine.

        A product is done with its operands where it has been waited for: an arrival after that has nothing to order.
        """
        copies = [stmt for stmt in walk(self.kernel.body) if isinstance(stmt, Copy)]
        sent = {stmt.target.buffer for stmt in copies if stmt.peers is not None}
        moved = [copy for copy in copies if not moves_boxes(copy)]
        stores = any(copy.target.peer is not None for copy in moved)
        return not sent or stores or any(view.buffer in sent for copy in moved for view in (copy.source, copy.target))

    def _arrive(self, stmt: Arrive) -> str:
        event = self.context.event(stmt.event, stmt.span)
        plain = isinstance(stmt.bytes, Const) and stmt.bytes.value == 0
        if stmt.event.peer is not None:
            if not plain:
                raise not_built("an arrival at another block's barrier that announces bytes", stmt.span)
            how = "arrive_at_of_all" if self._touched else "arrive_at"
            return f"{how}({event}, {self.context.text(stmt.event.peer)}, {stmt.count});"
        if plain:
            return f"arrive({event}{'' if stmt.count == 1 else f', {stmt.count}'});"
        if stmt.count != 1:
            raise not_built(f"{stmt.count} arrivals at once that announce bytes", stmt.span)
        return f"arrive_expect({event}, {self.context.text(stmt.bytes)});"

    def _sync(self, stmt: Sync) -> str:
        role = self.context.role
        if stmt.barrier == "cluster":
            return {"meet": "cluster_arrive(); cluster_wait();", "arrive": "cluster_arrive();"}.get(
                stmt.how, "cluster_wait();"
            )
        if stmt.barrier == "cta":
            # Within a branch only the threads that take it arrive here.
            return f"meet(0, {self.kernel.threads});" if self.branched else "__syncthreads();"
        threads = stmt.threads or self.context.threads
        number = str(self.context.plan.ids[stmt.barrier])
        if role is not None and role.name == stmt.barrier and role.agents > 1:
            number = f"{number} + {self.context.names.symbols[role.number]}"
        return f"meet{'_arrive' if stmt.how == 'arrive' else ''}({number}, {threads});"

    def _for(self, stmt: For) -> list[str]:
        name = self.context.names.symbols[stmt.symbol]
        start, stop = self.context.text(stmt.start), self.context.text(stmt.stop)
        step = f"++{name}" if stmt.step == 1 else f"{name} += {stmt.step}"
        head = f"for (int {name} = {start}; {name} {'<' if stmt.step > 0 else '>'} {stop}; {step}) {{"
        once = ["#pragma unroll 1"] if any(map(_is_kept_once, walk(stmt.body))) else []
        inner, lines = self._with_quotients(stmt)
        return [*once, head, *(f"    {line}" for line in lines), *inner._inner(stmt.body), "}"]

    def _with_quotients(self, loop: For) -> tuple[Writer, list[str]]:
        """A writer of the loop's body that knows its quotients, and their declarations."""
        known = frozenset((*self.kernel.sizes, *self.kernel.blocks)) | self.loops
        context, lines = self.context, list[str]()
        for node in quotients(loop, known):
            text = context.scope.text
            name = f"quotient{len(text.known)}"
            lines.append(f"const int {name} = {text.index(node)};")
            text = evolve(text, known={**text.known, node: name})
            context = evolve(context, scope=evolve(context.scope, text=text))
        return evolve(self, context=context, loops=self.loops | {loop.symbol}), lines

    def _if(self, stmt: If) -> list[str]:
        branch = evolve(self, branched=True)
        lines = [f"if ({self.context.scope.text.cond(stmt.cond)}) {{", *branch._inner(stmt.then)]
        if stmt.otherwise:
            lines += ["} else {", *branch._inner(stmt.otherwise)]
        return [*lines, "}"]

    def _inner(self, body: tuple[Stmt, ...]) -> list[str]:
        return [f"    {line}" for line in self.body(body)]

    def _roles(self) -> Iterator[str]:
        """One branch a role: all its warps set their registers, its agents run the body."""
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
        """The body of a role under the numbers of its agents."""
        number, thread = (self.context.names.symbols[symbol] for symbol in (role.number, role.thread))
        if role.agent == 1:
            yield f"if ({block} == {first}) {{"
            yield f"    [[maybe_unused]] const int {number} = 0, {thread} = 0;"
            yield from self._inner(role.body)
            yield "}"
            return
        which = f"({block} - {first}) / {role.agent}"
        if role.agent % _WARP == 0:
            which = f"same_in_warp({which})"  # addresses of slots are then computed once a warp, beside its arithmetic
        yield f"[[maybe_unused]] const int {number} = {which};"
        yield f"[[maybe_unused]] const int {thread} = ({block} - {first}) % {role.agent};"
        yield from self.body(role.body)


def touches_tensors(stmt: Stmt) -> bool:
    """Whether it may read or write what lies in global memory."""
    every = tuple(walk((stmt,)))
    moves = isinstance(stmt, Roles) or any(isinstance(each, Copy | Map | Let | Fold | Edit) for each in every)
    return moves or any(True for each in every if not isinstance(each, Tag | Assert | Assume) for _ in reads(each))


def _is_kept_once(stmt: Stmt) -> bool:
    """Copies of a loop's body move sums between registers, which products under way forbid; and those of a body that
    starts boxes, or waits, want more registers than a role that only loads is left with.
    """
    return isinstance(stmt, Mma | Await) or (isinstance(stmt, Copy) and moves_boxes(stmt))


def _fence(kind: str, stmt: Fence) -> list[str]:
    match kind:
        case "async_proxy":
            return ["fence_async_proxy();"]
        case "barrier_init":
            return ["fence_barrier_init();"]
        case "wgmma":
            return []  # every product begins with one
        case "device":
            return ["__threadfence();"]
        case _:
            raise not_built(f"the fence `{kind}`", stmt.span)
