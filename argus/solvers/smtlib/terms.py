"""Translates SMT-LIB terms of sorts Int and Bool to index expressions and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations, pairwise
from typing import Literal, assert_never

from attrs import define, field, frozen

from argus.core.algebra import (
    FALSE,
    TRUE,
    add,
    all_of,
    any_of,
    const,
    eq,
    floordiv,
    held,
    implies,
    le,
    lt,
    mod,
    mul,
    neg,
    negate,
    pick,
    read,
    sub,
    sym,
)
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.walk import apply
from argus.solvers.smtlib.macros import macro_operator
from argus.solvers.smtlib.sexpr import Sexpr, unparse, unquoted

Name = str
Sort = Literal["Int", "Bool"]
Term = Index | Cond
_DEEPEST = 200
_TRUTHS: Mapping[str, Cond] = {"true": TRUE, "false": FALSE}


class UnsupportedScriptError(Exception):
    """The script uses a construct that queries lack; the message names it."""


@frozen
class Array:
    """An uninterpreted function: elements of an array or of a fragment."""

    kind: Literal["array", "fragment"]
    name: str
    axes: int


@frozen
class Function:
    """A definition with parameters. standard: it equals the definition in `macros` for its name."""

    name: Name
    parameters: tuple[tuple[Name, Sort], ...]
    sort: Sort
    body: Sexpr
    standard: bool


Meaning = Index | Cond | Array | Function
Scope = Mapping[Name, Meaning]


def variable(symbol: Symbol) -> Index:
    return sym(symbol)


@define
class Terms:
    """The names in scope. defined: conditions under which the script's divisions and shifts agree with a query's."""

    defined: dict[Cond, None] = field(factory=dict[Cond, None])
    _names: dict[Name, Meaning] = field(factory=dict[Name, Meaning])

    def name(self, name: Name, meaning: Meaning) -> None:
        if name in self._names:
            raise UnsupportedScriptError(f"`{name}` is declared twice")
        self._names[name] = meaning

    def condition(self, text: Sexpr) -> Cond:
        return _cond(self._term(text, self._names, 0))

    def of_sort(self, text: Sexpr, sort: Sort) -> Term:
        return _sorted(self._term(text, self._names, 0), sort)

    def _term(self, text: Sexpr, scope: Scope, depth: int) -> Term:
        if depth > _DEEPEST:
            raise UnsupportedScriptError("its terms nest too deeply; name parts of them with define-fun")
        match text:
            case str():
                return self._token(text, scope)
            case ["let", list(bindings), body]:
                return self._term(body, {**scope, **self._bound(bindings, scope, depth)}, depth + 1)
            case ["!", inner, *_]:
                return self._term(inner, scope, depth + 1)
            case [str(head), *rest] if rest:
                parts = [self._term(each, scope, depth + 1) for each in rest]
                return self._call(head, parts, scope, depth)
            case _:
                raise UnsupportedScriptError(f"`{unparse(text)[:60]}` is not a term")

    def _token(self, token: str, scope: Scope) -> Term:
        if token.isdecimal() and token.isascii():
            return const(int(token))
        found = scope.get(unquoted(token))
        match found:
            case Function() | None:
                if found is None and token in _TRUTHS:
                    return _TRUTHS[token]
                raise UnsupportedScriptError(f"`{token}` is neither declared nor a number")
            case Array():
                return self._element(found, ())
            case _:
                return found

    def _bound(self, bindings: Sequence[Sexpr], scope: Scope, depth: int) -> dict[Name, Meaning]:
        bound: dict[Name, Meaning] = {}
        for each in bindings:
            match each:
                case [str(name), value]:
                    bound[unquoted(name)] = self._term(value, scope, depth + 1)
                case _:
                    raise UnsupportedScriptError(f"`{unparse(each)[:40]}` is not a binding")
        return bound

    def _call(self, head: str, parts: Sequence[Term], scope: Scope, depth: int) -> Term:
        found = scope.get(unquoted(head))
        match found:
            case None:
                return self._builtin(head, parts)
            case Array():
                return self._element(found, parts)
            case Function():
                return self._expanded(found, parts, depth)
            case _:
                raise UnsupportedScriptError(f"`{head}` takes no arguments")

    def _element(self, array: Array, parts: Sequence[Term]) -> Index:
        if len(parts) != array.axes:
            raise UnsupportedScriptError(f"`{array.name}` has {array.axes} axes, found {len(parts)}")
        at = [_int(part) for part in parts]
        return read(array.name, at) if array.kind == "array" else held(array.name, at)

    def _expanded(self, function: Function, parts: Sequence[Term], depth: int) -> Term:
        if len(parts) != len(function.parameters):
            raise UnsupportedScriptError(
                f"`{function.name}` takes {len(function.parameters)} arguments, found {len(parts)}"
            )
        if function.standard:
            left, right = (_int(part) for part in parts)
            op = macro_operator(function.name, right)
            if op is not None:
                if op in ("<<", ">>"):
                    self._require(le(0, right))
                return apply(op, left, right)
        pairs = zip(function.parameters, parts, strict=True)
        arguments = {name: _sorted(part, sort) for (name, sort), part in pairs}
        return _sorted(self._term(function.body, {**self._names, **arguments}, depth + 1), function.sort)

    def _require(self, condition: Cond) -> None:
        if condition is not TRUE:
            self.defined[condition] = None

    # -- operators ---------------------------------------------------------------------------------------

    def _builtin(self, head: str, parts: Sequence[Term]) -> Term:
        match head:
            case "+" | "-" | "*":
                return _arithmetic(head, [_int(part) for part in parts])
            case "div" | "mod":
                return self._division(head, [_int(part) for part in parts])
            case "<=" | ">=" | "<" | ">":
                return _ordered(head, [_int(part) for part in parts])
            case "=" | "distinct":
                return _equal(head, parts)
            case "and" | "or" | "not" | "=>":
                return _logic(head, [_cond(part) for part in parts])
            case "ite" if len(parts) == 3:
                return _choice(_cond(parts[0]), parts[1], parts[2])
            case _:
                raise UnsupportedScriptError(f"`{head}` of {len(parts)} arguments is not supported")

    def _division(self, head: Literal["div", "mod"], parts: Sequence[Index]) -> Index:
        if len(parts) != 2:
            raise UnsupportedScriptError(f"`{head}` takes 2 arguments, found {len(parts)}")
        left, right = parts
        if isinstance(right, Const) and right.value < 1:
            raise UnsupportedScriptError(f"`{head}` by {right.value}, where SMT-LIB and Argus differ in meaning")
        self._require(le(1, right))
        return floordiv(left, right) if head == "div" else mod(left, right)


def _arithmetic(head: Literal["+", "-", "*"], parts: Sequence[Index]) -> Index:
    match head:
        case "+":
            return add(*parts)
        case "*":
            return reduce(mul, parts)
        case "-":
            return neg(parts[0]) if len(parts) == 1 else sub(parts[0], add(*parts[1:]))
        case _:
            assert_never(head)


def _ordered(head: Literal["<=", ">=", "<", ">"], parts: Sequence[Index]) -> Cond:
    pairs = list(pairwise(parts if head in ("<=", "<") else parts[::-1]))
    return all_of(le(a, b) if head in ("<=", ">=") else lt(a, b) for a, b in pairs)


def _equal(head: Literal["=", "distinct"], parts: Sequence[Term]) -> Cond:
    if head == "=":
        return all_of(_same(a, b) for a, b in pairwise(parts))
    return all_of(negate(_same(a, b)) for a, b in combinations(parts, 2))


def _same(a: Term, b: Term) -> Cond:
    if isinstance(a, Cond):
        return any_of((all_of((a, _cond(b))), all_of((negate(a), negate(_cond(b))))))
    return eq(a, _int(b))


def _logic(head: Literal["and", "or", "not", "=>"], parts: Sequence[Cond]) -> Cond:
    match head:
        case "and":
            return all_of(parts)
        case "or":
            return any_of(parts)
        case "=>":
            return reduce(lambda after, before: implies(before, after), reversed(parts))
        case "not":
            if len(parts) != 1:
                raise UnsupportedScriptError(f"`not` takes 1 argument, found {len(parts)}")
            return negate(parts[0])
        case _:
            assert_never(head)


def _choice(condition: Cond, then: Term, other: Term) -> Term:
    if isinstance(then, Cond):
        return any_of((all_of((condition, then)), all_of((negate(condition), _cond(other)))))
    return pick(condition, then, _int(other))


def _sorted(term: Term, sort: Sort) -> Term:
    return _int(term) if sort == "Int" else _cond(term)


def _int(term: Term) -> Index:
    if isinstance(term, Cond):
        raise UnsupportedScriptError("expected an integer, found a condition")
    return term


def _cond(term: Term) -> Cond:
    if not isinstance(term, Cond):
        raise UnsupportedScriptError("expected a condition, found an integer")
    return term
