"""Claims that each element of a tensor is the sum of given products, independently of tags.

A sum of products of two tensors carries its set over k and the tags of the multiplied elements. Where the tags of a
factor include each of its coordinates, they identify the element. So the k-th product of a stored element has one
index in each factor, an expression over the element's own index and k. The claim's products are brought into the same
form: their summation variables are linearised into one axis, in any order, since a sum is commutative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import permutations

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Coord, Index, Symbol
from argus.core.ir import Assert, Buffer, Products, View, WrittenOnce, whole
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.affine import at_any_element
from argus.core.proof.dataflow.flattened_views import delinearize, in_place_of
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import FragmentIndex, equal_indices
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.padded_stores import no_padding_obligation
from argus.core.proof.outputs.product_formulas import finite_factors
from argus.core.proof.outputs.stored import stores_of
from argus.core.proof.outputs.stored_tiles import store_layout
from argus.core.proof.outputs.writes import (
    conditional_claim_error,
    written_once_obligations,
)
from argus.core.proof.values.content import Data, ElementProduct, Value, content_error, nonempty
from argus.core.proof.values.held.outputs import Held
from argus.core.proof.values.multiset_count import COUNTED
from argus.core.proof.values.recognisers.products import holds_once
from argus.core.walk import mentions, substitute

Places = tuple[tuple[Index, ...], ...]
"""An index in each of the two factors, in the order of the kernel's parameters."""


def product_claim_obligations(
    flow: Flow, step: Step, stmt: Assert, claim: Products, proof: Held | str | None
) -> Iterator[Obligation]:
    """I3: each element of a tensor is the sum of the claimed products, and is stored once.

    proof: that the value is the claimed sum, or why that is not known; None if it was not compared with it.
    """
    checker = _ProductClaim(flow, step, stmt, claim)
    if proof is not None:
        yield from checker.by_value(proof)
        return
    reason = conditional_claim_error(flow, stmt)
    if reason:
        yield checker.obligation(algebra.FALSE, step.context, unknown=reason)
        return
    yield from checker.stored_once()
    for store in stores_of(flow, checker.output):
        yield from checker.store_obligations(store)


@frozen(eq=False)
class _Factor:
    """One of the tensors, the view of the kernel's tensor that it is, and its coordinates in a product."""

    buffer: Buffer
    view: View
    at: tuple[Index, ...]

    @property
    def places(self) -> tuple[Index, ...]:
        return tuple(substitute(each, {}, self.at) for each in self.view.at)

    @property
    def there(self) -> Cond:
        """That the view has an element at these coordinates."""
        return substitute(self.view.where, {}, self.at)


class _ProductClaim:
    """One claim. output: the flattened tensor. numbers: the coordinates of an arbitrary element of it."""

    def __init__(self, flow: Flow, step: Step, stmt: Assert, claim: Products) -> None:
        self.flow, self.step, self.stmt, self.claim = flow, step, stmt, claim
        self.output, self.view = in_place_of(flow.replaced, claim.view.buffer)
        self.numbers = tuple(algebra.sym(Symbol(f"y{axis}", "fresh", 0)) for axis in range(len(self.output.shape)))
        self.name = claim.view.buffer.name

    def stored_once(self, *, records: bool = True) -> Iterator[Obligation]:
        """The write-once obligations, unless another claim states them. records: whether the stored tags are known."""
        others = (s.stmt.claim for s in self.flow.timeline.steps if isinstance(s.stmt, Assert))
        if not any(isinstance(other, WrittenOnce) and self._of_all(other) for other in others):
            once, padded = WrittenOnce(whole(self.output), ()), records and not self.claim.over
            yield from written_once_obligations(self.flow, self.step, self.stmt, once, padded=padded, records=records)

    def by_value(self, proof: Held | str) -> Iterator[Obligation]:
        """The same where the stored value has been compared with the claimed sum."""
        if isinstance(proof, str):
            yield self.obligation(algebra.FALSE, self.step.context, unknown=proof)
            return
        yield from self.stored_once(records=False)
        shown = self.obligation(algebra.TRUE, self.step.context, presumed=finite_factors(proof))
        yield evolve(shown, compared=1, note=shown.what)

    def _of_all(self, other: WrittenOnce) -> bool:
        return other.view.buffer is self.output and is_whole(other.view) and other.where is algebra.TRUE

    def store_obligations(self, store: Access) -> Iterator[Obligation]:
        """That the stored value is the sum of the claimed products."""
        for piece in self.flow.written(store.step):
            context = (*store.step.context, piece.guard)
            value = piece.value
            if not self.claim.over:
                yield from self._one_by_one(store, value, context)
                continue
            reason = content_error(value) if not isinstance(value, Data) else self._unknown(value)
            if reason or not isinstance(value, Data):
                yield self.obligation(algebra.FALSE, context, store, unknown=reason)
                continue
            yield from self._of_sum(store, value, context)

    def _one_by_one(self, store: Access, value: Value, context: tuple[Cond, ...]) -> Iterator[Obligation]:
        """That an element is the sum of exactly the listed products of two loaded elements."""
        known = isinstance(value, Data) and value.plain and not value.sets and store.places is not None
        terms = tuple(map(self._in_order_of_parameters, value.terms)) if known and isinstance(value, Data) else ()
        if not terms or any(len(term.tensors) != 2 or term.tensors != terms[0].tensors for term in terms):
            reason = (
                content_error(value)
                or "the stored value is not known to be a sum of products of elements of two tensors"
            )
            yield self.obligation(algebra.FALSE, context, store, unknown=reason)
            return
        goal = self._matched(store, terms)
        yield self.obligation(goal, context, store, presumed=self._finite(terms[0]))
        for term in terms:
            edges = [(c, e) for t, p in zip(term.tensors, term.places, strict=True) for c, e in _axes(t, p)]
            for bound in term.inside:
                is_edge = any(
                    bound.extent is e and equal_indices(bound.coordinate, c) is algebra.TRUE for c, e in edges
                )
                if bound.open or not is_edge:
                    yield no_padding_obligation(store, store.places or (), bound, context, self.output.shape)

    def _in_order_of_parameters(self, term: ElementProduct) -> ElementProduct:
        if len(term.tensors) != 2 or self._order(term.tensors[0]) <= self._order(term.tensors[1]):
            return term
        return evolve(term, tensors=term.tensors[::-1], places=term.places[::-1])

    def _matched(self, store: Access, terms: Sequence[ElementProduct]) -> Cond:
        """That the products correspond one to one to those of the claim."""
        if len(terms) != len(self.claim.products) or terms[0].tensors[0] is terms[0].tensors[1]:
            return algebra.FALSE
        left = [self._components(store, pair) for pair in self.claim.products]
        goals: list[Cond] = []
        for term in terms:
            found = [_equal_indices(term.places, places) for places in left]
            place = next((n for n, goal in enumerate(found) if goal is algebra.TRUE), 0)
            goals.append(found[place])
            left.pop(place)
        return algebra.all_of(goals)

    def _components(
        self, store: Access, pair: Sequence[tuple[Index, ...]]
    ) -> tuple[tuple[FragmentIndex | None, ...], ...]:
        """The indices of one product of the claim, for each stored element."""
        at = [tuple(substitute(node, {}, self.view.at) for node in place) for place in pair]
        places = store.places or ()
        return tuple(tuple(self.flow.fragment_index(node, places, store.shape) for node in place) for place in at)

    def _finite(self, term: ElementProduct) -> str:
        names = " and ".join(f"`{tensor.name}`" for tensor in term.tensors)
        return f"finite-factors: {names} hold finite numbers, which are multiplied by 0 beyond the other's edge"

    def _unknown(self, value: Data) -> str:
        if value.computed or value.times != 1 or not value.plain or len(value.factors) != 2 or not value.sets:
            return f"the stored value is {value.form or 'a number'}, which is not known to be only a sum of products"
        if value.factors[0] is value.factors[1] or len(value.sets) != 1:
            return "products of two elements of one tensor, or over several names"
        return "" if len(self.claim.products) == 1 else "several products for each index along k"

    def _of_sum(self, store: Access, value: Data, context: tuple[Cond, ...]) -> Iterator[Obligation]:
        ((name, tally),) = (value.sets or {}).items()
        count, held = tally.count, store_layout(store)
        factors = [self._factor(store, value, name, buffer, context) for buffer in value.factors]
        known = [factor for factor in factors if isinstance(factor, _Factor)]
        reason = next((factor for factor in factors if isinstance(factor, str)), "")
        extents = {f.buffer.shape[axis] for f in known for axis, at in enumerate(f.at) if at is algebra.sym(COUNTED)}
        if count is None or (held is None and mentions(count, (Coord,))):
            reason = f"threads hold different parts of the sum over `{name}`"
        elif len(extents) != 1:
            reason = reason or f"the factors have different extents along `{name}`"
        if reason or count is None:
            yield self.obligation(algebra.FALSE, context, store, unknown=reason)
            return
        (extent,) = extents
        once = holds_once(count, algebra.const(0), extent)
        once = once if held is None else at_any_element(once, held)
        yield self.obligation(once, (*context, *nonempty(value.inside)), store)
        known.sort(key=lambda factor: self._order(factor.view.buffer))
        yield self.obligation(
            self._same_products(known, extent), self._arbitrary_product(extent), store, presumed=self._presumed(known)
        )

    def _order(self, buffer: Buffer) -> int:
        """The position of a tensor among the parameters."""
        names = [each.name for each in self.flow.timeline.kernel.parameters]
        return names.index(buffer.name)

    def _factor(
        self, store: Access, value: Data, name: str, buffer: Buffer, context: tuple[Cond, ...]
    ) -> _Factor | str:
        """The element of a factor that is multiplied, or why it is not known."""
        named = self.flow.names(buffer)
        at: list[Index] = []
        for axis in range(len(buffer.shape)):
            own = [n for n, expression in named if expression is algebra.coord(axis)]
            found = algebra.sym(COUNTED) if name in own else self._number(store, value, own, context)
            if found is None:
                return f"the tags do not determine an element's index along axis {axis} of `{buffer.name}`"
            at.append(found)
        seen = next((s.view for s in self.flow.replaced if s.flat is buffer), whole(buffer))
        return _Factor(buffer, seen, tuple(at))

    def _number(self, store: Access, value: Data, names: Sequence[str], context: tuple[Cond, ...]) -> Index | None:
        """The coordinate of the stored element that equals one of these tags."""
        for name in names:
            for axis, place in enumerate(store.places or ()):
                if name in value.record and self.flow.holds(context, equal_indices(value.record[name], place)):
                    return self.numbers[axis]
        return None

    def _same_products(self, factors: Sequence[_Factor], extent: Index) -> Cond:
        """That the products are those of the claim, linearised in some order; false if their numbers differ."""
        goals = [
            goal
            for order in permutations(self.claim.over)
            if (goal := self._in_order(factors, extent, order)) is not None
        ]
        return next((goal for goal in goals if goal is algebra.TRUE), goals[0] if goals else algebra.FALSE)

    def _in_order(
        self, factors: Sequence[_Factor], extent: Index, order: Sequence[tuple[Symbol, Index]]
    ) -> Cond | None:
        sizes = [size for _, size in order]
        if reduce(algebra.mul, sizes, algebra.const(1)) is not extent:
            return None
        numbers = delinearize(algebra.sym(COUNTED), sizes) if sizes else ()
        names = {symbol: number for (symbol, _), number in zip(order, numbers, strict=True)}
        (pair,) = self.claim.products
        return same_products(factors, self.claimed(pair, names))

    def claimed(self, pair: Sequence[tuple[Index, ...]], names: Mapping[Symbol, Index]) -> Places:
        """The indices of one product of the claim, for an arbitrary element."""
        own = tuple(substitute(each, {}, self.numbers) for each in self.view.at)
        return tuple(tuple(substitute(node, names, own) for node in place) for place in pair)

    def _arbitrary_product(self, extent: Index) -> tuple[Cond, ...]:
        """The ranges of an arbitrary element and an arbitrary product of it."""
        x = algebra.sym(COUNTED)
        pairs = zip(self.numbers, self.output.shape, strict=True)
        own = (cond for number, size in pairs for cond in (algebra.le(0, number), algebra.lt(number, size)))
        return (*own, algebra.le(0, x), algebra.lt(x, extent))

    def _presumed(self, factors: Sequence[_Factor]) -> str:
        """The assumption by which 0 in place of an element contributes nothing."""
        padded = [f.view.buffer.name for f in factors if f.view.where is not algebra.TRUE]
        others = [f.view.buffer.name for f in factors if f.view.where is algebra.TRUE]
        if not padded:
            return ""
        finite = ", ".join(f"`{name}`" for name in others or padded)
        return (
            f"finite-factors: {finite} holds finite numbers, which are multiplied by 0 beyond the edge of `{padded[0]}`"
        )

    def obligation(
        self, goal: Cond, context: tuple[Cond, ...], store: Access | None = None, unknown: str = "", presumed: str = ""
    ) -> Obligation:
        return Obligation(
            "I3",
            f"each element of `{self.name}` is the sum of the claimed products, each once",
            self.stmt,
            goal,
            context,
            other=None if store is None else store.step.stmt,
            unknown=unknown,
            minimise=minimisation_order(goal),
            compared=0 if store is None else store.shape[0] * store.shape[1],
            presumed=presumed,
            help="compare the loaded indices with those of the claim: strides, offsets, order of the axes",
        )


def same_products(factors: Sequence[_Factor], claimed: Places) -> Cond:
    """That a product multiplies exactly these elements, or that an element is missing in both."""
    mine, theirs, equal = list[Cond](), list[Cond](), list[Cond]()
    for factor, place in zip(factors, claimed, strict=True):
        buffer = factor.view.buffer
        mine += [factor.there, _inside(factor.places, buffer)]
        theirs.append(_inside(place, buffer))
        equal += [algebra.eq(a, b) for a, b in zip(factor.places, place, strict=True)]
    one, two = algebra.all_of(mine), algebra.all_of(theirs)
    if one is two and algebra.all_of(equal) is algebra.TRUE:
        return algebra.TRUE
    return algebra.all_of((algebra.implies(one, algebra.all_of((two, *equal))), algebra.implies(two, one)))


def _axes(tensor: Buffer, place: Sequence[FragmentIndex]) -> Iterator[tuple[FragmentIndex, Index]]:
    return zip(place, tensor.shape, strict=True)


def _equal_indices(mine: Sequence[Sequence[FragmentIndex]], claimed: Sequence[Sequence[FragmentIndex | None]]) -> Cond:
    """That two pairs of indices are equal, for all elements."""
    if [len(place) for place in mine] != [len(place) for place in claimed]:
        return algebra.FALSE
    pairs = [pair for place, other in zip(mine, claimed, strict=True) for pair in zip(place, other, strict=True)]
    return algebra.all_of(algebra.FALSE if b is None else equal_indices(a, b) for a, b in pairs)


def _inside(place: Sequence[Index], buffer: Buffer) -> Cond:
    pairs = zip(place, buffer.shape, strict=True)
    return algebra.all_of(cond for at, extent in pairs for cond in (algebra.le(0, at), algebra.lt(at, extent)))
