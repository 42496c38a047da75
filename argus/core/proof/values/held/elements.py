"""Element expressions of the language as expressions of values: an operation is its name in `values.operations`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan
from typing import assert_never

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.dtype import DType, f32, i32
from argus.core.elementwise import ELEMENT_OPS, REAL_NAMES
from argus.core.index import Cond, Held, Index
from argus.core.ir import (
    Both,
    Buffer,
    Cast,
    Compare,
    Either,
    Elem,
    Get,
    Holds,
    Lit,
    Map,
    Neither,
    Num,
    Op,
    Test,
    Where,
)
from argus.core.ir.element_walk import children, dtype_of, nodes
from argus.core.proof.dataflow.flattened_views import FlattenedView
from argus.core.proof.values.held.deciding import STEPS
from argus.core.proof.values.held.rounded_integers import as_float, beside_integers, computed, narrowed, operation
from argus.core.proof.values.held.tables import Tables
from argus.core.proof.values.held.terms import chosen, extremum, number, unknown
from argus.core.proof.values.held.whole_numbers import whole_numbers
from argus.core.values.expr import Choose, Expr, Fn, Number, Whole, compare, element, expr, fn
from argus.core.walk import mentions, substitute
from argus.core.wrapping import WRAPPED

_EXACT = ("max", "min")
"""Operations on integers that do not wrap around."""


@frozen(eq=False)
class Elements:
    """What expressions of one statement mean.

    dtype: of what is computed. operands: what each read holds. place: an integer expression at the elements of the
    fragment. rounds: called with each type to which a number is rounded, and the number. holds: whether a condition
    provably holds. most: the size of integers that no type on the way rounds. decides: whether a choice or an integer
    depends on what is computed, so that integers which become numbers of types of floats are followed.
    """

    dtype: DType
    operands: Mapping[Get, Expr]
    place: Callable[[Index], Index]
    condition: Callable[[Cond], Cond]
    rounds: Callable[[DType, Expr], None]
    holds: Callable[[Cond], bool]
    running: bool = False
    most: int = 1 << 24
    decides: bool = False

    def stored(self, elem: Elem) -> Expr:
        """The value of an expression in the type that is computed."""
        found = self.of(elem)
        return found if dtype_of(elem) == self.dtype else self._rounded(found, dtype_of(elem), self.dtype)

    def _decided(self, elem: Elem, dtype: DType) -> Expr:
        """The value of what something is decided by, as a number of a type."""
        here = evolve(self, decides=True)
        return here._in_type(here.of(elem), dtype)

    def _in_type(self, found: Expr, dtype: DType) -> Expr:
        """A value as a number of a type: an integer that a type of floats may not have is rounded."""
        return as_float(found, dtype, self.holds) if self.decides and dtype.family == "float" else found

    def _rounded(self, found: Expr, given: DType | None, dtype: DType) -> Expr:
        """A value in a type of floats: where something is decided by it, a narrower type rounds it."""
        of = narrowed(found, dtype) if self.decides and given != dtype else found
        return of if of is not found else self._in_type(found, dtype)

    def of(self, elem: Elem) -> Expr:
        """The value of an expression."""
        match elem:
            case Get():
                return self.operands[elem]
            case Lit(value=value):
                return unknown("NaN") if isnan(value) else number(value)
            case Num(value=value):
                return unknown("an integer in registers") if mentions(value, (Held,)) else expr(self.place(value))
            case Cast(dtype=dtype, arg=arg):
                found = self.of(arg) if dtype.family == "float" else self._decided(arg, dtype_of(arg) or self.dtype)
                if _widens(dtype_of(arg), dtype):
                    return found
                if dtype.family != "float":
                    return self._as_integer(found, dtype_of(arg) or self.dtype, dtype)
                if dtype_of(arg) != dtype:
                    self.rounds(dtype, found)
                return self._rounded(found, dtype_of(arg), dtype)
            case Op(name=name, args=args):
                kind = dtype_of(elem) or self.dtype
                if name in STEPS:
                    return self._operation(name, kind, [self._decided(each, kind) for each in args])
                return self._operation(name, kind, [self.of(each) for each in args])
            case Where(test=test, then=then, other=other):
                return self._chosen(test, self.of(then), self.of(other))
            case _:
                assert_never(elem)

    def _as_integer(self, found: Expr, given: DType, dtype: DType) -> Expr:
        """A number of one type as an integer: itself, if it is one that both types have. Integers wrap around."""
        if given.family != "float":
            return _wrapped(found, dtype)
        most = min(int(dtype.greatest), whole_numbers((given,)), self.most)
        if most and self._is_whole(found, most):
            return found
        return fn(f"to {dtype}" if given == f32 else f"to {dtype} from {given}", found)

    def _is_whole(self, of: Expr, most: int) -> bool:
        """Whether a value is an integer of at most this size: one that is chosen among such."""
        match of:
            case Number(value=value):
                return value.denominator == 1 and abs(value) <= most
            case Whole(index=index):
                return self.holds(algebra.all_of((algebra.le(-most, index), algebra.le(index, most))))
            case Choose(then=one, other=other) | Fn(name="max" | "min", args=(one, other)):
                return self._is_whole(one, most) and self._is_whole(other, most)
            case _:
                return False

    def _operation(self, name: str, dtype: DType, args: Sequence[Expr]) -> Expr:
        if dtype.family == "float":
            return computed(name, args, dtype, self.holds) if self.decides else operation(name, args, self.holds)
        name = REAL_NAMES.get(name, name)
        if name in _EXACT:
            return extremum(name, *args)
        if ELEMENT_OPS[name].integers:
            return fn(name, *args)
        found = fn(name, *args)
        return found if self.running else _wrapped(found, dtype)

    def _chosen(self, test: Test, then: Expr, other: Expr) -> Expr:
        match test:
            case Holds(cond=cond):
                wrong = mentions(cond, (Held,))
                return (
                    unknown("a test of an integer in registers") if wrong else chosen(self.condition(cond), then, other)
                )
            case Compare(op=op, left=left, right=right):
                kind = dtype_of(left) or dtype_of(right) or f32
                most = whole_numbers((kind,))
                sides = beside_integers(self._decided(left, kind), self._decided(right, kind), most, most)
                return chosen(compare(op, *sides), then, other)
            case Both(parts=parts):
                for part in reversed(parts):
                    then = self._chosen(part, then, other)
                return then
            case Either(parts=parts):
                for part in reversed(parts):
                    other = self._chosen(part, then, other)
                return other
            case Neither(part=part):
                return self._chosen(part, other, then)
            case _:
                assert_never(test)


def _wrapped(found: Expr, dtype: DType) -> Expr:
    """An integer in a type, whose arithmetic wraps around."""
    return fn(f"{WRAPPED}{dtype}", found)


def _widens(given: DType | None, dtype: DType) -> bool:
    """Whether a conversion is of integers to a type that holds all of them."""
    return given is not None and given.family == "int" and dtype.family == "int" and given.bits <= dtype.bits


def not_of_reals(stmt: Map) -> str:
    """Why a statement does not compute as over the reals, up to rounding; empty if it does."""
    own = stmt.target.buffer.dtype
    for node in nodes(stmt.elem):
        kind = (dtype_of(node) or own) if isinstance(node, Op | Where | Cast) else own
        if isinstance(node, Num) and own.family != "float" and own.bits < i32.bits:  # else it fits, by I28
            return "an integer of the program in registers"
        for part in children(node) if isinstance(node, Op | Where | Cast) else (node,) if node is stmt.elem else ():
            if isinstance(part, Lit) and not isnan(part.value) and not kind.holds(part.value):
                return f"{part.value:g}, which {kind} cannot represent"
    return ""


def element_of(buffer: Buffer, places: Sequence[Index]) -> Expr:
    """An element of a tensor; of a tensor of integers, as conditions and coordinates read it."""
    if buffer.dtype.family != "float":
        return expr(algebra.read(buffer.name, places))
    return element(buffer.name, *places)


def element_in_views(views: Sequence[FlattenedView], buffer: Buffer, places: Sequence[Index]) -> Expr:
    """An element of a tensor, by the names and coordinates of the kernel before its views were flattened."""
    view = next((each.view for each in views if each.flat is buffer), None)
    if view is None:
        return element_of(buffer, places)
    found = element_of(view.buffer, [substitute(each, {}, places) for each in view.at])
    return chosen(substitute(view.where, {}, places), found, number(0.0))


def bounds(
    tables: Tables, places: Sequence[Index], shape: Sequence[Index], holds: Callable[[Cond], bool], *, whole: bool
) -> Iterator[Cond]:
    """The bounds of an element, without those of whole tiles that hold.

    places: the coordinates, over a fragment. shape: of the tensor. holds: whether a condition provably holds.
    whole: also without those of single elements that the first or the last element of the whole tile meets. The parts
    of a tile may then have unlike bounds.
    """
    ends = [(rest, table) if whole or table.size == 1 else None for rest, table in map(tables.split, places)]
    for place, end in zip(places, ends, strict=True):
        if end is None or not holds(algebra.le(0, algebra.add(end[0], int(end[1].min())))):
            yield algebra.le(0, place)
    for place, end, extent in zip(places, ends, shape, strict=True):
        if end is None or not holds(algebra.lt(algebra.add(end[0], int(end[1].max())), extent)):
            yield algebra.lt(place, extent)
