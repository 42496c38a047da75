"""Tags, assumptions and assertions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from typing import cast, overload

from attrs import evolve

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, Int, IntLike, OfInts, as_cond, extent, unwrap
from argus.core.dsl.integers import term
from argus.core.dsl.tiles.fragments import Fragment
from argus.core.dsl.tiles.values import RegisterTile, covering_tile
from argus.core.dsl.tracer import current
from argus.core.dsl.views import Tensor
from argus.core.index import Cond, Coord, Index, Read, Sym, Symbol
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
from argus.core.walk import mentions, show, substitute, symbols, topological

Names = Mapping[str, IntLike | Tensor]
Record = OfInts[Names]
Condition = OfInts[Bool]


def tag(tensor: Tensor | Fragment, names: Record) -> None:
    """Give every element a named record of integer expressions over its coordinates."""
    tracer = current("tag")
    view = _tagged("tag", tensor)
    tracer.emit(Tag(*_as_stored(view, _record(view, names)), span=tracer.span()))


def _as_stored(view: View, record: tuple[tuple[str, Index], ...]) -> tuple[View, tuple[tuple[str, Index], ...]]:
    """A record of all of a buffer, its axes exchanged, as one over the axes of the buffer."""
    axes = axes_of(view)
    if axes is None or list(axes) == sorted(axes):
        return view, record
    inner = tuple(algebra.coord(axes.index(axis)) for axis in range(len(axes)))
    return whole(view.buffer), tuple((name, substitute(value, {}, inner)) for name, value in record)


def _tagged(what: str, tensor: Tensor | Fragment) -> View:
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
            f"a tag function gives a named record, found {describe_value(cast(object, record))}",
            help="return `dict(m=m, k=k)`",
        )
    return tuple((_component_name(name), _component_value(value)) for name, value in cast(Names, record).items())


def _component_value(value: IntLike | Tensor) -> Index:
    """An integer, or an element of a tensor of integers: `dict(x=expert[m // 128])`."""
    return term(value) if isinstance(value, Tensor) else unwrap(value)


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
    """Conditions on sizes that hold at every launch: the proof may use them, the launcher checks them."""
    tracer = current("assume")
    for condition in conditions:
        node = as_cond(condition)
        _check_assumption(node)
        tracer.emit(Assume(node, span=tracer.span()))


def _check_assumption(cond: Cond) -> None:
    """A launcher can check what is written over sizes; anything else would be believed unchecked."""
    inner = sorted(f"`{symbol.name}`" for symbol in symbols(cond) if symbol.kind != "size")
    if mentions(cond, (Coord,)):
        inner.append("an element's coordinate")
    inner += [f"`{show(node)}`" for node in topological([cond]) if isinstance(node, Read)]
    if inner:
        fault(
            "E106",
            f"the assumption `{show(cond)}` is not about sizes alone: it names {inner[0]}",
            here="a launcher could not check this",
            help="assume conditions on the tensors' sizes; what follows from the program is proved, not assumed",
        )


def _claim(what: str, claim: Claim) -> None:
    tracer = current(what)
    tracer.emit(Assert(claim, span=tracer.span()))


def _component(what: str, of: TagOf) -> TagOf:
    if isinstance(of, TagOf):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return of
    fault("E106", f"`{what}` takes a component of a tag, found {describe_value(of)}", help="write `x.tag.k`")


def assert_covers(of: TagOf, low: IntLike, high: IntLike, *, where: Bool | bool = True) -> None:
    """The set component holds each integer of [low, high) once and nothing else, at every element."""
    component = _component("assert_covers", of)
    _claim("assert_covers", Covers(component, unwrap(low), unwrap(high), as_cond(where)))


def assert_written_once(tensor: Tensor, names: Record, *, where: Condition | None = None) -> None:
    """Each element of the tensor is stored exactly once, by a value with this record.

    where: of which elements, by their coordinates, all by default; no others are stored at all. With integers from
    memory: `where=lambda m, n: scalar(expert[m // 128]) >= 0`.
    """
    view = _tagged("assert_written_once", tensor)
    meant = algebra.TRUE if where is None else _meant(view, where)
    _claim("assert_written_once", WrittenOnce(view, _record(view, names), meant))


def _meant(view: View, where: Condition) -> Cond:
    rank = len(view.shape)
    _check_arity(f"`where` of `{view.buffer.name}`", where, rank)
    return as_cond(cast(Callable[..., Bool], where)(*(Int(algebra.coord(axis)) for axis in range(rank))))


def assert_equal(left: TagOf, right: TagOf) -> None:
    """Two components agree, element by element as each thread holds them."""
    _claim("assert_equal", Equal(_component("assert_equal", left), _component("assert_equal", right)))


def assert_distinct(*components: TagOf, over: Int | Sequence[Int] = ()) -> None:
    """No two elements agree in all of these components.

    over: variables of loops and coordinates of the grid: `over=k`, and no two elements of any two iterations agree;
    `over=(m, n)`, nor of any two blocks. Raises E106 for an integer that is neither.
    """
    if not components:
        fault("E106", "`assert_distinct` needs at least one component")
    named = tuple(_component("assert_distinct", of) for of in components)
    _claim("assert_distinct", Distinct(named, _variables(over)))


def _variables(over: Int | Sequence[Int]) -> tuple[Symbol, ...]:
    nodes = [unwrap(each) for each in ((over,) if isinstance(over, Int) else over)]
    found = tuple(node.symbol for node in nodes if isinstance(node, Sym) and node.symbol.kind in ("loop", "block"))
    if len(found) != len(nodes):
        fault(
            "E106",
            "`over` takes variables of loops and coordinates of the grid",
            help="write `over=k` inside `for k in loop(...)`, or `over=(m, n)` of `m, n = block_id(...)`",
        )
    return found


def assert_order(of: TagOf) -> None:
    """What is summed over the component comes in increasing order, from one `mma` to the next."""
    _claim("assert_order", Order(_component("assert_order", of)))


class Earlier:
    """A tile as it was when the claim stood here some iterations before."""

    def __init__(self, tile: Fragment, back: int) -> None:
        self.tile = tile
        self.back = back


def earlier(tile: Fragment, by: int = 1) -> Earlier:
    """The tile as it was when the claim was reached `by` iterations of the innermost loop before.

    `assert_relation(earlier(a), a, lambda was, now: eq(now.k, was.k + 32))` speaks of each two iterations in turn.
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


OfTags = (
    Callable[[TagsOf], Bool]
    | Callable[[TagsOf, TagsOf], Bool]
    | Callable[[TagsOf, TagsOf, TagsOf], Bool]
    | Callable[[TagsOf, TagsOf, TagsOf, TagsOf], Bool]
)
Tagged = TagOf | Fragment | Tensor | Earlier


@overload
def assert_relation(*arguments: TagOf | Condition) -> None: ...


@overload
def assert_relation(*arguments: Fragment | Tensor | Earlier | OfTags) -> None: ...


def assert_relation(*arguments: Tagged | Condition | OfTags) -> None:
    """A condition over tags, element by element: `assert_relation(a.tag.k, b.tag.k, lambda x, y: x <= y)`.

    Of a tile the function gets the record: `assert_relation(part, scale, lambda p, s: s.kb == p.k // 128)`; elements of
    a row fragment belong to all elements of that row. Raises E205 for tiles of registers held otherwise.
    """
    *operands, condition = arguments or (None,)
    if not operands or isinstance(condition, TagOf | Fragment | Tensor | Earlier) or not callable(condition):
        fault("E106", "`assert_relation` takes tag components or tiles and, last, a function of them")
    _check_arity("the condition of `assert_relation`", condition, len(operands))
    bound: dict[Symbol, TagOf] = {}
    tagged = cast("list[Tagged]", operands)
    pairs = zip(tagged, _together(tagged), strict=True)
    given = [_bind(of, bound) if isinstance(operand, TagOf) else TagsOf(of, bound) for operand, of in pairs]
    cond = cast(Callable[..., Bool], condition)(*given)
    if not bound:
        fault("E106", "`assert_relation` names no component of a tag", help="write `lambda p, s: s.kb == p.k // 128`")
    _claim("assert_relation", Relation(tuple(bound.items()), as_cond(cond)))


def _bind(component: TagOf, bound: dict[Symbol, TagOf]) -> Int:
    """The symbol of a component: one for each view and time, whatever their names."""
    before = f" {component.back} before" if component.back else ""
    wanted = f"{component.view.buffer.name}.{component.name}{before}"
    for name in chain((wanted,), (f"{wanted}_{i}" for i in count(2))):
        symbol = Symbol(name, "fresh")
        known = bound.setdefault(symbol, component)
        if known.view is component.view and known.back == component.back:
            return Int(algebra.sym(symbol))
    raise AssertionError


def _together(operands: list[Tagged]) -> list[TagOf]:
    """Views of one shape: the tiles of registers as the largest of them holds them. Names are given later."""
    tiles = [_tile(operand).held for operand in operands if isinstance(operand, Fragment | Earlier)]
    chosen = covering_tile("assert_relation", tiles, typed=False) if tiles else None
    found: list[TagOf] = []
    for operand in operands:
        if isinstance(operand, Fragment | Earlier):
            assert chosen is not None
            back = operand.back if isinstance(operand, Earlier) else 0
            found.append(TagOf(_under(_tile(operand).held, chosen), "", chosen.layout, back))
        elif isinstance(operand, Tensor):
            found.append(TagOf(operand.view, ""))
        else:
            found.append(_component("assert_relation", operand))
    return found


def _tile(operand: Fragment | Earlier) -> Fragment:
    return operand.tile if isinstance(operand, Earlier) else operand


def _under(held: RegisterTile, chosen: RegisterTile) -> View:
    """The view whose element at each coordinate is the one that belongs there."""
    get = held.under(chosen.layout)
    assert get is not None, "a leader has been chosen"
    at = tuple(substitute(expression, {}, get.at) for expression in get.view.at)
    return View(held.view.buffer, chosen.view.shape, at)
