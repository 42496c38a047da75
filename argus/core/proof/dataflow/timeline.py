"""A kernel as a line of steps: straight segments and loops in program order, branches as guards.

Every thread executes the same line (roles are refused), so "before" is program order plus the iteration.
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
from argus.core.proof.outputs.supertiles import supertile_lemmas
from argus.core.walk import fold, mentions, rebuild, substitute, symbols, within

Shift = dict[Symbol, Index]
_UNROLL_LIMIT = 64
_MOST_STEPS = 600


@frozen(eq=False)
class Loop:
    """A loop with symbolic bounds at the top level of the kernel."""

    stmt: For

    @property
    def symbol(self) -> Symbol:
        return self.stmt.symbol

    @property
    def trips(self) -> Index:
        return trips(self.stmt)

    @cached_property
    def facts(self) -> tuple[Cond, ...]:
        """What holds of the loop variable inside the body."""
        k, loop = algebra.sym(self.symbol), self.stmt
        below = algebra.lt(k, loop.stop) if loop.step > 0 else algebra.lt(loop.stop, k)
        above = algebra.le(loop.start, k) if loop.step > 0 else algebra.le(k, loop.start)
        whole = algebra.eq(algebra.mod(algebra.sub(k, loop.start), abs(loop.step)), 0)
        return tuple(fact for fact in (above, below, whole) if fact is not algebra.TRUE)

    def back(self, distance: int) -> Shift:
        """The substitution that speaks of the iteration `distance` earlier."""
        return {self.symbol: algebra.sub(algebra.sym(self.symbol), distance * self.stmt.step)}

    def last(self, distance: int) -> Shift:
        """The substitution that speaks of the last iteration but `distance`, after the loop."""
        steps = algebra.sub(self.trips, 1 + distance)
        return {self.symbol: algebra.add(self.stmt.start, algebra.mul(steps, self.stmt.step))}

    def has_earlier(self, distance: int) -> Cond:
        """Inside the body: `distance` iterations came before this one."""
        k, loop = algebra.sym(self.symbol), self.stmt
        before = algebra.sub(k, distance * loop.step)
        return algebra.le(loop.start, before) if loop.step > 0 else algebra.le(before, loop.start)


@frozen(eq=False)
class Step:
    """One execution of a plain statement: under `guard`, in `segment` number, `position` in program order.

    waves: those that execute it, as bits, where not all of the block do.
    """

    stmt: Stmt
    guard: Cond
    segment: int
    position: int
    loop: Loop | None
    waves: int | None = None

    @cached_property
    def context(self) -> tuple[Cond, ...]:
        """What holds where the step executes, besides the kernel's assumptions."""
        facts = () if self.loop is None else self.loop.facts
        return (*facts, self.guard)


@frozen(eq=False)
class Segment:
    """A run of steps; repeated if `loop` is not None."""

    loop: Loop | None
    steps: tuple[Step, ...]


@frozen(eq=False)
class NotModelled:
    """A construct that this analysis has no meaning for."""

    stmt: Stmt
    reason: str


@frozen(eq=False)
class EvaluatedExprs:
    """Expressions that speak of integers from memory, or of a decided branch, and where they are computed."""

    stmt: Stmt
    roots: tuple[Node, ...]
    context: tuple[Cond, ...]


@frozen(eq=False)
class Timeline:
    """given: what decides that blocks run this line and not another of the kernel's (`cases`)."""

    kernel: Kernel
    segments: tuple[Segment, ...]
    unmodelled: tuple[NotModelled, ...] = field(default=())
    given: tuple[Cond, ...] = field(default=())
    computed: tuple[EvaluatedExprs, ...] = field(default=())

    @property
    def steps(self) -> Iterator[Step]:
        return (step for segment in self.segments for step in segment.steps)

    @cached_property
    def assumptions(self) -> tuple[Cond, ...]:
        """The kernel's own assumptions."""
        return tuple(step.stmt.cond for step in self.steps if isinstance(step.stmt, Assume))

    @cached_property
    def facts(self) -> tuple[Cond, ...]:
        """The assumptions, that the block lies in the grid, and what decides that it runs this line."""
        return (*self.common, *self.given)

    @cached_property
    def common(self) -> tuple[Cond, ...]:
        """The assumptions, and that the block lies in the grid."""
        pairs = zip(self.kernel.blocks, self.kernel.grid, strict=True)
        blocks = [algebra.lt(algebra.sym(symbol), count) for symbol, count in pairs]
        known = (*blocks, *(fact for fact, _ in self.lemmas))
        return (*self.assumptions, *(fact for fact in known if fact is not algebra.TRUE))

    @cached_property
    def lemmas(self) -> tuple[tuple[Cond, tuple[Index, ...]], ...]:
        """Facts about a grid taken in bands, each with the divisors that it presumes to be positive."""
        pairs = tuple(zip(self.kernel.blocks, self.kernel.grid, strict=True))
        roots = [
            at
            for step in self.steps
            if isinstance(step.stmt, Copy)
            for at in (*step.stmt.source.at, *step.stmt.target.at)
        ]
        return tuple(supertile_lemmas(pairs, roots))


class _Builder:
    """taken: names of the kernel's own loop variables."""

    def __init__(self, taken: Collection[str]) -> None:
        self.taken = taken
        self.segments: list[Segment] = []
        self.open: list[Step] = []
        self.position = 0
        self.unmodelled: list[NotModelled] = []
        self.computed: list[EvaluatedExprs] = []
        self.copies = 0
        self.assumed: set[Cond] = set()

    def close(self, loop: Loop | None) -> None:
        if self.open or loop is not None:
            self.segments.append(Segment(loop, tuple(self.open)))
            self.open = []

    def add(self, stmt: Stmt, guard: Cond, loop: Loop | None) -> None:
        self.open.append(Step(stmt, guard, len(self.segments), self.position, loop))
        self.position += 1

    def refuse(self, stmt: Stmt, reason: str) -> None:
        self.unmodelled.append(NotModelled(stmt, reason))

    def compute(self, stmt: Stmt, guard: Cond, loop: Loop | None, at: Shift) -> None:
        """Take note of integers from memory; what tags and claims speak of is computed by nobody."""
        decided = isinstance(stmt, If) and not stmt.then and not stmt.otherwise
        if isinstance(stmt, Tag | Assert) or (next(read_terms(stmt), None) is None and not decided):
            return
        roots = tuple(fold(root, lambda node, parts: _moved(node, parts, at)) for root in expressions(stmt))
        facts = () if loop is None else loop.facts
        self.computed.append(EvaluatedExprs(stmt, roots, (*facts, guard)))


def _moved(node: Node, parts: Sequence[Node], at: Shift) -> Node:
    return at.get(node.symbol, node) if isinstance(node, Sym) else rebuild(node, parts)


def timeline(kernel: Kernel, given: tuple[Cond, ...] = ()) -> Timeline:
    """The kernel's line. Constructs without a meaning here are listed, never dropped silently."""
    builder = _Builder({stmt.symbol.name for stmt in walk(kernel.body) if isinstance(stmt, For)})
    _place(builder, kernel.body, algebra.TRUE, None, {})
    builder.close(None)
    return Timeline(kernel, tuple(builder.segments), tuple(builder.unmodelled), given, tuple(builder.computed))


def _place(builder: _Builder, body: tuple[Stmt, ...], guard: Cond, loop: Loop | None, at: Shift) -> None:
    for stmt in body:
        builder.compute(stmt, guard, loop, at)
        match stmt:
            case Alloc() | Copy() | Map() | Mma() | Sync() | Wait() | Reset() | Assert() | Tag() | Assume() | Policy():
                _place_plain(builder, stmt, guard, loop, at)
            case Fence() | Edit() | Commit() | Fold():
                _place_plain(builder, stmt, guard, loop, at)
            case One(body=inner):
                _place(builder, inner, guard, loop, at)
            case If(cond=cond, then=then, otherwise=otherwise):
                here = substitute(cond, at)
                _place(builder, then, algebra.all_of((guard, here)), loop, at)
                _place(builder, otherwise, algebra.all_of((guard, algebra.negate(here))), loop, at)
            case For():
                _place_loop(builder, stmt, guard, loop, at)
            case Roles() | Let() | Arrive() | Await() | Advance():
                builder.refuse(stmt, f"`{type(stmt).__name__}` is not built yet in the verifier")
            case _:
                assert_never(stmt)


def _place_plain(builder: _Builder, stmt: Stmt, guard: Cond, loop: Loop | None, at: Shift) -> None:
    if builder.position >= _MOST_STEPS:
        if builder.position == _MOST_STEPS:
            builder.refuse(stmt, f"more than {_MOST_STEPS} statements once its loops are unrolled")
            builder.position += 1
        return
    unusual = _unusual(stmt, plain=guard is algebra.TRUE and loop is None, assumed=builder.assumed)
    if unusual:
        builder.refuse(stmt, unusual)
        return
    if isinstance(stmt, Assume):
        builder.assumed |= {stmt.cond, *(stmt.cond.parts if isinstance(stmt.cond, And) else ())}
    builder.add(stmt if not at else rewrite_stmt(stmt, at), guard, loop)


def _unusual(stmt: Stmt, *, plain: bool, assumed: Collection[Cond]) -> str:
    """What a plain statement asks for beyond what is modelled; empty if nothing. assumed: by the statements before."""
    match stmt:
        case Assume(cond=cond):
            return (
                ""
                if plain and is_checkable(cond, assumed)
                else "an assumption that no launcher can check: it is not about sizes alone, or divides by one"
            )
        case Tag(view=view):
            return "" if plain and is_whole(view) else "a tag on part of a tensor, or under a condition"
        case Copy(signal=None, peers=None, combine=None | "add", source=source, target=target):
            partial = target.peer is not None or (source.peer is not None and source.buffer.space != "register")
            partial |= source.where is not algebra.TRUE and not (is_gathered(stmt, source) or is_shuffle(stmt))
            partial |= target.where is not algebra.TRUE and not _chooses_threads(stmt)
            if partial:
                return "a view of a peer, or with a condition of its own, is not built yet in the verifier"
            if stmt.combine and (source.buffer.space != "register" or target.buffer.space != "global"):
                return "a copy that adds, but not from registers to a tensor, is not built yet in the verifier"
            return ""
        case Copy():
            return "a copy that signals, reaches peers or combines is not built yet in the verifier"
        case Wait(queue=queue, of="reads") if queue != "bulk":
            return f"a wait for the reads of `{queue}` alone"
        case Fold(source=source, target=target) if not (is_whole(source) and is_whole(target)):
            return "a fold of part of a register tile"
        case Map() | Mma() if any(view.where is not algebra.TRUE or view.peer is not None for view in views(stmt)):
            return "a computation on a view of a peer, or with a condition of its own, is not built yet in the verifier"
        case Mma(target=target, a=a, b=b) if not all(
            is_whole(view) for view in (target, a, b) if view.buffer.space == "register"
        ):
            return "a product of part of a register tile"
        case Mma(grouped=True):
            return "a group of several products is not built yet in the verifier"
        case _:
            return ""


def is_gathered(stmt: Stmt, view: View) -> bool:
    """Whether a view is what a load into registers takes from a tensor, padding where the view's condition fails."""
    if not isinstance(stmt, Copy) or stmt.source is not view or view.buffer.space != "global":
        return False
    into_registers = stmt.target.buffer.space == "register" and stmt.atom.box is None and stmt.combine is None
    return into_registers and stmt.edge is not None and not mentions(view.where, (Read, Held))


def is_shuffle(stmt: Stmt) -> bool:
    """Whether a copy takes elements of a register tile from other lanes, a number where its condition fails."""
    if not isinstance(stmt, Copy) or stmt.atom not in SHUFFLES.values() or stmt.edge is None:
        return False
    plain = is_whole(stmt.target) and stmt.combine is None and stmt.signal is None
    return plain and not symbols(stmt.source.where, *stmt.source.at) and not mentions(stmt.source.where, (Read, Held))


def _chooses_threads(stmt: Copy) -> bool:
    """Whether the elements of shared memory that a copy writes are those of some threads, whatever the sizes, and the
    others write nothing.
    """
    target = stmt.target
    chosen = symbols(target.where)
    alone = all(symbol.kind == "thread" for symbol in chosen) and not mentions(target.where, (Coord, Read, Held))
    return stmt.edge is not None and target.buffer.space == "shared" and alone


def is_checkable(cond: Cond, assumed: Collection[Cond]) -> bool:
    """Whether a launcher can check an assumption after those before it: it is about sizes alone, and divides safely."""
    about_sizes = all(symbol.kind == "size" for symbol in symbols(cond)) and not mentions(cond, (Read,))
    return about_sizes and divides_safely(cond, assumed)


def divides_safely(cond: Cond, assumed: Collection[Cond]) -> bool:
    """Whether every divisor is a number, or was assumed to be positive before: a launcher checks them in that order."""
    divisors = [n.right for n in within(cond) if isinstance(n, Bin) and n.op in ("//", "%")]
    return all(isinstance(each, Const) or algebra.le(1, each) in assumed for each in divisors)


def is_whole(view: View) -> bool:
    """Whether a view is its buffer, coordinate by coordinate."""
    whole = view.shape == view.buffer.shape and view.where is algebra.TRUE and view.peer is None
    return whole and all(at is algebra.coord(axis) for axis, at in enumerate(view.at))


def _instance(builder: _Builder, stmt: For, at: Shift) -> For:
    """One copy of a loop inside unrolled ones: its own bounds, and a loop variable of its own."""
    builder.copies += 1
    while f"{stmt.symbol.name}_{builder.copies}" in builder.taken:
        builder.copies += 1
    own = evolve(stmt.symbol, name=f"{stmt.symbol.name}_{builder.copies}", low=None, high=None)
    inner = {**at, stmt.symbol: algebra.sym(own)}
    body = tuple(rewrite_stmt(s, inner) for s in stmt.body)
    return evolve(stmt, symbol=own, start=substitute(stmt.start, at), stop=substitute(stmt.stop, at), body=body)


def _place_loop(builder: _Builder, stmt: For, guard: Cond, loop: Loop | None, at: Shift) -> None:
    if at:
        stmt = _instance(builder, stmt, at)
    count = trips(stmt)
    if isinstance(count, Const) and count.value <= _UNROLL_LIMIT:
        for trip in range(count.value):
            number = algebra.add(stmt.start, trip * stmt.step)
            _place(builder, stmt.body, guard, loop, {**at, stmt.symbol: number})
        return
    if loop is not None or guard is not algebra.TRUE:
        builder.refuse(
            stmt, "a loop of symbolic length inside another loop or a branch is not built yet in the verifier"
        )
        return
    builder.close(None)
    inner = Loop(stmt)
    _place(builder, stmt.body, guard, inner, at)
    builder.close(inner)
