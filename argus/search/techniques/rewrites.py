"""IR rewrites: reorder statements or add compiler hints. The result is verified like any other kernel."""

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

_UNROLL_FACTORS = (2, 4)
_BYTE = 8

Body = tuple[Stmt, ...]


def _of_gfx942(kernel: Kernel) -> bool:
    return kernel.target.name == "gfx942"


def _rewrite_all_bodies(kernel: Kernel, change: Callable[[Body], Body]) -> tuple[Kernel, ...]:
    """Apply `change` to every statement list, innermost first; empty if that changes nothing."""

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
    before, after = (tuple(filter(_is_executed, walk(each.body))) for each in (kernel, made))
    same = len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
    return () if same and _unroll_hints(kernel) == _unroll_hints(made) else (made,)


def _is_executed(stmt: Stmt) -> bool:
    """Whether a statement executes an instruction: not control flow, an allocation or a claim."""
    return not (bodies(stmt) or isinstance(stmt, Alloc | Assert))


def _unroll_hints(kernel: Kernel) -> list[int | None]:
    return [stmt.unroll for stmt in walk(kernel.body) if isinstance(stmt, For)]


# -- unrolling ----------------------------------------------------------------------------------------------


def _unrolled(kernel: Kernel) -> tuple[Kernel, ...]:
    """Set unroll factors of mainloops, for the compiler to apply."""
    if not _of_gfx942(kernel):
        return ()
    return tuple(
        made
        for times in _UNROLL_FACTORS
        for made in _rewrite_all_bodies(kernel, lambda body, n=times: _with_unroll_hints(body, n))
    )


def _with_unroll_hints(body: Body, times: int) -> Body:
    return tuple(
        evolve(s, unroll=times) if isinstance(s, For) and s.unroll is None and _is_mainloop(s) else s for s in body
    )


def _is_mainloop(loop: For) -> bool:
    return any(isinstance(stmt, Mma) for stmt in loop.body)


# -- hints around Mma statements ----------------------------------------------------------------------------


def _around_mmas(kernel: Kernel, before: Policy, after: Policy) -> tuple[Kernel, ...]:
    """Bracket each `Mma` by two policies, unless one already precedes it."""
    return _rewrite_all_bodies(kernel, lambda body: _bracket_mmas(body, before, after)) if _of_gfx942(kernel) else ()


def _bracket_mmas(body: Body, before: Policy, after: Policy) -> Body:
    made: list[Stmt] = []
    for last, stmt in zip((None, *body), body, strict=False):
        bare = isinstance(stmt, Mma) and not (isinstance(last, Policy) and last.name == before.name)
        made += (evolve(before, span=stmt.span), stmt, evolve(after, span=stmt.span)) if bare else (stmt,)
    return tuple(made)


def _with_sched_barriers(kernel: Kernel) -> tuple[Kernel, ...]:
    """Put scheduling barriers around each `Mma`."""
    return _around_mmas(kernel, Policy("sched_barrier", (0,)), Policy("sched_barrier", (0,)))


def _with_priority(kernel: Kernel) -> tuple[Kernel, ...]:
    """Raise the wave priority around each `Mma`."""
    return _around_mmas(kernel, Policy("priority", (1,)), Policy("priority", (0,)))


# -- load hoisting ------------------------------------------------------------------------------------------


def _hoist_loads(kernel: Kernel) -> tuple[Kernel, ...]:
    return _rewrite_all_bodies(kernel, _hoist_in_body)


def _hoist_in_body(body: Body) -> Body:
    """Hoist loads to registers, and their allocations, over independent arithmetic and claims.

    No statement moves across a synchronisation, nor across another load or store, so that asynchronous operations are
    issued in the same order.
    """
    made: list[Stmt] = []
    for stmt in body:
        place = len(made)
        while place and _movable(stmt) and _commute(made[place - 1], stmt):
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


def _commute(earlier: Stmt, later: Stmt) -> bool:
    """Whether two adjacent statements commute."""
    match earlier:
        case Map() | Assert():
            return _buffers(later).isdisjoint(_buffers(earlier)) and _tensor_names(later).isdisjoint(
                _tensor_names(earlier)
            )
        case _:
            return False


def _buffers(stmt: Stmt) -> frozenset[Buffer]:
    if isinstance(stmt, Alloc):
        return frozenset({stmt.buffer})
    return frozenset(view.buffer for view in views(stmt))


def _tensor_names(stmt: Stmt) -> frozenset[str]:
    """Names of all tensors that the statement mentions, in its expressions too."""
    held = (node.fragment for node in topological(expressions(stmt)) if isinstance(node, Held))
    return frozenset((*held, *(buffer.name for buffer in _buffers(stmt))))


LOOP_UNROLLING = Transformation(rewrite=_unrolled)
SCHED_BARRIERS = Transformation(rewrite=_with_sched_barriers)
PRIORITY = Transformation(rewrite=_with_priority)
LOAD_HOISTING = Transformation(rewrite=_hoist_loads)


# -- FP8 promotion ------------------------------------------------------------------------------------------


def _promote(kernel: Kernel) -> tuple[Kernel, ...]:
    """Accumulate 8-bit products in the matrix unit within one iteration only, and across iterations in f32."""
    loops = {loop: _single_fp8_mma(loop) for loop in anatomy.mainloops(kernel)}
    chosen = {loop: each for loop, each in loops.items() if each is not None}
    made = kernel
    for loop, each in chosen.items():
        made = with_stmts(made, loop, _promoted_loop(loop, each))
    return (made,) if chosen else ()


def _single_fp8_mma(loop: For) -> Mma | None:
    """The only `Mma` of a loop, if its operands have 8 bits and it accumulates across iterations."""
    found = [stmt for stmt in loop.body if isinstance(stmt, Mma)]
    return found[0] if len(found) == 1 and found[0].a.buffer.dtype.bits == _BYTE and found[0].init is not TRUE else None


def _promoted_loop(loop: For, product: Mma) -> Body:
    """Zero the total before the loop; add each iteration's partial sum once its `Mma` has completed."""
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


FP8_PROMOTION = Transformation(rewrite=_promote)
