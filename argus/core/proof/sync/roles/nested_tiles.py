"""Tiles of segments, which two nested loops visit, as those of one loop.

A persistent kernel over segments runs through all segments, and through the rounds of each:

    for s in [0, segments):
        own = (block + begin) % blocks
        for i in [0, ceil(total / blocks)):
            number = place of own in round i + turn, plus i blocks
            if number < total: the tile `number` of segment s

where total, begin and turn depend on s, and on what a counter has summed over the segments before: the same in all
blocks. In each segment, `own` is another number for each block, so blocks together visit each pair of a segment and a
number in [0, total) once (`_lemmas`). So they are proved tile by tile, for any sequence of pairs, as by `rounds`: the
loop of the result runs through all pairs, whose segments and numbers are two tensors that exist in the proof alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check import expressions
from argus.core.dtype import i32
from argus.core.index import Bin, Cond, Const, Index, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Assume,
    Buffer,
    For,
    If,
    Kernel,
    Let,
    Peek,
    Role,
    Stmt,
    Strided,
    View,
    walk,
)
from argus.core.ir.rewrite import NodeMap, rewrite_stmt
from argus.core.proof.limits.divisors import expression_divisor_obligations
from argus.core.proof.limits.integers import loop_width_obligations, width_obligations
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import refuse
from argus.core.proof.sync.roles.events import tile_loop_of
from argus.core.tile_rounds import TileRounds
from argus.core.walk import substitute, symbols, topological


@frozen(eq=False)
class Segments:
    """The loops of one role. total, own, turn: over the outer loop's variable, and what `passed` gives of the counter.

    place: that of the block in a round of the inner loop. tile: the statements of one tile.
    """

    outer: For
    passed: Let
    inner: For
    branch: If
    advance: Advance
    rounds: TileRounds
    block: Symbol
    total: Index
    own: Bin
    place: Index

    @property
    def number(self) -> Index:
        return algebra.add(self.place, algebra.mul(algebra.sym(self.inner.symbol), self.rounds.blocks))

    @property
    def in_segment(self) -> tuple[Cond, ...]:
        """What holds within a segment."""
        segment, block, passed = (algebra.sym(each) for each in (self.outer.symbol, self.block, self.passed.symbol))
        most = self.advance.by.range[1]
        summed = () if most is None else (algebra.le(passed, algebra.mul(segment, most)),)
        bounds = (algebra.le(0, segment), algebra.lt(segment, self.outer.stop), algebra.lt(block, self.rounds.blocks))
        return (*bounds, *summed)

    @property
    def in_round(self) -> tuple[Cond, ...]:
        """What holds within a round of a segment."""
        i = algebra.sym(self.inner.symbol)
        return (*self.in_segment, algebra.le(0, i), algebra.lt(i, self.inner.stop))


@frozen(eq=False)
class Pairs:
    """All pairs of a segment and a number in it: `count` of them, whose parts are elements of two tensors.

    Each pair of a segment in [0, of) and a number in [0, total) is there once; total: over `segment`.
    """

    count: Index
    segments: Buffer
    numbers: Buffer
    of: Index
    segment: Symbol
    total: Index


@frozen(eq=False)
class OneLoop:
    """The kernel with one loop, over all pairs, and what justifies it."""

    kernel: Kernel
    pairs: Pairs
    obligations: tuple[Obligation, ...]


def in_one_loop(kernel: Kernel) -> OneLoop | None:
    """The kernel with one loop over tiles in place of two; None if no role has such loops.

    Raises RefusedError if only some roles have, or other ones, or anything depends on the block in another way.
    """
    if kernel.roles is None:
        return None
    loops = [(role, loop) for role in kernel.roles.roles if (loop := tile_loop_of(role)) is not None]
    found = {role: _segments(role, loop, kernel) for role, loop in loops}
    known = [each for each in found.values() if each is not None]
    if not known:
        return None
    for role, each in found.items():
        if each is None or not _alike(each, known[0]):
            refuse(role.body[0], "a role that takes its tiles in other segments than another one")
    made = _pairs(kernel, known[0])
    roles = tuple(_in_one_loop(role, found[role], made) if role in found else role for role in kernel.roles.roles)
    grid = [pair for pair in zip(kernel.grid, kernel.blocks, strict=True) if pair[1] != known[0].block]
    rest = evolve(
        kernel,
        roles=evolve(kernel.roles, roles=roles),
        parameters=(*kernel.parameters, made.segments, made.numbers),
        grid=tuple(count for count, _ in grid),
        blocks=tuple(block for _, block in grid),
    )
    for stmt in walk(rest.body):
        if any(known[0].block in symbols(root) for root in expressions(stmt)):
            refuse(stmt, _DEPENDS)
    return OneLoop(rest, made, tuple(each for of in known for each in _obligations(kernel, of)))


def _segments(role: Role, loop: For, kernel: Kernel) -> Segments | None:
    """The loops over segments and rounds, if a loop of a role is the outer one of such two."""
    match loop.body:
        case (
            Let(value=Peek(view=view)) as passed,
            For(body=(If(otherwise=()) as branch,)) as inner,
            Advance() as added,
        ):
            pass
        case _:
            return None
    stop, counter = inner.stop, view.buffer
    if (loop.step, inner.step) != (1, 1) or {loop.start, inner.start} != {algebra.const(0)}:
        return None
    if not isinstance(stop, Bin) or stop.op != "//" or not isinstance(stop.right, Const):
        return None
    if added.counter is not counter or not _is_sum(role, passed, added):
        return None
    blocks, total = stop.right.value, algebra.sub(stop.left, stop.right.value - 1)
    i = algebra.sym(inner.symbol)
    for block, count in zip(kernel.blocks, kernel.grid, strict=True):
        for own in _rotations(branch.cond, block, blocks) if count is stop.right else ():
            for rounds, round_ in _rounds(branch.cond, i, blocks):
                place = rounds.place(own, round_)
                made = Segments(loop, passed, inner, branch, added, rounds, block, total, own, place)
                if branch.cond is algebra.lt(made.number, total) and _is_common(made, round_):
                    return made
    return None


def _is_sum(role: Role, passed: Let, added: Advance) -> bool:
    """Whether a counter is 0 at first, and nothing but one statement of each segment adds to it."""
    uses = [stmt for stmt in walk(role.body) if _counter(stmt) is added.counter]
    made = [stmt for stmt in role.body if isinstance(stmt, Alloc) and stmt.buffer is added.counter]
    low = added.by.range[0]
    return len(made) == 1 and set(uses) == {*made, passed, added} and low is not None and low >= 0


def _counter(stmt: Stmt) -> Buffer | None:
    match stmt:
        case Alloc(buffer=buffer) | Advance(counter=buffer) | Let(value=Peek(view=View(buffer=buffer))):
            return buffer
        case _:
            return None


def _rotations(cond: Cond, block: Symbol, blocks: int) -> Iterator[Bin]:
    """The nodes `(block + begin) % blocks`."""
    for node in topological([cond]):
        if isinstance(node, Bin) and node.op == "%" and node.right is algebra.const(blocks):
            begin = algebra.sub(node.left, algebra.sym(block))
            if block in symbols(node.left) and block not in symbols(begin):
                yield node


def _rounds(cond: Cond, i: Index, blocks: int) -> Iterator[tuple[TileRounds, Index]]:
    """Ways to distribute rounds, with the number by which each counts a round i."""
    yield TileRounds(blocks), i
    for node in topological([cond]):
        if isinstance(node, Bin) and node.op == "%" and node.right is algebra.const(2):
            yield TileRounds(blocks, zigzag=True), node.left


def _is_common(found: Segments, round_: Index) -> bool:
    """Whether all but the block's own number is the same in all blocks."""
    begin = algebra.sub(found.own.left, algebra.sym(found.block))
    turn = algebra.sub(round_, algebra.sym(found.inner.symbol))
    summed = {symbol for each in (found.total, found.advance.by, found.outer.stop) for symbol in symbols(each)}
    both = {symbol for each in (begin, turn) for symbol in symbols(each)}
    known = {found.outer.symbol}
    return all(each in known or each.kind == "size" for each in summed) and all(
        each in known or each.kind == "size" or each == found.passed.symbol for each in both
    )


def _alike(one: Segments, two: Segments) -> bool:
    """Whether both run through the same segments and numbers."""
    pairs = (one.outer, two.outer), (one.passed, two.passed), (one.inner, two.inner)
    names = {mine.symbol: algebra.sym(theirs.symbol) for mine, theirs in pairs}
    mine, theirs = ((each.total, each.advance.by, each.outer.stop, each.place) for each in (one, two))
    same = all(substitute(a, names) is b for a, b in zip(mine, theirs, strict=True))
    return same and one.rounds == two.rounds and one.block == two.block


def _pairs(kernel: Kernel, found: Segments) -> Pairs:
    count = algebra.sym(Symbol(_unused(kernel, "all_tiles"), "size", 0))
    layout, at = Strided((algebra.const(1),)), (algebra.coord(0),)
    names = [_unused(kernel, each) for each in ("segment_of_tile", "number_of_tile")]
    segment, number = (algebra.read(name, at) for name in names)
    within = (segment, found.outer.stop), (number, substitute(found.total, {found.outer.symbol: segment}))
    segments, numbers = (
        Buffer(
            name, "global", i32, (count,), layout, promise=algebra.all_of((algebra.le(0, each), algebra.lt(each, end)))
        )
        for name, (each, end) in zip(names, within, strict=True)
    )
    return Pairs(count, segments, numbers, found.outer.stop, found.outer.symbol, found.total)


def _unused(kernel: Kernel, name: str) -> str:
    taken = {each.name for each in (*kernel.parameters, *kernel.sizes)}
    while name in taken:
        name += "_"
    return name


def _in_one_loop(role: Role, found: Segments | None, pairs: Pairs) -> Role:
    assert found is not None
    outer, inner = found.outer, found.inner
    tile = algebra.sym(outer.symbol)
    segment, number = (algebra.read(each.name, (tile,)) for each in (pairs.segments, pairs.numbers))
    place = algebra.sub(_NUMBER, algebra.mul(algebra.sym(inner.symbol), found.rounds.blocks))
    moved = (rewrite_stmt(stmt, NodeMap({found.place: place})) for stmt in found.branch.then)
    names = {_NUMBER.symbol: number, outer.symbol: segment}
    body = tuple(rewrite_stmt(stmt, names) for stmt in moved)
    own = {inner.symbol, found.block, found.passed.symbol}
    for stmt in walk(body):
        if any(own & symbols(root) for root in expressions(stmt)):
            refuse(stmt, _DEPENDS)
    made = evolve(outer, stop=pairs.count, body=body)
    rest = (stmt for stmt in role.body if not (isinstance(stmt, Alloc) and stmt.buffer is found.advance.counter))
    return evolve(role, body=tuple(made if stmt is outer else stmt for stmt in rest))


_NUMBER = algebra.sym(Symbol("number'", "fresh", 0, None))
_DEPENDS = "a tile's coordinates depend on the block other than by the tile's number"


def _obligations(kernel: Kernel, found: Segments) -> Iterator[Obligation]:
    """I28 of the loops that are replaced, and I4 of the lemmas."""
    assumed = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    outer, inner, branch = found.outer, found.inner, found.branch
    before, inside = (*assumed, *found.in_segment), (*assumed, *found.in_round)
    passed = algebra.add(algebra.sym(found.passed.symbol), found.advance.by)
    yield from loop_width_obligations(outer, assumed)
    yield from loop_width_obligations(inner, before)
    yield from width_obligations((passed,), found.advance, before, "what the segments before have")
    yield from width_obligations((branch.cond, found.number), branch, inside, "a condition")
    for stmt, roots, known in ((outer, (outer.stop,), assumed), (inner, (inner.stop,), before)):
        yield from expression_divisor_obligations(stmt, roots, known)
    yield from expression_divisor_obligations(branch, (branch.cond,), inside)
    for what, goal, hypotheses in _lemmas(found.rounds):
        yield Obligation("I4", what, inner, goal, hypotheses, premises="nothing")


def _lemmas(rounds: TileRounds) -> Iterator[tuple[str, Cond, tuple[Cond, ...]]]:
    """That blocks together visit each number below a total once, wherever a segment begins."""
    blocks = rounds.blocks
    b, c, place = (algebra.sym(Symbol(name, "fresh", 0, blocks - 1)) for name in ("b", "b'", "place"))
    begin, total = (algebra.sym(Symbol(name, "fresh", None, None)) for name in ("begin", "total"))
    i, j, half = (algebra.sym(Symbol(name, "fresh", 0, None)) for name in ("i", "i'", "half"))

    def own(block: Index) -> Index:
        return algebra.mod(algebra.add(block, begin), blocks)

    def is_block(of: Index) -> Cond:
        return algebra.all_of((algebra.le(0, of), algebra.lt(of, blocks)))

    taker = algebra.mod(algebra.sub(place, begin), blocks)
    yield "in a segment, no two blocks have one number", algebra.eq(b, c), (algebra.eq(own(b), own(c)),)
    yield "in a segment, each number is that of a block", algebra.eq(own(taker), place), ()
    for round_ in (algebra.mul(half, 2), algebra.add(algebra.mul(half, 2), 1)):
        other = rounds.place(b, round_)
        again = algebra.eq(rounds.place(other, round_), b)
        yield "each place of a round is one block's", algebra.all_of((is_block(other), again)), ()
    one, two = (algebra.add(of, algebra.mul(n, blocks)) for of, n in ((b, i), (c, j)))
    both = algebra.all_of((algebra.eq(b, c), algebra.eq(i, j)))
    yield "no tile of a segment is in two places or rounds", both, (algebra.eq(one, two),)
    taken = algebra.floordiv(_NUMBER, blocks)
    inside = algebra.all_of((algebra.le(0, taken), algebra.lt(taken, algebra.ceil_div(total, blocks))))
    yield "each tile of a segment is in one of its rounds", inside, (algebra.lt(_NUMBER, total),)
