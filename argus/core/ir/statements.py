"""The statements of the tile IR, a closed union, and traversals of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.atom import Atom, Queue
from argus.core.index import Cond, Index, Symbol
from argus.core.ir.advice import PolicyName
from argus.core.ir.claims import Claim
from argus.core.ir.elements import Elem
from argus.core.ir.storage import Buffer, Origin, View
from argus.core.layout import TV
from argus.core.span import NOWHERE, Span
from argus.core.tiling import Tiling


@frozen(eq=False, kw_only=True)
class _Located:
    """Every statement has a source location; origin: the construct that it was expanded from, if any."""

    span: Span = NOWHERE
    origin: Origin | None = None


@frozen(eq=False)
class Alloc(_Located):
    """Declares uninitialised storage; a barrier is initialised with the arrival count `count`."""

    buffer: Buffer
    count: int | None = None


@frozen(eq=False)
class Peek:
    """The integer in one element of a view, at the time of the read."""

    view: View


@frozen(eq=False)
class Atomic:
    """An atomic read-modify-write of one integer in memory; its value is the integer before the operation."""

    op: str
    view: View
    value: Index


@frozen(eq=False)
class Let(_Located):
    """Binds a symbol, for the statements after it, to an integer read from memory or from a counter."""

    symbol: Symbol
    value: Peek | Atomic


@frozen(eq=False)
class Copy(_Located):
    """For each (thread, value) of `by`, copies the element at its coordinates from source to target.

    edge: what an out-of-bounds read yields, while out-of-bounds writes are dropped; None: the copy must be in bounds.
    signal: the barrier that it completes on. peers: a bit mask of the ranks in the cluster whose shared memory and
    barrier, at the same offsets, receive it; None: this block only. combine: the reduction into the target; None:
    overwrites it. through: the tensor map in memory that it uses; None: one that the launcher encodes.
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
class Map(_Located):
    """target[i] = elem, for every element i of the target, by the threads that hold it."""

    target: View
    elem: Elem


@frozen(eq=False)
class Fold(_Located):
    """A reduction or scan along one axis of the source: target[row] = op over source[row, ...].

    within: the group that is reduced together: the distinct elements of a row that one thread holds, or those that one
    warp holds; every thread that holds elements of the row gets the result. keep: "total" is a reduction: it drops the
    axis if one group holds the whole row, else the axis numbers the groups that hold different parts of it; "prefix" is
    an inclusive scan. op: add, mul, max, min, max_nan or min_nan; for a reduction also last, the element with
    the greatest coordinate.
    """

    target: View
    source: View
    axis: int
    op: str
    keep: Literal["total", "prefix"] = "total"
    within: Literal["thread", "warp"] = "thread"


@frozen(eq=False)
class Mma(_Located):
    """target = (init ? 0 : target) + a b^T, on the register positions that the instruction defines.

    The coordinates of the fragments do not influence what is multiplied. grouped: the product belongs to the group that
    the next `Commit` of its queue closes, instead of being a queue entry of its own.
    """

    atom: Atom
    tiling: Tiling
    target: View
    a: View
    b: View
    init: Cond
    grouped: bool = False


@frozen(eq=False)
class Arrive(_Located):
    """Each executing thread arrives `count` times at an mbarrier and adds `bytes` to its expected transaction count.

    event: a view without axes, one element of a barrier buffer. In `One` or a role of one thread, one thread executes
    it.
    """

    event: View
    count: int
    bytes: Index


@frozen(eq=False)
class Await(_Located):
    """Waits until phase number `phase` of an mbarrier is complete.

    Phases count from 0; phase -1 is complete on a fresh barrier. The hardware compares only parities: the wait ends as
    soon as the current phase has the other parity, which is wrong two phases later. Every analysis of this statement
    uses these semantics.
    """

    event: View
    phase: Index


@frozen(eq=False)
class Sync(_Located):
    """A barrier of threads: the n-th arrivals of all participants match, whichever statements execute them.

    barrier: "cta" is the block's barrier, "cluster" the cluster's, other names are named barriers. how: "meet" arrives
    and waits, "arrive" does not wait; "wait", for clusters only, waits for the arrivals that match this thread's last.
    threads: the number of participants of a named barrier.
    """

    barrier: str = "cta"
    how: Literal["meet", "arrive", "wait"] = "meet"
    threads: int | None = None


@frozen(eq=False)
class Commit(_Located):
    """Closes the group of operations issued to the queue since the last commit: one queue entry."""

    queue: Queue


@frozen(eq=False)
class Wait(_Located):
    """Waits until at most the `pending` most recent entries of this wave (or thread) on the queue are outstanding.

    of: "reads" waits only until the sources of the older entries have been read.
    """

    queue: Queue
    pending: int
    of: Literal["reads", "all"] = "all"


@frozen(eq=False)
class Fence(_Located):
    """A memory fence, proxy fence or `wgmma.fence`; scope: the threads for which it orders accesses."""

    kind: Literal["async_proxy", "wgmma", "barrier_init", "tensormap", "device"]
    scope: str = "cta"


@frozen(eq=False)
class Edit(_Located):
    """A step of editing a tensor map in memory.

    step: "replace" makes the map describe `tensor`, a view of a global tensor, of which some axes may be fixed;
    "release" makes earlier edits visible to copies by threads that "acquire" the map afterwards.
    """

    map: Buffer
    step: Literal["replace", "release", "acquire"]
    tensor: View | None = None


@frozen(eq=False)
class Advance(_Located):
    """Adds `by` to a counter of the executing agent."""

    counter: Buffer
    by: Index


@frozen(eq=False)
class Policy(_Located):
    """Scheduling advice to hardware or compiler; it does not change what is computed.

    "sched_group_barrier" is of a kind in `SCHEDULED` and a number; "skip_one" of the next product's factors;
    "early_reads", in a launch of a program, of the parameters by number that may be read ahead of its wait.
    """

    name: PolicyName
    args: tuple[int, ...] = ()


@frozen(eq=False)
class For(_Located):
    """A loop: symbol = start, start + step, ... while symbol < stop (symbol > stop for a negative step)."""

    symbol: Symbol
    start: Index
    stop: Index
    step: int
    body: tuple[Stmt, ...]
    unroll: int | None = None


@frozen(eq=False)
class If(_Located):
    """A branch on a condition that is uniform over the executing agent, or over each wave on targets with `vmem`."""

    cond: Cond
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@frozen
class Role:
    """Consecutive warps, divided into agents that each execute the body.

    agent: threads of one agent; 1: only thread 0 of the first warp executes the body, the other threads merely own the
    role's registers. registers: 32-bit registers per thread, None for the launch's register count. number: the symbol
    of the agent's index within the role. thread: the symbol of the thread's index within its agent, from which register
    layouts count. unit: threads of a warp.
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
        """The number of agents of the role."""
        return 1 if self.agent == 1 else self.warps * self.unit // self.agent


@frozen(eq=False)
class Roles(_Located):
    """The roles of a kernel, which run concurrently."""

    roles: tuple[Role, ...]


@frozen(eq=False)
class One(_Located):
    """Thread 0 of the agent (the elected thread) executes the body."""

    body: tuple[Stmt, ...]


@frozen(eq=False)
class Tag(_Located):
    """Attaches a record of expressions over its coordinates to each element of the view."""

    view: View
    names: tuple[tuple[str, Index], ...]


@frozen(eq=False)
class Reset(_Located):
    """Makes a buffer uninitialised again, for the proof; emits no code."""

    buffer: Buffer


@frozen(eq=False)
class Assume(_Located):
    """A precondition of every launch: the proof may use it, and the launcher checks it."""

    cond: Cond


@frozen(eq=False)
class Assert(_Located):
    """A claim about tags at this point of the kernel, to be proved."""

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
    """The trip count of a loop."""
    span = algebra.sub(loop.stop, loop.start) if loop.step > 0 else algebra.sub(loop.start, loop.stop)
    return algebra.maximum(0, algebra.ceil_div(span, abs(loop.step)))


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of the body, in program order, each before the statements nested in it."""
    stack = list(reversed(body))
    while stack:
        stmt = stack.pop()
        yield stmt
        for part in reversed(bodies(stmt)):
            stack.extend(reversed(part))


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The bodies directly inside a statement."""
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
    """The statement with its bodies replaced, in the order of `bodies`."""
    match stmt:
        case For() | One():
            return evolve(stmt, body=parts[0])
        case If():
            return evolve(stmt, then=parts[0], otherwise=parts[1])
        case Roles(roles=roles):
            return evolve(stmt, roles=tuple(evolve(r, body=b) for r, b in zip(roles, parts, strict=True)))
        case _:
            return stmt
