"""Obligations on integers that the sequential kernel omits: loops over tiles, control flow and barriers of all roles.

A tile's number is block + i * blocks there and one symbol here: if a multiple of it fits, so do its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from attrs import evolve

from argus.core import algebra
from argus.core.check.parts import expressions
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Arrive, Assume, Await, For, If, Kernel, walk
from argus.core.proof.limits import integers
from argus.core.proof.limits.divisors import expression_divisor_obligations
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.nested_tiles import Pairs
from argus.core.proof.sync.roles.parsed import ParsedRole
from argus.core.proof.sync.roles.sequential import TileEnumeration
from argus.core.proof.sync.roles.tile_coordinates import Coordinates, by_coordinates
from argus.core.walk import substitute


def width_obligations(roles: Sequence[ParsedRole], pairs: Pairs | None = None) -> Iterator[Obligation]:
    """I28: loop variables and conditions fit 32 bits. pairs: those that a loop of the proof alone runs through."""
    for role in roles:
        inside = set(walk(role.tile_loop.tile))
        for stmt in walk(role.statements):
            if isinstance(stmt, For) and pairs is not None and stmt.stop is pairs.count:
                continue
            if isinstance(stmt, For):
                yield from integers.loop_width_obligations(stmt, role.facts if stmt in inside else ())
            elif isinstance(stmt, If):
                yield from integers.width_obligations((stmt.cond,), stmt, role.inside, "a condition")


def divisor_obligations(
    kernel: Kernel,
    roles: Sequence[ParsedRole],
    tiles: TileEnumeration | None,
    line: Kernel,
    coordinates: Sequence[Coordinates],
) -> Iterator[Obligation]:
    """I28: divisors are positive; in a tile, for all coordinates that its number may have.

    line: the sequential kernel, whose blocks are the coordinates of a tile.
    """
    assumed = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    known = (*assumed, *_in_grid(kernel))
    for role in roles:
        inside = set(walk(role.tile_loop.tile))
        for stmt in walk(role.statements):
            roots = expressions(stmt) if isinstance(stmt, For | If | Await | Arrive) else ()
            if stmt not in inside:
                yield from expression_divisor_obligations(stmt, roots, known)
                continue
            names = _numbered(role, tiles)
            roots = tuple(by_coordinates(substitute(cast(Index, root), names), coordinates) for root in roots)
            yield from expression_divisor_obligations(stmt, roots, (*known, *_in_grid(line), *_runs(role, tiles)))


def _numbered(role: ParsedRole, tiles: TileEnumeration | None) -> dict[Symbol, Index]:
    """The substitution that names a tile of a role by its number."""
    loop = role.tile_loop.tiles
    return {} if tiles is None or loop is None else evolve(tiles, own=loop.symbol).names


def _in_grid(kernel: Kernel) -> Iterator[Cond]:
    pairs = zip(kernel.blocks, kernel.grid, strict=True)
    return (algebra.lt(algebra.sym(block), count) for block, count in pairs)


def _runs(role: ParsedRole, tiles: TileEnumeration | None) -> tuple[Cond, ...]:
    """The facts in a tile: it is one of the role's, and its number is below the number of tiles."""
    if tiles is None:
        return role.facts
    return *role.facts, algebra.lt(algebra.sym(tiles.number), tiles.total), algebra.le(1, tiles.total)
