"""Lowers bitwise operators and shifts to integer arithmetic, where an operand is a number or has few bits."""

from __future__ import annotations

from collections.abc import Sequence

from argus.core.index import Bin, BinOp, Const, Range
from argus.solvers.smtlib.form import Choice, Equal, Every, Opposite, Some
from argus.solvers.smtlib.writer import InexpressibleError, Writer

_BIT_LIMIT = 12
_SHIFT_LIMIT = 64


def bitwise(writer: Writer, node: Bin, left: int, right: int) -> int:
    """The step of `&`, `|` or `^`: in two's complement, `x | y = x + y - (x & y)` and `x ^ y = x + y - 2*(x & y)`."""
    for number, other in ((node.left, right), (node.right, left)):
        if isinstance(number, Const):
            return _combine(writer, node.op, (left, right), _masked(writer, other, number.value))
    widths = [_width(node.left.range), _width(node.right.range)]
    known = [width for width in widths if width is not None and width <= _BIT_LIMIT]
    if len(known) == 2:
        return _digit_by_digit(writer, node, (left, right), max(known))
    if not known:
        raise InexpressibleError(f"`{node.op}`, neither of whose operands is a number or has few bits")
    digits = zip(writer.bits(left, known[0]), writer.bits(right, known[0]), strict=True)
    both = _sum_of_bits(writer, [writer.write(Every(pair)) for pair in digits])
    return _combine(writer, node.op, (left, right), both)


def _combine(writer: Writer, op: BinOp, parts: tuple[int, int], both: int) -> int:
    """The operator's result, given `both`, the bitwise and of its operands."""
    if op == "&":
        return both
    return writer.total((parts[0], 1), (parts[1], 1), (both, -1 if op == "|" else -2))


def _digit_by_digit(writer: Writer, node: Bin, parts: tuple[int, int], width: int) -> int:
    """The result from its bits, which are recorded so that nested operators share them."""
    bits: list[int] = []
    for pair in zip(writer.bits(parts[0], width), writer.bits(parts[1], width), strict=True):
        both, either = writer.write(Every(pair)), writer.write(Some(pair))
        differ = writer.write(Every((either, writer.write(Opposite(both)))))
        bits.append({"&": both, "|": either}.get(node.op, differ))
    result = _sum_of_bits(writer, bits)
    writer.remember_bits(result, tuple(bits))
    return result


def _sum_of_bits(writer: Writer, bits: Sequence[int]) -> int:
    zero = writer.number(0)
    return writer.total(*((writer.write(Choice(bit, writer.number(1 << i), zero)), 1) for i, bit in enumerate(bits)))


def _width(range_: Range) -> int | None:
    """How many bits represent every value of the range; None if it is not known to be non-negative and finite."""
    low, high = range_
    return None if low is None or low < 0 or high is None else high.bit_length()


def _masked(writer: Writer, value: int, mask: int) -> int:
    """`value & mask`, from the runs of ones in the mask; for a negative mask, `value - (value & ~mask)`."""
    runs = _runs(~mask if mask < 0 else mask)
    sign = -1 if mask < 0 else 1
    terms: list[tuple[int, int]] = [(value, 1)] if mask < 0 else []
    for start, stop in runs:
        terms.append((_floor(writer, value, start), sign << start))
        terms.append((_floor(writer, value, stop), -(sign << stop)))
    return writer.total(*terms)


def _floor(writer: Writer, value: int, bits: int) -> int:
    return value if bits == 0 else writer.quotient(value, writer.number(1 << bits))


def _runs(mask: int) -> list[tuple[int, int]]:
    """The maximal ranges `[start, stop)` of one bits."""
    runs: list[tuple[int, int]] = []
    start = 0
    while mask >> start:
        stop = start
        while mask >> stop & 1:
            stop += 1
        if stop > start:
            runs.append((start, stop))
        start = stop + 1
    return runs


def shift(writer: Writer, node: Bin, value: int, amount: int) -> int:
    """A shift as a choice among the possible amounts; the definedness conditions exclude negative amounts."""
    low, high = max(node.right.range[0] or 0, 0), node.right.range[1]
    if high is None or high > _SHIFT_LIMIT:
        raise InexpressibleError(f"`{node.op}` by an amount without a known bound of at most {_SHIFT_LIMIT}")

    def by(bits: int) -> int:
        return writer.total((value, 1 << bits)) if node.op == "<<" else _floor(writer, value, bits)

    result = by(max(high, low))
    for bits in reversed(range(low, high)):
        chosen = writer.write(Equal(amount, writer.number(bits)))
        result = writer.write(Choice(chosen, by(bits), result))
    return result
