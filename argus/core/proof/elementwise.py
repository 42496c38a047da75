"""Element-wise arithmetic under the domain: the result's record is the union, shared names must agree (I2).

A set of contributions stays with the value, whatever is computed from the sum; what that is, is kept in words and
told by the verdict. Only rounded values may be multiplied further: the products of a computed operand are not those
of what was loaded. Padding becomes some unknown number, which no sum accepts as zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from argus.core import algebra
from argus.core.elements import gets, nodes
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Cond, Index
from argus.core.ir import Cast, Compare, Elem, Get, Lit, Map, Num, Op, Where
from argus.core.proof.content import Content, Data, Inside, Top, Value, everywhere
from argus.core.proof.flow import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.separate import Sep, same
from argus.core.proof.timeline import Step, is_whole
from argus.core.walk import show


def content(flow: Flow, step: Step, stmt: Map) -> Content:
    """What a `Map` writes, presuming that shared names agree."""
    shape = flow.accesses.of(step)[-1].shape
    operands: list[Data] = []
    if not is_whole(stmt.target) or not all(get.at == stmt.target.at for get in gets(stmt.elem)):
        return everywhere(shape, Top("an element of another place of a register tile"), algebra.TRUE)
    for access in flow.accesses.of(step)[:-1]:
        pieces = flow.read(access)
        value = pieces[0].value
        if len(pieces) != 1 or pieces[0].guard is not algebra.TRUE or not pieces[0].mask.all():
            return everywhere(shape, Top("operands hold different things in different cases"), algebra.TRUE)
        if not isinstance(value, Data):
            return everywhere(
                shape, value if isinstance(value, Top) else Top("an operand is not written"), algebra.TRUE
            )
        operands.append(value)
    return everywhere(shape, _combined(stmt, operands), algebra.TRUE)


def _combined(stmt: Map, operands: list[Data]) -> Value:
    if any(isinstance(node, Where | Compare) for node in nodes(stmt.elem)):
        return Top("a choice between elements has no tag rule yet in the verifier")
    if not operands:
        return Top("a value made of numbers alone carries no record")
    names = [name for data in operands for name in data.sets or {}]
    if len(set(names)) != len(names):
        return Top("arithmetic between two sums over one name has no rule yet in the verifier")
    forms = iter(data.form for data in operands)
    form = _form(stmt.elem, forms)
    computed = any(data.computed for data in operands) or not _rounds(stmt.elem)
    if len(operands) == 1 and _scales(stmt.elem):
        return evolve(operands[0], form=form, computed=computed)
    record: dict[str, Sep] = {}
    bounds: list[Inside] = []
    sets: dict[str, Index] = {}
    for data in operands:
        record.update(data.record)
        bounds += data.inside
        sets.update(data.sets or {})
    return Data(record, tuple(bounds), float("nan"), sets or None, form, computed)


def _form(elem: Elem, operands: Iterator[str]) -> str:
    """The expression in words; `operands` are the forms of what it reads, left to right."""
    match elem:
        case Get():
            return next(operands)
        case Lit(value=value):
            return f"{value:g}"
        case Num(value=value):
            return show(value)
        case Cast(dtype=dtype, arg=arg):
            return f"{dtype}({_form(arg, operands)})"
        case Op(name=name, args=args):
            return f"{name}({', '.join(_form(arg, operands) for arg in args)})"
        case Where():
            return "a choice"


def _rounds(elem: Elem) -> bool:
    """Whether the expression is one operand, converted between types of floating point at most."""
    match elem:
        case Get():
            return True
        case Cast(dtype=dtype, arg=arg):
            return dtype.family == "float" and _rounds(arg)
        case _:
            return False


def _scales(elem: Elem) -> bool:
    """Whether the expression is one operand, rounded or times a number: it keeps sets and zeros."""
    match elem:
        case Get():
            return True
        case Cast(dtype=dtype, arg=arg):
            return dtype.family == "float" and _scales(arg)
        case Op(name="neg", args=(arg,)):
            return _scales(arg)
        case Op(name="mul", args=(left, right)):
            return (_scales(left) and _number(right)) or (_number(left) and _scales(right))
        case Op(name="div", args=(left, right)):
            return _scales(left) and _number(right)
        case Op() | Lit() | Num() | Where():
            return False


def _number(elem: Elem) -> bool:
    return isinstance(elem, Lit) and abs(elem.value) < float("inf") and elem.value != 0


def agreements(flow: Flow) -> Iterator[Obligation]:
    """I2 at each `Map` of several operands: names that two of them carry are equal, element by element."""
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Map) and len(gets(step.stmt.elem)) > 1:
            yield from _agree(flow, step, step.stmt)


def _agree(flow: Flow, step: Step, stmt: Map) -> Iterator[Obligation]:
    seen: dict[str, Sep] = {}
    assert all(op.name in ELEMENT_OPS for op in nodes(stmt.elem) if isinstance(op, Op))
    for access in flow.accesses.of(step)[:-1]:
        for piece in flow.read(access):
            if not isinstance(piece.value, Data):
                continue
            for name, sep in piece.value.record.items():
                goal: Cond = same(seen[name], sep) if name in seen else algebra.TRUE
                seen.setdefault(name, sep)
                what = f"elements combined in `{stmt.target.buffer.name}` agree in `{name}`"
                yield Obligation("I2", what, stmt, goal, (*step.context, piece.guard), compared=sep.table.size)
