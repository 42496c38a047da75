"""Integers from memory as index terms (`scalar`), and data contracts about them (`promise`)."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import cast

from attrs import evolve

from argus.core import algebra
from argus.core.check import views
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, Int, IntLike, as_cond, unwrap
from argus.core.dsl.launches import is_whole
from argus.core.dsl.tracer import current
from argus.core.dsl.values import in_formula
from argus.core.dsl.views import Tensor
from argus.core.dtype import i64
from argus.core.index import Cond, Index, Read
from argus.core.ir import Buffer, View, ascending_condition, walk, whole
from argus.core.walk import topological

Condition = Callable[[Int], Bool] | Callable[[Int, Int], Bool] | Callable[[Int, Int, Int], Bool]
"""A condition on an element, and on its coordinates if it takes them."""


def scalar(element: Tensor) -> Int:
    """`scalar(expert[i])`: the integer stored there, usable in any index expression.

    It is a term: reads of the same element are equal. Raises E106 for anything but an element of a tensor of integers,
    E501 for memory other than global; the kernel must not write the tensor (E220).
    """
    if not in_formula():
        current("scalar")
    return Int(read_term(element))


def read_term(element: Tensor) -> Index:
    """The index term for an element of a tensor of integers. Raises E106 or E501 as `scalar`."""
    if not isinstance(element, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"expected an element of a tensor of integers, found {describe_value(element)}")
    view = element.view
    name = view.buffer.name
    if view.buffer.space != "global":
        fault("E501", f"integers from {view.buffer.space} memory are not built yet", help="read a tensor of the kernel")
    if view.buffer.dtype == i64 and not in_formula():
        fault("E501", f"integers of 64 bits from `{name}` are not built yet", help="pass them as `i32`")
    if view.buffer.dtype.family != "int" or view.shape or view.where is not algebra.TRUE:
        fault("E106", f"a part of `{name}` is not one integer", help="index every axis: `scalar(expert[i])`")
    return algebra.read(name, view.at)


def promise(
    tensor: Tensor,
    of: Condition | None = None,
    *,
    ascending: bool = False,
    first: IntLike | None = None,
    last: IntLike | None = None,
    most: IntLike | None = None,
) -> None:
    """A data contract on every element of a tensor of integers: the proof may use it, and the launcher checks it.

    of: a condition on the element, and on its coordinates if it takes them too, `lambda e, s: ...`; it may read
    elements of tensors of integers that are parameters before this one, such as `scalar(starts[e]) <= scalar(cuts[s])`.
    ascending: the elements of a one-dimensional tensor are nondecreasing. first, last: the values of its first and last
    element. most: the greatest difference of an element and the one before. Offsets of packed sequences of at most M
    rows are `promise(starts, ascending=True, first=0, last=T, most=M)`.
    Raises E106 unless the tensor is a whole parameter, or after a statement that uses it.
    """
    tracer = current("promise")
    if not isinstance(tensor, Tensor) or tensor.view.buffer not in tracer.parameters or not is_whole(tensor.view):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", "a promise is about a whole tensor of the kernel", help="write `promise(expert, lambda e: ...)`")
    buffer = tensor.view.buffer
    if buffer.dtype == i64:
        fault("E501", f"promises about integers of 64 bits, as `{buffer.name}`, are not built yet", help="use `i32`")
    if buffer.dtype.family != "int" or len(tracer.scopes) != 1 or _is_used(tensor.view):
        fault(
            "E106",
            f"a promise about `{buffer.name}` of {buffer.dtype} comes too late, or is not about integers",
            help="make promises about tensors of integers, before any statement that uses them",
        )
    element = algebra.read(buffer.name, tensor.view.at)
    conds = [] if of is None else [_condition(of, element, tensor.view)]
    if ascending or any(each is not None for each in (first, last, most)):
        conds += _order_conditions(buffer, ascending=ascending, first=first, last=last, most=most)
    before = [each.name for each in tracer.parameters[: tracer.parameters.index(buffer)]]
    for node in topological(conds):
        if isinstance(node, Read) and node.array not in (*before, buffer.name):
            what = f"a promise about `{buffer.name}` reads `{node.array}`, a parameter after it"
            fault("E106", what, help="make the promise about the later of the two tensors")
    made = evolve(buffer, promise=algebra.all_of((buffer.promise, *conds)))
    tracer.parameters = [made if each is buffer else each for each in tracer.parameters]
    tensor.view = whole(made)


def _condition(of: Condition, element: Index, view: View) -> Cond:
    """The condition of an element, and of its coordinates if it takes them. Raises E106 for another function."""
    try:
        count = len(signature(of).parameters)
    except (TypeError, ValueError):
        count = 1
    if count not in (1, 1 + len(view.at)):
        rank = len(view.at)
        what = f"the condition of a promise takes the element and its {rank} coordinates, found {count} parameters"
        fault("E106", what, help="write `promise(expert, lambda e: ...)`")
    taken = [Int(each) for each in (element, *view.at)][:count]
    return as_cond(cast(Callable[..., Bool], of)(*taken))


def _order_conditions(
    buffer: Buffer, *, ascending: bool, first: IntLike | None, last: IntLike | None, most: IntLike | None
) -> list[Cond]:
    if len(buffer.shape) != 1:
        fault(
            "E106",
            f"`{buffer.name}` is not a one-dimensional tensor of integers",
            help="give a tensor of one axis",
        )
    at, element = algebra.coord(0), algebra.read(buffer.name, (algebra.coord(0),))
    conds = [ascending_condition(buffer)] if ascending else []
    if first is not None:
        conds.append(algebra.any_of((algebra.le(1, at), algebra.eq(element, unwrap(first)))))
    if last is not None:
        inner = algebra.lt(algebra.add(at, 1), buffer.shape[0])
        conds.append(algebra.any_of((inner, algebra.eq(element, unwrap(last)))))
    if most is not None:
        after = algebra.add(at, 1)
        apart = algebra.sub(algebra.read(buffer.name, (after,)), element)
        conds.append(algebra.any_of((algebra.le(buffer.shape[0], after), algebra.le(apart, unwrap(most)))))
    return conds


def _is_used(view: View) -> bool:
    statements = current("promise").scopes[0].body
    return any(other.buffer is view.buffer for stmt in walk(tuple(statements)) for other in views(stmt))
