"""The kinds of rows: every class of the IR and of its parts, with the fields and the constructor of each.

Kinds are derived from the closed unions and the attributes of their members, so that none can be omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast, get_args, get_type_hints

from attrs import fields, frozen

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.atoms.registry import ATOMS
from argus.core.dtype import DTYPES, DType
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import (
    Atomic,
    Buffer,
    Claim,
    ClaimedProgram,
    Elem,
    Kernel,
    Launch,
    Origin,
    Peek,
    Program,
    Role,
    Staged,
    Stmt,
    Strided,
    TagOf,
    Test,
    View,
)
from argus.core.layout import TV, Layout, Swizzle
from argus.core.layout.thread_value.facets import Facet
from argus.core.serde.codecs import Codec, Text, Tree, Whole, codec_of
from argus.core.span import Frame, Span
from argus.core.target import TARGETS, Target
from argus.core.tiling import Tiling
from argus.core.values import expr as formulas
from argus.core.walk import apply

Exportable = Kernel | Program


@frozen
class Kind:
    """The schema of one class. fields: names and codecs, in row order. make: constructs the object from its fields."""

    name: str
    of: type
    fields: tuple[tuple[str, Codec], ...]
    make: Callable[..., object]
    """Takes values by position. Raises ValueError, LookupError, ArithmeticError or ArgusError for invalid ones."""


_DERIVED = {"digest", "range", "operands"}


def _plain(of: type) -> Kind:
    """The kind of a class whose constructor takes its attributes."""
    hints = get_type_hints(of)
    attributes = [each for each in fields(cast("Any", of)) if each.init]
    found = tuple((each.name, codec_of(hints[each.name])) for each in attributes)
    names = tuple(name for name, _ in found)

    def make(*values: object) -> object:
        return of(**dict(zip(names, values, strict=True)))

    return Kind(of.__name__, of, found, make)


def _named(of: type, known: Sequence[object], name_of: Callable[[Any], str]) -> Kind:
    """The kind of a class whose instances are a fixed table, given by name."""
    by_name = {name_of(each): each for each in known}
    return Kind(of.__name__, of, (("name", Text()),), by_name.__getitem__)


def _node(of: type, make: Callable[..., object]) -> Kind:
    """The kind of a hash-consed expression; its constructor normalises."""
    hints = get_type_hints(of)
    own = [each.name for each in fields(cast("Any", of)) if each.name not in _DERIVED]
    return Kind(of.__name__, of, tuple((name, codec_of(hints[name])) for name in own), make)


def _compare(op: str, left: Index, right: Index) -> Cond:
    return algebra.le(left, right) if op == "<=" else algebra.eq(left, right)


_MAKERS: Mapping[str, Callable[..., object]] = {
    "Const": algebra.const,
    "Sym": algebra.sym,
    "Coord": algebra.coord,
    "Sum": algebra.linear,
    "Bin": apply,
    "Pick": algebra.pick,
    "Read": algebra.read,
    "Held": algebra.held,
    "Cmp": _compare,
    "And": algebra.all_of,
    "Or": algebra.any_of,
    "Not": algebra.negate,
}

_LAYOUT = Kind("Layout", Layout, (("shape", Tree()), ("stride", Tree())), Layout)
_LEAVES = (
    _named(Atom, ATOMS, lambda atom: atom.name),
    _named(Target, TARGETS, lambda target: target.name),
    _named(DType, DTYPES, lambda dtype: dtype.name),
)
_NODES = tuple(_node(each, _MAKERS[each.__name__]) for each in (*get_args(Index), *get_args(Cond)))
_PARTS = (Frame, Span, Symbol, Facet, TV, Swizzle, Tiling, Strided, Staged, Buffer, View, Origin, TagOf, Peek, Atomic)


def _formula_node(of: type, make: Callable[..., object]) -> Kind:
    """The kind of a node of a formula, which may have the name of a kind of the IR; its constructor interns."""
    hints = get_type_hints(of)
    found = tuple((each.name, codec_of(hints[each.name])) for each in fields(cast("Any", of)))
    return Kind(f"Formula{of.__name__}", of, found, make)


def _rational(numerator: int, denominator: int) -> formulas.Expr:
    return formulas.expr(Fraction(numerator, denominator))


def _infinity(sign: int) -> formulas.Expr:
    if sign not in (1, -1):
        raise ValueError("the sign of an infinity is 1 or -1")
    return formulas.infinity(sign)


def _element(tensor: str, at: tuple[Index, ...]) -> formulas.Expr:
    return formulas.element(tensor, *at)


def _operation(name: str, args: tuple[formulas.Expr, ...]) -> formulas.Expr:
    return formulas.fn(name, *args)


def _reduction(
    op: formulas.ReduceOp, variable: Symbol, low: Index, high: Index, where: Cond, body: formulas.Expr
) -> formulas.Expr:
    return formulas.reduce_(op, variable, low, high, body, where)


_FORMULAS = (
    Kind("FormulaNumber", formulas.Number, (("numerator", Whole()), ("denominator", Whole())), _rational),
    _formula_node(formulas.Infinity, _infinity),
    _formula_node(formulas.Whole, formulas.expr),
    _formula_node(formulas.Element, _element),
    _formula_node(formulas.Fn, _operation),
    _formula_node(formulas.Reduce, _reduction),
    _formula_node(formulas.Choose, formulas.choose),
    _formula_node(formulas.Compare, formulas.compare),
)
_UNIONS = (*get_args(Elem), *get_args(Test), *get_args(Claim), *get_args(Stmt))
_TOPS = (Role, Kernel, Launch, Program, ClaimedProgram)

KINDS: tuple[Kind, ...] = (*_LEAVES, *_NODES, *_FORMULAS, _LAYOUT, *map(_plain, (*_PARTS, *_UNIONS, *_TOPS)))
BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}
BY_CLASS: Mapping[type, Kind] = {kind.of: kind for kind in KINDS}
assert len(BY_NAME) == len(BY_CLASS) == len(KINDS), "two kinds have the same name"
