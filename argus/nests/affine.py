"""Index maps: flattening and splitting of coordinates, and what axes' extents imply of quotients and bounds.

All statements hold for sizes of at least 1: nothing is launched for a tensor without elements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any

from argus.core import algebra
from argus.core.index import And, Bin, Cmp, Cond, Const, Index, Node, Not, Or, Sum, Sym, Symbol
from argus.core.walk import fold, substitute, symbols, topological
from argus.nests.nest import Axis

Extents = Mapping[Symbol, Index]
"""The extent of each axis by its symbol."""


def extents_of(axes: Iterable[Axis]) -> Extents:
    return {axis.symbol: axis.extent for axis in axes}


def product_of(sizes: Iterable[Index]) -> Index:
    """The number of elements of a shape."""
    found: Index = algebra.const(1)
    for each in sizes:
        found = algebra.mul(found, each)
    return found


def strides_of(shape: Sequence[Index]) -> tuple[Index, ...]:
    """The strides of a dense tensor in elements, last axis fastest."""
    return tuple(product_of(shape[axis + 1 :]) for axis in range(len(shape)))


def flattened(index: Sequence[Index], shape: Sequence[Index]) -> Index:
    """The row-major number of the element at these coordinates."""
    return recombined(algebra.add(0, *(algebra.mul(i, s) for i, s in zip(index, strides_of(shape), strict=True))))


def stride(place: Index, axis: Symbol) -> Index | None:
    """How far the place moves with a coordinate; None where that depends on a coordinate."""
    step = algebra.sub(substitute(place, {axis: algebra.add(algebra.sym(axis), 1)}), place)
    return None if any(symbol.kind != "size" for symbol in symbols(step)) else step


def is_scattered(index: Sequence[Index], shape: Sequence[Index]) -> bool:
    """Whether a coordinate runs through a dense tensor with more than one stride, as joined heads of attention do."""
    return any(isinstance(each, Bin) and each.op in ("//", "%") for each in topological((flattened(index, shape),)))


def count_quotients(numbers: Iterable[Index]) -> int:
    """How many quotients and remainders occur in numbers, each once."""
    return sum(isinstance(each, Bin) and each.op in ("//", "%") for each in topological(tuple(numbers)))


def recombined(number: Index) -> Index:
    """The number with each n % c + c (n // c) in its sum as n."""
    terms = number.terms if isinstance(number, Sum) else ()
    for atom, factor in terms:
        if isinstance(atom, Bin) and atom.op == "%":
            n, c = atom.left, atom.right
            whole = algebra.add(algebra.mul(algebra.floordiv(n, c), c), atom)
            found = algebra.add(number, algebra.mul(algebra.sub(n, whole), factor))
            if len(found.terms if isinstance(found, Sum) else (found,)) < len(terms):
                return recombined(found)
    return number


def split(number: Index, shape: Sequence[Index], extents: Extents) -> tuple[Index, ...]:
    """The coordinates of the element with this row-major number, which is within the shape."""
    found: list[Index] = []
    number = recombined(number)
    for each in reversed(shape[1:]):
        found.append(remainder(number, each, extents))
        number = quotient(number, each, extents)
    return (number, *reversed(found)) if shape else ()


def reshaped(index: Sequence[Index], new: Sequence[Index], old: Sequence[Index], extents: Extents) -> tuple[Index, ...]:
    """The coordinates in a dense tensor of shape `old` of the element at these coordinates of its reshape to `new`."""
    places: list[Index] = []
    for old_axes, new_axes in _equal_runs(tuple(old), tuple(new)):
        number = flattened([index[axis] for axis in new_axes], [new[axis] for axis in new_axes])
        places += split(number, [old[axis] for axis in old_axes], extents)
    return tuple(places)


def quotient(number: Index, divisor: Index, extents: Extents) -> Index:
    """The floor quotient, without the terms that a multiple of the divisor and the extents explain."""
    whole, rest = _parted(number, divisor)
    return whole if in_range(rest, divisor, extents) else algebra.floordiv(number, divisor)


def remainder(number: Index, divisor: Index, extents: Extents) -> Index:
    """The remainder of the floor quotient, as `quotient`."""
    _, rest = _parted(number, divisor)
    return rest if in_range(rest, divisor, extents) else algebra.mod(rest, divisor)


def in_range(number: Index, extent: Index, extents: Extents) -> bool:
    """Whether the number is provably at least 0 and below the extent, for all coordinates within their extents."""
    least, most = bound(number, extents, upper=False), bound(number, extents, upper=True)
    if least is None or most is None:
        return False
    return is_never_negative(least) and is_never_negative(algebra.sub(algebra.sub(extent, 1), most))


def is_never_negative(number: Index) -> bool:
    """Whether a polynomial of sizes is provably at least 0 where all sizes are at least 1."""
    moved = substitute(number, {s: algebra.add(algebra.sym(s), 1) for s in symbols(number) if s.kind == "size"})
    terms = moved.terms if isinstance(moved, Sum) else ((moved, 1),)
    constant = moved.constant if isinstance(moved, Sum) else 0
    if isinstance(moved, Const):
        return moved.value >= 0
    return constant >= 0 and all(factor >= 0 and _is_natural(atom) for atom, factor in terms)


def _is_natural(atom: Index) -> bool:
    return atom.range[0] is not None and atom.range[0] >= 0


def bound(number: Index, extents: Extents, *, upper: bool) -> Index | None:
    """A bound over sizes of a number of coordinates: the greatest value if `upper`, else the least; None if unknown."""
    if isinstance(number, Const):
        return number
    terms = number.terms if isinstance(number, Sum) else ((number, 1),)
    parts: list[Index] = [algebra.const(number.constant if isinstance(number, Sum) else 0)]
    for atom, factor in terms:
        found = _bound_of_atom(atom, extents, upper=upper == (factor > 0))
        if found is None:
            return None
        parts.append(algebra.mul(found, factor))
    return algebra.add(*parts)


def _bound_of_atom(atom: Index, extents: Extents, *, upper: bool) -> Index | None:
    axes = [symbol for symbol in symbols(atom) if symbol in extents]
    if not axes:
        return atom
    match atom:
        case Sym(symbol=symbol):
            # The extent of a reduced axis may depend on those around it.
            end = algebra.sub(extents[symbol], 1)
            return bound(end, extents, upper=True) if upper else algebra.const(0)
        case Bin(op="*", left=left, right=right) if _is_natural(left) and _is_natural(right):
            a, b = bound(left, extents, upper=upper), bound(right, extents, upper=upper)
            return None if a is None or b is None else algebra.mul(a, b)
        case Bin(op="%", left=left, right=right) if not any(symbol in extents for symbol in symbols(right)):
            return algebra.sub(right, 1) if upper else algebra.const(0)
        case Bin(op="//", left=left, right=Const(value=value) as right) if value > 0:
            found = bound(left, extents, upper=upper)
            return None if found is None else algebra.floordiv(found, right)
        case _:
            return None


def _parted(number: Index, divisor: Index) -> tuple[Index, Index]:
    """A quotient and a rest with number = quotient * divisor + rest: the terms that the divisor divides, the others."""
    if isinstance(divisor, Const):
        if divisor.value == 0:
            return algebra.const(0), number
    elif isinstance(divisor, Sum):
        return algebra.const(0), number
    terms = number.terms if isinstance(number, Sum) else () if isinstance(number, Const) else ((number, 1),)
    constant = number.constant if isinstance(number, Sum) else number.value if isinstance(number, Const) else 0
    whole, rest = list[Index](), list[Index]()
    for atom, factor in (*terms, (algebra.const(1), constant)):
        found = _exact(atom, factor, divisor)
        (rest if found is None else whole).append(algebra.mul(atom, factor) if found is None else found)
    return algebra.add(0, *whole), algebra.add(0, *rest)


def _exact(atom: Index, factor: int, divisor: Index) -> Index | None:
    """atom * factor / divisor, if the divisor's factors are among those of the term; None otherwise."""
    if isinstance(divisor, Const):
        return algebra.mul(atom, factor // divisor.value) if factor % divisor.value == 0 else None
    left = _factors(atom)
    for each in _factors(divisor):
        if each not in left:
            return algebra.const(0) if factor == 0 else None
        left.remove(each)
    return algebra.mul(product_of(left), factor)


def _factors(atom: Index) -> list[Index]:
    if isinstance(atom, Bin) and atom.op == "*":
        return _factors(atom.left) + _factors(atom.right)
    return [] if atom is algebra.const(1) else [atom]


def _equal_runs(old: tuple[Index, ...], new: tuple[Index, ...]) -> list[tuple[range, range]]:
    """Pairs of shortest runs of old and new axes with provably equal numbers of elements, in order."""
    pairs: list[tuple[range, range]] = []
    at, to = 0, 0
    while at < len(old) or to < len(new):
        ends = ((a, b) for a in range(at + 1, len(old) + 1) for b in range(to + 1, len(new) + 1))
        equal = (
            (a, b)
            for a, b in ends
            if (a == len(old)) == (b == len(new)) and product_of(old[at:a]) is product_of(new[to:b])
        )
        a, b = next(equal, (len(old), len(new)))
        pairs.append((range(at, a), range(to, b)))
        at, to = a, b
    return pairs


def _floordiv(a: Any, b: Any) -> Any:  # noqa: ANN401 reason: numbers of any kind
    return a // b


def _and(a: Any, b: Any) -> Any:  # noqa: ANN401 reason: truth values of any kind
    return a & b


def _or(a: Any, b: Any) -> Any:  # noqa: ANN401 reason: truth values of any kind
    return a | b


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul,
    "//": _floordiv,
    "%": operator.mod,
    "<=": operator.le,
    "==": operator.eq,
}


def computed(index: Index | Cond, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 reason: a number of any kind
    """The expression or condition computed by `+ * // % <= == & | ~` on any kind of integers and truth values.

    values: of axes and sizes, by name. Raises KeyError for a symbol without a value, and for an operation of bits.
    """

    def visit(node: Node, parts: Sequence[Any]) -> Any:  # noqa: ANN401 reason: as above
        match node:
            case Const(value=value):
                return value
            case Sym(symbol=symbol):
                return values[symbol.name]
            case Sum(terms=terms, constant=constant):
                total: Any = constant
                for part, (_, factor) in zip(parts, terms, strict=True):
                    total = total + part * factor
                return total
            case Bin(op=op) | Cmp(op=op):
                return _OPERATORS[op](parts[0], parts[1])
            case And():
                return reduce(_and, parts, True)
            case Or():
                return reduce(_or, parts, False)
            case Not():
                return not parts[0] if isinstance(parts[0], bool) else ~parts[0]
            case _:
                raise KeyError(type(node).__name__)

    return fold(index, visit)


def sizes_in(indices: Iterable[Index]) -> frozenset[Symbol]:
    """The sizes that occur in index expressions."""
    return frozenset(s for s in chain.from_iterable(symbols(each) for each in indices) if s.kind == "size")
