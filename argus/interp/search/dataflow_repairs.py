"""Searches for a repair of a data-flow fault: single edits of a tile index, stage, trip count, condition or reset.

An edit that removes the fault at the sizes that show it, and violates nothing at others, is reported as the repair. If
one source line is called several times, edits of coordinates apply to all its statements. No edit makes an index
negative, and none removes the last statement that an assertion is about, since that would silence the assertion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.diagnostic import ArgusError
from argus.core.index import Bin, Const, Coord, Index
from argus.core.index_text import show
from argus.core.ir import Buffer, Copy, For, If, Kernel, Mma, Roles, Stmt, View, bodies, static, walk, with_bodies
from argus.core.walk import mentions, substitute, symbols, topological
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run_prepared
from argus.interp.search.schedule import Schedule
from argus.interp.violation import UnsatisfiedPromiseError

_SEVERAL = 2
_MOST = 32
"""The number of changes to try; counted, not timed, so that a report is the same on every machine."""

Sizes = Mapping[str, int]


@frozen(eq=False)
class Change:
    """Replacements of statements (None: removed), and the repair in words. tried: sizes at which it leaves no fault."""

    new: Mapping[Stmt, Stmt | None]
    help: str
    tried: tuple[Sizes, ...] = ()

    @property
    def stmt(self) -> Stmt:
        """The first statement that is replaced."""
        return next(iter(self.new))


def find_repair(kernel: Kernel, code: str, sizes: Sequence[Sizes], schedule: Schedule) -> Change | None:
    """The first change after which no run at any of the sizes violates anything; the first size shows the fault."""
    for change in islice(_changes(kernel, code), _MOST):
        tried = _clean_at(replace(kernel, change.new), sizes, schedule)
        if tried:
            return evolve(change, tried=tried)
    return None


def _clean_at(kernel: Kernel, sizes: Sequence[Sizes], schedule: Schedule) -> tuple[Sizes, ...]:
    """The sizes, less those at which no integers keep the promises; none if a run at one violates anything."""
    tried: list[Sizes] = []
    try:
        prepared = Prepared(kernel)
        for size in sizes:
            try:
                outcome = run_prepared(prepared, size, None, schedule, tags=True, values=False)
            except UnsatisfiedPromiseError:
                continue
            if outcome.violations:
                return ()
            tried.append(size)
    except (ArgusError, ZeroDivisionError, IndexError, KeyError):
        return ()
    return tuple(tried)


def replace(kernel: Kernel, new: Mapping[Stmt, Stmt | None]) -> Kernel:
    """The kernel with statements replaced, or removed where the replacement is None."""

    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        made: list[Stmt] = []
        for stmt in body:
            if stmt in new:
                other = new[stmt]
                made += [] if other is None else [other]
                continue
            parts = bodies(stmt)
            inner = tuple(inside(part) for part in parts)
            made.append(stmt if inner == parts else with_bodies(stmt, inner))
        return tuple(made)

    roles = None if kernel.roles is None else inside((kernel.roles,))[0]
    assert roles is None or isinstance(roles, Roles)
    return evolve(kernel, prologue=inside(kernel.prologue), roles=roles, epilogue=inside(kernel.epilogue))


# -- candidates --------------------------------------------------------------------------------------------------


def _changes(kernel: Kernel, code: str) -> Iterator[Change]:
    """The candidate changes for an invariant, the most likely first."""
    kinds: dict[str, tuple[Callable[[Kernel], Iterator[Change]], ...]] = {
        "I1": (_tiles_of_other_tensors, _coordinates_of_other_side, _other_slots, _adjacent_tiles),
        "I3": (_resets, _conditions, loop_bounds, _adjacent_tiles, _removals),
        "I4": (_removals, loop_bounds, _tiles_of_other_tensors, _conditions),
    }
    default = (_other_slots, loop_bounds, _tiles_of_other_tensors, _adjacent_tiles, _conditions)
    for kind in kinds.get(code, default):
        yield from kind(kernel)


def _falls_below_zero(kernel: Kernel, new: Index, old: Index) -> bool:
    """Whether a non-negative expression becomes negative in the first iterations of all loops."""
    loops = [stmt for stmt in walk(kernel.body) if isinstance(stmt, For)]
    first = {loop.symbol: _least(loop.start, loop.stop, loop.step) for loop in loops}
    least, before = (substitute(substitute(each, first), first).range[0] for each in (new, old))
    return least is not None and least < 0 and (before is None or before >= 0)


def _least(start: Index, stop: Index, step: int) -> Index:
    """The least value of a loop variable."""
    return start if step > 0 else algebra.add(stop, 1)


def _copies(kernel: Kernel) -> list[Copy]:
    return [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy)]


def _start(place: Index) -> Index:
    """The first coordinate of a tile along an axis."""
    zeros = [algebra.const(0)] * 8
    return substitute(place, {}, zeros)


def _describe(buffer: Buffer, axis: int, new: Index, old: Index) -> str:
    return f"start the tile at `{show(_start(new))}`, not `{show(_start(old))}`, along axis {axis} of `{buffer.name}`"


def _with_view(stmt: Copy, side: str, view: View) -> Copy:
    return evolve(stmt, source=view) if side == "source" else evolve(stmt, target=view)


def _with_place(view: View, axis: int, place: Index) -> View:
    return evolve(view, at=(*view.at[:axis], place, *view.at[axis + 1 :]))


def _tiles_of_other_tensors(kernel: Kernel) -> Iterator[Change]:
    """Along an axis whose size two tensors share, the tile indices of the other tensor's copies, call by call."""
    copies = [stmt for stmt in _copies(kernel) if stmt.source.buffer.space == "global"]
    pairs = [
        (stmt, other, axis, theirs)
        for stmt, other in permutations(copies, 2)
        for axis, theirs in _shared_axes(stmt.source, other.source)
        if other.source.buffer is not stmt.source.buffer
        and _start(other.source.at[theirs]) is not _start(stmt.source.at[axis])
    ]
    for stmt, other, axis, theirs in sorted(pairs, key=lambda pair: len(show(pair[1].source.at[pair[3]]))):
        yield from _like_other_copy(kernel, stmt, other, axis, theirs)


def _like_other_copy(kernel: Kernel, stmt: Copy, other: Copy, axis: int, theirs: int) -> Iterator[Change]:
    new: dict[Stmt, Stmt | None] = {}
    text = ""
    for one in _of_line(kernel, stmt):
        two = next((two for two in _of_line(kernel, other) if two.span.frames[1:] == one.span.frames[1:]), None)
        if two is None or not symbols(two.source.at[theirs]) <= _known(kernel, one):
            return
        old = one.source.at[axis]
        place = algebra.add(_start(two.source.at[theirs]), algebra.sub(old, _start(old)))
        new = {one: _with_view(one, "source", _with_place(one.source, axis, place)), **new}
        text = _describe(one.source.buffer, axis, place, old)
    yield Change(new, f"{text}, as for `{other.source.buffer.name}`")


def _of_line(kernel: Kernel, stmt: Copy) -> list[Copy]:
    """The copies of one source line, which may be called several times."""
    return [s for s in _copies(kernel) if s.span.frame == stmt.span.frame and s.source.buffer is stmt.source.buffer]


def _shared_axes(one: View, two: View) -> Iterator[tuple[int, int]]:
    for axis, extent in enumerate(one.buffer.shape):
        for other, theirs in enumerate(two.buffer.shape):
            if extent is theirs:
                yield axis, other


def _known(kernel: Kernel, stmt: Stmt) -> frozenset[object]:
    """The symbols in scope of a statement: enclosing loop variables, and all symbols that are not loop variables."""
    own = {s.symbol for s in walk(kernel.body) if isinstance(s, For) and any(inner is stmt for inner in walk(s.body))}
    loops = {s.symbol for s in walk(kernel.body) if isinstance(s, For)}
    every = {symbol for each in _copies(kernel) for view in (each.source, each.target) for symbol in symbols(*view.at)}
    return frozenset((every - loops) | own)


def _coordinates_of_other_side(kernel: Kernel) -> Iterator[Change]:
    """In shared memory, the coordinates within a stage that the other side uses, so that both use one swizzle."""
    copies = _copies(kernel)
    for stmt in copies:
        for other in copies:
            if stmt.target.buffer is other.source.buffer and stmt.target.buffer.space == "shared":
                yield from _places_of(kernel, stmt, "target", other.source)
                yield from _places_of(kernel, other, "source", stmt.target)


def _places_of(kernel: Kernel, stmt: Copy, side: str, like: View) -> Iterator[Change]:
    view: View = getattr(stmt, side)
    wanted = [mentions(place, (Coord,)) for place in view.at]
    if view.shape != like.shape or not any(w and a is not b for w, a, b in zip(wanted, view.at, like.at, strict=True)):
        return
    same_line = [
        s for s in _copies(kernel) if s.span.frame == stmt.span.frame and getattr(s, side).buffer is view.buffer
    ]
    new: dict[Stmt, Stmt | None] = {}
    for each in same_line:
        own: View = getattr(each, side)
        at = tuple(b if w else a for w, a, b in zip(wanted, own.at, like.at, strict=True))
        new[each] = _with_view(each, side, evolve(own, at=at))
    verb = "write" if side == "target" else "read"
    yield Change(new, f"{verb} `{view.buffer.name}` with the coordinates of the other side: one swizzle for both")


def _other_slots(kernel: Kernel) -> Iterator[Change]:
    """The previous or next stage of a multi-stage buffer."""
    for stmt in _copies(kernel):
        for side in ("source", "target"):
            view: View = getattr(stmt, side)
            place = view.at[0] if view.at else None
            if view.buffer.space != "shared" or not isinstance(place, Bin) or place.op != "%":
                continue
            for step in (algebra.const(1), algebra.sub(place.right, 1)):
                new = algebra.mod(algebra.add(place.left, step), place.right)
                verb = "read" if side == "source" else "write"
                text = f"{verb} stage `{show(new)}` of `{view.buffer.name}`, not `{show(place)}`"
                yield Change({stmt: _with_view(stmt, side, _with_place(view, 0, new))}, text)


def _adjacent_tiles(kernel: Kernel) -> Iterator[Change]:
    """The previous or next tile, of a tensor for all copies of one call, or within a stage of shared memory."""
    for step in (-1, 1):
        calls: dict[object, dict[Stmt, Stmt | None]] = {}
        texts: dict[object, str] = {}
        for stmt in _copies(kernel):
            for axis, new in _next_tiles(stmt.source, step):
                if _falls_below_zero(kernel, _start(new), _start(stmt.source.at[axis])):
                    continue
                key = (
                    stmt.span.frames[1:] or stmt,
                    stmt.source.buffer.space,
                    stmt.source.buffer.space == "shared" and stmt,
                )
                calls.setdefault(key, {})[stmt] = _with_view(stmt, "source", _with_place(stmt.source, axis, new))
                texts.setdefault(key, _describe(stmt.source.buffer, axis, new, stmt.source.at[axis]))
        for key, new_ones in calls.items():
            others = ", and likewise for the other copies of the call" if len(new_ones) > 1 else ""
            yield Change(new_ones, texts[key] + others)


def _next_tiles(view: View, step: int) -> Iterator[tuple[int, Index]]:
    for axis, place in enumerate(view.at):
        along = [node.axis for node in topological([place]) if isinstance(node, Coord)]
        moves = view.buffer.space == "global" and any(symbol.kind == "loop" for symbol in symbols(place))
        if moves and len(along) == 1:
            yield axis, algebra.add(place, step * static(view.shape[along[0]]))
        for own, extent in enumerate(view.shape if view.buffer.space == "shared" else ()):
            start = algebra.sub(place, algebra.coord(own))
            new = algebra.add(start, step * static(extent))
            if isinstance(start, Const) and isinstance(new, Const) and 0 <= new.value < static(view.buffer.shape[axis]):
                yield axis, algebra.add(place, step * static(extent))


def loop_bounds(kernel: Kernel) -> Iterator[Change]:
    """One iteration more or less at either end of a loop."""
    for stmt in walk(kernel.body):
        if not isinstance(stmt, For):
            continue
        name = stmt.symbol.name
        for step in (stmt.step, -stmt.step):
            stop = algebra.add(stmt.stop, step)
            least, before = (_least(stmt.start, each, stmt.step) for each in (stop, stmt.stop))
            if _falls_below_zero(kernel, least, before):
                continue
            yield Change(
                {stmt: evolve(stmt, stop=stop)},
                f"let the loop over `{name}` stop at `{show(stop)}`, not at `{show(stmt.stop)}`",
            )
        start = algebra.sub(stmt.start, stmt.step)
        if _falls_below_zero(kernel, start, stmt.start):
            continue
        yield Change(
            {stmt: evolve(stmt, start=start)},
            f"let the loop over `{name}` start at `{show(start)}`, not at `{show(stmt.start)}`",
        )


def _resets(kernel: Kernel) -> Iterator[Change]:
    """Reset an accumulator in the first iteration only, or never."""
    for loop in walk(kernel.body):
        if not isinstance(loop, For):
            continue
        first = algebra.eq(algebra.sym(loop.symbol), loop.start)
        for stmt in walk(loop.body):
            if isinstance(stmt, Mma) and stmt.init is not first:
                text = f"reset the accumulator in the first iteration only: `init=eq({loop.symbol.name}, "
                yield Change({stmt: evolve(stmt, init=first)}, f"{text}{show(loop.start)})`")
            if isinstance(stmt, Mma) and stmt.init is not algebra.FALSE:
                text = "accumulate here, and reset the accumulator at the first product only: no `init`"
                yield Change({stmt: evolve(stmt, init=algebra.FALSE)}, text)


def _conditions(kernel: Kernel) -> Iterator[Change]:
    """Execute the body of a branch unconditionally."""
    for stmt in walk(kernel.body):
        if isinstance(stmt, If) and not stmt.otherwise:
            text = f"remove the condition `{show(stmt.cond)}`: execute its body in every case"
            yield Change({stmt: evolve(stmt, cond=algebra.TRUE)}, text)


def _removals(kernel: Kernel) -> Iterator[Change]:
    """Remove one of several products into a fragment, or of several stores to a tensor."""
    stmts = tuple(walk(kernel.body))
    into = Counter(stmt.target.buffer for stmt in stmts if isinstance(stmt, Mma | Copy))
    for stmt in stmts:
        if isinstance(stmt, Mma | Copy) and into[stmt.target.buffer] < _SEVERAL:
            continue
        if isinstance(stmt, Mma):
            yield Change({stmt: None}, f"remove this product into `{stmt.target.buffer.name}`")
        if isinstance(stmt, Copy) and stmt.target.buffer.space == "global":
            yield Change({stmt: None}, f"remove this store to `{stmt.target.buffer.name}`")
