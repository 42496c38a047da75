"""Addresses of a copy's vectors: coordinates, offsets, and bounds predicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from argus.core import algebra
from argus.core.algebra import TRUE
from argus.core.index import Cond, Const, Index, Sum, Sym
from argus.core.ir import Buffer, Staged, Strided, View
from argus.core.layout import TV, Layout, Swizzle
from argus.core.walk import substitute
from argus.emit.c_expr import CText, Width
from argus.emit.scope import Scope


@frozen
class VectorAddress:
    """C text of a vector's offset from the buffer's start (elements) and of its predicate ("" if always true)."""

    offset: str
    inside: str = ""


Declared = tuple[list[str], list[VectorAddress]]


@define
class _LocalBases:
    """Locals that hold base expressions. Expressions that differ by a constant share one local."""

    stem: str
    text: CText
    lines: list[str] = field(factory=list[str])
    known: list[tuple[Index, str]] = field(factory=list[tuple[Index, str]])

    def name(self, wanted: Index) -> str:
        """C text of the expression, as one of these locals plus a constant."""
        return _plus(*self.place(wanted))

    def place(self, wanted: Index) -> tuple[str, int]:
        """C text that equals the expression but for a constant, one of these locals or 0, and that constant."""
        if isinstance(wanted, Const):
            return "0", wanted.value
        for origin, name in self.known:
            distance = algebra.sub(wanted, origin)
            if isinstance(distance, Const):
                return name, distance.value
        name = self.stem + (f"_{len(self.known)}" if self.known else "")
        self.known.append((wanted, name))
        self.lines.append(f"const int {name} = {self.text.index(wanted)};")
        return name, 0


def _plus(text: str, constant: int) -> str:
    if text == "0":
        return str(constant)
    return text if constant == 0 else f"{text} {'-' if constant < 0 else '+'} {abs(constant)}"


def coordinates(view: View, by: TV, scope: Scope, value: int) -> tuple[Index, ...]:
    """Buffer coordinates of one value of the thread."""
    own = by.coordinates_at(algebra.sym(scope.thread), value)
    return tuple(substitute(at, {}, own) for at in view.at)


def vector_addresses(view: View, by: TV, scope: Scope, values: Sequence[int], *, edge: bool, width: Width) -> Declared:
    """Declarations of locals, and the address of the vector that starts at each value.

    edge: whether elements may be out of bounds. width: the C type of global offsets.
    """
    layout = view.buffer.layout
    if isinstance(layout, Staged):
        declared, found = _shared_addresses(view, by, scope, values, layout)
        return _with_predicates(view, by, scope, values, (declared, found)) if edge else (declared, found)
    own = [by.coordinates_at(algebra.sym(scope.thread), value) for value in values]
    return element_addresses(view, own, scope, edge=edge, width=width)


def element_addresses(
    view: View, own: Sequence[tuple[Index, ...]], scope: Scope, *, edge: bool, width: Width
) -> Declared:
    """As `vector_addresses`, for global elements at these view coordinates."""
    layout = view.buffer.layout
    assert isinstance(layout, Strided), view.buffer.name
    origins = [_LocalBases(f"at{axis}", scope.text) for axis in range(len(view.at))]
    wanted = [[substitute(at, {}, element) for at in view.at] for element in own]
    places = [[origin.place(at) for origin, at in zip(origins, each, strict=True)] for each in wanted]
    far = edge and width == "(long)" and _is_far(places, layout)
    first = _LongOrigins(layout, scope.text) if far else None
    found: list[VectorAddress] = []
    for element, place in zip(own, places, strict=True):
        names = [_plus(*each) for each in place]
        inside = _bounds_predicate(view, element, scope, lambda axis, _, names=names: names[axis]) if edge else ""
        offset = _strided_offset(names, layout, scope.text, width) if first is None else first.offset(place)
        found.append(VectorAddress(offset, inside))
    return [line for each in (*origins, *filter(None, (first,))) for line in each.lines], found


def _with_predicates(view: View, by: TV, scope: Scope, values: Sequence[int], declared: Declared) -> Declared:
    """Addresses in shared memory with their bounds predicates."""
    origins = [_LocalBases(f"place{axis}", scope.text) for axis in range(len(view.at))]
    found: list[VectorAddress] = []
    for value, place in zip(values, declared[1], strict=True):
        element = by.coordinates_at(algebra.sym(scope.thread), value)
        inside = _bounds_predicate(view, element, scope, lambda axis, at: origins[axis].name(at))
        found.append(VectorAddress(place.offset, inside))
    return [*declared[0], *(line for origin in origins for line in origin.lines)], found


def _bounds_predicate(view: View, element: tuple[Index, ...], scope: Scope, named: Callable[[int, Index], str]) -> str:
    """The bounds predicate of a vector's first element, without comparisons that intervals prove.

    Vectors do not straddle the edge of a tensor, so the first element decides. named: C text of a coordinate.
    """
    wanted = tuple(substitute(at, {}, element) for at in view.at)
    parts: list[str] = []
    for axis, (at, extent) in enumerate(zip(wanted, view.buffer.shape, strict=True)):
        low, high = algebra.le(0, at) is TRUE, algebra.lt(at, extent) is TRUE
        if low and high:
            continue
        end, name = scope.text.index(extent), named(axis, at)
        if not low and not high:
            parts.append(f"(unsigned)({name}) < (unsigned)({end})")  # one comparison for both ends
        elif not low:
            parts.append(f"{name} >= 0")
        elif not high:
            parts.append(f"{name} < {end}")
    where: Cond = substitute(view.where, {}, element)
    if where is not TRUE:
        parts.append(f"({scope.text.cond(where)})")
    return " && ".join(parts)


_MANY = 16


def _is_far(places: Sequence[Sequence[tuple[str, int]]], layout: Strided) -> bool:
    """Whether offsets are computed once for all predicated vectors of a thread: of many, along several axes whose
    strides are no numbers. Compilers multiply by each of these strides within each predicate.
    """
    apart = [len({distance for _, distance in axis}) > 1 for axis in zip(*places, strict=True)]
    moved = [each for each, stride in zip(apart, layout.strides, strict=True) if not isinstance(stride, Const)]
    return len(places) >= _MANY and sum(moved) > 1


@define
class _LongOrigins:
    """Locals of 64 bits that hold the strides, and offsets of which others differ by multiples of these."""

    layout: Strided
    text: CText
    lines: list[str] = field(factory=list[str])
    known: dict[tuple[str, ...], str] = field(factory=dict[tuple[str, ...], str])
    strides: dict[int, str] = field(factory=dict[int, str])

    def offset(self, places: Sequence[tuple[str, int]]) -> str:
        """C text of the offset of an element at these coordinates, each a local and a constant."""
        names, distances = zip(*places, strict=True)
        if names not in self.known:
            own = f"first{len(self.known)}"
            self.lines.append(f"const long {own} = {_strided_offset(names, self.layout, self.text, '(long)')};")
            self.known[names] = own
        moved = (self._moved(axis, distance) for axis, distance in enumerate(distances) if distance)
        return " ".join([self.known[names], *moved])

    def _moved(self, axis: int, distance: int) -> str:
        stride, sign = self.layout.strides[axis], "-" if distance < 0 else "+"
        if isinstance(stride, Const):
            return f"{sign} {abs(distance) * stride.value}"
        if axis not in self.strides:
            self.strides[axis] = f"step{axis}"
            self.lines.append(f"const long step{axis} = {self.text.index(stride, '(long)')};")
        return f"{sign} {abs(distance)} * step{axis}"


def _strided_offset(names: Sequence[str], layout: Strided, text: CText, width: Width) -> str:
    terms: list[str] = []
    for name, stride in zip(names, layout.strides, strict=True):
        if stride is algebra.const(1):
            terms.append(name)
        elif stride is not algebra.const(0):
            factor = text.index(stride) if isinstance(stride, Const | Sym) else text.factor(stride, width)
            terms.append(f"{width}{name if name.isidentifier() else f'({name})'} * {factor}")
    return " + ".join(terms) if terms else "0"


def size_in_bytes(buffer: Buffer, text: CText) -> str:
    """C text of a tensor's size in bytes, first element to last, as a `long`."""
    assert isinstance(buffer.layout, Strided)
    last = span_in_elements(buffer)
    size = buffer.dtype.bits // 8
    if isinstance(last, Const):
        return f"{size * last.value}l"
    return f"{size} * {text.factor(last, '(long)')}"


def span_in_elements(buffer: Buffer) -> Index:
    """Cosize of a tensor: the number of elements from its first to its last, strides included."""
    assert isinstance(buffer.layout, Strided)
    compact: Index = algebra.const(1)
    last: Index = algebra.const(1)
    row_major = True
    for extent, stride in reversed(list(zip(buffer.shape, buffer.layout.strides, strict=True))):
        row_major = row_major and stride is compact
        compact = algebra.mul(compact, extent)
        last = algebra.add(last, algebra.mul(algebra.sub(extent, 1), stride))
    return compact if row_major else last


def _shared_addresses(view: View, by: TV, scope: Scope, values: Sequence[int], layout: Staged) -> Declared:
    swizzle = layout.swizzle
    bases: dict[Index, str] = {}
    lines: list[str] = []
    found: list[VectorAddress] = []
    for value in values:
        fixed, moved = _split_swizzled(linear_offset(layout.layout, coordinates(view, by, scope, value)), swizzle)
        if not isinstance(fixed, Const) and fixed not in bases:
            bases[fixed] = f"base{len(bases)}"
            lines.append(f"const int {bases[fixed]} = {scope.text.index(fixed)};")
        first = scope.text.index(fixed) if isinstance(fixed, Const) else bases[fixed]
        found.append(VectorAddress(_plus_index(first, moved, scope.text)))
    return lines, found


def linear_offset(layout: Layout, at: Sequence[Index]) -> Index:
    if isinstance(layout.shape, int) or isinstance(layout.stride, int):
        return layout.at(at[0])
    axes = zip(layout.shape, layout.stride, at, strict=True)
    return algebra.add(*(Layout(shape, stride).at(coordinate) for shape, stride, coordinate in axes))


def _split_swizzled(offset: Index, swizzle: Swizzle | None) -> tuple[Index, Index]:
    """Split a swizzled offset into swizzle(x) and whole periods of the swizzle.

    swizzle(x + period * y) = swizzle(x) + period * y, so stages and distant rows become constant offsets.
    """
    period = 1 if swizzle is None else swizzle.period
    terms, constant = (offset.terms, offset.constant) if isinstance(offset, Sum) else (((offset, 1),), 0)
    if isinstance(offset, Const):
        terms, constant = (), offset.value
    if swizzle is None:
        return algebra.linear(terms, 0), algebra.const(constant)
    inner = [(atom, factor) for atom, factor in terms if factor % period]
    outer = [(atom, factor) for atom, factor in terms if factor % period == 0]
    rest = constant % period
    return swizzle.at(algebra.linear(inner, rest)), algebra.linear(outer, constant - rest)


def _plus_index(first: str, moved: Index, text: CText) -> str:
    if isinstance(moved, Const):
        return _plus(first, moved.value)
    return f"{first} + {text.index(moved)}"
