"""SMT-LIB scripts as queries: all that `smtlib` writes, and scripts of others that ask the same kind of question.

Read are integers, uninterpreted functions of integers, definitions, `let`, and one `check-sat`. What a query takes
for granted a script must assert, or the two would mean different things: the range that a symbol's name states, and
that a divisor which is no number is at least 1. A script that does not is refused, never read as something else.
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
from argus.solvers.smtlib.sexpr import Sexpr, SyntaxFault, heads, parse, plain, unparse
from argus.solvers.smtlib.terms import Array, Function, Name, NotOursError, Sort, Terms, variable


@frozen
class Script:
    """A query and what its script says of the answer."""

    query: Query
    status: Status


def read_script(text: str, name: str = "the script") -> Script:
    """The query of a script.

    name: what the script is called in a report.
    Raises ArgusError (E603) for what is no query, and says why.
    """
    try:
        return _read(text)
    except (SyntaxFault, NotOursError, RecursionError) as problem:
        reason = "its terms nest too deeply" if isinstance(problem, RecursionError) else str(problem)
        help_ = "write integer conditions with declare-const, declare-fun, define-fun, assert and one check-sat"
        raise ArgusError(Diagnostic("E603", "error", f"{name} is not a query: {reason}", help=help_)) from problem


def _read(text: str) -> Script:
    reader = _Reader()
    for command, rest in heads(parse(text)):
        reader.take(command, rest)
    if reader.asked != 1:
        raise NotOursError(f"expected one check-sat, found {reader.asked}")
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
                self._define(plain(name), parameters, sort, body)
            case "assert", [asserted] if self.asked == 0:
                self._assert(asserted)
            case "check-sat", []:
                self.asked += 1
            case "set-info", _:
                pass
            case _ if command in _IGNORED:
                pass
            case _:
                raise NotOursError(f"`{unparse([command, *rest])[:60]}` is not understood here")

    def _declare(self, token: str, axes: int) -> None:
        name = plain(token)
        meant = _array(name, axes) or symbol_of(name) or Symbol(name, "fresh")
        if meant in self._declared:
            raise NotOursError(f"{token} is another spelling of what is declared before it")
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
                body, label = inner, plain(name)
            case _:
                pass
        self._asserted.append((label, self._terms.condition(body)))
        self._texts.add(unparse(body))

    def query(self) -> Query:
        """What is asserted, less what every query takes for granted, which must have been asserted."""
        symbols = [each for each in self._declared if isinstance(each, Symbol)]
        missing = [text for each in symbols for text in range_assertions(each) if text not in self._texts]
        if missing:
            raise NotOursError(f"it does not assert {missing[0]}, which the symbol's name states")
        conditions = {condition for _, condition in self._asserted}
        if any(each not in conditions for each in self._terms.defined):
            raise NotOursError("it does not assert that each divisor is at least 1, and each shift at least 0")
        query = self._without_granted()
        if any(_is_empty(each) and each not in query.symbols for each in symbols):
            raise NotOursError("a symbol without any value is declared and not used")
        return query

    def _without_granted(self) -> Query:
        kept = [(label, each) for label, each in self._asserted if each is not TRUE or not label.startswith(RANGE)]
        granted = set(definedness(each for label, each in kept if not label.startswith(DEFINED)))
        return Query(tuple(each for label, each in kept if not label.startswith(DEFINED) or each not in granted))


def _is_empty(symbol: Symbol) -> bool:
    return symbol.low is not None and symbol.high is not None and symbol.low > symbol.high


def _array(name: str, axes: int) -> Array | None:
    """What a declaration means: an array with a name of ours, or of another where it has axes."""
    known = array_of(name, axes) or (("array", name) if axes else None)
    return None if known is None else Array(*known, axes)


def _parameter(given: Sexpr) -> tuple[Name, Sort]:
    match given:
        case [str(name), ("Int" | "Bool") as sort]:
            return plain(name), sort
        case _:
            raise NotOursError(f"`{unparse(given)[:40]}` is no parameter of sort Int or Bool")


def _is_standard(name: str, text: str) -> bool:
    """Whether a definition is the very one that is written for an operator of this name."""
    try:
        return definition(name) == text
    except (ValueError, KeyError, IndexError):
        return False
