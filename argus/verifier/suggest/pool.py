"""Candidate claims from templates: what kernels with this structure usually claim, whether true here or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from attrs import frozen

from argus.core import algebra
from argus.core.dsl.tiles.values import RegisterTile
from argus.core.index import Const, Index, Sym, Symbol
from argus.core.index_text import show
from argus.core.ir import (
    Assert,
    Buffer,
    Claim,
    Copy,
    Covers,
    Distinct,
    Equal,
    For,
    Kernel,
    Map,
    Mma,
    Order,
    Relation,
    Stmt,
    Tag,
    TagOf,
    WrittenOnce,
    bodies,
    walk,
    whole,
)
from argus.core.ir.element_walk import gets
from argus.core.layout import TV
from argus.core.span import Frame, Span

FILE = "<suggestion>"
"""The file name in the candidates' spans; their line is their number."""

Record = tuple[tuple[str, Index], ...]


@frozen(eq=False)
class Candidate:
    """A statement that could be added.

    code: the line that a user would write. kind: the kind of claim. about: the tile or tensor of the claim. before: the
    statement to insert it before; None for the end of the kernel, or for its start if it is a tag.
    """

    number: int
    stmt: Tag | Assert
    code: str
    kind: str
    about: str
    before: Stmt | None


class _Pool:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.found: list[Candidate] = []

    def add(self, made: Tag | Claim, code: str, kind: str, about: Buffer, before: Stmt | None) -> None:
        if any(each.code == code and each.before is before for each in self.found):
            return
        number = len(self.found)
        span = Span((Frame(FILE, number, 0, 0, self.kernel.name),))
        stmt = Tag(made.view, made.names, span=span) if isinstance(made, Tag) else Assert(made, span=span)
        self.found.append(Candidate(number, stmt, code, kind, about.name, before))


def candidates(kernel: Kernel) -> tuple[Candidate, ...]:
    """All candidates for a kernel without claims, tags first."""
    pool = _Pool(kernel)
    records = _tags(pool)
    for buffer in _outputs(kernel):
        _written_once(pool, buffer, records)
    for mma, loops in _products(kernel):
        _operands(pool, mma, loops, records)
    for buffer, reader in _sums(kernel):
        _coverage(pool, buffer, reader, records)
    for stmt in walk(kernel.body):
        if isinstance(stmt, Map):
            _quotients(pool, stmt, records)
    return tuple(pool.found)


# -- tensors -----------------------------------------------------------------------------------------------------


def _tags(pool: _Pool) -> Mapping[Buffer, Record]:
    """The record of each input: that of its tag, or for an untagged input the names of its axes."""
    given = {s.view.buffer: s.names for s in walk(pool.kernel.body) if isinstance(s, Tag)}
    records: dict[Buffer, Record] = {}
    for buffer in _inputs(pool.kernel):
        if buffer in given:
            records[buffer] = given[buffer]
            continue
        records[buffer] = record = _by_axes(buffer)
        code = f"tag({buffer.name}, {_function(record)})"
        pool.add(Tag(whole(buffer), record), code, "tag", buffer, None)
    return records


def _inputs(kernel: Kernel) -> tuple[Buffer, ...]:
    read = {s.source.buffer for s in walk(kernel.body) if isinstance(s, Copy)}
    return tuple(buffer for buffer in kernel.parameters if buffer in read)


def _outputs(kernel: Kernel) -> tuple[Buffer, ...]:
    written = {s.target.buffer for s in walk(kernel.body) if isinstance(s, Copy)}
    return tuple(buffer for buffer in kernel.parameters if buffer in written)


def _by_axes(buffer: Buffer) -> Record:
    """Each axis named after its size, or after its number where that name is taken."""
    names: list[str] = []
    for axis, extent in enumerate(buffer.shape):
        plain = extent.symbol.name.lower() if isinstance(extent, Sym) else ""
        taken = plain in names or not plain.isidentifier() or plain.startswith("_")
        names.append(f"{buffer.name.lower()}{axis}" if taken else plain)
    return tuple((name, algebra.coord(axis)) for axis, name in enumerate(names))


def _function(record: Record) -> str:
    names = [name for name, _ in record]
    return f"lambda {', '.join(names)}: dict({', '.join(f'{name}={name}' for name in names)})"


def _written_once(pool: _Pool, buffer: Buffer, records: Mapping[Buffer, Record]) -> None:
    """A claim that the output is written once, with the names that inputs give to axes of the same sizes."""
    known = {name for record in records.values() for name, _ in record}
    record = _by_axes(buffer)
    kept = tuple((name, place) for name, place in record if name in known)
    if not kept:
        return
    arguments = ", ".join(name for name, _ in record)
    fields = ", ".join(f"{name}={name}" for name, _ in kept)
    code = f"assert_written_once({buffer.name}, lambda {arguments}: dict({fields}))"
    pool.add(WrittenOnce(whole(buffer), kept), code, "written once", buffer, None)


# -- register tiles ----------------------------------------------------------------------------------------------


def _products(kernel: Kernel) -> Iterator[tuple[Mma, tuple[For, ...]]]:
    yield from _placed(kernel.body, ())


def _placed(body: Sequence[Stmt], loops: tuple[For, ...]) -> Iterator[tuple[Mma, tuple[For, ...]]]:
    for stmt in body:
        if isinstance(stmt, Mma):
            yield stmt, loops
        inner = (*loops, stmt) if isinstance(stmt, For) else loops
        for part in bodies(stmt):
            yield from _placed(part, inner)


def _operands(pool: _Pool, mma: Mma, loops: tuple[For, ...], records: Mapping[Buffer, Record]) -> None:
    """Claims about the operands of a matrix instruction, within an iteration and from one to the next."""
    tiles = [view.buffer for view in (mma.a, mma.b) if _is_named_tile(view.buffer)]
    names = dict.fromkeys(name for record in records.values() for name, _ in record)
    for buffer in tiles:
        for record in records.values():
            _all_distinct(pool, buffer, record, mma, loops)
        for name, width in product(names, _widths(buffer)):
            for loop in loops[-1:]:
                _in_tiles(pool, buffer, name, width, loop, mma)
        if loops:
            for name in names:
                _growth(pool, buffer, name, mma, loops[-1])
    if len(tiles) == len({*tiles}) == 2 and _same_shape(*tiles):
        one, two = tiles
        for name in names:
            code = f"assert_equal({one.name}.tag.{name}, {two.name}.tag.{name})"
            claim = Equal(TagOf(whole(one), name), TagOf(whole(two), name))
            pool.add(claim, code, "equal", one, mma)


def _is_named_tile(buffer: Buffer) -> bool:
    """Whether a register tile has a name that a user can write; a name derived from its line is not one."""
    stem, _, line = buffer.name.rpartition("_")
    return buffer.space == "register" and buffer.name.isidentifier() and not (stem and line.isdigit())


def _same_shape(one: Buffer, two: Buffer) -> bool:
    shapes = [layout.elements().shape for layout in (one.layout, two.layout) if isinstance(layout, TV)]
    return len(shapes) == 2 and shapes[0] == shapes[1]


def _widths(buffer: Buffer) -> tuple[int, ...]:
    return tuple(dict.fromkeys(extent.value for extent in buffer.shape if isinstance(extent, Const)))


def _component(buffer: Buffer, name: str, back: int = 0) -> tuple[Symbol, TagOf]:
    before = f" {back} before" if back else ""
    layout = buffer.layout
    assert isinstance(layout, TV)
    return Symbol(f"{buffer.name}.{name}{before}", "fresh"), TagOf(whole(buffer), name, layout, back)


def _in_tiles(pool: _Pool, buffer: Buffer, name: str, width: int, loop: For, before: Stmt) -> None:
    symbol, of = _component(buffer, name)
    variable = loop.symbol.name
    cond = algebra.eq(algebra.floordiv(algebra.sym(symbol), width), algebra.sym(loop.symbol))
    code = f"assert_relation({buffer.name}.tag.{name}, lambda x: eq(x // {width}, {variable}))"
    pool.add(Relation(((symbol, of),), cond), code, "in tiles", buffer, before)


def _growth(pool: _Pool, buffer: Buffer, name: str, before: Stmt, loop: For) -> None:
    """Claims about how much a component grows from one iteration to the next."""
    was, now = _component(buffer, name, 1), _component(buffer, name)
    for width in (0, *_widths(buffer)):
        grows = width * loop.step
        cond = algebra.eq(algebra.sym(now[0]), algebra.add(algebra.sym(was[0]), grows))
        after = f" {'-' if grows < 0 else '+'} {abs(grows)}" if grows else ""
        relation = f"lambda was, now: eq(now.{name}, was.{name}{after})"
        code = f"assert_relation(earlier({buffer.name}), {buffer.name}, {relation})"
        pool.add(Relation((was, now), cond), code, "from iteration to iteration", buffer, before)


def _all_distinct(pool: _Pool, buffer: Buffer, record: Record, before: Stmt, loops: tuple[For, ...] = ()) -> None:
    components = tuple(TagOf(whole(buffer), name) for name, _ in record)
    named = ", ".join(f"{buffer.name}.tag.{name}" for name, _ in record)
    inner = tuple(loop.symbol for loop in loops[-1:])
    over = f", over={inner[0].name}" if inner else ""
    pool.add(Distinct(components, inner), f"assert_distinct({named}{over})", "distinct", buffer, before)


# -- sums --------------------------------------------------------------------------------------------------------


def _sums(kernel: Kernel) -> Iterator[tuple[Buffer, Stmt]]:
    """Each accumulator with the first statement after its last product that reads it."""
    order = list(walk(kernel.body))
    for buffer in dict.fromkeys(s.target.buffer for s in order if isinstance(s, Mma)):
        last = max(n for n, s in enumerate(order) if isinstance(s, Mma) and s.target.buffer is buffer)
        reader = next((s for s in order[last + 1 :] if _reads(s, buffer)), None)
        if reader is not None and _is_named_tile(buffer):
            yield buffer, reader


def _reads(stmt: Stmt, buffer: Buffer) -> bool:
    match stmt:
        case Copy(source=source):
            return source.buffer is buffer
        case Map(elem=elem):
            return any(get.view.buffer is buffer for get in gets(elem))
        case _:
            return False


def _coverage(pool: _Pool, buffer: Buffer, reader: Stmt, records: Mapping[Buffer, Record]) -> None:
    """Claims that sums cover an axis that two inputs share, each index once, and in order."""
    places = [(name, of) for of, record in records.items() for name, place in record if place in _axes(of)]
    shared = dict.fromkeys(name for name, of in places if any(n == name and b is not of for n, b in places))
    for name in shared:
        of = TagOf(whole(buffer), name)
        extents = dict.fromkeys(_extent(tensor, records[tensor], name) for n, tensor in places if n == name)
        for extent in extents:
            code = f"assert_covers({buffer.name}.tag.{name}, 0, {show(extent)})"
            pool.add(Covers(of, algebra.const(0), extent), code, "covers", buffer, reader)
        pool.add(Order(of), f"assert_order({buffer.name}.tag.{name})", "order", buffer, reader)
    known = {name for name, _ in places}
    for output in _outputs(pool.kernel):
        record = tuple((name, place) for name, place in _by_axes(output) if name in known)
        if record:
            _all_distinct(pool, buffer, record, reader)


def _axes(buffer: Buffer) -> tuple[Index, ...]:
    return tuple(algebra.coord(axis) for axis in range(len(buffer.shape)))


def _extent(buffer: Buffer, record: Record, name: str) -> Index:
    (place,) = (place for given, place in record if given == name)
    return buffer.shape[_axes(buffer).index(place)]


# -- arithmetic --------------------------------------------------------------------------------------------------


def _quotients(pool: _Pool, stmt: Map, records: Mapping[Buffer, Record]) -> None:
    """Claims about tiles combined in one expression: an index of one equals another's divided by a block's extent."""
    tiles = dict.fromkeys(get.view.buffer for get in gets(stmt.elem) if _is_named_tile(get.view.buffer))
    names = dict.fromkeys(name for record in records.values() for name, _ in record)
    widths = dict.fromkeys(width for tile in tiles for width in _widths(tile))
    for tile, other in product(tiles, tiles):
        if tile is other or not isinstance(tile.layout, TV) or not isinstance(other.layout, TV):
            continue
        get = RegisterTile(whole(other), other.layout).element_for(tile.layout)
        if get is None or other.layout != tile.layout:
            continue
        for one, two, width in product(names, names, widths):
            if one == two:
                continue
            (mine, of), (theirs, than) = _component(tile, one), _component(other, two)
            cond = algebra.eq(algebra.sym(theirs), algebra.floordiv(algebra.sym(mine), width))
            code = f"assert_relation({tile.name}, {other.name}, lambda x, y: eq(y.{two}, x.{one} // {width}))"
            pool.add(Relation(((mine, of), (theirs, than)), cond), code, "quotient", tile, stmt)
