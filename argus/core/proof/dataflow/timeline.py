"""Linearises a kernel to steps in program order: straight-line segments and loops, with branches as guards.

All threads execute the same timeline (roles are refused), so program order and iteration define "before".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import assert_never

from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.atoms.lanes import SHUFFLES
from argus.core.check import expressions, read_terms
from argus.core.check.parts import views
from argus.core.index import And, Bin, Cond, Const, Coord, Held, Index, Node, Read, Sym, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
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
    Policy,
    Reset,
    Roles,
    Stmt,
    Sync,
    Tag,
    View,
    Wait,
    trips,
    walk,
)
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.proof.dataflow.ended_copies import ends_loads, ends_stores
from argus.core.proof.outputs.supertiles import supertile_lemmas
from argus.core.walk import fold, mentions, rebuild, substitute, symbols, within

Shift = dict[Symbol, Index]
"""A substitution of symbols, usually of a loop variable to select another iteration."""
_MAX_UNROLL = 64
_MAX_STEPS = 600


@frozen(eq=False)
class Loop:
    """A loop with symbolic bounds at the top level of the kernel."""

    stmt: For

    @property
    def symbol(self) -> Symbol:
        """The loop variable."""
        return self.stmt.symbol

    @property
    def trips(self) -> Index:
        """The number of iterations."""
        return trips(self.stmt)

    @cached_property
    def facts(self) -> tuple[Cond, ...]:
        """Conditions on the loop variable that hold inside the body."""
        k, loop = algebra.sym(self.symbol), self.stmt
        below = algebra.lt(k, loop.stop) if loop.step > 0 else algebra.lt(loop.stop, k)
        above = algebra.le(loop.start, k) if loop.step > 0 else algebra.le(k, loop.start)
        whole = algebra.eq(algebra.mod(algebra.sub(k, loop.start), abs(loop.step)), 0)
        return tuple(fact for fact in (above, below, whole) if fact is not algebra.TRUE)

    def back(self, distance: int) -> Shift:
        """The substitution that selects the iteration `distance` before the current one."""
        return {self.symbol: algebra.sub(algebra.sym(self.symbol), distance * self.stmt.step)}

    def last(self, distance: int) -> Shift:
        """The substitution that selects, after the loop, the iteration `distance` before the last one."""
        steps = algebra.sub(self.trips, 1 + distance)
        return {self.symbol: algebra.add(self.stmt.start, algebra.mul(steps, self.stmt.step))}

    def has_earlier(self, distance: int) -> Cond:
        """The condition that at least `distance` iterations precede the current one."""
        k, loop = algebra.sym(self.symbol), self.stmt
        before = algebra.sub(k, distance * loop.step)
        return algebra.le(loop.start, before) if loop.step > 0 else algebra.le(before, loop.start)


@frozen(eq=False)
class Step:
    """A simple statement of the timeline. guard: the condition under which it executes.

    segment: index of its segment. position: index in program order. loop: the loop that contains it.
    waves: bit mask of the waves that execute it; None if all do.
    """

    stmt: Stmt
    guard: Cond
    segment: int
    position: int
    loop: Loop | None
    waves: int | None = None

    @cached_property
    def context(self) -> tuple[Cond, ...]:
        """Conditions that hold where the step executes, besides the facts of the kernel."""
        facts = () if self.loop is None else self.loop.facts
        return (*facts, self.guard)


@frozen(eq=False)
class Segment:
    """Consecutive steps: the body of `loop`, or straight-line code if `loop` is None."""

    loop: Loop | None
    steps: tuple[Step, ...]


@frozen(eq=False)
class NotModelled:
    """A statement that the analysis does not model. reason: why. advice: what to write instead, if that is known."""

    stmt: Stmt
    reason: str
    advice: str = ""


@frozen(eq=False)
class EvaluatedExprs:
    """Expressions that a statement evaluates under `context` and that read integers from memory or decide a path."""

    stmt: Stmt
    roots: tuple[Node, ...]
    context: tuple[Cond, ...]


@frozen(eq=False)
class Timeline:
    """The steps of one control path. path_condition: the condition under which a block takes it (`path_split`)."""

    kernel: Kernel
    segments: tuple[Segment, ...]
    unmodelled: tuple[NotModelled, ...] = field(default=())
    path_condition: tuple[Cond, ...] = field(default=())
    computed: tuple[EvaluatedExprs, ...] = field(default=())

    @property
    def steps(self) -> Iterator[Step]:
        """All steps in program order."""
        return (step for segment in self.segments for step in segment.steps)

    @cached_property
    def assumptions(self) -> tuple[Cond, ...]:
        """The kernel's own assumptions."""
        return tuple(step.stmt.cond for step in self.steps if isinstance(step.stmt, Assume))

    @cached_property
    def facts(self) -> tuple[Cond, ...]:
        """The facts common to all paths, and the path condition."""
        return (*self.common, *self.path_condition)

    @cached_property
    def common(self) -> tuple[Cond, ...]:
        """The assumptions, that the block lies in the grid, and the supertile lemmas: facts of all control paths."""
        pairs = zip(self.kernel.blocks, self.kernel.grid, strict=True)
        blocks = [algebra.lt(algebra.sym(symbol), count) for symbol, count in pairs]
        known = (*blocks, *(fact for fact, _ in self.lemmas))
        return (*self.assumptions, *(fact for fact in known if fact is not algebra.TRUE))

    @cached_property
    def lemmas(self) -> tuple[tuple[Cond, tuple[Index, ...]], ...]:
        """Facts about supertiles of the grid, each with the divisors that it presumes to be positive."""
        pairs = tuple(zip(self.kernel.blocks, self.kernel.grid, strict=True))
        roots = [
            at
            for step in self.steps
            if isinstance(step.stmt, Copy)
            for at in (*step.stmt.source.at, *step.stmt.target.at)
        ]
        return tuple(supertile_lemmas(pairs, roots))


class _Builder:
    """Collects steps and segments. names: names of the kernel's loop variables."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self.segments: list[Segment] = []
        self.pending: list[Step] = []
        self.position = 0
        self.unmodelled: list[NotModelled] = []
        self.computed: list[EvaluatedExprs] = []
        self.copies = 0
        self.assumed: set[Cond] = set()

    def close_segment(self, loop: Loop | None) -> None:
        if self.pending or loop is not None:
            self.segments.append(Segment(loop, tuple(self.pending)))
            self.pending = []

    def add(self, stmt: Stmt, guard: Cond, loop: Loop | None) -> None:
        self.pending.append(Step(stmt, guard, len(self.segments), self.position, loop))
        self.position += 1

    def refuse(self, stmt: Stmt, reason: str) -> None:
        self.unmodelled.append(NotModelled(stmt, reason))

    def record_evaluated(self, stmt: Stmt, guard: Cond, loop: Loop | None, at: Shift) -> None:
        """Record the integers from memory that a statement evaluates; tags and assertions evaluate nothing."""
        decided = isinstance(stmt, If) and not stmt.then and not stmt.otherwise
        if isinstance(stmt, Tag | Assert) or (next(read_terms(stmt), None) is None and not decided):
            return
        roots = tuple(fold(root, lambda node, parts: _substitute_node(node, parts, at)) for root in expressions(stmt))
        facts = () if loop is None else loop.facts
        self.computed.append(EvaluatedExprs(stmt, roots, (*facts, guard)))


def _substitute_node(node: Node, parts: Sequence[Node], at: Shift) -> Node:
    return at.get(node.symbol, node) if isinstance(node, Sym) else rebuild(node, parts)


def timeline(kernel: Kernel, path_condition: tuple[Cond, ...] = ()) -> Timeline:
    """Linearise a kernel. Constructs that are not modelled are listed in `unmodelled`, never dropped silently."""
    builder = _Builder({stmt.symbol.name for stmt in walk(kernel.body) if isinstance(stmt, For)})
    _append_statements(builder, kernel.body, algebra.TRUE, None, {})
    builder.close_segment(None)
    return Timeline(kernel, tuple(builder.segments), tuple(builder.unmodelled), path_condition, tuple(builder.computed))


def _append_statements(builder: _Builder, body: tuple[Stmt, ...], guard: Cond, loop: Loop | None, at: Shift) -> None:
    for stmt in body:
        builder.record_evaluated(stmt, guard, loop, at)
        match stmt:
            case Alloc() | Copy() | Map() | Mma() | Sync() | Wait() | Reset() | Assert() | Tag() | Assume() | Policy():
                _append_simple(builder, stmt, guard, loop, at)
            case Fence() | Edit() | Commit() | Fold():
                _append_simple(builder, stmt, guard, loop, at)
            case One(body=inner):
                _append_statements(builder, inner, guard, loop, at)
            case If(cond=cond, then=then, otherwise=otherwise):
                here = substitute(cond, at)
                _append_statements(builder, then, algebra.all_of((guard, here)), loop, at)
                _append_statements(builder, otherwise, algebra.all_of((guard, algebra.negate(here))), loop, at)
            case For():
                _append_loop(builder, stmt, guard, loop, at)
            case Roles() | Let() | Arrive() | Await() | Advance():
                builder.refuse(stmt, f"`{type(stmt).__name__}` is not supported by the verifier yet")
            case _:
                assert_never(stmt)


def _append_simple(builder: _Builder, stmt: Stmt, guard: Cond, loop: Loop | None, at: Shift) -> None:
    if builder.position >= _MAX_STEPS:
        if builder.position == _MAX_STEPS:
            builder.refuse(stmt, f"more than {_MAX_STEPS} statements once its loops are unrolled")
            builder.position += 1
        return
    unsupported = _unsupported_reason(stmt, plain=guard is algebra.TRUE and loop is None, assumed=builder.assumed)
    if unsupported:
        builder.refuse(stmt, unsupported)
        return
    if isinstance(stmt, Assume):
        builder.assumed |= {stmt.cond, *(stmt.cond.parts if isinstance(stmt.cond, And) else ())}
    builder.add(stmt if not at else rewrite_stmt(stmt, at), guard, loop)


def _unsupported_reason(stmt: Stmt, *, plain: bool, assumed: Collection[Cond]) -> str:
    """Why a simple statement is not modelled; empty if it is. assumed: conditions assumed by earlier statements."""
    match stmt:
        case Assume(cond=cond):
            return (
                ""
                if plain and is_checkable(cond, assumed)
                else "an assumption that no launcher can check: it depends on more than sizes, or divides by a size"
            )
        case Tag(view=view):
            return "" if plain and is_whole(view) else "a tag on part of a tensor, or under a condition"
        case Copy(signal=None, peers=None, combine=None | "add", source=source, target=target):
            partial = target.peer is not None or (source.peer is not None and source.buffer.space != "register")
            ended = is_gathered(stmt, source) or is_shuffle(stmt) or ends_loads(stmt)
            partial |= source.where is not algebra.TRUE and not ended
            partial |= target.where is not algebra.TRUE and not (_depends_on_thread_only(stmt) or ends_stores(stmt))
            if partial:
                return "a view of a peer, or with a condition, is not supported by the verifier yet"
            if stmt.combine and (source.buffer.space != "register" or target.buffer.space != "global"):
                return "a copy that adds, other than from registers to a tensor, is not supported by the verifier yet"
            return ""
        case Copy():
            return "a copy that signals, reaches peers or combines is not supported by the verifier yet"
        case Wait(queue=queue, of="reads") if queue != "bulk":
            return f"a wait for only the reads of `{queue}`"
        case Fold(source=source, target=target) if not (is_whole(source) and is_whole(target)):
            return "a fold of part of a register tile"
        case Map() | Mma() if any(view.where is not algebra.TRUE or view.peer is not None for view in views(stmt)):
            return "a computation on a view of a peer, or with a condition, is not supported by the verifier yet"
        case Mma(target=target, a=a, b=b) if not all(
            is_whole(view) for view in (target, a, b) if view.buffer.space == "register"
        ):
            return "a matrix instruction on part of a register tile"
        case Mma(grouped=True):
            return "a group of several matrix instructions is not supported by the verifier yet"
        case _:
            return ""


def is_gathered(stmt: Stmt, view: View) -> bool:
    """Whether a view is the source of a padded load from a tensor, to registers or by each thread to shared memory
    (`cp.async`); its condition selects the data.
    """
    if not isinstance(stmt, Copy) or stmt.source is not view or view.buffer.space != "global":
        return False
    into_registers = stmt.target.buffer.space == "register" and stmt.atom.box is None and stmt.combine is None
    by_threads = into_registers or stmt.atom.completion.queue == "cp_async"
    return by_threads and stmt.edge is not None and not mentions(view.where, (Read, Held))


def is_shuffle(stmt: Stmt) -> bool:
    """Whether a copy is a shuffle: it reads a register tile of other lanes, and a fill where its condition fails."""
    if not isinstance(stmt, Copy) or stmt.atom not in SHUFFLES.values() or stmt.edge is None:
        return False
    plain = is_whole(stmt.target) and stmt.combine is None and stmt.signal is None
    return plain and not symbols(stmt.source.where, *stmt.source.at) and not mentions(stmt.source.where, (Read, Held))


def _depends_on_thread_only(stmt: Copy) -> bool:
    """Whether the condition of a copy depends only on the thread, and other threads write nothing."""
    target = stmt.target
    chosen = symbols(target.where)
    thread_only = all(symbol.kind == "thread" for symbol in chosen) and not mentions(target.where, (Coord, Read, Held))
    return stmt.edge is not None and target.buffer.space in ("shared", "global") and thread_only


def is_checkable(cond: Cond, assumed: Collection[Cond]) -> bool:
    """Whether a launcher can check an assumption: it depends on sizes only, and earlier ones make it divide safely."""
    about_sizes = all(symbol.kind == "size" for symbol in symbols(cond)) and not mentions(cond, (Read,))
    return about_sizes and divides_safely(cond, assumed)


def divides_safely(cond: Cond, assumed: Collection[Cond]) -> bool:
    """Whether every divisor is a number, or an earlier assumption states that it is positive."""
    divisors = [n.right for n in within(cond) if isinstance(n, Bin) and n.op in ("//", "%")]
    return all(isinstance(each, Const) or algebra.le(1, each) in assumed for each in divisors)


def is_whole(view: View) -> bool:
    """Whether a view is the identity view of its buffer."""
    whole = view.shape == view.buffer.shape and view.where is algebra.TRUE and view.peer is None
    return whole and all(at is algebra.coord(axis) for axis, at in enumerate(view.at))


def _instantiate_loop(builder: _Builder, stmt: For, at: Shift) -> For:
    """A copy of a loop inside an unrolled loop, with substituted bounds and a fresh loop variable."""
    builder.copies += 1
    while f"{stmt.symbol.name}_{builder.copies}" in builder.names:
        builder.copies += 1
    own = evolve(stmt.symbol, name=f"{stmt.symbol.name}_{builder.copies}", low=None, high=None)
    inner = {**at, stmt.symbol: algebra.sym(own)}
    body = tuple(rewrite_stmt(s, inner) for s in stmt.body)
    return evolve(stmt, symbol=own, start=substitute(stmt.start, at), stop=substitute(stmt.stop, at), body=body)


def _unrolled(builder: _Builder, stmt: For, guard: Cond, loop: Loop | None) -> int | None:
    """How many iterations are spelled out; None of a loop that stays one, as it is long."""
    count, apart = trips(stmt), loop is None and guard is algebra.TRUE
    if not isinstance(count, Const) or count.value > _MAX_UNROLL:
        return None
    statements = count.value * sum(1 for _ in walk(stmt.body))
    return None if apart and builder.position + statements > _MAX_STEPS else count.value


def _append_loop(builder: _Builder, stmt: For, guard: Cond, loop: Loop | None, at: Shift) -> None:
    if at:
        stmt = _instantiate_loop(builder, stmt, at)
    count = _unrolled(builder, stmt, guard, loop)
    if count is not None:
        for trip in range(count):
            number = algebra.add(stmt.start, trip * stmt.step)
            _append_statements(builder, stmt.body, guard, loop, {**at, stmt.symbol: number})
        return
    if loop is not None or guard is not algebra.TRUE:
        builder.refuse(
            stmt, "a loop of symbolic length inside another loop or a branch is not supported by the verifier yet"
        )
        return
    builder.close_segment(None)
    inner = Loop(stmt)
    _append_statements(builder, stmt.body, guard, inner, at)
    builder.close_segment(inner)
