"""The tile IR: every statement and view there is, immutable.

    View   = (buffer, shape, at: Index over Coord*, where: Cond, peer: Index?)
    Elem   = Lit(x) | Num(Index) | Get(view, at) | Op(name, Elem*) | Cast(dtype, Elem) | Where(Test, Elem, Elem)
    Test   = Holds(Cond) | Compare(op, Elem, Elem) | Both(Test*) | Either(Test*) | Neither(Test)
    Stmt   = Alloc(buffer, count?) | Let(symbol, Peek | Atomic)
           | Copy(atom, source, target, by, edge?, signal?, peers?, combine?, cache)
           | Map(target, elem) | Fold(target, source, axis, op, keep, within)
           | Mma(atom, tiling, target, a, b, init)
           | Arrive(event, count, bytes) | Await(event, phase) | Sync(barrier, how, threads)
           | Commit(queue) | Wait(queue, pending, of) | Fence(kind, scope) | Advance(counter, by)
           | Policy(name, args) | For(symbol, start, stop, step, body, unroll) | If(cond, then, otherwise)
           | Roles(role*) | One(body) | Tag(view, names) | Reset(buffer) | Assume(cond) | Assert(claim)
    Claim  = Equal | Distinct | Relation | Covers | Order | WrittenOnce | Products
    Role   = (name, first_warp, warps, agent, registers, body)
    Kernel = (name, target, parameters, threads, grid, cluster, prologue, roles?, epilogue, span)
    Program= (parameters, workspaces, Launch(kernel, arguments)*)

Statements compare by identity: two that read alike at two places are two statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.algebra import TRUE, coord
from argus.core.atom import Atom, Queue, Space
from argus.core.dtype import DType
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.layout import TV, Layout, Swizzle
from argus.core.span import NOWHERE, Span
from argus.core.target import Target
from argus.core.tiling import Tiling

# -- storage -------------------------------------------------------------------------------------------------


@frozen
class Strided:
    """A global tensor: element strides, one an axis."""

    strides: tuple[Index, ...]


@frozen
class Staged:
    """A shared tensor: a layout over all its axes, then a swizzle of the offset."""

    layout: Layout
    swizzle: Swizzle | None = None


@frozen(eq=False)
class Buffer:
    """Storage. Axes of registers are those of their tile; `layout` is what makes an address of coordinates.

    align: bytes that its first element's address is a multiple of. banks: the largest bank-conflict degree
    that the author allows (None: not declared). promise: what holds of every element (read-only integers).
    """

    name: str
    space: Space
    dtype: DType
    shape: tuple[Index, ...]
    layout: Strided | Staged | TV
    align: int = 16
    owner: str = ""
    banks: int | None = None
    promise: Cond = TRUE
    span: Span = NOWHERE


@frozen(eq=False)
class View:
    """A shape and, per axis of the buffer, an expression over the view's own coordinates. No data moves.

    where: elements at which it is false lie outside the tensor. peer: the CTA of the cluster that is meant.
    """

    buffer: Buffer
    shape: tuple[Index, ...]
    at: tuple[Index, ...]
    where: Cond = TRUE
    peer: Index | None = None


def whole(buffer: Buffer) -> View:
    """All of a buffer under its own coordinates."""
    return View(buffer, buffer.shape, tuple(coord(axis) for axis in range(len(buffer.shape))))


@frozen
class Origin:
    """The construct that a statement was expanded from, and which use of it."""

    construct: str
    use: int


# -- elements ------------------------------------------------------------------------------------------------


@frozen(eq=False)
class Lit:
    value: float


@frozen(eq=False)
class Num:
    value: Index


@frozen(eq=False)
class Get:
    """The element of `view` at coordinates over those of the target; the same thread must hold it."""

    view: View
    at: tuple[Index, ...]


@frozen(eq=False)
class Op:
    name: str
    args: tuple[Elem, ...]


@frozen(eq=False)
class Cast:
    dtype: DType
    arg: Elem


@frozen(eq=False)
class Where:
    test: Test
    then: Elem
    other: Elem


Elem = Lit | Num | Get | Op | Cast | Where


@frozen(eq=False)
class Holds:
    cond: Cond


@frozen(eq=False)
class Compare:
    op: Literal["<", "<=", "=="]
    left: Elem
    right: Elem


@frozen(eq=False)
class Both:
    parts: tuple[Test, ...]


@frozen(eq=False)
class Either:
    parts: tuple[Test, ...]


@frozen(eq=False)
class Neither:
    part: Test


Test = Holds | Compare | Both | Either | Neither

# -- claims --------------------------------------------------------------------------------------------------


@frozen(eq=False)
class TagOf:
    """The component `name` of the tags of a view's elements."""

    view: View
    name: str


@frozen(eq=False)
class Equal:
    """Element by element, as each thread holds them, the two components agree."""

    left: TagOf
    right: TagOf


@frozen(eq=False)
class Distinct:
    """No two elements of the view have equal tuples of these components."""

    components: tuple[TagOf, ...]


@frozen(eq=False)
class Relation:
    """`cond` over the components that `names` binds to symbols, element by element."""

    names: tuple[tuple[Symbol, TagOf], ...]
    cond: Cond


@frozen(eq=False)
class Covers:
    """The set component holds every integer of [low, high) once and nothing else, at each element."""

    of: TagOf
    low: Index
    high: Index
    where: Cond = TRUE


@frozen(eq=False)
class Order:
    of: TagOf


@frozen(eq=False)
class WrittenOnce:
    """Each element of the tensor is stored exactly once, by a value with this record (over coordinates)."""

    view: View
    record: tuple[tuple[str, Index], ...]


@frozen(eq=False)
class Products:
    view: View
    products: tuple[tuple[tuple[Index, ...], tuple[Index, ...]], ...]


Claim = Equal | Distinct | Relation | Covers | Order | WrittenOnce | Products

# -- statements ----------------------------------------------------------------------------------------------


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
    copy must be in bounds. signal: the barrier it completes on.
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


@frozen(eq=False)
class Map(_Stated):
    """target[i] = elem, for every element a thread holds."""

    target: View
    elem: Elem


@frozen(eq=False)
class Fold(_Stated):
    target: View
    source: View
    axis: int
    op: str
    keep: Literal["total", "prefix"] = "total"
    within: Literal["thread", "warp"] = "thread"


@frozen(eq=False)
class Mma(_Stated):
    """target = (init ? 0 : target) + a b^T, by register position: coordinates are labels."""

    atom: Atom
    tiling: Tiling
    target: View
    a: View
    b: View
    init: Cond


@frozen(eq=False)
class Arrive(_Stated):
    event: View
    count: int
    bytes: Index


@frozen(eq=False)
class Await(_Stated):
    event: View
    phase: Index


@frozen(eq=False)
class Sync(_Stated):
    """The n-th arrival of every participant meets, wherever it stands in the program."""

    barrier: str = "cta"
    how: Literal["meet", "arrive"] = "meet"
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
class Advance(_Stated):
    counter: Buffer
    by: Index


@frozen(eq=False)
class Policy(_Stated):
    """Advice to the hardware, without meaning: `priority`, `sched_barrier`, ..."""

    name: str
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
    name: str
    first_warp: int
    warps: int
    agent: int
    registers: int | None
    body: tuple[Stmt, ...]


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

# -- kernels -------------------------------------------------------------------------------------------------


@frozen(eq=False)
class Kernel:
    """A traced kernel. sizes: the symbols of its tensors' shapes. blocks: one symbol an axis of the grid.

    Block `i` of axis `a` runs for 0 <= i < grid[a]; `thread` counts the threads of a block.
    """

    name: str
    target: Target
    parameters: tuple[Buffer, ...]
    sizes: tuple[Symbol, ...]
    threads: int
    grid: tuple[Index, ...]
    blocks: tuple[Symbol, ...]
    thread: Symbol
    prologue: tuple[Stmt, ...]
    roles: Roles | None = None
    epilogue: tuple[Stmt, ...] = ()
    cluster: tuple[int, ...] = (1,)
    span: Span = NOWHERE

    @property
    def body(self) -> tuple[Stmt, ...]:
        """All statements, in program order."""
        middle = () if self.roles is None else (self.roles,)
        return (*self.prologue, *middle, *self.epilogue)


def _copied(arguments: Mapping[str, Buffer]) -> Mapping[str, Buffer]:
    return dict(arguments)


@frozen(eq=False)
class Launch:
    kernel: Kernel
    arguments: Mapping[str, Buffer] = field(converter=_copied)


@frozen(eq=False)
class Program:
    parameters: tuple[Buffer, ...]
    workspaces: tuple[Buffer, ...]
    launches: tuple[Launch, ...]


def static(extent: Index) -> int:
    """The number a constant expression is. Raises ValueError for a symbolic one."""
    if not isinstance(extent, Const):
        raise ValueError("a symbolic extent where a number is needed")  # noqa: TRY004 reason: the value is wrong
    return extent.value


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
