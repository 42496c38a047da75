"""Searches for a violating run: small sizes first, directed schedules first; derives the sizes to try from a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import cast

import numpy as np
import numpy.typing as npt

from argus.core.algebra import all_of
from argus.core.index import And, Cond, Const, Coord, Index, Read, Sym, Symbol
from argus.core.ir import Assert, Assume, Copy, Fold, For, Kernel, Products, Stmt, View, bodies, trips, walk
from argus.core.walk import IntArray, evaluate, mentions, symbols, topological
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations, uses_agents
from argus.interp.search.diagnosis import Witness
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.ties import tied
from argus.interp.violation import Violation

_SIZES = 40
_SHAPES = 10
_LARGEST = 6
_COMBINED = 1 << 17
_TIMES = (2, 3)
_MOST_HELD = 1 << 22
"""The largest number of tensor elements in one run, each of which also needs memory for its tags."""
_HALVES = (3, 5)
_WHOLE = 6


def find(
    kernel: Kernel,
    want: Callable[[Violation], bool],
    sizes: Iterable[Mapping[str, int]],
    schedules: Iterable[Schedule] | None = None,
) -> Witness | None:
    """The first violation that `want` accepts; tries every schedule at one size before the next size.

    schedules: by default the directed ones of the kernel. Runs track tags and compute no values.
    Raises ArgusError (E501) as `run` does.
    """
    prepared = Prepared(kernel)
    chosen = directed(kernel) if schedules is None else tuple(schedules)
    for size in sizes:
        for schedule in chosen:
            for violation in find_violations(prepared, size, schedule):
                if want(violation):
                    return Witness(dict(size), schedule, violation)
    return None


def sizes_in_order(kernel: Kernel, extra: Sequence[Mapping[str, int]] = ()) -> Iterator[dict[str, int]]:
    """Small sizes that satisfy the kernel's assumptions, least work first, including `extra` ones.

    They are derived from the kernel's constants: vectors, tiles, one more than a tile, and a few tiles.
    """
    assumption = assumed(kernel)
    ladders = {symbol: _ladder(kernel, symbol, assumption) for symbol in kernel.sizes}
    chosen = _of_each_shape if uses_agents(kernel) else _combinations
    derived = [{symbol.name: n for symbol, n in each} for each in chosen(kernel.sizes, ladders)]
    allowed = _allowed(kernel, assumption, derived)
    if uses_agents(kernel):
        parts = _allowed(kernel, assumption, _parts_of_tiles(kernel, assumption))
        yield from _of_shapes(kernel, allowed, [*parts, *_allowed(kernel, assumption, extra)])
        return
    together = _all_larger(kernel, assumption) if _sums_windows(kernel) else ()
    parts = _parts_of_tiles(kernel, assumption)
    yield from _allowed(kernel, assumption, [*allowed[:_SIZES], *together, *parts, *extra])


def whole_tiles(kernel: Kernel) -> list[dict[str, int]]:
    """Sizes that are exact multiples of their tiles, all or one alone, and just above a tile; least work first."""
    assumption = assumed(kernel)
    least = {symbol.name: _least(symbol, assumption) for symbol in kernel.sizes}
    tile = {s.name: max(_extents(kernel, s)[0], default=least[s.name]) for s in kernel.sizes}
    found = [{name: times * tile[name] for name in tile} for times in (1, 2)]
    found += [{**least, name: times * tile[name]} for name in tile for times in (1, 2)]
    found += [{name: tile[name] + least[name] for name in tile}]
    return _allowed(kernel, assumption, found)[:_WHOLE]


def _parts_of_tiles(kernel: Kernel, assumption: Cond) -> Iterator[dict[str, int]]:
    """For kernels with reductions: one and a half tiles of every tiled size, then two and a half.

    With a single row, or a single element per row besides padding, a run can't distinguish tag names that vary along
    rows from names that vary along the reduced axis.
    """
    if not any(isinstance(stmt, Fold) for stmt in walk(kernel.body)):
        return
    for halves in _HALVES:
        chosen: dict[str, int] = {}
        for symbol in kernel.sizes:
            least = _least(symbol, assumption)
            tile = max(_extents(kernel, symbol)[0], default=0)
            gap = _least(symbol, assumption, least + 1) - least
            chosen[symbol.name] = max(least, (tile + 1) // 2 * halves // gap * gap)
        yield chosen


def _sums_windows(kernel: Kernel) -> bool:
    """Whether a claim lists the products of a sum (convolutions), whose faults need all extents above one to appear."""
    return any(isinstance(stmt, Assert) and isinstance(stmt.claim, Products) for stmt in walk(kernel.body))


def _all_larger(kernel: Kernel, assumption: Cond) -> Iterator[dict[str, int]]:
    """All sizes at twice the least admissible value, then at three times."""
    for times in _TIMES:
        yield {symbol.name: times * _least(symbol, assumption) for symbol in kernel.sizes}


def _allowed(kernel: Kernel, assumption: Cond, sizes: Iterable[Mapping[str, int]]) -> list[dict[str, int]]:
    """The distinct sizes that satisfy the assumption and fit into memory, least work first."""
    names = [symbol.name for symbol in kernel.sizes]
    given = list(dict.fromkeys(tuple(size[name] for name in names) for size in tied(assumption, sizes)))
    found = [dict(zip(names, values, strict=True)) for values in given]
    found = [size for size, fine in zip(found, _fit(kernel, assumption, found), strict=True) if fine]
    if len(found) <= 1:
        return found
    env = _columns(kernel, found)
    order = np.lexsort((np.sum([*env.values()], axis=0), _cost(kernel, env, len(found))))
    return [found[place] for place in order]


def _fit(kernel: Kernel, assumption: Cond, sizes: Sequence[Mapping[str, int]]) -> npt.NDArray[np.bool_]:
    """For each of the sizes, whether it satisfies the assumption and its tensors fit into memory."""
    env = _columns(kernel, sizes)
    try:
        fits = _spread(evaluate(assumption, env), len(sizes)).astype(np.bool_)
    except ZeroDivisionError:
        fits = np.array([holds(kernel, assumption, size) for size in sizes], np.bool_)
    for symbol, values in env.items():
        fits = fits & (values >= (values if symbol.low is None else symbol.low))
        fits = fits & (values <= (values if symbol.high is None else symbol.high))
    held = np.zeros(len(sizes))
    for each in kernel.parameters:
        extents = [_spread(evaluate(extent, env), len(sizes)).astype(float) for extent in each.shape]
        held = held + np.prod(extents, axis=0)
    return fits & (held <= _MOST_HELD)


def _columns(kernel: Kernel, sizes: Sequence[Mapping[str, int]]) -> dict[Symbol, IntArray]:
    return {symbol: np.array([size[symbol.name] for size in sizes], np.int64) for symbol in kernel.sizes}


def _spread(values: object, count: int) -> IntArray:
    return np.broadcast_to(np.asarray(values), (count,))


def assumed(kernel: Kernel) -> Cond:
    """The conjunction of all assumptions about sizes alone."""
    known = set(kernel.sizes)
    conditions = [stmt.cond for stmt in walk(kernel.body) if isinstance(stmt, Assume)]
    return all_of(cond for cond in conditions if symbols(cond) <= known)


def holds(kernel: Kernel, assumption: Cond, size: Mapping[str, int]) -> bool:
    """Whether sizes satisfy an assumption and the ranges of their symbols."""
    for symbol in kernel.sizes:
        value = size[symbol.name]
        if (symbol.low is not None and value < symbol.low) or (symbol.high is not None and value > symbol.high):
            return False
    try:
        return bool(evaluate(assumption, {symbol: size[symbol.name] for symbol in kernel.sizes}))
    except ZeroDivisionError:
        return False


def _combinations(
    sizes: Sequence[Symbol], ladders: Mapping[Symbol, tuple[int, ...]]
) -> Iterator[tuple[tuple[Symbol, int], ...]]:
    """Each size at all its candidate values with the others at their first, then all sizes at a few values together."""
    for moving in sizes:
        rungs = [ladders[symbol] if symbol == moving else ladders[symbol][:1] for symbol in sizes]
        yield from (tuple(zip(sizes, chosen, strict=True)) for chosen in product(*rungs))
    for chosen in product(*(ladders[symbol][:3] for symbol in sizes)):
        yield tuple(zip(sizes, chosen, strict=True))


def _of_each_shape(
    sizes: Sequence[Symbol], ladders: Mapping[Symbol, tuple[int, ...]]
) -> Iterator[tuple[tuple[Symbol, int], ...]]:
    """All combinations of candidate values: faults between roles depend on numbers of blocks and trips together.

    Of many sizes, only those of as many first values of each as give no more than `_COMBINED` combinations.
    """
    lengths = [len(ladders[symbol]) for symbol in sizes]
    most = next(n for n in range(max(lengths, default=1), 0, -1) if prod(min(n, own) for own in lengths) <= _COMBINED)
    for chosen in product(*(ladders[symbol][:most] for symbol in sizes)):
        yield tuple(zip(sizes, chosen, strict=True))


def _of_shapes(
    kernel: Kernel, sizes: Sequence[dict[str, int]], extra: Sequence[dict[str, int]]
) -> Iterator[dict[str, int]]:
    """One size for each combination of block and trip counts: the smallest ones and `extra` by number of steps, then
    some of the largest.
    """
    ends: dict[tuple[int, ...], list[dict[str, int]]] = {}
    for shape, size in zip(_shapes(kernel, sizes), sizes, strict=True):
        ends.setdefault(shape, []).append(size)
    ordered = sorted(ends.values(), key=lambda same: _steps_of(kernel, same[0]))
    few = [same[0] for same in ordered[:_SHAPES]]
    yield from sorted([*few, *extra], key=lambda size: _steps_of(kernel, size))
    yield from (same[-1] for same in ordered[:_LARGEST] if len(same) > 1)


def _shapes(kernel: Kernel, sizes: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
    """Blocks per axis and trips per loop (for the first agent of the first block), as far as sizes determine them."""
    first = {symbol: np.zeros(len(sizes), np.int64) for symbol in _of_agents(kernel)}
    env = _columns(kernel, sizes) | first
    counts = [*kernel.grid, *(trips(stmt) for stmt in walk(kernel.body) if isinstance(stmt, For))]
    decided = (count for count in counts if symbols(count) <= env.keys() and not mentions(count, (Read,)))
    known = [_spread(evaluate(count, env), len(sizes)) for count in decided]
    return [tuple(map(int, row)) for row in np.stack(known, axis=1)]


def _steps_of(kernel: Kernel, size: Mapping[str, int]) -> int:
    """An estimate of the statements that all blocks execute: blocks times the statements of the first."""
    env = _first_of_all(kernel, size)
    return prod(_value(extent, env) for extent in kernel.grid) * _steps(kernel.body, env)


def _steps(body: Sequence[Stmt], env: Mapping[Symbol, int]) -> int:
    total = 0
    for stmt in body:
        inner = sum(_steps(part, env) for part in bodies(stmt))
        count = trips(stmt) if isinstance(stmt, For) else None
        known = count is not None and symbols(count) <= env.keys() and not mentions(count, (Read,))
        total += 1 + inner * (_value(count, env) if count is not None and known else 1)
    return total


def _first_of_all(kernel: Kernel, size: Mapping[str, int]) -> dict[Symbol, int]:
    """The values of the sizes, with the first block and the first agent of each role."""
    return {symbol: size[symbol.name] for symbol in kernel.sizes} | dict.fromkeys(_of_agents(kernel), 0)


def _of_agents(kernel: Kernel) -> tuple[Symbol, ...]:
    roles = () if kernel.roles is None else kernel.roles.roles
    return *kernel.blocks, *(role.number for role in roles)


def _ladder(kernel: Kernel, symbol: Symbol, assumption: Cond) -> tuple[int, ...]:
    """Candidate values of one size: the least admissible, a tile, more than a tile, then further multiples of it.

    A size without tiles is a count, such as a trip count, and may be 0. So may a contracted size, which no output has;
    its loops then make no trip.
    """
    tiles, vectors = _extents(kernel, symbol)
    tile = max(tiles, default=1)
    least = _least(symbol, assumption)
    gap = _least(symbol, assumption, least + 1) - least
    rest = min((vector for vector in vectors if vector % least == 0), default=gap)
    wanted = (least, tile, tile + rest, 2 * tile, 2 * tile + rest, 3 * tile, 3 * tile + rest, *sorted(tiles))
    may_be_zero = symbol not in _of_outputs(kernel) if tiles else least == 1
    zero = (0,) if may_be_zero and _allows(symbol, assumption, 0) else ()
    return tuple(dict.fromkeys((*(value for value in wanted if value >= least), *zero)))


def _of_outputs(kernel: Kernel) -> frozenset[Symbol]:
    stored = (stmt.target.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy))
    return symbols(*(extent for buffer in stored if buffer.space == "global" for extent in buffer.shape))


def _least(symbol: Symbol, assumption: Cond, start: int = 1) -> int:
    """The least value from `start` on that satisfies the assumptions about this size alone."""
    return next((value for value in range(start, 1025) if _allows(symbol, assumption, value)), start)


def _allows(symbol: Symbol, assumption: Cond, value: int) -> bool:
    """Whether a value satisfies the assumptions about this size alone, and its range."""
    parts = assumption.parts if isinstance(assumption, And) else (assumption,)
    alone = [cond for cond in parts if symbols(cond) == frozenset((symbol,))]
    try:
        return value >= (symbol.low or 0) and all(bool(evaluate(cond, {symbol: value})) for cond in alone)
    except ZeroDivisionError:  # the assumption has no value there
        return False


def _extents(kernel: Kernel, symbol: Symbol) -> tuple[set[int], set[int]]:
    """Tile extents, and elements per access, along the tensor axes that have this size."""
    tiles: set[int] = set()
    vectors: set[int] = set()
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy):
            for view in (stmt.source, stmt.target):
                _extents_of(stmt, view, symbol, tiles, vectors)
    return tiles, vectors


def _extents_of(stmt: Copy, view: View, symbol: Symbol, tiles: set[int], vectors: set[int]) -> None:
    shape = view.buffer.shape
    if view.buffer.space != "global":
        return
    for axis, extent in enumerate(shape):
        if not isinstance(extent, Sym) or extent.symbol != symbol:
            continue
        tile = view.shape[axis] if len(view.shape) == len(shape) else _along(view, axis)
        if isinstance(tile, Const):
            tiles.add(tile.value)
        if axis == len(shape) - 1:
            vectors.add(max(1, stmt.atom.vector_bits // view.buffer.dtype.bits))


def _along(view: View, axis: int) -> Index | None:
    """The extent of the view's axis along an axis of its buffer, for a view of lower rank."""
    moving = [node.axis for node in topological([view.at[axis]]) if isinstance(node, Coord)]
    return view.shape[moving[0]] if len(moving) == 1 else None


def work(kernel: Kernel, size: Mapping[str, int]) -> tuple[int, int]:
    """A rough cost of a run, as a sort key: blocks times loop trips, then the sum of the sizes."""
    return int(_cost(kernel, _columns(kernel, [size]), 1)[0]), sum(size.values())


def _cost(kernel: Kernel, env: Mapping[Symbol, IntArray], count: int) -> IntArray:
    """Blocks times loop trips, at each of `count` sizes."""
    loops = [trips(stmt) for stmt in walk(kernel.body) if isinstance(stmt, For)]
    found = 1 + sum(
        (_spread(evaluate(trip, env), count) for trip in loops if symbols(trip) <= env.keys()),
        np.zeros(count, np.int64),
    )
    for extent in kernel.grid:
        found = found * _spread(evaluate(extent, env), count)
    return found


def _value(node: Index, env: Mapping[Symbol, int]) -> int:
    return int(cast(int, np.asarray(evaluate(node, env))))
