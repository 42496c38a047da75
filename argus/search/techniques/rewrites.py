"""Techniques of the IR: statements in another order, or with other advice. The result is verified like any kernel."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from argus.core.algebra import TRUE, coord
from argus.core.check.parts import expressions, views
from argus.core.index import Held
from argus.core.ir import (
    Alloc,
    Assert,
    Buffer,
    Copy,
    For,
    Get,
    Kernel,
    Lit,
    Map,
    Mma,
    Op,
    Policy,
    Roles,
    Stmt,
    Wait,
    bodies,
    walk,
    with_bodies,
)
from argus.core.ir.surgery import with_stmts
from argus.core.walk import topological
from argus.policy import anatomy
from argus.search.transformation import Transformation

_TIMES = (2, 4)
_BYTE = 8

Body = tuple[Stmt, ...]


def _of_gfx942(kernel: Kernel) -> bool:
    return kernel.target.name == "gfx942"


def _everywhere(kernel: Kernel, change: Callable[[Body], Body]) -> tuple[Kernel, ...]:
    """The kernel with every list of statements changed, inner ones first; none where that changes nothing."""

    def within(body: Body) -> Body:
        inner = tuple(with_bodies(stmt, tuple(map(within, bodies(stmt)))) if bodies(stmt) else stmt for stmt in body)
        return change(inner)

    def roles_of(roles: Roles | None) -> Roles | None:
        if roles is None:
            return None
        return evolve(roles, roles=tuple(evolve(role, body=within(role.body)) for role in roles.roles))

    made = evolve(
        kernel,
        prologue=within(kernel.prologue),
        roles=roles_of(kernel.roles),
        epilogue=within(kernel.epilogue),
    )
    before, after = (tuple(filter(_done, walk(each.body))) for each in (kernel, made))
    same = len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
    return () if same and _hints(kernel) == _hints(made) else (made,)


def _done(stmt: Stmt) -> bool:
    """Whether a machine does something: claims and the beginning of storage only stand where they stand."""
    return not (bodies(stmt) or isinstance(stmt, Alloc | Assert))


def _hints(kernel: Kernel) -> list[int | None]:
    return [stmt.unroll for stmt in walk(kernel.body) if isinstance(stmt, For)]


# -- unrolling ----------------------------------------------------------------------------------------------


def _unrolled(kernel: Kernel) -> tuple[Kernel, ...]:
    """Loops around products, their bodies so often in one trip of the machine's loop: the compiler repeats them."""
    if not _of_gfx942(kernel):
        return ()
    return tuple(made for times in _TIMES for made in _everywhere(kernel, lambda body, n=times: _hinted(body, n)))


def _hinted(body: Body, times: int) -> Body:
    return tuple(
        evolve(s, unroll=times) if isinstance(s, For) and s.unroll is None and _multiplies(s) else s for s in body
    )


def _multiplies(loop: For) -> bool:
    return any(isinstance(stmt, Mma) for stmt in loop.body)


# -- advice about products ----------------------------------------------------------------------------------


def _advised(kernel: Kernel, before: Policy, after: Policy) -> tuple[Kernel, ...]:
    """Each product between two pieces of advice, unless some stands there."""
    return _everywhere(kernel, lambda body: _between(body, before, after)) if _of_gfx942(kernel) else ()


def _between(body: Body, before: Policy, after: Policy) -> Body:
    made: list[Stmt] = []
    for last, stmt in zip((None, *body), body, strict=False):
        bare = isinstance(stmt, Mma) and not (isinstance(last, Policy) and last.name == before.name)
        made += (evolve(before, span=stmt.span), stmt, evolve(after, span=stmt.span)) if bare else (stmt,)
    return tuple(made)


def _pinned(kernel: Kernel) -> tuple[Kernel, ...]:
    """The compiler moves nothing across the bounds of a product."""
    return _advised(kernel, Policy("sched_barrier", (0,)), Policy("sched_barrier", (0,)))


def _prior(kernel: Kernel) -> tuple[Kernel, ...]:
    """A wave that multiplies issues before one that moves data."""
    return _advised(kernel, Policy("priority", (1,)), Policy("priority", (0,)))


# -- loads ahead of arithmetic ------------------------------------------------------------------------------


def _loads_first(kernel: Kernel) -> tuple[Kernel, ...]:
    return _everywhere(kernel, _hoisted)


def _hoisted(body: Body) -> Body:
    """Loads to registers, and storage for them, ahead of arithmetic and claims that have nothing to do with them.

    Nothing is moved across a statement that orders anything, nor across another load or store: queues are filled in
    the order in which they were.
    """
    made: list[Stmt] = []
    for stmt in body:
        place = len(made)
        while place and _movable(stmt) and _apart(made[place - 1], stmt):
            place -= 1
        made.insert(place, stmt)
    return tuple(made)


def _movable(stmt: Stmt) -> bool:
    match stmt:
        case Copy(target=target, signal=None):
            return target.buffer.space == "register"
        case Alloc(buffer=buffer):
            return buffer.space == "register"
        case _:
            return False


def _apart(earlier: Stmt, later: Stmt) -> bool:
    """Whether two statements may change places."""
    match earlier:
        case Map() | Assert():
            return _buffers(later).isdisjoint(_buffers(earlier)) and _named(later).isdisjoint(_named(earlier))
        case _:
            return False


def _buffers(stmt: Stmt) -> frozenset[Buffer]:
    if isinstance(stmt, Alloc):
        return frozenset({stmt.buffer})
    return frozenset(view.buffer for view in views(stmt))


def _named(stmt: Stmt) -> frozenset[str]:
    """Names of tensors that the statement is about, those in its expressions too."""
    held = (node.fragment for node in topological(expressions(stmt)) if isinstance(node, Held))
    return frozenset((*held, *(buffer.name for buffer in _buffers(stmt))))


UNROLLED = Transformation(rewrite=_unrolled)
PINNED = Transformation(rewrite=_pinned)
PRIORITY = Transformation(rewrite=_prior)
LOADS_FIRST = Transformation(rewrite=_loads_first)


# -- sums of few bits ---------------------------------------------------------------------------------------


def _promoted(kernel: Kernel) -> tuple[Kernel, ...]:
    """Products of 8-bit numbers are summed over one slice in the matrix unit, and over slices in single precision."""
    loops = {loop: _one_product(loop) for loop in anatomy.mainloops(kernel)}
    chosen = {loop: each for loop, each in loops.items() if each is not None}
    made = kernel
    for loop, each in chosen.items():
        made = with_stmts(made, loop, _promoting(loop, each))
    return (made,) if chosen else ()


def _one_product(loop: For) -> Mma | None:
    """The product of a loop of one that begins anew with the loop, of operands of 8 bits."""
    found = [stmt for stmt in loop.body if isinstance(stmt, Mma)]
    return found[0] if len(found) == 1 and found[0].a.buffer.dtype.bits == _BYTE and found[0].init is not TRUE else None


def _promoting(loop: For, product: Mma) -> Body:
    """The sum of all is 0 at first; each trip's sum is added when it is complete."""
    total = product.target
    part = evolve(total.buffer, name=f"{total.buffer.name}_part")
    alone = evolve(product, target=evolve(total, buffer=part), init=TRUE)
    place = tuple(coord(axis) for axis in range(len(total.shape)))
    added = Map(total, Op("add", (Get(total, place), Get(alone.target, place))), span=product.span)
    body: list[Stmt] = []
    for stmt in loop.body:
        if stmt is product:
            body.append(alone)
        elif isinstance(stmt, Wait) and stmt.queue == product.atom.completion.queue:
            body += (evolve(stmt, pending=0), added)
        else:
            body.append(stmt)
    zero = Map(total, Lit(0.0), span=loop.span)
    return Alloc(part, span=loop.span), zero, evolve(loop, body=tuple(body))


PROMOTED = Transformation(rewrite=_promoted)
