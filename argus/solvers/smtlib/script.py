"""Exports queries as SMT-LIB 2.6 scripts, which any solver decides and `reader` reads back as the same query.

The script is written from the query, not from its lowering, so that a solver that reads it also checks the lowering.
SMT-LIB's `div` and `mod` are floor division and modulus where the divisor is at least 1; the script asserts that of
every divisor that is not a number, under the name `defined.N`, and the ranges of symbols under the name `range.N`.
A symbol is written `|NAME KIND LOW..HIGH|` with `*` for no bound, an array `|NAME array AXES|`, a fragment
`|NAME fragment AXES|`. Expressions that occur twice become definitions `nN`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, assert_never, get_args
from urllib.parse import quote, unquote

from attrs import define, field

from argus.core.index import (
    And,
    Bin,
    Cmp,
    Cond,
    Const,
    Coord,
    Held,
    Node,
    Not,
    Or,
    Pick,
    Read,
    Sum,
    Sym,
    Symbol,
    SymbolKind,
)
from argus.core.query import Query
from argus.core.walk import children, topological
from argus.solvers.base import definedness
from argus.solvers.smtlib.form import Inexpressible
from argus.solvers.smtlib.macros import definition, macro_call
from argus.solvers.smtlib.writer import InexpressibleError

Status = Literal["sat", "unsat", "unknown"]
Store = Literal["array", "fragment"]
RANGE, DEFINED = "range.", "defined."

_LONGEST_PATH = 30
_VERBATIM = "".join(chr(code) for code in range(32, 127) if chr(code) not in "%|\\")


def export(query: Query, status: Status = "unknown", comments: Sequence[str] = ()) -> str | Inexpressible:
    """The query as a script that ends in `(check-sat)`.

    status: the expected answer, where it is known. comments: lines to put at the top.
    Inexpressible where an operator has no exact definition, such as a bitwise one whose operands have no bounds.
    """
    text = _Text()
    try:
        body = list(text.write(query))
    except InexpressibleError as error:
        return Inexpressible(str(error))
    heading = [f"; {line}" for comment in comments for line in comment.splitlines()]
    heading += [
        "(set-info :smt-lib-version 2.6)",
        f"(set-info :source |argus query {query.key}|)",
        f"(set-info :status {status})",
        f"(set-logic {text.logic})",
        *(definition(name) for name in sorted(text.functions)),
        *declarations(query),
    ]
    return "\n".join([*heading, *body, "(check-sat)", ""])


# -- names -----------------------------------------------------------------------------------------------


def symbol_name(symbol: Symbol) -> str:
    low, high = ("*" if bound is None else str(bound) for bound in (symbol.low, symbol.high))
    return f"|{_escaped(symbol.name)} {symbol.kind} {low}..{high}|"


def array_name(kind: Store, name: str, axes: int) -> str:
    return f"|{_escaped(name)} {kind} {axes}|"


def symbol_of(name: str) -> Symbol | None:
    """The inverse of `symbol_name`, for a name without bars; None for any other name."""
    shown, kind, bounds = _split_name(name)
    low, dots, high = bounds.partition("..")
    known = next((each for each in get_args(SymbolKind) if each == kind), None)
    if known is None or not dots or not _is_bound(low) or not _is_bound(high):
        return None
    return Symbol(unquote(shown), known, *(None if bound == "*" else int(bound) for bound in (low, high)))


def array_of(name: str, axes: int) -> tuple[Store, str] | None:
    """The inverse of `array_name`, for a name without bars; None for any other name."""
    shown, kind, count = _split_name(name)
    known = next((each for each in get_args(Store) if each == kind), None)
    return (known, unquote(shown)) if known is not None and count == str(axes) else None


def range_assertions(symbol: Symbol) -> Iterator[str]:
    """The conditions that state a symbol's range."""
    name = symbol_name(symbol)
    if symbol.low is not None:
        yield f"(<= {number(symbol.low)} {name})"
    if symbol.high is not None:
        yield f"(<= {name} {number(symbol.high)})"


def number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _escaped(name: str) -> str:
    return quote(name, safe=_VERBATIM)


def _split_name(name: str) -> tuple[str, str, str]:
    """The name split at its last two spaces."""
    shown, _, last = name.rpartition(" ")
    shown, _, kind = shown.rpartition(" ")
    return shown, kind, last


def _is_bound(text: str) -> bool:
    return text == "*" or (text.removeprefix("-").isdecimal() and text.isascii())


# -- text ------------------------------------------------------------------------------------------------


def declarations(query: Query) -> Iterator[str]:
    for symbol in query.symbols:
        yield f"(declare-const {symbol_name(symbol)} Int)"
    nodes = topological(query.assertions)
    arrays = {_store(node): len(node.at) for node in nodes if isinstance(node, Read | Held)}
    for name, axes in sorted(arrays.items()):
        yield f"(declare-fun {name} ({' '.join(['Int'] * axes)}) Int)"


def _store(node: Read | Held) -> str:
    match node:
        case Read(array=name, at=at):
            return array_name("array", name, len(at))
        case Held(fragment=name, at=at):
            return array_name("fragment", name, len(at))


@define
class _Text:
    functions: set[str] = field(factory=set[str])
    linear: bool = True
    arrays: bool = False
    _texts: dict[Node, str] = field(factory=dict[Node, str])
    _paths: dict[Node, int] = field(factory=dict[Node, int])

    @property
    def logic(self) -> str:
        return f"QF_{'UF' if self.arrays else ''}{'LIA' if self.linear else 'NIA'}"

    def write(self, query: Query) -> Iterator[str]:
        """The definitions, then the assertions."""
        defined = definedness(query.assertions)
        nodes = topological((*query.assertions, *defined))
        uses = Counter(child for node in nodes for child in children(node))
        for node in nodes:
            yield from self._place(node, uses[node])
        ranges = [text for symbol in query.symbols for text in range_assertions(symbol)]
        yield from (f"(assert (! {text} :named {RANGE}{n}))" for n, text in enumerate(ranges))
        yield from (f"(assert (! {self._texts[cond]} :named {DEFINED}{n}))" for n, cond in enumerate(defined))
        yield from (f"(assert {self._texts[assertion]})" for assertion in query.assertions)

    def _place(self, node: Node, uses: int) -> Iterator[str]:
        """Records the node's text; yields a definition where the node is used more than once or is deep."""
        parts = [self._texts[child] for child in children(node)]
        text = self._visit(node, parts)
        path = 1 + max((self._paths[child] for child in children(node)), default=0)
        if parts and (uses > 1 or path > _LONGEST_PATH):
            name = f"n{len(self._texts)}"
            sort = "Bool" if isinstance(node, Cond) else "Int"
            yield f"(define-fun {name} () {sort} {text})"
            text, path = name, 0
        self._texts[node], self._paths[node] = text, path

    def _visit(self, node: Node, parts: Sequence[str]) -> str:
        match node:
            case Const(value=value):
                return number(value)
            case Sym(symbol=symbol):
                return symbol_name(symbol)
            case Coord(axis=axis):
                raise InexpressibleError(f"coordinate i{axis} is not a symbol")
            case Sum():
                return _sum(node, parts)
            case Bin():
                return self._binary(node, parts[0], parts[1])
            case Pick():
                return f"(ite {' '.join(parts)})"
            case Read() | Held():
                self.arrays = True
                return f"({_store(node)} {' '.join(parts)})" if parts else _store(node)
            case Cmp(op=op):
                return f"({'<=' if op == '<=' else '='} {' '.join(parts)})"
            case And():
                return f"(and {' '.join(parts)})" if parts else "true"
            case Or():
                return f"(or {' '.join(parts)})" if parts else "false"
            case Not():
                return f"(not {parts[0]})"
            case _:
                assert_never(node)

    def _binary(self, node: Bin, left: str, right: str) -> str:
        match node.op:
            case "*":
                self.linear = False
                return f"(* {left} {right})"
            case "//" | "%":
                self.linear = self.linear and isinstance(node.right, Const)
                return f"({'div' if node.op == '//' else 'mod'} {left} {right})"
            case "min" | "max" | "&" | "|" | "^" | "<<" | ">>":
                name, swapped = macro_call(node.op, node.left, node.right)
                self.functions.add(name)
                return f"({name} {right} {left})" if swapped else f"({name} {left} {right})"
            case _:
                assert_never(node.op)


def _sum(node: Sum, parts: Sequence[str]) -> str:
    factors = [factor for _, factor in node.terms]
    terms = [part if f == 1 else f"(* {number(f)} {part})" for part, f in zip(parts, factors, strict=True)]
    if node.constant != 0:
        terms.append(number(node.constant))
    return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"
