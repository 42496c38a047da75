"""Normal forms where facts hold: the tests, minima and signs that these decide, and what they leave open."""

from __future__ import annotations

from functools import cache, lru_cache

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.values import binding
from argus.core.values import polynomial as polys
from argus.core.values.atoms import ONE, ZERO, Above, Atom, NoNormalFormError, Poly, inner
from argus.core.values.cases import Cases, Infinite, Open, Undefined, Value
from argus.core.values.conditions import positive
from argus.core.values.effort import Effort, size_within, unlimited
from argus.core.values.ends import least_of
from argus.core.values.literals import certain, rewritten
from argus.core.values.nested_tests import orders, tests, unbound
from argus.core.values.normal import NormalForm
from argus.core.values.truth import above, holds
from argus.core.walk import children, rebuild


def resolved(value: Poly, facts: tuple[Cond, ...]) -> Poly:
    """The polynomial with tests and minima that the facts decide replaced."""
    if not facts:
        return value
    known = _known(facts)

    def on_cond(cond: Cond) -> Cond:
        if cond in known:
            return algebra.TRUE
        return algebra.FALSE if algebra.negate(cond) in known else cond

    indices: dict[Index, Index] = {}

    def on_index(index: Index) -> Index:
        if index not in indices:
            indices[index] = index_once(index)
        return indices[index]

    def index_once(index: Index) -> Index:
        parts = children(index)
        done = [on_index(part) if isinstance(part, Index) else part for part in parts]
        result = rebuild(index, done) if parts else index
        assert isinstance(result, Index)
        return least_of(result, known)

    @cache
    def on_poly(poly: Poly) -> Poly:
        return rewritten(poly, visit)

    def is_above(of: Poly) -> bool:
        needed = positive(of)
        return needed is not None and known.issuperset(needed)

    @cache
    def visit(atom: Atom) -> Poly | None:
        if isinstance(atom, Above):
            of = on_poly(atom.of)
            return ONE if is_above(of) else ZERO if is_above(polys.scale(of, -1)) else above(of)
        return binding.mapped(atom, on_poly, on_index, on_cond)

    return on_poly(value)


@lru_cache(maxsize=1 << 8)
def _known(facts: tuple[Cond, ...]) -> frozenset[Cond]:
    """The facts, and the tests of normal forms that hold where they do."""
    return frozenset(facts).union(*(certain(holds(fact)) for fact in facts))


def open_tests(of: NormalForm | str, facts: tuple[Cond, ...], effort: Effort | None = None) -> tuple[Cond, ...]:
    """The tests, and orders of the operands of extrema, that the facts leave open in a normal form, if there is one.

    None where the facts leave it no value, as where they say that what it divides by is 0, and where that takes more
    than the effort; without a limit if that is None.
    """
    try:
        found = () if isinstance(of, str) else _open(of.value, facts, effort or unlimited())
    except NoNormalFormError:
        return ()
    return tuple(sorted(found, key=lambda each: each.digest))


def _open(value: Value, facts: tuple[Cond, ...], effort: Effort) -> set[Cond]:
    match value:
        case Cases(test=test, then=then, other=other):
            return set[Cond]().union(*(_open(each, facts, effort) for each in (test, then, other)))
        case Open(of=of, test=test):
            return _open(test, facts, effort) | _open(of, facts, effort)
        case Infinite() | Undefined():
            return set()
        case Poly():
            effort.spend(2 * size_within(value))
            found = resolved(value, facts)
            return {*tests(found), *orders(found), *_signs_of(found)}


@lru_cache(maxsize=1 << 13)
def _signs_of(of: Poly) -> frozenset[Cond]:
    """The conditions under which what is compared with 0 in the polynomial is above 0, or below."""
    found = set[Cond]()
    for monomial, _ in of.terms:
        for atom, _ in monomial:
            ways = map(positive, (atom.of, polys.scale(atom.of, -1))) if isinstance(atom, Above) else ()
            below = frozenset[Cond]().union(*map(_signs_of, inner(atom)))
            found = found.union(*(way for way in ways if way), unbound(below, atom))
    return frozenset(found)
