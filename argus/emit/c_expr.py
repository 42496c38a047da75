"""Emit index expressions and conditions as C, with floor division and floor modulus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, assert_never

from attrs import field, frozen

from argus.core.index import (
    And,
    Bin,
    Cmp,
    Cond,
    Const,
    Coord,
    Held,
    Index,
    Node,
    Not,
    Or,
    Pick,
    Read,
    Sum,
    Sym,
    Symbol,
)
from argus.core.walk import fold, within
from argus.emit.faults import not_built
from argus.emit.names import Names

Width = Literal["", "(long)", "(unsigned)"]
"""The C type in which an expression is computed, as a cast: `int` without one. All of its parts are computed in it."""

LONG_HELPERS = """\
HELPER long floor_div_long(long a, long b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
HELPER long floor_mod_long(long a, long b) { return a - floor_div_long(a, b) * b; }
HELPER long min_long(long a, long b) { return a < b ? a : b; }
HELPER long max_long(long a, long b) { return a > b ? a : b; }
"""
"""Device functions that 64-bit expressions call, on both targets."""

# Precedence of a text: comparison, sum, product, or primary expression.
_COMPARED, _ADDED, _MULTIPLIED, _ATOM = 0, 1, 2, 3
_Part = tuple[str, int]


def _wrap(part: _Part, level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


@frozen
class ElementText:
    """How to emit a coordinate (by axis) and a tensor element (by name and coordinate texts).

    suffix: appended to every integer literal.
    """

    coordinate: Callable[[int], str]
    element: Callable[[str, Sequence[str]], str]
    suffix: str = ""


@frozen
class CText:
    """Emits expressions over the names of one kernel. `wave` is the local that holds the wave index (uniform).

    known: expressions already computed, by the name of their local. elements: None if expressions contain no
    coordinates or tensor elements.
    """

    names: Names
    thread: Symbol
    unit: int
    known: Mapping[Node, str] = field(factory=dict[Node, str], eq=False)
    elements: ElementText | None = field(default=None, eq=False)

    def index(self, node: Index, width: Width = "") -> str:
        """The expression computed in the type `width`: symbols, elements and locals are cast to it."""
        return fold(node, self._visit(width))[0]

    def factor(self, node: Index, width: Width = "") -> str:
        """As `index`, parenthesised as a factor of `*`."""
        return _wrap(fold(node, self._visit(width)), _MULTIPLIED)

    def cond(self, node: Cond, width: Width = "") -> str:
        return fold(node, self._visit(width))[0]

    def _visit(self, width: Width) -> Callable[[Node, Sequence[_Part]], _Part]:
        def visit(node: Node, parts: Sequence[_Part]) -> _Part:
            match node:
                case Const(value=value):
                    return (
                        f"{value}{'' if self.elements is None else self.elements.suffix}",
                        _ATOM if value >= 0 else _ADDED,
                    )
                case Sym(symbol=symbol):
                    return f"{width}{self.names.symbols[symbol]}", _ATOM
                case Sum():
                    return _sum(node, parts)
                case Bin() if node in self.known and width == "(long)":
                    return f"{width}{self.known[node]}", _ATOM
                case Bin() | Pick() if width == "(unsigned)" and not _wraps_alike(node):
                    return f"(unsigned){_wrap(fold(node, self._visit('(long)')), _ATOM)}", _ATOM
                case Bin():
                    if not width and node in self.known:
                        return self.known[node], _ATOM
                    return self._bin(node, parts, width)
                case Pick():
                    return f"{width}({_wrap(parts[0], _ADDED)} ? {parts[1][0]} : {parts[2][0]})", _ATOM
                case Cmp():
                    return _comparison(node, parts), _COMPARED
                case And() | Or():
                    return _connective(node, parts)
                case Not(part=Cmp(left=left, right=right)):
                    return f"{_wrap(fold(left, visit), _ADDED)} != {_wrap(fold(right, visit), _ADDED)}", _COMPARED
                case Not():
                    return f"!({parts[0][0]})", _ATOM
                case Coord(axis=axis) if self.elements is not None:
                    return self.elements.coordinate(axis), _ATOM
                case Read() if node in self.known:
                    return f"{width}{self.known[node]}", _ATOM
                case Read(array=array, at=at) if self.elements is not None:
                    places = [fold(place, self._visit("(long)"))[0] for place in at]
                    return f"{width}{self.elements.element(array, places)}", _ATOM
                case Coord() | Read() | Held():
                    raise not_built(f"an index expression with {type(node).__name__.lower()} in it")
                case _:
                    assert_never(node)

        return visit

    def _bin(self, node: Bin, parts: Sequence[_Part], width: Width) -> _Part:
        left, right = parts
        match node.op:
            case "*":
                return f"{_wrap(left, _MULTIPLIED)} * {_wrap(right, _ATOM)}", _MULTIPLIED
            case "//" | "%":
                return self._division(node, left, right, width)
            case "min" | "max":
                compared = (_as_int(node.left, left), _as_int(node.right, right)) if not width else (left[0], right[0])
                return f"{node.op}{_suffix(width)}({', '.join(compared)})", _ATOM
            case "&" | "|" | "^" | "<<" | ">>":
                return f"({_wrap(left, _MULTIPLIED)} {node.op} {_wrap(right, _MULTIPLIED)})", _ATOM
            case _:
                assert_never(node.op)

    def _division(self, node: Bin, left: _Part, right: _Part, width: Width) -> _Part:
        by = node.right.value if isinstance(node.right, Const) else 0
        of_thread = isinstance(node.left, Sym) and node.left.symbol == self.thread
        if node.op == "//" and of_thread and by > 0 and by % self.unit == 0:
            return f"{width}{self._wave_index(by // self.unit)}", _ATOM
        if by > 0 and by & (by - 1) == 0:
            # An arithmetic shift and a mask compute floor division and floor modulus of negative numbers too.
            shifted = f">> {by.bit_length() - 1}" if node.op == "//" else f"& {by - 1}"
            return f"({_wrap(left, _ATOM)} {shifted})", _ATOM
        if _nonnegative(node.left) and _positive(node.right):
            return f"({_wrap(left, _MULTIPLIED)} {'/' if node.op == '//' else '%'} {_wrap(right, _ATOM)})", _ATOM
        return f"floor_{'div' if node.op == '//' else 'mod'}{_suffix(width)}({left[0]}, {right[0]})", _ATOM

    def _wave_index(self, waves: int) -> str:
        if waves & (waves - 1) == 0:
            return "wave" if waves == 1 else f"(wave >> {waves.bit_length() - 1})"
        return f"(wave / {waves})"


def _suffix(width: Width) -> str:
    """What the name of a helper ends in that computes in a type."""
    return "_long" if width == "(long)" else ""


def _as_int(node: Index, part: _Part) -> str:
    """The part as `int`, also where a number in it makes it `long`: CUDA has no minimum of the two types.

    Such a number fits no 32 bits, in which the expression is computed: it is refuted, and emitted as it is refuted.
    """
    wide = any(abs(number) >= 1 << 31 for each in within(node) for number in _numbers(each))
    return f"(int){_wrap(part, _ATOM)}" if wide else part[0]


def _numbers(node: Node) -> tuple[int, ...]:
    match node:
        case Const(value=value):
            return (value,)
        case Sum(terms=terms, constant=constant):
            return (constant, *(factor for _, factor in terms))
        case _:
            return ()


def _wraps_alike(node: Bin | Pick) -> bool:
    """Whether an operation on operands modulo 2^32 gives the result modulo 2^32. Division and comparison do not."""
    return isinstance(node, Bin) and node.op in ("*", "&", "|", "^", "<<")


def _nonnegative(node: Index) -> bool:
    return node.range[0] is not None and node.range[0] >= 0


def _positive(node: Index) -> bool:
    return node.range[0] is not None and node.range[0] > 0


def _sum(node: Sum, parts: Sequence[_Part]) -> _Part:
    text = ""
    pairs = [(part, factor) for part, (_, factor) in zip(parts, node.terms, strict=True)]
    for part, factor in sorted(pairs, key=lambda pair: pair[1] < 0):
        size = _wrap(part, _MULTIPLIED) if abs(factor) == 1 else f"{abs(factor)} * {_wrap(part, _MULTIPLIED)}"
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {size}" if text else f"{'-' if factor < 0 else ''}{size}"
    if node.constant:
        text = f"{text} {'-' if node.constant < 0 else '+'} {abs(node.constant)}"
    level = _MULTIPLIED if len(pairs) == 1 and not node.constant and pairs[0][1] > 0 else _ADDED
    return text, level


def _comparison(node: Cmp, parts: Sequence[_Part]) -> str:
    """C text of a comparison: `a + 1 <= b` as `a < b`, with a constant on the right."""
    left, right = parts[0][0], parts[1][0]
    if node.op == "==":
        return f"{right} == {left}" if isinstance(node.left, Const) else f"{left} == {right}"
    if isinstance(node.left, Const):
        return f"{right} >= {left}"
    if isinstance(node.left, Sum) and node.left.constant > 0:
        rest = left.removesuffix(f" + {node.left.constant}")
        less = node.left.constant - 1
        return f"{rest} + {less} < {right}" if less else f"{rest} < {right}"
    return f"{left} <= {right}"


def _connective(node: And | Or, parts: Sequence[_Part]) -> _Part:
    if not parts:
        return ("true" if isinstance(node, And) else "false"), _ATOM
    sign = " && " if isinstance(node, And) else " || "
    texts = [
        part[0] if isinstance(child, Cmp | Not) else f"({part[0]})"
        for part, child in zip(parts, node.parts, strict=True)
    ]
    return sign.join(texts), _COMPARED
