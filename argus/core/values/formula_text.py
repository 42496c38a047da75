"""Expressions as text of the language, so that a formula can be pasted into a claim."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import NamedTuple, assert_never

from argus.core.algebra import TRUE, const, sym
from argus.core.index import And, Bin, Cmp, Cond, Const, Coord, Held, Index, Node, Not, Or, Pick, Read, Sum, Sym, Symbol
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    Test,
    Whole,
    choose,
    fn,
    reduce_,
)
from argus.core.values.operations import OPERATIONS
from argus.core.values.rewriting import bound_variables, free_symbols, nodes, substitute
from argus.core.walk import fold
from argus.core.walk import substitute as substitute_index
from argus.core.wrapping import BITS, WRAPPED

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)
_INFIX = {"add": ("+", _SUM), "sub": ("-", _SUM), "mul": ("*", _PRODUCT), "div": ("/", _PRODUCT)}
_CALLED = {"max": "maximum", "min": "minimum", "round": "round_even"}
_SPELLED = frozenset(
    (
        *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "reciprocal", "tanh", "fma", "abs", "maximum", "minimum"),
        *("erf", "sin", "cos", "floor", "ceil", "sign", "round_even", "round_bf16"),
        "philox",
    )
)
_REDUCTIONS = {"sum": "total", "max": "greatest", "min": "least", "product": "product"}


class _Text(NamedTuple):
    text: str
    level: int

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


def coordinate_names(formula: Expr, rank: int) -> tuple[str, ...]:
    """Names for an element's coordinates: `i0`, `i1`, unless the formula uses these for something else."""
    symbols = {symbol.name for symbol in free_symbols(formula) | bound_variables(formula)}
    taken = symbols | {each.tensor for each in nodes(formula) if isinstance(each, Element)}
    letter = next(letter for letter in ("i", "at", "place") if not any(f"{letter}{n}" in taken for n in range(rank)))
    return tuple(f"{letter}{axis}" for axis in range(rank))


def formula_text(formula: Expr, rank: int, before: Collection[str] = ()) -> str:
    """The formula as a function of an element's coordinates: `lambda i0, i1: exp(X[i0, i1])`.

    before: the tensors whose elements are written as those before the kernel.
    """
    names = coordinate_names(formula, rank)
    return f"lambda {', '.join(names)}: {_Writer(names, before).value(formula).text}"


def restriction_text(cond: Cond, rank: int) -> str:
    """A condition as a function of an element's coordinates."""
    names = coordinate_names(choose(cond, 0, 1), rank)
    return f"lambda {', '.join(names)}: {_Writer(names).index(cond).text}"


class _Writer:
    def __init__(self, coordinates: Sequence[str], before: Collection[str] = ()) -> None:
        self.coordinates, self.before = coordinates, before

    def value(self, of: Expr) -> _Text:
        match of:
            case Number(value=value):
                return _number(value)
            case Infinity(sign=sign):
                return _Text("inf", _ATOM) if sign > 0 else _Text("-inf", _SIGN)
            case Whole(index=index):
                return self.index(index)
            case Element(tensor=tensor, at=at):
                name = f"before({tensor})" if tensor in self.before else tensor
                return _Text(f"{name}[{', '.join(self.index(each).text for each in at)}]", _ATOM)
            case Fn(name=name, args=args):
                return self._function(name, args)
            case Choose(test=test, then=then, other=other):
                parts = self._test(test), self.value(then).text, self.value(other).text
                return _Text(f"where({', '.join(parts)})", _ATOM)
            case Reduce():
                return self._reduction(of)

    def _function(self, name: str, args: tuple[Expr, ...]) -> _Text:
        entry = OPERATIONS.get(name)
        if name in _INFIX and not (name == "div" and all(isinstance(each, Whole | Number) for each in args)):
            sign, level = _INFIX[name]
            left, right = map(self.value, args)
            return _Text(f"{left.at(level)} {sign} {right.at(level + 1)}", level)
        if name == "div":  # integers of the kernel have no fractions
            return self.value(fn("mul", args[0], fn("reciprocal", args[1])))
        if name == "neg":
            return _Text(f"-{self.value(args[0]).at(_SIGN)}", _SIGN)
        if name == "pow":
            base, exponent = map(self.value, args)
            return _Text(f"{base.at(_ATOM)} ** {exponent.at(_ATOM)}", _POWER)
        if name in BITS:
            return _Text(f"wrapped({self.value(args[0]).text}, {name.removeprefix(WRAPPED)})", _ATOM)
        called = _CALLED.get(name, name)
        if called not in _SPELLED and entry is not None and entry.definition is not None:
            return self.value(entry.definition(*args))
        return _Text(f"{called}({', '.join(self.value(each).text for each in args)})", _ATOM)

    def _reduction(self, of: Reduce) -> _Text:
        top = extremum_whose_place(of)
        if top is not None:
            called, text = ("argmax" if top.op == "max" else "argmin"), self._reduction(top).text
            return _Text(f"{called}{text[text.index('(') :]}", _ATOM)
        name = of.variable.name
        high = self.index(of.high).text
        over = high if of.low is const(0) else f"({self.index(of.low).text}, {high})"
        where = "" if of.where is TRUE else f", where=lambda {name}: {self.index(of.where).text}"
        return _Text(f"{_REDUCTIONS[of.op]}(lambda {name}: {self.value(of.body).text}, over={over}{where})", _ATOM)

    def _test(self, test: Test) -> str:
        if isinstance(test, Compare):
            return f"{self.value(test.left).at(_SUM)} {test.op} {self.value(test.right).at(_SUM)}"
        return self.index(test).text

    def index(self, node: Index | Cond) -> _Text:
        """An integer or a condition in Python's syntax, where `index_text.show` writes for a reader."""
        return fold(node, self._index)

    def _index(self, node: Node, parts: Sequence[_Text]) -> _Text:
        match node:
            case Const(value=value):
                return _Text(str(value), _ATOM if value >= 0 else _SIGN)
            case Sym(symbol=symbol):
                return _symbol(symbol)
            case Coord(axis=axis):
                return _Text(self.coordinates[axis], _ATOM)
            case Sum(terms=terms, constant=constant):
                return _sum([(part, factor) for part, (_, factor) in zip(parts, terms, strict=True)], constant)
            case Bin(op="min" | "max" as op):
                return _Text(f"{_CALLED[op]}({parts[0].text}, {parts[1].text})", _ATOM)
            case Bin(op=op):
                return _Text(f"({parts[0].at(_ATOM)} {op} {parts[1].at(_ATOM)})", _ATOM)
            case Pick():
                return _Text(f"where({', '.join(part.text for part in parts)})", _ATOM)
            case Read(array=name) | Held(fragment=name):
                return _Text(f"scalar({name}[{', '.join(part.text for part in parts)}])", _ATOM)
            case Cmp(op="=="):
                return _Text(f"eq({parts[0].text}, {parts[1].text})", _ATOM)
            case Cmp():
                return _Text(f"({parts[0].text} <= {parts[1].text})", _ATOM)
            case And(parts=()) | Or(parts=()):
                return _Text(str(isinstance(node, And)), _ATOM)
            case And() | Or():
                sign = " & " if isinstance(node, And) else " | "
                return _Text(f"({sign.join(part.at(_ATOM) for part in parts)})", _ATOM)
            case Not():
                return _Text(f"~{parts[0].at(_ATOM)}", _ATOM)
            case _:
                assert_never(node)


def extremum_whose_place(of: Expr) -> Reduce | None:
    """The extremum of which a reduction is the lowest place; None if it is none."""
    match of:
        case Reduce(
            op="min",
            variable=place,
            body=Choose(
                test=Compare(op="==", left=value, right=Reduce(op="max" | "min") as top),
                then=Whole(index=Sym(symbol=stored)),
                other=Infinity(sign=1),
            ),
        ) if (
            stored is place
            and (top.low, top.high) == (of.low, of.high)
            and place not in (top.variable, *free_symbols(top))
        ):
            here = {top.variable: sym(place)}
            same = substitute(top.body, here) is value and substitute_index(top.where, here) is of.where
            return reduce_(top.op, place, of.low, of.high, value, of.where) if same else None
        case _:
            return None


def _symbol(symbol: Symbol) -> _Text:
    return _Text(symbol.name, _ATOM)


def _number(value: Fraction) -> _Text:
    if value.denominator == 1:
        text = str(value.numerator)
    elif Fraction(float(value)) == value:
        text = repr(float(value))
    else:
        return _Text(f"Fraction({value.numerator}, {value.denominator})", _ATOM)
    return _Text(text, _ATOM if value >= 0 else _SIGN)


def _sum(terms: Sequence[tuple[_Text, int]], constant: int) -> _Text:
    text = ""
    for part, factor in sorted(terms, key=lambda term: term[1] < 0):
        size = part.at(_PRODUCT) if abs(factor) == 1 else f"{abs(factor)} * {part.at(_ATOM)}"
        sign = "-" if factor < 0 else "+"
        text += f" {sign} {size}" if text else ("-" if factor < 0 else "") + size
    if constant:
        text += f" {'-' if constant < 0 else '+'} {abs(constant)}"
    return _Text(text, _SUM)
