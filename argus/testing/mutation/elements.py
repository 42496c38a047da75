"""Mutation operators on element-wise arithmetic and reductions: operations, numbers, coordinates, axes, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import evolve

from argus.core.algebra import add, const
from argus.core.index import Const
from argus.core.ir import (
    Both,
    Cast,
    Compare,
    Either,
    Elem,
    Fold,
    Get,
    Holds,
    Kernel,
    Lit,
    Map,
    Neither,
    Num,
    Op,
    Test,
    Where,
)
from argus.testing.mutation.control import compared_otherwise
from argus.testing.mutation.operator import Change, Make, Operator, each, other

_SWAPPED = (
    *(("add", "sub"), ("max", "min"), ("max_nan", "min_nan"), ("erf", "tanh_accurate"), ("sin", "cos")),
    ("floor", "ceil"),
)
_OTHER = {
    **dict(_SWAPPED),
    **{other: one for one, other in _SWAPPED},
    "mul": "add",
    "div": "mul",
    "exp2": "exp",
    "expm1": "exp",
    "log1p": "log",
}
_OTHER_FOLD = {"add": "max", "max": "min", "min": "max", "max_nan": "min_nan", "min_nan": "max_nan", "mul": "add"}
_OTHER_FOLD["last"] = "max"
Rewrite = Callable[[Elem], Iterator[tuple[Elem, str]]]


def _below(elem: Elem) -> Sequence[tuple[str, Elem]]:
    match elem:
        case Op(args=args):
            return [(str(at), arg) for at, arg in enumerate(args)]
        case Cast(arg=arg):
            return [("arg", arg)]
        case Where(then=then, other=otherwise):
            return [("then", then), ("other", otherwise)]
        case _:
            return []


def _with(elem: Elem, part: str, new: Elem) -> Elem:
    match elem:
        case Op(args=args):
            at = int(part)
            return Op(elem.name, (*args[:at], new, *args[at + 1 :]))
        case Cast() | Where():
            return evolve(elem, **{part: new})
        case _:
            return elem


def _rewritten(elem: Elem, of: Rewrite) -> Iterator[tuple[Elem, str]]:
    """The expressions that result from applying `of` to one of its parts, for every part."""
    yield from of(elem)
    for part, inner in _below(elem):
        for made, what in _rewritten(inner, of):
            yield _with(elem, part, made), what


def _op(elem: Elem) -> Iterator[tuple[Elem, str]]:
    if isinstance(elem, Op):
        if elem.name in _OTHER:
            yield Op(_OTHER[elem.name], elem.args), f"{_OTHER[elem.name]} for {elem.name}"
        elif elem.name == "fma":
            yield Op("mul", elem.args[:2]), "mul for fma"
            yield elem.args[2], "the last operand of fma alone"
        elif len(elem.args) == 1:
            yield elem.args[0], f"without {elem.name}"


def _order(elem: Elem) -> Iterator[tuple[Elem, str]]:
    if isinstance(elem, Op) and len(elem.args) > 1:
        yield Op(elem.name, elem.args[::-1]), f"operands of {elem.name} exchanged"


def _one_side(elem: Elem) -> Iterator[tuple[Elem, str]]:
    if isinstance(elem, Op) and len(elem.args) == 2:
        for arg, side in zip(elem.args, ("left", "right"), strict=True):
            yield arg, f"the {side} operand of {elem.name} alone"


def _number(elem: Elem) -> Iterator[tuple[Elem, str]]:
    match elem:
        case Lit(value=value):
            yield Lit(value + 1.0), f"{value + 1.0} for {value}"
        case Num(value=value):
            yield Num(add(value, 1)), "a number + 1"
        case _:
            return


def _place(elem: Elem) -> Iterator[tuple[Elem, str]]:
    if isinstance(elem, Get):
        for axis, at in enumerate(elem.at):
            moved = (*elem.at[:axis], add(at, 1), *elem.at[axis + 1 :])
            yield evolve(elem, at=moved), f"`{elem.view.buffer.name}` one on along axis {axis}"


def _constant(elem: Elem) -> Iterator[tuple[Elem, str]]:
    if isinstance(elem, Get):
        for value in (0.0, 1.0):
            yield Lit(value), f"{value} for `{elem.view.buffer.name}`"


def _choice(elem: Elem) -> Iterator[tuple[Elem, str]]:
    if isinstance(elem, Where):
        yield Where(elem.test, elem.other, elem.then), "choices exchanged"
        yield elem.then, "always the first choice"
        yield elem.other, "always the second choice"


def _mask(elem: Elem) -> Iterator[tuple[Elem, str]]:
    if isinstance(elem, Where):
        for test, what in _tests(elem.test):
            yield Where(test, elem.then, elem.other), what


def _tests(test: Test) -> Iterator[tuple[Test, str]]:
    match test:
        case Holds(cond=cond):
            for made, what in compared_otherwise(cond):
                yield Holds(made), what
        case Compare(op=op, left=left, right=right):
            yield Compare("<=" if op == "<" else "<", left, right), "a comparison of other strictness"
            yield Compare(op, right, left), "a comparison the other way round"
        case Both(parts=parts):
            yield Either(parts), "either for both"
            yield from ((Both((*parts[:i], *parts[i + 1 :])), "a condition left out") for i in range(len(parts)))
        case Either(parts=parts):
            yield Both(parts), "both for either"
        case Neither(part=part):
            yield part, "not negated"


def _mapped(change: Rewrite) -> Make:
    def make(_: Kernel, stmt: Map) -> Iterator[Change]:
        for elem, what in _rewritten(stmt.elem, change):
            yield from other(stmt, what, elem=elem)

    return each(Map, make)


def _fold_op(_: Kernel, stmt: Fold) -> Iterator[Change]:
    yield from other(stmt, f"folded by {_OTHER_FOLD[stmt.op]}", op=_OTHER_FOLD[stmt.op])


def _fold_axis(_: Kernel, stmt: Fold) -> Iterator[Change]:
    for axis in range(len(stmt.source.shape)):
        yield from other(stmt, f"folded along axis {axis}", axis=axis)


def _fold_within(_: Kernel, stmt: Fold) -> Iterator[Change]:
    within = "warp" if stmt.within == "thread" else "thread"
    yield from other(stmt, f"folded within a {within}", within=within)


def _fold_keep(_: Kernel, stmt: Fold) -> Iterator[Change]:
    keep = "prefix" if stmt.keep == "total" else "total"
    yield from other(stmt, f"folded to a {keep}", keep=keep)


def _fold_source(_: Kernel, stmt: Fold) -> Iterator[Change]:
    for axis, at in enumerate(stmt.source.at):
        extent = stmt.source.buffer.shape[axis]
        if isinstance(extent, Const) and at is not const(0):
            moved = (*stmt.source.at[:axis], const(0), *stmt.source.at[axis + 1 :])
            yield from other(stmt, f"folds element 0 of axis {axis}", source=evolve(stmt.source, at=moved))


OPERATORS: tuple[Operator, ...] = (
    Operator("other_operation", "an element-wise operation is another", _mapped(_op)),
    Operator("exchange_arguments", "an operation's arguments are exchanged", _mapped(_order)),
    Operator("drop_argument", "an operation's argument is left out", _mapped(_one_side)),
    Operator("other_number", "a number is another", _mapped(_number)),
    Operator("neighbouring_element", "the neighbouring element is used", _mapped(_place)),
    Operator("constant_element", "an element is replaced by a constant", _mapped(_constant)),
    Operator("other_choice", "a choice is reversed, or constant", _mapped(_choice)),
    Operator("other_mask", "a mask has another comparison", _mapped(_mask)),
    Operator("fold_by_another", "a reduction has another operation", each(Fold, _fold_op)),
    Operator("fold_another_axis", "a reduction is along another axis", each(Fold, _fold_axis)),
    Operator("fold_within_others", "a reduction is within another group of threads", each(Fold, _fold_within)),
    Operator("fold_keeps_other", "a reduction becomes a scan, or the reverse", each(Fold, _fold_keep)),
    Operator("fold_one_element", "a reduction is of one element", each(Fold, _fold_source)),
)
