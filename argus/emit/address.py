"""Where the vectors of a copy lie in memory: coordinates, offsets and the condition of being inside."""

from __future__ import annotations

from collections.abc import Sequence

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
class Place:
    """One vector: C text of its offset from the buffer's start in elements, and whether it is inside ("" if always)."""

    offset: str
    inside: str = ""


Declared = tuple[list[str], list[Place]]


@define
class _Origins:
    """Local variables for expressions; expressions a constant apart share one."""

    stem: str
    text: CText
    lines: list[str] = field(factory=list[str])
    known: list[tuple[Index, str]] = field(factory=list[tuple[Index, str]])

    def name(self, wanted: Index) -> str:
        """C text equal to the expression, through a variable of this group."""
        if isinstance(wanted, Const):
            return self.text.index(wanted)
        for origin, name in self.known:
            distance = algebra.sub(wanted, origin)
            if isinstance(distance, Const):
                return _plus(name, distance.value)
        name = self.stem + (f"_{len(self.known)}" if self.known else "")
        self.known.append((wanted, name))
        self.lines.append(f"const int {name} = {self.text.index(wanted)};")
        return name


def _plus(text: str, constant: int) -> str:
    return text if constant == 0 else f"{text} {'-' if constant < 0 else '+'} {abs(constant)}"


def coordinates(view: View, by: TV, scope: Scope, value: int) -> tuple[Index, ...]:
    """Coordinates in the view's buffer of one value of the thread."""
    own = by.coordinates_at(algebra.sym(scope.thread), value)
    return tuple(substitute(at, {}, own) for at in view.at)


def places(view: View, by: TV, scope: Scope, values: Sequence[int], *, edge: bool, width: Width) -> Declared:
    """Declarations of local variables, and for each value the place of the vector that starts with it.

    edge: whether elements may lie outside. width: the type in which a global offset is computed.
    """
    layout = view.buffer.layout
    if isinstance(layout, Staged) and not edge:
        return _shared_places(view, by, scope, values, layout)
    own = [by.coordinates_at(algebra.sym(scope.thread), value) for value in values]
    return located(view, own, scope, edge=edge, width=width)


def located(view: View, own: Sequence[tuple[Index, ...]], scope: Scope, *, edge: bool, width: Width) -> Declared:
    """The same for elements of a tensor by their coordinates in the view."""
    layout = view.buffer.layout
    origins = [_Origins(f"at{axis}", scope.text) for axis in range(len(view.at))]
    found: list[Place] = []
    for element in own:
        wanted = tuple(substitute(at, {}, element) for at in view.at)
        names = [origin.name(at) for origin, at in zip(origins, wanted, strict=True)]
        inside = _inside(view, element, scope, names) if edge else ""
        assert isinstance(layout, Strided), "the shape of shared memory is static: an edge has no meaning there"
        found.append(Place(_strided(names, layout, scope.text, width), inside))
    return [line for origin in origins for line in origin.lines], found


def _inside(view: View, element: tuple[Index, ...], scope: Scope, names: Sequence[str]) -> str:
    """The condition that intervals do not already decide, on the first element: a vector straddles no edge."""
    wanted = tuple(substitute(at, {}, element) for at in view.at)
    parts: list[str] = []
    for at, extent, name in zip(wanted, view.buffer.shape, names, strict=True):
        low, high = algebra.le(0, at) is TRUE, algebra.lt(at, extent) is TRUE
        end = scope.text.index(extent)
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


def _strided(names: Sequence[str], layout: Strided, text: CText, width: Width) -> str:
    terms: list[str] = []
    for name, stride in zip(names, layout.strides, strict=True):
        if stride is algebra.const(1):
            terms.append(name)
        elif stride is not algebra.const(0):
            factor = text.index(stride) if isinstance(stride, Const | Sym) else text.factor(stride, width)
            terms.append(f"{width}{name if name.isidentifier() else f'({name})'} * {factor}")
    return " + ".join(terms) if terms else "0"


def records(buffer: Buffer, text: CText) -> str:
    """Bytes of a tensor as a `long`, from its first element to its last."""
    assert isinstance(buffer.layout, Strided)
    last = extent_of(buffer)
    size = buffer.dtype.bits // 8
    return f"{size} * {text.factor(last, '(long)')}"


def extent_of(buffer: Buffer) -> Index:
    """Elements from the first of a tensor to its last."""
    assert isinstance(buffer.layout, Strided)
    compact: Index = algebra.const(1)
    last: Index = algebra.const(1)
    row_major = True
    for extent, stride in reversed(list(zip(buffer.shape, buffer.layout.strides, strict=True))):
        row_major = row_major and stride is compact
        compact = algebra.mul(compact, extent)
        last = algebra.add(last, algebra.mul(algebra.sub(extent, 1), stride))
    return compact if row_major else last


def _shared_places(view: View, by: TV, scope: Scope, values: Sequence[int], layout: Staged) -> Declared:
    swizzle = layout.swizzle
    bases: dict[Index, str] = {}
    lines: list[str] = []
    found: list[Place] = []
    for value in values:
        fixed, moved = _split(linear_offset(layout.layout, coordinates(view, by, scope, value)), swizzle)
        if not isinstance(fixed, Const) and fixed not in bases:
            bases[fixed] = f"base{len(bases)}"
            lines.append(f"const int {bases[fixed]} = {scope.text.index(fixed)};")
        first = scope.text.index(fixed) if isinstance(fixed, Const) else bases[fixed]
        found.append(Place(_joined(first, moved, scope.text)))
    return lines, found


def linear_offset(layout: Layout, at: Sequence[Index]) -> Index:
    if isinstance(layout.shape, int) or isinstance(layout.stride, int):
        return layout.at(at[0])
    axes = zip(layout.shape, layout.stride, at, strict=True)
    return algebra.add(*(Layout(shape, stride).at(coordinate) for shape, stride, coordinate in axes))


def _split(offset: Index, swizzle: Swizzle | None) -> tuple[Index, Index]:
    """A swizzled offset as a sum: what the swizzle permutes, and whole periods of it, which it leaves alone.

    swizzle(x + period * y) = swizzle(x) + period * y, so stages and rows far apart become constants.
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


def _joined(first: str, moved: Index, text: CText) -> str:
    if isinstance(moved, Const):
        return _plus(first, moved.value)
    return f"{first} + {text.index(moved)}"
