"""Mutation operators on grids, threads, clusters and roles: their numbers and assignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from argus.core.algebra import add, sub, sym
from argus.core.index import Index, Symbol
from argus.core.ir import Kernel, Role, Roles
from argus.core.ir.surgery import substitute_symbols
from argus.testing.mutation.operator import Made, Operator


def _with_grid(kernel: Kernel, grid: tuple[Index, ...], what: str) -> Iterator[Made]:
    """The kernel with another grid, and block coordinates of matching ranges."""
    blocks = tuple(_within(symbol, extent) for symbol, extent in zip(kernel.blocks, grid, strict=True))
    names = {old: sym(new) for old, new in zip(kernel.blocks, blocks, strict=True) if old != new}
    made = _named(kernel, names) if names else kernel
    yield Made(evolve(made, grid=grid, blocks=blocks), what, kernel.span)


def _within(symbol: Symbol, extent: Index) -> Symbol:
    high = extent.range[1]
    return Symbol(symbol.name, symbol.kind, symbol.low, None if high is None else high - 1)


def _grid(kernel: Kernel, by: int) -> Iterator[Made]:
    for axis, extent in enumerate(kernel.grid):
        grid = (*kernel.grid[:axis], add(extent, by), *kernel.grid[axis + 1 :])
        yield from _with_grid(kernel, grid, f"grid axis {axis} + {by}")


def _fewer_blocks(kernel: Kernel) -> Iterator[Made]:
    return _grid(kernel, -1)


def _more_blocks(kernel: Kernel) -> Iterator[Made]:
    return _grid(kernel, 1)


def _swapped_grid(kernel: Kernel) -> Iterator[Made]:
    if len(kernel.grid) > 1:
        yield from _with_grid(kernel, (kernel.grid[1], kernel.grid[0], *kernel.grid[2:]), "grid axes exchanged")


def _swapped_blocks(kernel: Kernel) -> Iterator[Made]:
    if len(kernel.blocks) > 1:
        one, two = kernel.blocks[:2]
        yield Made(_named(kernel, {one: sym(two), two: sym(one)}), "block coordinates exchanged", kernel.span)


def _next_block(kernel: Kernel) -> Iterator[Made]:
    for symbol in kernel.blocks:
        yield Made(_named(kernel, {symbol: add(sym(symbol), 1)}), f"{symbol.name} + 1", kernel.span)


def _named(kernel: Kernel, names: Mapping[Symbol, Index]) -> Kernel:
    roles = kernel.roles
    if roles is not None:
        (made,) = substitute_symbols((roles,), names)
        assert isinstance(made, Roles)
        roles = made
    parts = {name: substitute_symbols(getattr(kernel, name), names) for name in ("prologue", "epilogue")}
    return evolve(kernel, roles=roles, **parts)


def _threads(kernel: Kernel) -> Iterator[Made]:
    for threads in (kernel.threads // 2, kernel.threads * 2):
        if threads % kernel.target.unit == 0 and 0 < threads <= kernel.target.max_threads:
            thread = Symbol(kernel.thread.name, "thread", 0, threads - 1)
            made = _named(evolve(kernel, threads=threads, thread=thread), {kernel.thread: sym(thread)})
            yield Made(made, f"{threads} threads", kernel.span)


def _with_role(kernel: Kernel, at: int, made: Role) -> Kernel:
    assert kernel.roles is not None
    old = kernel.roles.roles
    roles = evolve(kernel.roles, roles=(*old[:at], made, *old[at + 1 :]))
    threads = max(kernel.threads, (made.first_warp + made.warps) * made.unit)
    return evolve(kernel, roles=roles, threads=threads)


def _each_role(kernel: Kernel) -> Iterator[tuple[int, Role]]:
    if kernel.roles is not None:
        yield from enumerate(kernel.roles.roles)


def _agents(kernel: Kernel) -> Iterator[Made]:
    for at, role in _each_role(kernel):
        for by in (-1, 1):
            warps = role.warps + by * role.agent // role.unit
            if role.agent == 1 or warps < 1:
                continue
            agents = warps * role.unit // role.agent
            number = Symbol(role.number.name, "agent", 0, agents - 1)
            body = substitute_symbols(role.body, {role.number: sym(number)})
            made = evolve(role, warps=warps, number=number, body=body)
            yield Made(_with_role(kernel, at, made), f"`{role.name}` of {agents} agents", kernel.span)


def _other_agent(kernel: Kernel) -> Iterator[Made]:
    for at, role in _each_role(kernel):
        if role.agents > 1:
            number = sym(role.number)
            reverse = sub(role.agents - 1, number)
            made = evolve(role, body=substitute_symbols(role.body, {role.number: reverse}))
            yield Made(_with_role(kernel, at, made), f"agents of `{role.name}` in reverse", kernel.span)
            first = evolve(role, body=substitute_symbols(role.body, {role.number: add(number, 1)}))
            yield Made(_with_role(kernel, at, first), f"agents of `{role.name}` from 1", kernel.span)


def _first_warp(kernel: Kernel) -> Iterator[Made]:
    for at, role in _each_role(kernel):
        for by in (-4, 4):
            if role.first_warp + by >= 0:
                made = evolve(role, first_warp=role.first_warp + by)
                yield Made(_with_role(kernel, at, made), f"`{role.name}` from warp {made.first_warp}", kernel.span)


def _registers(kernel: Kernel) -> Iterator[Made]:
    for at, role in _each_role(kernel):
        for by in (-16, 16, 64):
            if role.registers is not None and 24 <= role.registers + by <= 256:
                made = evolve(role, registers=role.registers + by)
                yield Made(_with_role(kernel, at, made), f"`{role.name}` of {made.registers} registers", kernel.span)


def _order(kernel: Kernel) -> Iterator[Made]:
    if kernel.roles is not None and len(kernel.roles.roles) > 1:
        roles = evolve(kernel.roles, roles=kernel.roles.roles[::-1])
        yield Made(evolve(kernel, roles=roles), "roles written in reverse", kernel.span)


def _cluster(kernel: Kernel) -> Iterator[Made]:
    if kernel.cluster != (1,):
        yield Made(evolve(kernel, cluster=(1,)), "no cluster", kernel.span)


OPERATORS: tuple[Operator, ...] = (
    Operator("fewer_blocks", "an axis of the grid has one block less", _fewer_blocks),
    Operator("more_blocks", "an axis of the grid has one block more", _more_blocks),
    Operator("swap_grid", "the axes of the grid are exchanged", _swapped_grid),
    Operator("swap_blocks", "the block's coordinates are exchanged", _swapped_blocks),
    Operator("next_block", "a block takes the coordinate of the next", _next_block),
    Operator("other_threads_count", "a block has half or twice the threads", _threads),
    Operator("other_agents", "a role has one agent less or more", _agents),
    Operator("number_agents", "a role's agents are numbered differently", _other_agent),
    Operator("move_role", "a role runs on other warps", _first_warp),
    Operator("other_registers", "a role has fewer or more registers", _registers),
    Operator("reorder_roles", "roles are written in reverse", _order),
    Operator("drop_cluster", "blocks are launched without a cluster", _cluster),
)
