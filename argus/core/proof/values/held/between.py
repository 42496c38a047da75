"""What a launch leaves in a tensor, as an expression over the coordinates of an element, for the launches after it.

A kernel's own value is over its blocks, too. Each element is stored once, as other obligations prove, so its
coordinates determine the block that stored it, and which store did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

from attrs import frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Const, Index, Read, Sym, Symbol
from argus.core.ir import Buffer
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.values.held.cells import Rounding
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.outputs import Stored, interpreted
from argus.core.proof.values.held.rounded_integers import narrowed
from argus.core.proof.values.held.terms import chosen, replaced, unknown
from argus.core.proof.values.held.unnamed import unnamed_reasons
from argus.core.values.expr import Element, Expr, element, expr
from argus.core.values.rewriting import free_symbols, integers, map_parts
from argus.core.walk import mentions, substitute, symbols, topological

T = TypeVar("T")


@frozen(eq=False)
class Left:
    """What a tensor holds between launches, over the coordinates of an element and the elements of the program's
    parameters before its first launch; and the roundings on the way.
    """

    value: Expr
    roundings: frozenset[Rounding] = frozenset()


def value_before(
    tensor: Buffer, left: Left | str | None, renamed: Collection[str] = (), *, decided: bool = False
) -> Expr:
    """What a program's tensor holds before a launch. left: by earlier launches; None if none wrote it.

    renamed: names of tensors of integers that mean others in the launch than in the program. decided: whether something
    is decided by its numbers, which its type may have rounded.
    """
    if left is None:
        return element(tensor.name, *map(algebra.coord, range(len(tensor.shape))))
    reason = left if isinstance(left, str) else renamed_integers(left.value, renamed)
    if reason:
        return unknown(f"the value of `{tensor.name}` between launches: {reason}")
    return narrowed(_value_of(left), tensor.dtype) if decided else _value_of(left)


def with_integers(value: Expr, tensors: Collection[str]) -> Expr:
    """The value with elements of these tensors of integers as formulas, conditions and coordinates read them."""
    known: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if isinstance(node, Element) and node.tensor in tensors:
            return expr(algebra.read(node.tensor, node.at))
        if node not in known:
            known[node] = map_parts(node, visit, _same, _same)
        return known[node]

    return visit(value)


def _same(part: T) -> T:
    return part


def _value_of(left: Left | str) -> Expr:
    assert isinstance(left, Left)
    return left.value


def renamed_integers(value: Expr, renamed: Collection[str]) -> str:
    """Why a value with integers in memory does not mean the same in a launch and in its program; empty if it does."""
    reads = (node for node in topological(integers(value)) if isinstance(node, Read))
    name = next((read.array for read in reads if read.array in renamed), "")
    return f"it depends on integers from `{name}`, which is not the program's name of that tensor" if name else ""


def value_left(flow: Flow, tensor: Buffer, before: Mapping[Buffer, Expr], renamed: Collection[str] = ()) -> Left | str:
    """What a launch on one control path leaves in a tensor that it writes completely, or why that is not known.

    before: what its tensors hold before it. renamed: as for `value_before`.
    """
    if len(flow.path_accesses) > 1:
        return "it is stored on several control paths"
    at = tuple(map(coordinate, range(len(tensor.shape))))
    held = interpreted(flow, tensor, at, before, rounded=tensor in flow.decided)
    if isinstance(held, str):
        return held
    joined = _joined(flow, [over_element(flow, case, at) for case in held.cases], {each.symbol for each in at})
    if joined is None:
        return "its elements hold unlike values"
    names = {each.symbol for each in at}
    foreign = [each.name for each in free_symbols(joined) if each.kind != "size" and each not in names]
    if unnamed := unnamed_reasons(joined):
        return unnamed[0]
    if foreign:
        return f"it depends on `{min(foreign)}`"
    if reason := renamed_integers(joined, renamed):
        return reason
    over = {each.symbol: algebra.coord(axis) for axis, each in enumerate(at)}
    return Left(replaced(joined, over), held.roundings)


def coordinate(axis: int, extent: Index | None = None) -> Sym:
    """A symbol for a coordinate of an arbitrary element. extent: of its tensor, a number above 1 of which bounds it.

    Of an extent of 1 a bound would be the coordinate: conditions that say so would vanish, and with them what they say.
    """
    high = extent.value - 1 if isinstance(extent, Const) and extent.value > 1 else None
    found = algebra.sym(Symbol(f"y{axis}", "fresh", 0, high))
    assert isinstance(found, Sym)
    return found


def over_element(flow: Flow, case: Stored, at: Sequence[Sym]) -> Stored:
    """The case with blocks and iterations replaced by what they are for the element's coordinates."""
    known = Known(flow, case.given)
    found: dict[Symbol, Index] = {}
    for cond in case.given:
        block = _block(cond, {each.symbol for each in at})
        if block is not None and block[0] not in found and known.holds(algebra.eq(algebra.sym(block[0]), block[1])):
            found[block[0]] = block[1]
    given = (substitute(cond, found) for cond in case.given)
    return Stored(replaced(case.value, found), tuple(cond for cond in given if cond is not algebra.TRUE))


def _block(cond: Cond, at: Collection[Symbol]) -> tuple[Symbol, Index] | None:
    """The block b of a condition c b + rest <= y, or of one that it is equal, as (y - rest) // c."""
    if not isinstance(cond, Cmp) or cond.op not in ("<=", "=="):
        return None
    difference = algebra.sub(cond.right, cond.left)
    for apart in (difference, algebra.neg(difference)) if cond.op == "==" else (difference,):
        terms, _ = linear_terms(apart)
        blocks = [(a, f) for a, f in terms if isinstance(a, Sym) and a.symbol.kind in ("block", "loop", "agent")]
        mine = [f for a, f in terms if isinstance(a, Sym) and a.symbol in at]
        if len(blocks) == 1 and mine == [1] and blocks[0][1] < 0:
            (block, factor) = blocks[0]
            assert isinstance(block, Sym)
            rest = algebra.sub(apart, algebra.mul(block, factor))
            if block.symbol not in symbols(rest):
                return block.symbol, algebra.floordiv(rest, -factor)
    return None


def _joined(flow: Flow, cases: Sequence[Stored], at: Collection[Symbol]) -> Expr | None:
    """The value of the case that stored the element; None if two may have, with unlike values."""
    values = list(dict.fromkeys(case.value for case in cases))
    if len(values) == 1:
        return values[0]
    tests = [tuple(cond for cond in case.given if _of_sizes(cond, at)) for case in cases]
    for (one, first), (two, second) in combinations(zip(cases, tests, strict=True), 2):
        both = (*first, *second)
        if not flow.impossible(both, algebra.TRUE) and not Known(flow, both).same(one.value, two.value):
            return None
    shared = set(tests[0]).intersection(*tests)
    found = cases[-1].value
    for case, test in zip(reversed(cases[:-1]), reversed(tests[:-1]), strict=True):
        found = chosen(algebra.all_of(cond for cond in test if cond not in shared), case.value, found)
    return found


def _of_sizes(cond: Cond, at: Collection[Symbol]) -> bool:
    """Whether a condition is about sizes and coordinates alone."""
    return all(each.kind == "size" or each in at for each in symbols(cond)) and not mentions(cond, (Read,))
