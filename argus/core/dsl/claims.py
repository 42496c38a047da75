"""Statements for the proof: tags of tensors, assumptions on sizes, claims about tags."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from typing import cast, overload

from attrs import evolve

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, CoordinateFunction, Int, IntLike, as_cond, extent, unwrap
from argus.core.dsl.integers import read_term
from argus.core.dsl.tiles.fragments import Fragment
from argus.core.dsl.tiles.values import RegisterTile, covering_tile
from argus.core.dsl.tracer import current
from argus.core.dsl.views import Tensor
from argus.core.index import Cond, Coord, Index, Read, Sym, Symbol
from argus.core.index_text import show
from argus.core.ir import (
    Assert,
    Assume,
    Claim,
    Covers,
    Distinct,
    Equal,
    Order,
    Relation,
    Tag,
    TagOf,
    View,
    WrittenOnce,
    axes_of,
    whole,
)
from argus.core.walk import mentions, substitute, symbols, topological

Names = Mapping[str, IntLike | Tensor]
Record = CoordinateFunction[Names]
Condition = CoordinateFunction[Bool]


def tag(tensor: Tensor | Fragment, names: Record) -> None:
    """Attach to each element a record of named integer expressions over its coordinates."""
    tracer = current("tag")
    view = _view_of("tag", tensor)
    tracer.emit(Tag(*_over_buffer_axes(view, _record(view, names)), span=tracer.span()))


def _over_buffer_axes(view: View, record: tuple[tuple[str, Index], ...]) -> tuple[View, tuple[tuple[str, Index], ...]]:
    """View and record rewritten over the buffer's own axes, if the view permutes the axes of a whole buffer."""
    axes = axes_of(view)
    if axes is None or list(axes) == sorted(axes):
        return view, record
    inner = tuple(algebra.coord(axes.index(axis)) for axis in range(len(axes)))
    return whole(view.buffer), tuple((name, substitute(value, {}, inner)) for name, value in record)


def _view_of(what: str, tensor: Tensor | Fragment) -> View:
    if isinstance(tensor, Tensor | Fragment):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return tensor.view
    fault("E106", f"`{what}` takes a tensor or a register tile, found {describe_value(tensor)}")


def _record(view: View, names: Record) -> tuple[tuple[str, Index], ...]:
    rank = len(view.shape)
    _check_arity(f"the record of `{view.buffer.name}`", names, rank)
    record: object = cast(Callable[..., object], names)(*(Int(algebra.coord(axis)) for axis in range(rank)))
    if not isinstance(record, Mapping) or not record:
        fault(
            "E106",
            f"a tag function returns a named record, found {describe_value(cast(object, record))}",
            help="return `dict(m=m, k=k)`",
        )
    return tuple((_component_name(name), _component_value(value)) for name, value in cast(Names, record).items())


def _component_value(value: IntLike | Tensor) -> Index:
    """An integer, or an element of a tensor of integers: `dict(x=expert[m // 128])`."""
    return read_term(value) if isinstance(value, Tensor) else unwrap(value)


def _component_name(name: object) -> str:
    if isinstance(name, str) and name.isidentifier() and not name.startswith("_"):
        return name
    fault(
        "E106",
        f"a component of a tag is named by an identifier, found {describe_value(name)}",
        help="return `dict(m=m, k=k)`",
    )


def _check_arity(what: str, function: Callable[..., object], count: int) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        fault(
            "E106",
            f"{what} is a function of {count} arguments, found {describe_value(function)}",
            help="give a `lambda`",
        )
    try:
        signature.bind(*range(count))
    except TypeError:
        found = len(signature.parameters)
        fault("E106", f"{what} is a function of {count} arguments, found one of {found}", help="take one for each axis")


def assume(*conditions: Bool | bool) -> None:
    """Preconditions on sizes: the proof may use them, and the launcher checks them at every launch."""
    tracer = current("assume")
    for condition in conditions:
        node = as_cond(condition)
        _check_assumption(node)
        tracer.emit(Assume(node, span=tracer.span()))


def _check_assumption(cond: Cond) -> None:
    """Raises E106 for a condition that is not over sizes only: the launcher could not check it."""
    inner = sorted(f"`{symbol.name}`" for symbol in symbols(cond) if symbol.kind != "size")
    if mentions(cond, (Coord,)):
        inner.append("an element's coordinate")
    inner += [f"`{show(node)}`" for node in topological([cond]) if isinstance(node, Read)]
    if inner:
        fault(
            "E106",
            f"the assumption `{show(cond)}` is not about sizes alone: it names {inner[0]}",
            here="the launcher cannot check this",
            help="assume conditions on tensor sizes only; facts about the program are proved, not assumed",
        )


def _emit_claim(what: str, claim: Claim) -> None:
    tracer = current(what)
    tracer.emit(Assert(claim, span=tracer.span()))


def _component(what: str, of: TagOf) -> TagOf:
    if isinstance(of, TagOf):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return of
    fault("E106", f"`{what}` takes a component of a tag, found {describe_value(of)}", help="write `x.tag.k`")


def assert_covers(of: TagOf, low: IntLike, high: IntLike, *, where: Bool | bool = True) -> None:
    """Claim: at every element, the set component contains each integer of [low, high) exactly once, no others."""
    component = _component("assert_covers", of)
    _emit_claim("assert_covers", Covers(component, unwrap(low), unwrap(high), as_cond(where)))


def assert_written_once(tensor: Tensor, names: Record, *, where: Condition | None = None) -> None:
    """Claim: each element of the tensor is stored exactly once, by a value whose tag is this record.

    where: a condition on coordinates that restricts the claim; elements where it is false are never stored. It may use
    integers from memory: `where=lambda m, n: scalar(expert[m // 128]) >= 0`.
    """
    view = _view_of("assert_written_once", tensor)
    meant = algebra.TRUE if where is None else _where_condition(view, where)
    _emit_claim("assert_written_once", WrittenOnce(view, _record(view, names), meant))


def _where_condition(view: View, where: Condition) -> Cond:
    rank = len(view.shape)
    _check_arity(f"`where` of `{view.buffer.name}`", where, rank)
    return as_cond(cast(Callable[..., Bool], where)(*(Int(algebra.coord(axis)) for axis in range(rank))))


def assert_equal(left: TagOf, right: TagOf) -> None:
    """Claim: two components are equal at each (thread, register) pair."""
    _emit_claim("assert_equal", Equal(_component("assert_equal", left), _component("assert_equal", right)))


def assert_distinct(*components: TagOf, over: Int | Sequence[Int] = ()) -> None:
    """Claim: no two elements have equal values in all of these components.

    over: loop variables and block coordinates. `over=k` also compares elements of different iterations, `over=(m, n)`
    elements of different blocks. Raises E106 for other integers.
    """
    if not components:
        fault("E106", "`assert_distinct` needs at least one component")
    named = tuple(_component("assert_distinct", of) for of in components)
    _emit_claim("assert_distinct", Distinct(named, _distinct_symbols(over)))


def _distinct_symbols(over: Int | Sequence[Int]) -> tuple[Symbol, ...]:
    nodes = [unwrap(each) for each in ((over,) if isinstance(over, Int) else over)]
    found = tuple(node.symbol for node in nodes if isinstance(node, Sym) and node.symbol.kind in ("loop", "block"))
    if len(found) != len(nodes):
        fault(
            "E106",
            "`over` takes loop variables and block coordinates",
            help="write `over=k` inside `for k in loop(...)`, or `over=(m, n)` of `m, n = block_id(...)`",
        )
    return found


def assert_order(of: TagOf) -> None:
    """Claim: successive `mma` accumulate in increasing order of the component."""
    _emit_claim("assert_order", Order(_component("assert_order", of)))


class Earlier:
    """A register tile with the tags that it had `back` iterations earlier, for `assert_relation`."""

    def __init__(self, tile: Fragment, back: int) -> None:
        self.tile = tile
        self.back = back


def earlier(tile: Fragment, by: int = 1) -> Earlier:
    """The tile with the tags that it had at this claim `by` iterations of the innermost loop earlier.

    `assert_relation(earlier(a), a, lambda was, now: eq(now.k, was.k + 32))` relates consecutive iterations.
    """
    if not isinstance(tile, Fragment):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`earlier` takes a register tile, found {describe_value(tile)}")
    return Earlier(tile, extent(by, "a number of iterations"))


class TagsOf:
    """The tag of an element: `p.k` is its component `k`."""

    def __init__(self, of: TagOf, bound: dict[Symbol, TagOf]) -> None:
        self._of = of
        self._bound = bound

    def __getattr__(self, name: str) -> Int:
        if name.startswith("_"):
            raise AttributeError(name)
        return _bind(evolve(self._of, name=name), self._bound)


TagFunction = (
    Callable[[TagsOf], Bool]
    | Callable[[TagsOf, TagsOf], Bool]
    | Callable[[TagsOf, TagsOf, TagsOf], Bool]
    | Callable[[TagsOf, TagsOf, TagsOf, TagsOf], Bool]
)
Tagged = TagOf | Fragment | Tensor | Earlier


@overload
def assert_relation(*arguments: TagOf | Condition) -> None: ...


@overload
def assert_relation(*arguments: Fragment | Tensor | Earlier | TagFunction) -> None: ...


def assert_relation(*arguments: Tagged | Condition | TagFunction) -> None:
    """Claim: a condition on tags holds at each element: `assert_relation(a.tag.k, b.tag.k, lambda x, y: x <= y)`.

    For a tile the function receives the whole record: `assert_relation(part, scale, lambda p, s: s.kb == p.k // 128)`.
    A row fragment is broadcast along its rows. Raises E205 for register tiles with incompatible layouts.
    """
    *operands, condition = arguments or (None,)
    if not operands or isinstance(condition, TagOf | Fragment | Tensor | Earlier) or not callable(condition):
        fault("E106", "`assert_relation` takes tag components or tiles and, last, a function of them")
    _check_arity("the condition of `assert_relation`", condition, len(operands))
    bound: dict[Symbol, TagOf] = {}
    tagged = cast("list[Tagged]", operands)
    pairs = zip(tagged, _align_operands(tagged), strict=True)
    handles = [_bind(of, bound) if isinstance(operand, TagOf) else TagsOf(of, bound) for operand, of in pairs]
    cond = cast(Callable[..., Bool], condition)(*handles)
    if not bound:
        fault("E106", "`assert_relation` names no component of a tag", help="write `lambda p, s: s.kb == p.k // 128`")
    _emit_claim("assert_relation", Relation(tuple(bound.items()), as_cond(cond)))


def _bind(component: TagOf, bound: dict[Symbol, TagOf]) -> Int:
    """The symbol bound to a component, distinct for each view, component and number of iterations back."""
    before = f" {component.back} before" if component.back else ""
    wanted = f"{component.view.buffer.name}.{component.name}{before}"
    for name in chain((wanted,), (f"{wanted}_{i}" for i in count(2))):
        symbol = Symbol(name, "fresh")
        known = bound.setdefault(symbol, component)
        if known.view is component.view and known.back == component.back:
            return Int(algebra.sym(symbol))
    raise AssertionError


def _align_operands(operands: list[Tagged]) -> list[TagOf]:
    """The operands as tags of views of one shape, register tiles broadcast to the one that covers the others.

    The components' names are filled in later.
    """
    tiles = [_tile(operand).register_tile for operand in operands if isinstance(operand, Fragment | Earlier)]
    chosen = covering_tile("assert_relation", tiles, typed=False) if tiles else None
    found: list[TagOf] = []
    for operand in operands:
        if isinstance(operand, Fragment | Earlier):
            assert chosen is not None
            back = operand.back if isinstance(operand, Earlier) else 0
            found.append(TagOf(_view_under(_tile(operand).register_tile, chosen), "", chosen.layout, back))
        elif isinstance(operand, Tensor):
            found.append(TagOf(operand.view, ""))
        else:
            found.append(_component("assert_relation", operand))
    return found


def _tile(operand: Fragment | Earlier) -> Fragment:
    return operand.tile if isinstance(operand, Earlier) else operand


def _view_under(tile: RegisterTile, chosen: RegisterTile) -> View:
    """The tile as a view of the shape of `chosen`: at each coordinate, the element that corresponds to it."""
    get = tile.element_for(chosen.layout)
    assert get is not None, "`chosen` covers all tiles"
    at = tuple(substitute(expression, {}, get.at) for expression in get.view.at)
    return View(tile.view.buffer, chosen.view.shape, at)
