"""The transfer function of element-wise arithmetic: the result has all tags, and shared tags must agree (I2).

A value computed from a sum keeps the sum's set of contributions; the computation is recorded as text, which the verdict
reports. Only rounded values may be multiplied further, since the products of a computed operand are not those of the
loaded elements. Padding becomes an unknown number, which no sum accepts as zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import assert_never

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.dtype import DType
from argus.core.elementwise import ELEMENT_OPS, INTEGER_OPS, evaluate_op
from argus.core.index import Cond, Coord, Held, Index, Symbol
from argus.core.ir import Both, Cast, Compare, Either, Elem, Get, Holds, Lit, Map, Neither, Num, Op, Test, Where
from argus.core.ir.element_walk import children, dtype_of, gets, nodes
from argus.core.layout import TV
from argus.core.proof.dataflow.affine import at_any_element
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import FragmentIndex, equal_indices
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.obligation import Obligation
from argus.core.proof.values.content import (
    Content,
    Data,
    Number,
    Piece,
    Top,
    Value,
    content_error,
    drop_padding,
    nonempty,
    uniform,
)
from argus.core.proof.values.masking import mask_bounds, masked_value
from argus.core.proof.values.recognisers import statistics
from argus.core.proof.values.recognisers.composed import in_digits, in_words
from argus.core.proof.values.recognisers.softmax import Owed, Rules
from argus.core.proof.values.recognisers.standing import Maximum, Weight
from argus.core.walk import mentions, show, symbols

_EXTREMA = frozenset({"max", "min"})
"""Operations on integers that cannot overflow."""


def map_content(flow: Flow, step: Step, stmt: Map) -> Content:
    """The content that a `Map` writes, provided that shared tags agree."""
    value, _ = _computed(flow, step, stmt)
    return uniform(flow.accesses.of(step)[-1].shape, value, algebra.TRUE)


def _computed(flow: Flow, step: Step, stmt: Map) -> tuple[Value, tuple[Owed, ...]]:
    """The value that a `Map` writes, and the conditions on which this depends."""
    if not is_whole(stmt.target):
        return Top("an element at another index of a register tile"), ()
    reason = _not_of_reals(stmt)
    if reason:
        return Top(reason), ()
    operands: dict[Get, Value] = {}
    for get, access in zip(gets(stmt.elem), flow.accesses.of(step), strict=False):
        value = single_value(flow.read(access))
        operands[get] = value.at_coordinates(access.view.at) if isinstance(value, Data) else value
    layout = stmt.target.buffer.layout
    assert isinstance(layout, TV)
    rules = Rules(lambda cond: flow.holds(step.context, at_any_element(cond, layout)))
    value = _value(Terms(rules, layout, flow.timeline.kernel.thread, stmt.target.buffer.dtype), stmt.elem, operands)
    return value, tuple((code, what, at_any_element(goal, layout)) for code, what, goal in rules.owed)


def _not_of_reals(stmt: Map) -> str:
    """Why a statement does not compute as over the reals, up to rounding; empty if it does."""
    own = stmt.target.buffer.dtype
    for node in nodes(stmt.elem):
        if not isinstance(node, Op | Where | Cast):
            continue
        dtype = dtype_of(node) or own
        if isinstance(node, Op) and dtype.family != "float" and node.name not in INTEGER_OPS:
            return f"`{node.name}` of integers has no rule in the verifier"
        for part in children(node):
            if isinstance(part, Lit) and not dtype.holds(part.value):
                return f"{part.value:g}, which {dtype} cannot represent"
    alone = isinstance(stmt.elem, Lit) and not own.holds(stmt.elem.value)
    return f"a number that {own} cannot represent" if alone else ""


def single_value(content: Content) -> Value:
    """The value of an operand; Top if it has several cases."""
    for piece in content:
        if isinstance(piece.value, Top):
            return piece.value
    if not _is_one(content):
        return Top("an operand whose content differs from case to case")
    value = content[0].value
    return value if isinstance(value, Data | Number) else Top(content_error(value))


def _is_one(content: tuple[Piece, ...]) -> bool:
    return len(content) == 1 and content[0].guard is algebra.TRUE and bool(content[0].mask.all())


@frozen(eq=False)
class Terms:
    """The rules for an expression. layout, dtype: of the target tile. thread: the symbol of the thread index."""

    rules: Rules
    layout: TV
    thread: Symbol
    dtype: DType


def _value(terms: Terms, elem: Elem, operands: Mapping[Get, Value]) -> Value:
    match elem:
        case Get():
            return operands[elem]
        case Lit(value=value):
            return Number(value)
        case Num(value=value):
            return _number(value)
        case Cast(dtype=dtype, arg=arg):
            found = _value(terms, arg, operands)
            if isinstance(found, Number) and not dtype.holds(found.value):
                return Top(f"{found.value:g}, which {dtype} cannot represent")
            if not isinstance(found, Data):
                return found
            if not dtype.holds(found.fill):
                found = drop_padding(found)
            form = f"{dtype}({found.form})"
            if dtype.family == "float":
                return evolve(found, form=form)
            return terms.rules.truncated(evolve(statistics.closed(found), terms=()), form)
        case Op() if (kind := dtype_of(elem) or terms.dtype).family != "float":
            return _of_integers(terms, elem, kind, operands)
        case Op(name="div", args=(left, Num(value=size))):
            value = _value(terms, left, operands)
            below = _number(size)
            known = isinstance(value, Data) and isinstance(below, Data)
            divided = statistics.over(value, size, terms.rules.holds) if known and isinstance(value, Data) else None
            if divided is not None:
                return evolve(divided, factors=(), terms=())
            return terms.rules.op("div", (value, below))
        case Op(name="fma", args=(one, two, more)):
            product = terms.rules.op("mul", [_value(terms, each, operands) for each in (one, two)])
            return terms.rules.op("add", (product, _value(terms, more, operands)))
        case Op(name=name, args=args):
            return terms.rules.op(name, [_value(terms, arg, operands) for arg in args])
        case Where():
            return _chosen(terms, elem, operands)
        case _:
            assert_never(elem)


def _of_integers(terms: Terms, elem: Op, dtype: DType, operands: Mapping[Get, Value]) -> Value:
    """Modulo 2^bits: a function of its operands that is not linear. In words, as a rounding to the type."""
    args = [_value(terms, arg, operands) for arg in elem.args]
    numbers = [arg.value for arg in args if isinstance(arg, Number)]
    if len(numbers) == len(args):
        found = evaluate_op(elem.name, *numbers)
        return Number(found) if dtype.holds(found) else Top(f"{found:g}, which {dtype} cannot represent")
    form = in_words(elem.name, *map(_words, args))
    return terms.rules.function(form if elem.name in _EXTREMA else f"{dtype}({form})", args)


def _words(value: Value) -> str:
    return value.form if isinstance(value, Data) else in_digits(value.value) if isinstance(value, Number) else "?"


def _number(value: Index) -> Value:
    """An integer of the program as a value; Top unless it is one number for the whole block."""
    if mentions(value, (Coord, Held)) or any(symbol.kind not in ("size", "block") for symbol in symbols(value)):
        return Top(f"arithmetic with {show(value)}, which varies between elements or over time")
    return Data({}, form=show(value), computed=True, root=show(value))


def _chosen(terms: Terms, choice: Where, operands: Mapping[Get, Value]) -> Value:
    """A mask, or one of two softmax guards: 0 for an empty maximum, 1 for an empty sum used as a divisor."""
    other = _value(terms, choice.other, operands)
    test = choice.test
    bounds = mask_bounds(test, terms.layout, terms.thread)
    if bounds is not None:
        return masked_value(terms.rules.holds, _value(terms, choice.then, operands), bounds, other)
    if (
        isinstance(test, Compare)
        and test.op == "=="
        and isinstance(test.right, Lit)
        and _same_element(test.left, choice.other)
    ):
        wanted, instead = test.right.value, choice.then.value if isinstance(choice.then, Lit) else None
        if isinstance(other, Data) and isinstance(other.standing, Maximum) and (wanted, instead) == (-inf, 0):
            return evolve(other, standing=evolve(other.standing, guarded=True))
        summed = isinstance(other, Data) and isinstance(other.standing, Weight) and bool(other.sets)
        if isinstance(other, Data) and isinstance(other.standing, Weight) and summed and (wanted, instead) == (0, 1):
            return evolve(other, standing=evolve(other.standing, guarded=True))
        count = statistics.guarded(other) if isinstance(other, Data) and (wanted, instead) == (0, 1) else None
        if count is not None:
            return count
    return _either(terms, choice, other, operands)


def _either(terms: Terms, choice: Where, other: Value, operands: Mapping[Get, Value]) -> Value:
    """One of two values by a comparison of elements: a function of all of them, which has the tags of the two."""
    compared: list[Value] = []

    def said(test: Test) -> str | None:
        match test:
            case Compare(op=op, left=left, right=right):
                both = [_value(terms, side, operands) for side in (left, right)]
                compared.extend(evolve(each, record={}) if isinstance(each, Data) else each for each in both)
                return f" {op} ".join(map(_words, both))
            case Both(parts=parts) | Either(parts=parts):
                words = [said(part) for part in parts]
                joint = " and " if isinstance(test, Both) else " or "
                return None if None in words else f"({joint.join(map(str, words))})"
            case Neither(part=part):
                words = said(part)
                return None if words is None else f"not ({words})"
            case Holds():
                return None
            case _:
                assert_never(test)

    words, then = said(choice.test), _value(terms, choice.then, operands)
    if words is None:
        return Top("`where` between two elements by their places has no rule in the verifier yet")
    return terms.rules.function(in_words("where", words, _words(then), _words(other)), [*compared, then, other])


def _same_element(left: Elem, right: Elem) -> bool:
    """Whether two expressions read one element."""
    if not isinstance(left, Get) or not isinstance(right, Get):
        return False
    one, two = left.view, right.view
    return (one.buffer, one.at, one.shape, left.at) == (two.buffer, two.at, two.shape, right.at)


def map_obligations(flow: Flow) -> Iterator[Obligation]:
    """I2 at each `Map` of several operands: shared tags are equal, element by element."""
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Map):
            for invariant, what, goal in _computed(flow, step, step.stmt)[1]:
                yield Obligation(invariant, what, step.stmt, goal, step.context)
            if len(gets(step.stmt.elem)) > 1:
                yield from _equal_tags(flow, step, step.stmt)


def _equal_tags(flow: Flow, step: Step, stmt: Map) -> Iterator[Obligation]:
    seen: dict[str, list[tuple[FragmentIndex, tuple[Cond, ...]]]] = {}
    assert all(op.name in ELEMENT_OPS for op in nodes(stmt.elem) if isinstance(op, Op))
    for access in flow.accesses.of(step)[:-1]:
        for piece in flow.read(access):
            if not isinstance(piece.value, Data):
                continue
            for name, sep in piece.value.record.items():
                there = nonempty(piece.value.inside)  # a tile of padding alone has no tags
                what = f"elements combined in `{stmt.target.buffer.name}` agree in `{name}`"
                known = seen.setdefault(name, [])
                known.append((sep, there))
                for other, elsewhere in known[:-1] or known:
                    goal: Cond = equal_indices(other, sep)
                    context = (*step.context, piece.guard, *elsewhere, *there)
                    yield Obligation("I2", what, stmt, goal, context, compared=sep.table.size)
