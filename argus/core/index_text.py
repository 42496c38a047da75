"""Index expressions as source text; linear in the size of the DAG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never
from weakref import WeakKeyDictionary

from argus.core.index import And, Bin, BinOp, Cmp, Const, Coord, Held, Node, Not, Or, Pick, Read, Sum, Sym
from argus.core.walk import fold


def show(root: Node) -> str:
    """The expression as source text, `128*m0 + 3`, `k < K`; parts of more than 4000 characters are shown as `...`."""
    known = _SHOWN.get(root)
    if known is None:
        known = fold(root, _show_short).text
        _SHOWN[root] = known
    return known


_SHOWN: WeakKeyDictionary[Node, str] = WeakKeyDictionary()
"""A cache of texts, which every report needs."""


_LOOSE, _TIGHT, _ATOM = 0, 1, 2
# With shared subexpressions, the text can be exponentially longer than the DAG.
_LONGEST = 4000


class _Shown(NamedTuple):
    """A text, its precedence level, and for an equation the text of its negation."""

    text: str
    level: int
    opposite: str = ""

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


def _show_short(node: Node, parts: Sequence[_Shown]) -> _Shown:
    shown = _show(node, parts)
    return shown if len(shown.text) <= _LONGEST else _Shown("...", _ATOM)


def _show(node: Node, parts: Sequence[_Shown]) -> _Shown:
    match node:
        case Const(value=value):
            return _Shown(str(value), _ATOM if value >= 0 else _LOOSE)
        case Sym(symbol=symbol):
            return _Shown(symbol.name, _ATOM)
        case Coord(axis=axis):
            return _Shown(f"i{axis}", _ATOM)
        case Sum(terms=terms, constant=constant):
            return _Shown(
                _show_sum([(p.at(_TIGHT), f) for p, (_, f) in zip(parts, terms, strict=True)], constant), _LOOSE
            )
        case Bin(op=op):
            return _show_bin(op, parts[0], parts[1])
        case Pick():
            return _Shown(f"({parts[1].text} if {parts[0].text} else {parts[2].text})", _ATOM)
        case Read(array=name) | Held(fragment=name):
            return _Shown(f"{name}[{', '.join(part.text for part in parts)}]", _ATOM)
        case Cmp():
            return _show_cmp(node, parts[0].text, parts[1].text)
        case And(parts=()):
            return _Shown("true", _ATOM)
        case Or(parts=()):
            return _Shown("false", _ATOM)
        case And() | Or():
            return _Shown((" and " if isinstance(node, And) else " or ").join(p.at(_TIGHT) for p in parts), _LOOSE)
        case Not():
            return _Shown(parts[0].opposite or f"not {parts[0].at(_TIGHT)}", _LOOSE)
        case _:
            assert_never(node)


def _show_bin(op: BinOp, left: _Shown, right: _Shown) -> _Shown:
    match op:
        case "min" | "max":
            return _Shown(f"{op}({left.text}, {right.text})", _ATOM)
        case "*":
            return _Shown(f"{left.at(_TIGHT)}*{right.at(_ATOM)}", _TIGHT)
        case _:
            return _Shown(f"{left.at(_ATOM)} {op} {right.at(_ATOM)}", _LOOSE)


def _show_sum(terms: Sequence[tuple[str, int]], constant: int) -> str:
    text = ""
    for name, factor in sorted(terms, key=lambda term: term[1] < 0):
        size = name if abs(factor) == 1 else f"{abs(factor)}*{name}"
        text += f" {'-' if factor < 0 else '+'} {size}" if text else ("-" if factor < 0 else "") + size
    return text if constant == 0 else f"{text} {'-' if constant < 0 else '+'} {abs(constant)}"


def _show_cmp(node: Cmp, left: str, right: str) -> _Shown:
    if node.op == "==":
        return _Shown(f"{left} == {right}", _LOOSE, opposite=f"{left} != {right}")
    if isinstance(node.left, Sum) and node.left.constant == 1:
        return _Shown(f"{left.removesuffix(' + 1')} < {right}", _LOOSE)
    if isinstance(node.left, Const) and not isinstance(node.right, Const):
        return _Shown(f"{right} >= {left}", _LOOSE)
    return _Shown(f"{left} <= {right}", _LOOSE)
