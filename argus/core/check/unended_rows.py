"""Products that sum over rows whose end only integers in memory know, such as those of a packed sequence.

What a kernel loads is followed through copies, element expressions and reductions, axis by axis: along which axis of a
buffer its elements differ by the row of memory that they come from. It is not followed through a product's results,
such as scores, of which the rows that do not belong are left out by a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from argus.core.check.ended_coordinates import ended_reads
from argus.core.index import Coord, Index, Read
from argus.core.ir import Buffer, Copy, Fold, Kernel, Map, Mma, Op, Stmt, View, walk
from argus.core.ir.element_walk import nodes
from argus.core.ir.view_ends import ViewEnd, view_ends
from argus.core.walk import mentions, topological

Along = tuple[Buffer, int]
"""An axis of a buffer."""
Before = Mapping[Along, set[Along]]
"""Of each axis that a statement writes along, the axes of what it reads."""
_PRODUCTS = ("mul", "fma")


def ends_rows(kernel: Kernel) -> bool:
    """Whether a tile of a tensor ends with its view, from where on it is read as zeros."""
    return any(each.sign < 0 for copy in _loads(kernel) for each in view_ends(copy.source) or ())


def unended_rows(kernel: Kernel) -> tuple[Copy, ...]:
    """The copies of rows that products sum over from a place on that an integer in memory chooses, without an end.

    Of rows beyond those that belong there, a product reads what they hold, and not zeros.
    """
    stmts = list(walk(kernel.body))
    before = _before(stmts)
    factors = {each for product in _products(stmts, before) for factor in product for each in factor}
    summed = _reaching(factors, before)
    return tuple(copy for copy in _loads(kernel) if any(not ends for ends in _ends(copy, summed)))


def unlike_ends(kernel: Kernel) -> tuple[Copy, ...]:
    """The copies of rows that one factor of a product ends at another integer in memory than the other factor.

    Between both ends, a product multiplies what the rows beyond the first end hold by zeros.
    """
    stmts, loads = list(walk(kernel.body)), _loads(kernel)
    before = _before(stmts)
    found: dict[Copy, None] = {}
    for product in _products(stmts, before):
        summed = [_reaching(factor, before) for factor in product]
        ended = [{copy: list(_ends(copy, each)) for copy in loads if any(_ends(copy, each))} for each in summed]
        stops = [{ends for each in factor.values() for ends in each} for factor in ended if factor]
        if any(each != stops[0] for each in stops):
            found |= dict.fromkeys(copy for factor in ended for copy in factor)
    return tuple(found)


def _loads(kernel: Kernel) -> list[Copy]:
    return [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.source.buffer.space == "global"]


def _ends(copy: Copy, summed: set[Along]) -> Iterator[frozenset[Index]]:
    """Of each axis of memory along which rows begin where memory says, and which are summed: where they end."""
    for axis, at in enumerate(copy.source.at):
        along = _begun_by_memory(at)
        if along is not None and not summed.isdisjoint(_placed(copy.target, along)):
            yield frozenset(each.rest for each in _ended_by_memory(copy.source) if each.axis == axis)


def _begun_by_memory(at: Index) -> frozenset[int] | None:
    """The coordinates that count rows from an integer in memory on; None if none does.

    Where each coordinate has its own integer, as in a gather, memory chooses single rows: none follows another one.
    """
    own, stack = set[Index](), [at]
    while stack:
        node = stack.pop()
        own.add(node)
        stack += [] if isinstance(node, Read) else [each for each in node.operands if isinstance(each, Index)]
    reads = [node for node in own if isinstance(node, Read)]
    within = [found for read in reads for each in read.at if (found := _begun_by_memory(each)) is not None]
    along = frozenset(node.axis for node in own if isinstance(node, Coord)).union(*within)
    return along if reads and (along or not _axes(at)) else None


def _ended_by_memory(view: View) -> Iterator[ViewEnd]:
    return (each for each in view_ends(view) or () if each.sign < 0 and mentions(each.rest, (Read,)))


def _before(stmts: Sequence[Stmt]) -> Before:
    found: dict[Along, set[Along]] = {}
    for stmt in stmts:
        for source, target in _moved(stmt):
            found.setdefault(target, set()).add(source)
    return found


def _products(stmts: Sequence[Stmt], before: Before) -> Iterator[tuple[set[Along], ...]]:
    """Of each product that is summed, the axes of its factors' buffers along which it is."""
    folded = [stmt for stmt in stmts if isinstance(stmt, Fold) and stmt.op == "add"]
    added = _reaching({each for fold in folded for each in _placed(fold.source, frozenset((fold.axis,)))}, before)
    for stmt in stmts:
        match stmt:
            case Mma(a=a, b=b):
                yield tuple(set(_placed(view, frozenset((len(view.shape) - 1,)))) for view in (a, b))
            case Map(target=target, elem=elem):
                for node in nodes(elem):
                    if isinstance(node, Op) and node.name in _PRODUCTS:
                        moved = [_moved(Map(target, each)) for each in node.args[:2]]
                        yield tuple({source for source, to in each if to in added} for each in moved)
            case _:
                continue


def _reaching(found: set[Along], before: Before) -> set[Along]:
    """These, and all from which a way leads to one of them."""
    reached, stack = set(found), list(found)
    while stack:
        new = before.get(stack.pop(), set()) - reached
        reached |= new
        stack.extend(new)
    return reached


def _moved(stmt: Stmt) -> Iterator[tuple[Along, Along]]:
    """The axes of what a statement reads, each with one of what it writes along which rows stay apart."""
    match stmt:
        case Copy(source=source, target=target):
            ended = frozenset(axis for each in _ended_by_memory(source) for axis in _axes(source.at[each.axis]))
            same = [frozenset((axis,)) for axis in range(len(source.shape))]
            yield from _between(source, target, [axes - ended for axes in same])
        case Map(target=target, elem=elem):
            for get, ended in ended_reads(elem):
                yield from _between(get.view, target, [_axes(at) - ended for at in get.at])
        case Fold(target=target, source=source, axis=axis):
            kept = len(target.shape) == len(source.shape)
            names = [frozenset((each if kept or each < axis else each - 1,)) for each in range(len(source.shape))]
            yield from _between(source, target, names if kept else [*names[:axis], frozenset(), *names[axis + 1 :]])
        case _:
            return


def _between(source: View, target: View, names: Sequence[frozenset[int]]) -> Iterator[tuple[Along, Along]]:
    """names: the target's coordinates that each coordinate of the source is made of."""
    for axis, at in enumerate(source.at):
        own = _axes(at)
        to = frozenset[int]().union(*(names[each] for each in own))
        if to or not own:
            yield from (((source.buffer, axis), each) for each in _placed(target, to))


def _placed(view: View, along: frozenset[int]) -> Iterator[Along]:
    """The axes of a view's buffer that some of these coordinates choose; of none, those that no coordinate chooses."""
    for axis, at in enumerate(view.at):
        if _axes(at) & along if along else not _axes(at):
            yield view.buffer, axis


def _axes(at: Index) -> frozenset[int]:
    return frozenset(node.axis for node in topological((at,)) if isinstance(node, Coord))
