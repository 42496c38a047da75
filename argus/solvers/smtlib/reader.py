"""Reads SMT-LIB scripts as queries: all scripts that `script.export` writes, and similar scripts by others.

It accepts integers, uninterpreted functions of integers, definitions, `let`, and one `check-sat`. A script must assert
what every query implies, or the two would differ in meaning: the range stated in a symbol's name, and that each
divisor that is not a number is at least 1. A script that does not is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from argus.core.algebra import TRUE
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index import Cond, Symbol
from argus.core.query import Query
from argus.solvers.base import definedness
from argus.solvers.smtlib.macros import definition
from argus.solvers.smtlib.script import DEFINED, RANGE, Status, array_of, range_assertions, symbol_of
from argus.solvers.smtlib.sexpr import Sexpr, SyntaxFault, commands, parse, unparse, unquoted
from argus.solvers.smtlib.terms import Array, Function, Name, Sort, Terms, UnsupportedScriptError, variable


@frozen
class Script:
    """A query, and the answer that its script states."""

    query: Query
    status: Status


def read_script(text: str, name: str = "the script") -> Script:
    """The query that a script states.

    name: what a diagnostic calls the script.
    Raises ArgusError (E603), with the reason, for a script that is not a query.
    """
    try:
        return _read(text)
    except (SyntaxFault, UnsupportedScriptError, RecursionError) as problem:
        reason = "its terms nest too deeply" if isinstance(problem, RecursionError) else str(problem)
        help_ = "write integer conditions with declare-const, declare-fun, define-fun, assert and one check-sat"
        raise ArgusError(Diagnostic("E603", "error", f"{name} is not a query: {reason}", help=help_)) from problem


def _read(text: str) -> Script:
    reader = _Reader()
    for command, rest in commands(parse(text)):
        reader.take(command, rest)
    if reader.asked != 1:
        raise UnsupportedScriptError(f"expected one check-sat, found {reader.asked}")
    return Script(reader.query(), reader.status)


_IGNORED = {"set-logic", "set-option", "get-model", "get-value", "get-info", "exit"}
_STATUS: Mapping[str, Status] = {"sat": "sat", "unsat": "unsat", "unknown": "unknown"}


@define
class _Reader:
    status: Status = "unknown"
    asked: int = 0
    _terms: Terms = field(factory=Terms)
    _declared: dict[Symbol | Array, None] = field(factory=dict[Symbol | Array, None])
    _asserted: list[tuple[str, Cond]] = field(factory=list[tuple[str, Cond]])
    _texts: set[str] = field(factory=set[str])

    def take(self, command: str, rest: Sequence[Sexpr]) -> None:
        match command, rest:
            case "set-info", [":status", str(status)] if status in _STATUS:
                self.status = _STATUS[status]
            case "declare-const", [str(name), "Int"]:
                self._declare(name, 0)
            case "declare-fun", [str(name), list(sorts), "Int"] if all(sort == "Int" for sort in sorts):
                self._declare(name, len(sorts))
            case "define-fun", [str(name), list(parameters), ("Int" | "Bool") as sort, body]:
                self._define(unquoted(name), parameters, sort, body)
            case "assert", [asserted] if self.asked == 0:
                self._assert(asserted)
            case "check-sat", []:
                self.asked += 1
            case "set-info", _:
                pass
            case _ if command in _IGNORED:
                pass
            case _:
                raise UnsupportedScriptError(f"the command `{unparse([command, *rest])[:60]}` is not supported")

    def _declare(self, token: str, axes: int) -> None:
        name = unquoted(token)
        meant = _array(name, axes) or symbol_of(name) or Symbol(name, "fresh")
        if meant in self._declared:
            raise UnsupportedScriptError(f"{token} is another spelling of a name declared before it")
        self._declared[meant] = None
        self._terms.name(name, meant if isinstance(meant, Array) else variable(meant))

    def _define(self, name: str, parameters: Sequence[Sexpr], sort: Sort, body: Sexpr) -> None:
        names = [_parameter(each) for each in parameters]
        if not names:
            self._terms.name(name, self._terms.of_sort(body, sort))
            return
        text = unparse(["define-fun", name, list(parameters), sort, body])
        self._terms.name(name, Function(name, tuple(names), sort, body, standard=_is_standard(name, text)))

    def _assert(self, asserted: Sexpr) -> None:
        body, label = asserted, ""
        match asserted:
            case ["!", inner, ":named", str(name)]:
                body, label = inner, unquoted(name)
            case _:
                pass
        self._asserted.append((label, self._terms.condition(body)))
        self._texts.add(unparse(body))

    def query(self) -> Query:
        """The assertions less those that every query implies; raises where one of the latter is missing."""
        symbols = [each for each in self._declared if isinstance(each, Symbol)]
        missing = [text for each in symbols for text in range_assertions(each) if text not in self._texts]
        if missing:
            raise UnsupportedScriptError(f"it does not assert {missing[0]}, which the symbol's name states")
        conditions = {condition for _, condition in self._asserted}
        if any(each not in conditions for each in self._terms.defined):
            raise UnsupportedScriptError(
                "it does not assert that each divisor is at least 1, and each shift at least 0"
            )
        query = self._without_implied()
        if any(_is_empty(each) and each not in query.symbols for each in symbols):
            raise UnsupportedScriptError("a symbol with an empty range is declared but not used")
        return query

    def _without_implied(self) -> Query:
        rest = [(label, each) for label, each in self._asserted if each is not TRUE or not label.startswith(RANGE)]
        implied = set(definedness(each for label, each in rest if not label.startswith(DEFINED)))
        return Query(tuple(each for label, each in rest if not label.startswith(DEFINED) or each not in implied))


def _is_empty(symbol: Symbol) -> bool:
    return symbol.low is not None and symbol.high is not None and symbol.low > symbol.high


def _array(name: str, axes: int) -> Array | None:
    """The array that a declaration declares: one with a name from `array_name`, or any function with axes."""
    known = array_of(name, axes) or (("array", name) if axes else None)
    return None if known is None else Array(*known, axes)


def _parameter(given: Sexpr) -> tuple[Name, Sort]:
    match given:
        case [str(name), ("Int" | "Bool") as sort]:
            return unquoted(name), sort
        case _:
            raise UnsupportedScriptError(f"`{unparse(given)[:40]}` is not a parameter of sort Int or Bool")


def _is_standard(name: str, text: str) -> bool:
    """Whether a definition is exactly the one that `macros.definition` writes for this name."""
    try:
        return definition(name) == text
    except (ValueError, KeyError, IndexError):
        return False
