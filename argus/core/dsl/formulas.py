"""The claim `assert_equals`, and the reductions of its formula: `total`, `greatest`, `least`, `product`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Union, cast

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, CoordinateFunction, Int, IntLike, as_cond, unwrap
from argus.core.dsl.integers import scalar
from argus.core.dsl.launches import current_program, is_whole
from argus.core.dsl.tracer import current, is_tracing
from argus.core.dsl.values import Operand, Scope, Value, applied, formula_scope, lift, making_formula
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Assert, Buffer, Equals, View
from argus.core.values import expr as syntax
from argus.core.values.expr import Expr
from argus.core.values.rewriting import free_symbols
from argus.core.walk import symbols
from argus.core.wrapping import WRAPPED

Range = Union[IntLike, tuple[IntLike, IntLike]]
Ranges = Union[Range, tuple[Range, ...]]


def assert_equals(
    tensor: Tensor, formula: CoordinateFunction[Operand], *, where: CoordinateFunction[Bool] | None = None
) -> None:
    """Claim: each element of the tensor equals the formula over the reals, for all inputs; after the whole program, if
    it is called in one.

    formula: from the element's coordinates to a value computed from elements of tensors that the kernel only reads,
    sizes, coordinates and numbers, with arithmetic, the functions of the language, `where`, and the reductions `total`,
    `greatest`, `least` and `product`.
    where: a condition on the element's coordinates that restricts the claim; of other elements nothing is claimed.

    Raises E110 for a function of another number of coordinates, E111 for data that is not in the kernel's tensors, E112
    for tensors that the kernel writes, E113 for a tensor with another number of axes, E114 for what is no value.
    """
    if not is_tracing():
        _claim_of_program(tensor, formula, where)
        return
    tracer = current("assert_equals")
    _check_tensor(tensor, tracer.parameters, "kernel")
    scope = Scope(tracer.unique, tracer.formula_symbols)
    made = traced_formula(tensor.view, formula, scope)
    meant = _restriction(tensor.view, where, scope)
    _check_sizes_only(tensor.view, made, meant)
    tracer.emit(Assert(Equals(tensor.view, made, meant, tuple(sorted(scope.before))), span=tracer.span()))


def _claim_of_program(
    tensor: Tensor, formula: CoordinateFunction[Operand], where: CoordinateFunction[Bool] | None
) -> None:
    """Claim of a tensor that the program leaves. Raises E106 for a view of one, as `assert_equals` otherwise."""
    launches = current_program("assert_equals")
    _check_tensor(tensor, launches.parameters, "program")
    if not is_whole(tensor.view):
        fault(
            "E106",
            f"a program claims a formula of a view of `{tensor.view.buffer.name}`",
            help="claim it of the tensor",
        )
    scope = Scope(launches.unique, launches.formula_symbols)
    made = traced_formula(tensor.view, formula, scope)
    claim = Equals(tensor.view, made, _restriction(tensor.view, where, scope))
    launches.claims.append(Assert(claim, span=launches.span()))


def _check_tensor(tensor: Tensor, known: Sequence[Buffer], of: str) -> None:
    if isinstance(tensor, Tensor) and tensor.view.buffer in known:  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return
    found = f"`{tensor.view.buffer.name}`" if hasattr(tensor, "view") else describe_value(tensor)
    fault("E106", f"`assert_equals` takes a parameter of the {of}, found {found}", help="claim it of an output")


def traced_formula(view: View, formula: CoordinateFunction[Operand], scope: Scope) -> Expr:
    """The expression that the function makes of an element's coordinates."""
    rank = len(view.shape)
    names = _parameters(formula, f"the formula of `{view.buffer.name}`")
    if len(names) != rank:
        message = f"`{view.buffer.name}` has {rank} axes, the formula takes {len(names)} coordinates"
        fault("E110", message, help="take one coordinate for each axis: `lambda r, n: ...`")
    with making_formula(scope):
        found = cast(Callable[..., object], formula)(*(Int(algebra.coord(axis)) for axis in range(rank)))
        return lift(found)


def _parameters(function: Callable[..., object], what: str) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        fault("E110", f"{what} is a function of coordinates, found {describe_value(function)}", help="give a `lambda`")


def _restriction(view: View, where: CoordinateFunction[Bool] | None, scope: Scope) -> Cond:
    """The condition that the function makes of an element's coordinates. Raises E110, E114 for another function."""
    if where is None:
        return algebra.TRUE
    rank = len(view.shape)
    names = _parameters(where, f"`where` of `{view.buffer.name}`")
    if len(names) != rank:
        message = f"`{view.buffer.name}` has {rank} axes, `where` takes {len(names)} coordinates"
        fault("E110", message, help="take one coordinate for each axis: `where=lambda r, n: n <= r`")
    with making_formula(scope):
        found = cast(Callable[..., object], where)(*(Int(algebra.coord(axis)) for axis in range(rank)))
    if not isinstance(found, Bool | bool):
        what = f"`where` of `{view.buffer.name}` is a condition on coordinates, found {describe_value(found)}"
        fault("E114", what, help="compare coordinates and sizes: `where=lambda r, n: n <= r`")
    return as_cond(found)


def _check_sizes_only(view: View, made: Expr, where: Cond) -> None:
    """Raises E106 for a claim that depends on more than sizes: it is about the whole output of a launch."""
    inner = sorted(
        symbol.name for symbol in symbols(*view.at, view.where, where) | free_symbols(made) if symbol.kind != "size"
    )
    if inner:
        fault(
            "E106",
            f"the claim about `{view.buffer.name}` names `{inner[0]}`, which is not a size",
            help="claim it of the whole tensor, in terms of sizes and the element's coordinates",
        )


def before(tensor: Tensor) -> Tensor:
    """In a formula of a kernel, a tensor that the kernel adds to, as it was before: `before(Y)[r, n]`."""
    scope = formula_scope("before")
    _check_is_tensor(tensor, "before", "before(Y)[r, n]")
    scope.before.add(tensor.view.buffer.name)
    return tensor


def elements(tensor: Tensor) -> Callable[..., Value]:
    """In a formula, the elements of a tensor by their coordinates, as type checkers know them: `elements(X)(r, n)`.

    It is X[r, n], which outside of formulas is a view; of a tensor of integers `scalar(X[r, n])`, as a number. Raises
    E111 for anything but a tensor.
    """
    _check_is_tensor(tensor, "elements", "elements(X)(r, n)")

    def element(*at: IntLike) -> Value:
        formula_scope("elements")
        found = cast("Tensor | Value", tensor[at])
        return Value(lift(scalar(found))) if isinstance(found, Tensor) else found

    return element


def _check_is_tensor(tensor: object, what: str, example: str) -> None:
    if not isinstance(tensor, Tensor):
        fault("E111", f"`{what}` takes a tensor, found {describe_value(tensor)}", help=f"`{example}`")


def wrapped(value: Operand, dtype: DType) -> Value:
    """In a formula, an integer modulo 2^bits, as arithmetic of a type has it: `wrapped(X[i] + 1, i64)`.

    It is the integer of that type that differs from the value by a multiple of 2^bits. Raises E106 for floats.
    """
    formula_scope("wrapped")
    if not isinstance(dtype, DType) or dtype.family != "int":  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`wrapped` in {describe_value(dtype)}", help="give a type of integers: `wrapped(X[i] + 1, i64)`")
    return applied(f"{WRAPPED}{dtype}", value)


# -- reductions ----------------------------------------------------------------------------------------


def total(body: CoordinateFunction[Operand], *, over: Ranges, where: CoordinateFunction[Bool] | None = None) -> Value:
    """The sum of the body in a formula: `total(lambda j: exp(X[r, j]), over=N)`; 0 where there is nothing to add.

    over: one range for each argument of the body: an extent `N` for [0, N), or `(low, high)` for [low, high).
    where: a condition on the same arguments; only where it holds does the body count.
    """
    return _reduced("sum", body, over, where)


def product(body: CoordinateFunction[Operand], *, over: Ranges, where: CoordinateFunction[Bool] | None = None) -> Value:
    """The product of the body in a formula, as `total`; 1 where there is nothing to multiply."""
    return _reduced("product", body, over, where)


def greatest(
    body: CoordinateFunction[Operand], *, over: Ranges, where: CoordinateFunction[Bool] | None = None
) -> Value:
    """The greatest value of the body in a formula, as `total`; -inf where there is none."""
    return _reduced("max", body, over, where)


def least(body: CoordinateFunction[Operand], *, over: Ranges, where: CoordinateFunction[Bool] | None = None) -> Value:
    """The least value of the body in a formula, as `total`; +inf where there is none."""
    return _reduced("min", body, over, where)


def argmax(body: CoordinateFunction[Operand], *, over: Range, where: CoordinateFunction[Bool] | None = None) -> Value:
    """The lowest place of the greatest value of the body in a formula: `argmax(lambda j: X[r, j], over=N)`.

    +inf where there is none. It is `least` of the places whose value is the `greatest`, and printed as such.
    """
    return _first_place("argmax", greatest, body, over, where)


def argmin(body: CoordinateFunction[Operand], *, over: Range, where: CoordinateFunction[Bool] | None = None) -> Value:
    """The lowest place of the least value of the body in a formula, as `argmax`."""
    return _first_place("argmin", least, body, over, where)


def _first_place(
    what: str,
    extremum: Callable[..., Value],
    body: Callable[..., Any],
    over: Range,
    where: Callable[..., Bool] | None,
) -> Value:
    formula_scope(what)
    if len(_parameters(body, f"the body of `{what}`")) != 1:
        fault("E110", f"the body of `{what}` takes one variable", help="give the place along one axis: `lambda j: ...`")

    @wraps(body)
    def places(place: Int) -> Value:
        test = syntax.compare("==", lift(body(place)), extremum(body, over=over, where=where).expr)
        return Value(syntax.choose(test, lift(place), syntax.infinity(1)))

    return _reduced("min", places, over, where)


_NAMES: dict[syntax.ReduceOp, str] = {"sum": "total", "product": "product", "max": "greatest", "min": "least"}


def _reduced(op: syntax.ReduceOp, body: Callable[..., Any], over: Ranges, where: Callable[..., Bool] | None) -> Value:
    what = _NAMES[op]
    scope = formula_scope(what)
    names = _parameters(body, f"the body of `{what}`")
    ranges = _ranges(what, over, len(names))
    variables: list[Symbol] = []
    for name in names:
        variables.append(scope.variable(name))
        scope.open.append(variables[-1])
    handles = [Int(algebra.sym(variable)) for variable in variables]
    made = lift(body(*handles))
    cond = algebra.TRUE if where is None else as_cond(where(*handles))
    del scope.open[len(scope.open) - len(variables) :]
    for variable, (low, high) in reversed(tuple(zip(variables, ranges, strict=True))):
        made = syntax.reduce_(op, variable, low, high, made, cond)
        cond = algebra.TRUE
    return Value(made)


def _ranges(what: str, over: Ranges, count: int) -> tuple[tuple[Index, Index], ...]:
    """One range for each variable. Raises E110 for another number of them."""
    every = (over,) if count == 1 else over
    if not isinstance(every, tuple) or len(every) != count or not count:
        found = len(cast(tuple[object, ...], over)) if isinstance(over, tuple) else 1
        fault(
            "E110",
            f"the body of `{what}` takes {count} variables, `over` gives {found} ranges",
            help="give one range for each variable: `total(lambda h, w: ..., over=(H, W))`",
        )
    return tuple(_range(what, each) for each in cast(tuple[Range, ...], every))


def _range(what: str, given: Range) -> tuple[Index, Index]:
    if not isinstance(given, tuple):
        return algebra.const(0), unwrap(given)
    if len(given) != 2:
        fault("E110", f"a range of `{what}` has {len(given)} ends", help="give an extent `N`, or `(low, high)`")
    return unwrap(given[0]), unwrap(given[1])
