"""Values computed from others: what stays known of them, whatever the operation means to a softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from attrs import evolve

from argus.core import algebra
from argus.core.elementwise import evaluate_op
from argus.core.index import Cond
from argus.core.proof.dataflow.separable_index import FragmentIndex
from argus.core.proof.values.content import Data, ElementProduct, Inside, Value
from argus.core.proof.values.multiset_count import Multiset, equal_counts
from argus.core.proof.values.recognisers.splits import common_bounds


def products_of(name: str, args: Sequence[Value]) -> tuple[ElementProduct, ...]:
    """What a product of two elements, or a sum of such products, is the sum of."""
    known = [arg for arg in args if isinstance(arg, Data) and arg.terms and arg.plain and not arg.sets]
    if len(known) != len(args) or len(args) != 2:
        return ()
    factors = [len(term.tensors) for arg in known for term in arg.terms]
    if name == "add" and set(factors) == {2}:
        return tuple(term for arg in known for term in arg.terms)
    if name != "mul" or factors != [1, 1] or any(arg.computed for arg in known):
        return ()
    (one,), (two,) = (arg.terms for arg in known)
    product = ElementProduct((*one.tensors, *two.tensors), (*one.places, *two.places), (*one.inside, *two.inside))
    return (product,)


def closed_over(data: Data, form: str) -> Data:
    """A function of one value that is not linear: sums that went into it are over."""
    closed = (*data.closed, *(data.sets or {}).items())
    return evolve(data, form=form, root=form, times=1.0, computed=True, fill=nan, sets=None, closed=closed)


def any_function(form: str, of: Sequence[Data]) -> Data:
    """A function of several values of which nothing else is known; sums that went into it are over."""
    record: dict[str, FragmentIndex] = {}
    closed: tuple[tuple[str, Multiset], ...] = ()
    for value in of:
        record |= value.record
        closed = both_closed(evolve(of[0], closed=closed), evolve(value, closed=closed_over(value, form).closed))
    inside = tuple(dict.fromkeys(bound for value in of for bound in value.inside))
    needs = tuple(dict.fromkeys(need for value in of for need in value.needs))
    made = Data(record, inside, nan, form=form, computed=True, root=form)
    return evolve(made, closed=closed, needs=needs)


def computed_from(name: str, left: Data, right: Data) -> Value:
    """Things computed from two plain values: what went into them stays known. One sum times something is a sum."""
    record: dict[str, FragmentIndex] = {**left.record, **right.record}
    both = common_bounds(left, right)
    inside: tuple[Inside, ...] = both or (*left.inside, *right.inside)
    fill = evaluate_op(name, left.fill, right.fill) if both and name != "div" else nan
    linear = (name == "mul" and bool(left.sets) != bool(right.sets)) or (name == "div" and not right.sets)
    sets: dict[str, Multiset] = {**(left.sets or {}), **(right.sets or {})} if linear else {}
    over = () if linear else (*(left.sets or {}).items(), *(right.sets or {}).items())
    closed, root = (*left.closed, *right.closed, *over), in_words(name, _rooted(left), _rooted(right))
    form, needs = in_words(name, left.form, right.form), both_needs(left, right)
    scales = _only_of_scales(left, right) if sets else frozenset[str]()
    made = Data(record, inside, fill, sets or None, form, computed=True, root=root)
    return evolve(made, closed=closed, needs=needs, scales=scales)


def _only_of_scales(left: Data, right: Data) -> frozenset[str]:
    """Of a sum and its scale, the names that the scale alone carries."""
    summed, scale = (left, right) if left.sets else (right, left)
    return summed.scales | (scale.record.keys() - summed.record.keys())


def _rooted(data: Data) -> str:
    return data.root if data.times == 1 else f"{in_digits(data.times)} {data.root}"


def in_digits(number: float) -> str:
    """A number in words that no other number has: what is computed is compared by them."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def both_closed(left: Data, right: Data) -> tuple[tuple[str, Multiset], ...]:
    """What is closed in either, once where it is one set in form."""
    found = list(left.closed)
    for name, tally in right.closed:
        if not any(name == other and equal_counts(tally, known) is algebra.TRUE for other, known in found):
            found.append((name, tally))
    return tuple(found)


def both_needs(left: Data, right: Data) -> tuple[Cond, ...]:
    return tuple(dict.fromkeys((*left.needs, *right.needs)))


def in_words(name: str, *parts: str) -> str:
    return f"{name}({', '.join(parts)})"
