"""The statements, one closed union, and walks over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.atom import Atom, Queue
from argus.core.index import Cond, Index, Symbol
from argus.core.ir.claims import Claim
from argus.core.ir.elements import Elem
from argus.core.ir.storage import Buffer, Origin, View
from argus.core.layout import TV
from argus.core.span import NOWHERE, Span
from argus.core.tiling import Tiling


@frozen(eq=False, kw_only=True)
class _Stated:
    span: Span = NOWHERE
    origin: Origin | None = None


@frozen(eq=False)
class Alloc(_Stated):
    """Storage comes into being, uninitialised; for a barrier, its initialisation with an arrival count."""

    buffer: Buffer
    count: int | None = None


@frozen(eq=False)
class Peek:
    view: View


@frozen(eq=False)
class Atomic:
    op: str
    view: View
    value: Index


@frozen(eq=False)
class Let(_Stated):
    symbol: Symbol
    value: Peek | Atomic


@frozen(eq=False)
class Copy(_Stated):
    """Element (t, v) of `by` moves from source to target, at its coordinates in both views.

    edge: outside the source's tensor this value is read, outside the target's nothing is written; None: the
    copy must be in bounds. signal: the barrier it completes on. peers: the blocks of the cluster, a bit a rank, in
    which it lands at this place and on this barrier; None: this one alone. through: the tensor map in memory that it
    goes by, if not one that the launcher has made.
    """

    atom: Atom
    source: View
    target: View
    by: TV
    edge: float | None = None
    signal: View | None = None
    peers: Index | None = None
    combine: str | None = None
    cache: str = ""
    through: Buffer | None = None


@frozen(eq=False)
class Map(_Stated):
    """target[i] = elem, for every element a thread holds."""

    target: View
    elem: Elem


@frozen(eq=False)
class Fold(_Stated):
    """Each row along an axis of the source, folded: target[row] = op over source[row, ...].

    within: what is folded together: the distinct elements of a row that one thread holds, or those that the threads of
    one warp hold; whoever holds elements of a row gets the result. keep: "total" leaves one number, along an axis
    that numbers the groups that hold different parts of a row, or without the axis where there is one; "prefix"
    leaves at each element the fold of those up to it. op: add, mul, max or min; last, of a total, is the element
    with the greatest coordinate.
    """

    target: View
    source: View
    axis: int
    op: str
    keep: Literal["total", "prefix"] = "total"
    within: Literal["thread", "warp"] = "thread"


@frozen(eq=False)
class Mma(_Stated):
    """target = (init ? 0 : target) + a b^T, by register position: coordinates are labels.

    grouped: it joins the group that the next `Commit` of its queue closes, instead of being an entry of its own.
    """

    atom: Atom
    tiling: Tiling
    target: View
    a: View
    b: View
    init: Cond
    grouped: bool = False


@frozen(eq=False)
class Arrive(_Stated):
    """Every thread that runs it arrives `count` times at one barrier and announces `bytes` that will land there.

    event: a view of no axes, one element of a barrier buffer. Within `One` or a role of one thread it is one arrival.
    """

    event: View
    count: int
    bytes: Index


@frozen(eq=False)
class Await(_Stated):
    """Until the barrier is not in a phase of the parity of `phase`: until phase number `phase` is complete.

    Phases count from 0; phase -1 is complete on a fresh barrier. The hardware compares parities only (trap of two
    phases' distance), and so does every reading of this statement.
    """

    event: View
    phase: Index


@frozen(eq=False)
class Sync(_Stated):
    """The n-th arrival of every participant meets, wherever it stands in the program.

    barrier: "cta" is the block's, "cluster" that of all threads of the cluster. how: "arrive" goes on at once; "wait",
    of a cluster alone, is the second half of it: until all have arrived as often as this thread.
    """

    barrier: str = "cta"
    how: Literal["meet", "arrive", "wait"] = "meet"
    threads: int | None = None


@frozen(eq=False)
class Commit(_Stated):
    queue: Queue


@frozen(eq=False)
class Wait(_Stated):
    """Until at most `pending` of this wave's statements on the queue are outstanding, the youngest."""

    queue: Queue
    pending: int
    of: Literal["reads", "all"] = "all"


@frozen(eq=False)
class Fence(_Stated):
    kind: Literal["async_proxy", "wgmma", "barrier_init", "tensormap", "device"]
    scope: str = "cta"


@frozen(eq=False)
class Edit(_Stated):
    """What is done to a tensor map in memory, by the threads that run it.

    step: "replace" makes it describe `tensor`, a view of a global tensor by its own coordinates along some axes;
    "release" lets the edit be seen by copies of those who "acquire" it afterwards.
    """

    map: Buffer
    step: Literal["replace", "release", "acquire"]
    tensor: View | None = None


@frozen(eq=False)
class Advance(_Stated):
    counter: Buffer
    by: Index


PolicyName = Literal["registers", "priority", "remap_xcd", "sched_barrier", "no_pdl"]
ADVICE: Mapping[PolicyName, int] = {"registers": 1, "priority": 1, "remap_xcd": 1, "sched_barrier": 1, "no_pdl": 0}
"""How many numbers each kind of advice takes."""


@frozen(eq=False)
class Policy(_Stated):
    """Advice to the hardware, without meaning."""

    name: PolicyName
    args: tuple[int, ...] = ()


@frozen(eq=False)
class For(_Stated):
    """symbol = start, start + step, ... while below stop (above it for a negative step)."""

    symbol: Symbol
    start: Index
    stop: Index
    step: int
    body: tuple[Stmt, ...]
    unroll: int | None = None


@frozen(eq=False)
class If(_Stated):
    cond: Cond
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@frozen
class Role:
    """Warps that run one body, once an agent.

    agent: threads of one agent; 1: thread 0 of the first warp works alone, the others only hold the role's registers.
    registers: 32-bit registers a thread, None for what the kernel was launched with. number and thread: the symbols
    of the agent's number within the role and of a thread within its agent; register layouts count from the agent's
    first thread. unit: threads of a warp.
    """

    name: str
    first_warp: int
    warps: int
    agent: int
    registers: int | None
    body: tuple[Stmt, ...]
    number: Symbol
    thread: Symbol
    unit: int = 32

    @property
    def agents(self) -> int:
        return 1 if self.agent == 1 else self.warps * self.unit // self.agent


@frozen(eq=False)
class Roles(_Stated):
    roles: tuple[Role, ...]


@frozen(eq=False)
class One(_Stated):
    """The body runs on thread 0 of the agent."""

    body: tuple[Stmt, ...]


@frozen(eq=False)
class Tag(_Stated):
    """Every element of the view carries this named record of expressions over its coordinates."""

    view: View
    names: tuple[tuple[str, Index], ...]


@frozen(eq=False)
class Reset(_Stated):
    buffer: Buffer


@frozen(eq=False)
class Assume(_Stated):
    """Holds at every launch: an assumption of the verdict, and a check of the launcher."""

    cond: Cond


@frozen(eq=False)
class Assert(_Stated):
    claim: Claim


Stmt = (
    Alloc
    | Let
    | Copy
    | Map
    | Fold
    | Mma
    | Arrive
    | Await
    | Sync
    | Commit
    | Wait
    | Fence
    | Edit
    | Advance
    | Policy
    | For
    | If
    | Roles
    | One
    | Tag
    | Reset
    | Assume
    | Assert
)


def trips(loop: For) -> Index:
    """How often the body runs."""
    span = algebra.sub(loop.stop, loop.start) if loop.step > 0 else algebra.sub(loop.start, loop.stop)
    return algebra.maximum(0, algebra.ceil_div(span, abs(loop.step)))


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement below, in program order, each before what it contains."""
    stack = list(reversed(body))
    while stack:
        stmt = stack.pop()
        yield stmt
        for part in reversed(bodies(stmt)):
            stack.extend(reversed(part))


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists directly inside a statement."""
    match stmt:
        case For(body=body) | One(body=body):
            return (body,)
        case If(then=then, otherwise=otherwise):
            return then, otherwise
        case Roles(roles=roles):
            return tuple(role.body for role in roles)
        case _:
            return ()


def with_bodies(stmt: Stmt, parts: tuple[tuple[Stmt, ...], ...]) -> Stmt:
    """The statement with other statement lists inside."""
    match stmt:
        case For() | One():
            return evolve(stmt, body=parts[0])
        case If():
            return evolve(stmt, then=parts[0], otherwise=parts[1])
        case Roles(roles=roles):
            return evolve(stmt, roles=tuple(evolve(r, body=b) for r, b in zip(roles, parts, strict=True)))
        case _:
            return stmt
