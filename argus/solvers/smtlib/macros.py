"""SMT-LIB function definitions for the operators of index expressions that SMT-LIB lacks.

A function's name includes the parameters of its definition, so that the name alone determines the definition:

    argus.min, argus.max
    argus.and.W, argus.or.W, argus.xor.W    of a and b, exact where -2^W <= b < 2^W
    argus.shl.H, argus.shr.H                of x and n, exact where 0 <= n <= H

A bitwise operator treats the lowest W bits one by one; above them b has only ones or only zeros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from argus.core.index import Bin, BinOp, Cond, Index, Node, Range
from argus.core.walk import fold
from argus.solvers.smtlib.writer import InexpressibleError

MOST_BITS = 64
_NAMES: dict[BinOp, str] = {
    "min": "min",
    "max": "max",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "shl",
    ">>": "shr",
}
_OPS: dict[str, BinOp] = {name: op for op, name in _NAMES.items()}
_BITWISE: tuple[BinOp, ...] = ("&", "|", "^")
_SHIFTS: tuple[BinOp, ...] = ("<<", ">>")


def width_of(value: Index) -> int | None:
    """A W >= 1 with `-2^W <= value < 2^W`; None where no such W up to MOST_BITS is known."""
    width = _width_of_range(value.range)
    return fold(value, _width) if width is None and isinstance(value, Bin) and value.op in _BITWISE else width


def _width(node: Node, parts: Sequence[int | None]) -> int | None:
    """The width from the node's range; for a bitwise operator, failing that, the width of the wider operand."""
    if isinstance(node, Cond):
        return None
    width = _width_of_range(node.range)
    if width is not None or not isinstance(node, Bin) or node.op not in _BITWISE:
        return width
    left, right = parts
    return None if left is None or right is None else max(left, right)


def _width_of_range(range_: Range) -> int | None:
    low, high = range_
    if low is None or high is None:
        return None
    bits = max(1, *((~value if value < 0 else value).bit_length() for value in (low, high)))
    return bits if bits <= MOST_BITS else None


def macro_call(op: BinOp, left: Index, right: Index) -> tuple[str, bool]:
    """The function for an operator on these operands, and whether to swap them.

    Raises InexpressibleError where no definition is exact.
    """
    if op in _SHIFTS:
        high = right.range[1]
        if high is None or high > MOST_BITS:
            raise InexpressibleError(f"`{op}` by an amount without a known bound of at most {MOST_BITS}")
        return f"argus.{_NAMES[op]}.{max(high, 0)}", False
    if op in _BITWISE:
        widths = width_of(left), width_of(right)
        known = [width for width in widths if width is not None]
        if not known:
            raise InexpressibleError(f"`{op}`, neither of whose operands is a number or has few bits")
        return f"argus.{_NAMES[op]}.{min(known)}", widths[1] != min(known)
    return f"argus.{_NAMES[op]}", False


def macro_operator(name: str, right: Index) -> BinOp | None:
    """The operator that a function of this name computes exactly for this second operand; None if there is none."""
    match = re.fullmatch(r"argus\.([a-z]+)(?:\.([0-9]{1,2}))?", name)
    op = _OPS.get(match[1]) if match is not None else None
    if match is None or op is None:
        return None
    if op in ("min", "max"):
        return op if match[2] is None else None
    bits = int(match[2] or MOST_BITS + 1)
    if op in _SHIFTS:
        high = right.range[1]
        return op if high is not None and high <= bits <= MOST_BITS else None
    width = width_of(right)
    return op if width is not None and width <= bits <= MOST_BITS else None


def definition(name: str) -> str:
    """The `define-fun` of a function named by `macro_call` or recognised by `macro_operator`."""
    _, short, *bits = name.split(".")
    op = _OPS[short]
    if op in ("min", "max"):
        order = "(<= a b) a b" if op == "min" else "(<= a b) b a"
        return f"(define-fun {name} ((a Int) (b Int)) Int (ite {order}))"
    count = int(bits[0])
    if op in _SHIFTS:
        return f"(define-fun {name} ((x Int) (n Int)) Int {_shift(op, count)})"
    return f"(define-fun {name} ((a Int) (b Int)) Int (+ {_low_bits(op, count)} {_high_part(op, count)}))"


def _low_bits(op: BinOp, count: int) -> str:
    return " ".join(f"(ite {_bit(op, 1 << i)} {1 << i} 0)" for i in range(count))


def _bit(op: BinOp, weight: int) -> str:
    a, b = (f"(= (mod (div {name} {weight}) 2) 1)" for name in "ab")
    if op == "^":
        return f"(not (= (mod (div a {weight}) 2) (mod (div b {weight}) 2)))"
    return f"({'and' if op == '&' else 'or'} {a} {b})"


def _high_part(op: BinOp, count: int) -> str:
    above = f"(div a {1 << count})"
    ones, zeros = {
        "&": (above, "0"),
        "|": ("(- 1)", above),
        "^": (f"(- (- 1) {above})", above),
    }[op]
    return f"(* {1 << count} (ite (< b 0) {ones} {zeros}))"


def _shift(op: BinOp, most: int) -> str:
    def by(bits: int) -> str:
        if bits == 0:
            return "x"
        return f"(* {1 << bits} x)" if op == "<<" else f"(div x {1 << bits})"

    text = by(most)
    for bits in reversed(range(most)):
        text = f"(ite (<= n {bits}) {by(bits)} {text})"
    return text
