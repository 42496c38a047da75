"""Random edits of kernels with roles: the order of statements, the threads that execute them, their operands."""

from __future__ import annotations

from random import Random

from attrs import evolve

from argus.core import algebra
from argus.core.algebra import mod, sym
from argus.core.index import Cond, Const, Symbol
from argus.core.ir import (
    Alloc,
    Assert,
    Assume,
    Copy,
    For,
    If,
    Kernel,
    Let,
    Mma,
    One,
    Role,
    Stmt,
    Tag,
    View,
    bodies,
    walk,
)
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.ir.surgery import fresh_copies
from property_tests import edits
from property_tests.edits import Edit, mutate
from property_tests.event_edits import EVENT_EDITS, enclosing, tweaked
from property_tests.programs import Mutant, one_of, with_edit

_FIXED = Alloc | Tag | Assume | Let


def mutate_roles(kernel: Kernel, random: Random, number: int = 1) -> Mutant | None:
    """A kernel after some edits; None if a drawn edit does not apply."""
    return mutate(kernel, random, number, ROLE_EDITS)


def _lists(kernel: Kernel) -> list[tuple[Stmt, ...]]:
    """Every list of statements that has a movable one."""
    inside = [part for stmt in walk(kernel.body) for part in bodies(stmt)]
    return [part for part in (kernel.prologue, *inside) if any(not isinstance(s, _FIXED) for s in part)]


def _anywhere(kernel: Kernel, random: Random) -> Stmt:
    """A random movable statement; every list is equally likely."""
    return random.choice([s for s in random.choice(_lists(kernel)) if not isinstance(s, _FIXED)])


def _condition(pool: list[Symbol], kernel: Kernel, random: Random) -> Cond:
    about = sym(random.choice(pool or list(kernel.sizes)))
    size = sym(random.choice(kernel.sizes))
    choices = [
        algebra.lt(0, about),
        algebra.eq(about, 0),
        algebra.le(1, about),
        algebra.lt(1, about),
        algebra.eq(mod(about, 2), 0),
        algebra.lt(16, size),
        algebra.le(size, 32),
    ]
    return random.choice(choices)


def drop(kernel: Kernel, random: Random) -> Mutant:
    return with_edit(kernel, stmt := _anywhere(kernel, random), (), f"dropped {type(stmt).__name__}")


def duplicate(kernel: Kernel, random: Random) -> Mutant:
    stmt = _anywhere(kernel, random)
    return with_edit(kernel, stmt, (stmt, *fresh_copies((stmt,))), "duplicated")


def move(kernel: Kernel, random: Random) -> Mutant | None:
    """Move a statement before or after another one of its list."""
    body = [stmt for stmt in random.choice(_lists(kernel)) if not isinstance(stmt, _FIXED)]
    if len(body) < 2:
        return None
    stmt, target = random.sample(body, 2)
    taken = with_edit(kernel, stmt, (), "moved").kernel
    found = [s for s in walk(taken.body) if s is target]
    if not found:
        return None
    put = random.choice([(stmt, target), (target, stmt)])
    return with_edit(taken, target, put, f"{type(stmt).__name__} at {stmt.span} moved to")


def carry(kernel: Kernel, random: Random) -> Mutant | None:
    """Move or copy a statement to another list: into or out of a loop, a branch or a role."""
    stmt, target = _anywhere(kernel, random), _anywhere(kernel, random)
    if target in set(walk((stmt,))) or stmt in set(walk((target,))):
        return None
    put = fresh_copies((stmt,)) if random.random() < 0.3 else (stmt,)
    start = kernel if put[0] is not stmt else with_edit(kernel, stmt, (), "carried").kernel
    if not any(s is target for s in walk(start.body)):
        return None
    both = random.choice([(*put, target), (target, *put)])
    return with_edit(start, target, both, f"{type(stmt).__name__} at {stmt.span} carried to")


def exchange(kernel: Kernel, random: Random) -> Mutant | None:
    """Exchange two neighbouring statements."""
    body = random.choice(_lists(kernel))
    if len(body) < 2:
        return None
    at = random.randrange(len(body) - 1)
    first, second = body[at], body[at + 1]
    taken = with_edit(kernel, first, (), "exchanged").kernel
    found = next((s for s in walk(taken.body) if s is second), None)
    return None if found is None else with_edit(taken, second, (second, first), "exchanged with the one before")


def wrap(kernel: Kernel, random: Random) -> Mutant:
    """Execute a statement by one thread, or under a condition."""
    stmt = _anywhere(kernel, random)
    if random.random() < 0.4 and not isinstance(stmt, Assert):
        return with_edit(kernel, stmt, (One((stmt,), span=stmt.span),), "by one thread")
    cond = _condition(enclosing(kernel, stmt), kernel, random)
    return with_edit(kernel, stmt, (If(cond, (stmt,), span=stmt.span),), "under a condition")


def unwrap(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, One, If)
    return None if stmt is None else with_edit(kernel, stmt, bodies(stmt)[0], "by all")


def change_step(kernel: Kernel, random: Random) -> Mutant | None:
    stmt = one_of(kernel, random, For)
    if stmt is None:
        return None
    pool = [s for s in enclosing(kernel, stmt) if s != stmt.symbol]
    choices = [
        evolve(stmt, step=random.choice([1, 2, 3])),
        evolve(stmt, start=tweaked(stmt.start, pool, random)),
        evolve(stmt, stop=tweaked(stmt.stop, pool, random)),
    ]
    return with_edit(kernel, stmt, (_fresh(random.choice(choices)),), "other trips")


def _fresh(loop: For) -> For:
    """The loop with a new variable, of a range without upper bound."""
    other = Symbol(loop.symbol.name, "loop", loop.start.range[0], None)
    return evolve(loop, symbol=other, body=tuple(rewrite_stmt(s, {loop.symbol: sym(other)}) for s in loop.body))


def change_operand(kernel: Kernel, random: Random) -> Mutant | None:
    """Let a product or a copy use another slot or another part of a tile."""
    stmt = one_of(kernel, random, Mma, Copy)
    name = random.choice(["a", "b"]) if isinstance(stmt, Mma) else random.choice(["source", "target"])
    if stmt is None or not getattr(stmt, name).at:
        return None
    view: View = getattr(stmt, name)
    axis = random.randrange(len(view.at))
    moved = tweaked(view.at[axis], enclosing(kernel, stmt), random)
    extent = view.buffer.shape[axis]
    inside = mod(moved, extent) if isinstance(extent, Const) else moved
    at = (*view.at[:axis], random.choice([moved, inside]), *view.at[axis + 1 :])
    return with_edit(kernel, stmt, (evolve(stmt, **{name: evolve(view, at=at)}),), f"{name} axis {axis}")


def change_agents(kernel: Kernel, random: Random) -> Mutant | None:
    """Give a role one agent fewer or more."""
    assert kernel.roles is not None
    role = random.choice(kernel.roles.roles)
    if role.agent == 1:
        return None
    warps = role.warps + random.choice([-1, 1]) * role.agent // role.unit
    if warps < 1:
        return None
    agents = warps * role.unit // role.agent
    number = Symbol(role.number.name, "agent", 0, agents - 1)
    body = tuple(rewrite_stmt(stmt, {role.number: sym(number)}) for stmt in role.body)
    made = evolve(role, warps=warps, number=number, body=body)
    threads = max(kernel.threads, (made.first_warp + warps) * role.unit)
    return _with_role(evolve(kernel, threads=threads), role, made, f"{agents} agents")


def change_registers(kernel: Kernel, random: Random) -> Mutant | None:
    assert kernel.roles is not None
    role = random.choice(kernel.roles.roles)
    if role.registers is None:
        return None
    registers = min(256, max(24, role.registers + random.choice([-16, 16, 64])))
    made = evolve(role, registers=registers)
    return _with_role(kernel, role, made, f"{registers} registers")


def exchange_roles(kernel: Kernel, random: Random) -> Mutant | None:
    """Reverse the order in which roles are written, which has no effect."""
    assert kernel.roles is not None
    if random.random() < 0.5:
        return None
    roles = evolve(kernel.roles, roles=kernel.roles.roles[::-1])
    return Mutant(evolve(kernel, roles=roles), ("roles the other way round",))


def _with_role(kernel: Kernel, old: Role, new: Role, text: str) -> Mutant:
    assert kernel.roles is not None
    roles = tuple(new if role is old else role for role in kernel.roles.roles)
    return Mutant(evolve(kernel, roles=evolve(kernel.roles, roles=roles)), (f"`{old.name}` of {text}",))


ROLE_EDITS: tuple[Edit, ...] = (
    *EVENT_EDITS,
    drop,
    drop,
    duplicate,
    move,
    move,
    carry,
    exchange,
    wrap,
    unwrap,
    change_step,
    change_operand,
    change_operand,
    change_agents,
    change_registers,
    exchange_roles,
    edits.drop_assumption,
    edits.change_guard,
    edits.change_init,
    edits.shift_view,
    edits.change_symbol,
    edits.change_slot,
    edits.change_loop,
    edits.change_edge,
    edits.swap_buffers,
    edits.change_swizzle,
    edits.change_grid,
    edits.change_claim,
)
