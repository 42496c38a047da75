"""Tags, assumptions and assertions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from argus.core import algebra
from argus.core.dsl.faults import fault
from argus.core.dsl.fragments import Fragment
from argus.core.dsl.handles import Bool, Int, IntLike, as_cond, unwrap
from argus.core.dsl.tracer import current
from argus.core.dsl.views import Tensor
from argus.core.index import Index, Symbol
from argus.core.ir import Assert, Assume, Claim, Covers, Distinct, Equal, Relation, Tag, TagOf, View, WrittenOnce

Record = Callable[..., Mapping[str, IntLike]]


def tag(tensor: Tensor | Fragment, names: Record) -> None:
    """Give every element a named record of integer expressions over its coordinates."""
    tracer = current("tag")
    tracer.emit(Tag(tensor.view, _record(tensor.view, names), span=tracer.span()))


def _record(view: View, names: Record) -> tuple[tuple[str, Index], ...]:
    rank = len(view.shape)
    arity = len(inspect.signature(names).parameters)
    if arity != rank:
        fault(
            "E106",
            f"a tag function of {arity} coordinates for `{view.buffer.name}`, which has {rank} axes",
            help="take one argument for each axis",
        )
    record = names(*(Int(algebra.coord(axis)) for axis in range(rank)))
    if not isinstance(record, Mapping) or not record:  # pyright: ignore[reportUnnecessaryIsInstance]  # user code
        fault("E106", f"a tag function gives a named record, found {record!r}", help="return `dict(m=m, k=k)`")
    return tuple((name, unwrap(value)) for name, value in record.items())


def assume(*conditions: Bool | bool) -> None:
    """Conditions that hold at every launch: the proof may use them, the launcher checks them."""
    tracer = current("assume")
    for condition in conditions:
        tracer.emit(Assume(as_cond(condition), span=tracer.span()))


def _claim(what: str, claim: Claim) -> None:
    tracer = current(what)
    tracer.emit(Assert(claim, span=tracer.span()))


def assert_covers(of: TagOf, low: IntLike, high: IntLike, *, where: Bool | bool = True) -> None:
    """The set component holds each integer of [low, high) once and nothing else, at every element."""
    _claim("assert_covers", Covers(of, unwrap(low), unwrap(high), as_cond(where)))


def assert_written_once(tensor: Tensor, names: Record) -> None:
    """Each element of the tensor is stored exactly once, by a value with this record."""
    _claim("assert_written_once", WrittenOnce(tensor.view, _record(tensor.view, names)))


def assert_equal(left: TagOf, right: TagOf) -> None:
    """Two components agree, element by element as each thread holds them."""
    _claim("assert_equal", Equal(left, right))


def assert_distinct(*components: TagOf) -> None:
    """No two elements agree in all of these components."""
    if not components:
        fault("E106", "`assert_distinct` needs at least one component")
    _claim("assert_distinct", Distinct(components))


def assert_relation(*arguments: TagOf | Callable[..., Bool]) -> None:
    """A condition over tag components, element by element: `assert_relation(a.tag.k, b.tag.k, lambda x, y: x <= y)`."""
    *components, condition = arguments
    bound = [(Symbol(f"{of.view.buffer.name}.{of.name}", "fresh"), of) for of in components if isinstance(of, TagOf)]
    if isinstance(condition, TagOf) or len(bound) != len(components) or not bound:
        fault("E106", "`assert_relation` takes tag components and, last, a function of them")
    cond = condition(*(Int(algebra.sym(symbol)) for symbol, _ in bound))
    _claim("assert_relation", Relation(tuple(bound), as_cond(cond)))
