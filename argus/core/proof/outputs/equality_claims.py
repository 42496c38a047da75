"""Obligations of claims that an output equals a formula (I39): the stored value's normal form is the formula's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import lcm

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.dtype import DType
from argus.core.index import Bin, Cmp, Cond, Const, Index, Node, Sym, Symbol
from argus.core.ir import Assert, Buffer, Equals, Products, WrittenOnce, axes_of, whole
from argus.core.ir.pretty import claim_in_brief
from argus.core.proof.dataflow.flattened_views import in_place_of
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs.stored import is_reduction_store, stored_elsewhere, stored_tensors, stores_of
from argus.core.proof.outputs.turned import claim_from_the_end, from_the_end, turned
from argus.core.proof.outputs.writes import conditional_claim_error, written_once_obligations
from argus.core.proof.values.held.between import coordinate, over_element
from argus.core.proof.values.held.cells import Rounding
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.in_steps import Shared, common_conditions, over_shared_rows
from argus.core.proof.values.held.outputs import Held, Stored, interpreted
from argus.core.proof.values.held.places_of_extrema import as_integers
from argus.core.proof.values.held.residues import equal_by_residues, equal_by_terms, has_terms
from argus.core.proof.values.held.roundings import in_words
from argus.core.proof.values.held.same_ranges import equal_over_ranges
from argus.core.proof.values.held.single_terms import with_single_terms
from argus.core.proof.values.held.unnamed import unnamed_reasons
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.values.cancelling import with_tests_in_floats
from argus.core.values.effort import TOO_LONG
from argus.core.values.equality import near
from argus.core.values.expr import Expr
from argus.core.values.formula_text import formula_text
from argus.core.values.named_literals import named_literals, rounded_literals
from argus.core.values.rewriting import elements, integers, mapped, substitute, written_size
from argus.core.walk import fold, rebuild, symbols, topological
from argus.core.walk import substitute as substitute_index

_LONGEST = 200
"""Characters of a value that a reason shows, and parts of one that is written as text."""
_INSTEAD = "compare runs with it (`argus run`); claims about tags are proved: `assert_written_once`, `assert_covers`"
_MORE = "allow more (`--seconds`, or `Budget.terms`), or write the formula in the order in which the kernel computes"


Proofs = Mapping[Assert, Held | str]
"""What each claimed output holds, if that is proved equal to the formula; else why not."""


def formula_proofs(flow: Flow) -> Proofs:
    """The proof of each claim that an output equals a formula."""
    claims = [(step.stmt, step.stmt.claim) for step in flow.timeline.steps if isinstance(step.stmt, Assert)]
    return {stmt: _proof(flow, stmt, claim) for stmt, claim in claims if isinstance(claim, Equals)}


def decided_by_values(flow: Flow, proofs: Proofs, followed: Collection[Buffer] = ()) -> bool:
    """Whether all that the kernel claims is what values its outputs have, of every output, and that is proved.

    What tiles hold on the way is then no claim of its own. followed: outputs whose values formulas of a program follow.
    """
    claims = {step.stmt for step in flow.timeline.steps if isinstance(step.stmt, Assert)}
    claimed = proved_outputs(flow, proofs)
    return bool(claimed or followed) and claims == set(proofs) and {*claimed, *followed} >= set(stored_tensors(flow))


def proved_outputs(flow: Flow, proofs: Proofs) -> frozenset[Buffer]:
    """The outputs that are proved to be what a claim says."""
    claims = [stmt.claim for stmt, held in proofs.items() if not isinstance(held, str)]
    claimed = (claim.view.buffer for claim in claims if isinstance(claim, Equals | Products))
    return frozenset(in_place_of(flow.replaced, buffer)[0] for buffer in claimed)


def equality_obligations(
    flow: ValueFlow, step: Step, stmt: Assert, claim: Equals, found: Held | str
) -> Iterator[Obligation]:
    """That each element is stored once, and that what is stored equals the formula wherever that has a value.

    found: the claim's proof.
    """
    output = claim.view.buffer
    others = (each.stmt.claim for each in flow.timeline.steps if isinstance(each.stmt, Assert))
    added = any(map(is_reduction_store, stores_of(flow, output)))  # its blocks are asked to add to each element once
    if not added and not any(isinstance(each, WrittenOnce) and _is_of_all(each, claim) for each in others):
        once = WrittenOnce(whole(output), (), over_axes(claim))
        yield from written_once_obligations(flow, step, stmt, once, records=False, others=True)
    what = f"`{claim_in_brief(claim)}` holds"
    if isinstance(found, str):
        yield undecided(stmt, claim, found)
        return
    yield Obligation(
        "I39", what, stmt, algebra.TRUE, step.context, note=stated(claim, found.roundings, found.cases), compared=1
    )


def over_axes(claim: Equals) -> Cond:
    """The claim's condition over the coordinates of the tensor. The view must be one of all its elements."""
    order = axes_of(claim.view)
    return claim.where if order is None else substitute_index(claim.where, {}, tuple(map(algebra.coord, order)))


def _is_of_all(other: WrittenOnce, claim: Equals) -> bool:
    same = other.view.buffer is claim.view.buffer and axes_of(other.view) is not None
    return same and other.where in (algebra.TRUE, over_axes(claim))


def _proof(flow: Flow, stmt: Assert, claim: Equals) -> Held | str:
    """What the output holds, if that is proved equal to the formula; else why not."""
    order, output = axes_of(claim.view), claim.view.buffer
    at = tuple(coordinate(axis, extent) for axis, extent in enumerate(output.shape))
    reason = conditional_claim_error(flow, stmt)
    if reason or order is None:
        return reason or "a claim on part of a tensor is not supported by the verifier yet"
    if any(each.view.buffer.name in _reads(claim) for each in flow.replaced):
        return "the formula reads a tensor that the analysis sees through a view"
    held = Held((), frozenset()) if stored_elsewhere(flow, output) else interpreted(flow, output, at)
    if isinstance(held, str):
        return held
    if held.adds and output.name not in claim.before:
        return "it is added to what the tensor held before"
    reason = difference(flow, held, claim, at, order)
    return held if not reason else _from_the_end(flow, claim, at, order) or reason


def _from_the_end(flow: Flow, claim: Equals, at: Sequence[Sym], order: Sequence[int]) -> Held | None:
    """What an output that is stored from the end holds, if that is proved equal to the formula."""
    output = claim.view.buffer
    axes = turned(flow, output) if claim.where is algebra.TRUE else frozenset[int]()
    if not axes:
        return None
    held = interpreted(flow, output, from_the_end(output, at, axes))
    if isinstance(held, str) or held.adds or difference(flow, held, claim_from_the_end(claim, order, axes), at, order):
        return None
    return held


def difference(flow: Flow, held: Held, claim: Equals, at: Sequence[Sym], order: Sequence[int]) -> str:
    """Why what an output holds at these coordinates is not known to equal the claimed formula; empty if it is.

    A number in a test may be written so that parts of it cancel in the program alone, or in the formula alone. Then all
    such tests are compared as those of unknown numbers.
    """
    reason = _difference_in_floats(flow, held, claim, at, order, every=False)
    numbers = (claim.formula, *(each.value for each in held.cases))
    if reason and any(each is not with_tests_in_floats(each) for each in numbers):
        return _difference_in_floats(flow, held, claim, at, order, every=True) and reason
    return reason


def _difference_in_floats(
    flow: Flow, held: Held, claim: Equals, at: Sequence[Sym], order: Sequence[int], every: bool
) -> str:
    meant = evolve(claim, formula=with_tests_in_floats(claim.formula, every))
    compared = _Compared(flow, meant, at, order, frozenset(each.dtype for each in held.roundings))
    alike: dict[Expr, list[Stored]] = {}
    for case in held.cases:
        value = with_tests_in_floats(case.value, every)
        alike.setdefault(value, []).append(evolve(case, value=value))
    if _is_shown_by_rows(compared, [each for own in alike.values() for each in own]):
        return ""
    for value, cases in alike.items():
        if len(cases) > 1 and _is_shown_at_once(compared, value, cases):
            continue
        reason = next(filter(None, (_difference_by_element(compared, case) for case in cases)), "")
        if reason:
            return reason
    return ""


@frozen(eq=False)
class _Compared:
    """What is compared. rounded: the types to which values are rounded on the way to the output."""

    flow: Flow
    claim: Equals
    at: Sequence[Sym]
    order: Sequence[int]
    rounded: frozenset[DType]


def _is_shown_at_once(of: _Compared, value: Expr, cases: Sequence[Stored]) -> bool:
    """Whether several stores of one value are shown without cases: for all elements, or for those of each by terms."""
    shared = Stored(value, common_conditions(cases))
    by_terms = (equal_over_ranges(*_sides(of, case)) for case in cases)
    return equal_over_ranges(*_sides(of, shared)) or all(by_terms) or not _difference(of, shared, cases=False)


def _is_shown_by_rows(of: _Compared, cases: Sequence[Stored]) -> bool:
    """Whether unrolled stores of a tile's rows, of which several hold one value over the row, are shown by these."""
    formula = _formula(of)
    if not has_terms(formula) or _where(of) is not algebra.TRUE:
        return False
    found = over_shared_rows(cases, of.at)
    mine = [each.symbol for each in of.at]

    def is_shown(each: Shared) -> bool:
        known, wanted = Known(of.flow, each.case.given), substitute(formula, each.names)
        return equal_by_residues(known, each.case.value, wanted, mine, quotients=each.rows, cases=False)

    return bool(found) and all(map(is_shown, found))


def _difference_by_element(of: _Compared, case: Stored) -> str:
    """The same of one case: as it is, or in terms of the element's coordinates alone."""
    reason = _difference(of, case)
    if not reason:
        return ""
    own = over_element(of.flow, case, of.at)
    return reason if own.value is case.value else _difference(of, own)


def _difference(of: _Compared, case: Stored, *, cases: bool = True) -> str:
    """Why what is stored is not known to equal the formula. cases: whether cases of what is open are tried."""
    formula, meant = _formula(of), _where(of)
    if meant is not algebra.TRUE and of.flow.impossible(case.given, meant):
        return ""
    known, value, wanted = _sides(of, case)
    mine = [each.symbol for each in of.at]
    if equal_over_ranges(known, value, wanted, mine):
        return ""
    if has_terms(formula) and (
        equal_by_residues(known, case.value, formula, mine, cases=False)
        or equal_by_residues(known, value, wanted, mine, cases=False)
        or equal_by_terms(known, value, wanted, cases=False)
    ):
        return ""
    if not cases:
        return "" if known.equal(value, wanted, cases=False) else "it is not equal without cases"
    if _equal_by_names(known, value, wanted) or known.equal(value, wanted):
        return ""
    placed = as_integers(value, wanted, known, of.rounded)
    if placed is not None and known.equal(placed, wanted):
        return ""
    if equal_by_residues(known, case.value, formula, mine):
        return ""
    if equal_by_terms(known, value, wanted):
        return ""
    if unnamed := unnamed_reasons(case.value):
        return unnamed[0]
    if known.effort.is_spent:
        return f"what is stored is not compared with the formula: {TOO_LONG}"
    return f"what is stored{_shown(case.value, of.at, of.order)} is not known to equal the formula"


def _formula(of: _Compared) -> Expr:
    return _over(of.claim, of.at, of.order)


def _where(of: _Compared) -> Cond:
    """Where the formula is claimed."""
    return substitute_index(of.claim.where, {}, tuple(of.at[axis] for axis in of.order))


def _sides(of: _Compared, case: Stored) -> tuple[Known, Expr, Expr]:
    """What is known where a value is stored, the value there, and the formula."""
    flow, formula, meant = of.flow, _formula(of), _where(of)
    given = (*case.given, *(() if meant is algebra.TRUE else (meant,)))
    multiples = _multiples(Known(flow, given), case.value)
    known = Known(flow, (*given, *(algebra.eq(algebra.sym(s), by) for s, by in multiples.items())))
    sizes = {**dict(_fixed_sizes(flow.timeline.assumptions)), **multiples}
    same = {**dict(_equal_places(case.given, of.at)), **sizes}
    value, wanted = (
        with_single_terms(substitute(case.value, same), known, formula),
        substitute(_in_blocks(with_single_terms(substitute(formula, same), known, case.value), known), sizes),
    )
    if meant is not algebra.TRUE:
        value, wanted = known.simplified(value), known.simplified(wanted)
    return known, value, wanted


def _equal_by_names(known: Known, value: Expr, wanted: Expr) -> bool:
    """The same with literals as the irrational numbers that they stand for, if their rounding changes little.

    False where there are none.
    """
    sides = [(each, named_literals(each)[0]) for each in (value, wanted)]
    if all(each is named for each, named in sides):
        return False
    return known.equal(*(named for _, named in sides)) and all(
        each is named or near(rounded_literals(each), named) for each, named in sides
    )


def _shown(value: Expr, at: Sequence[Sym], order: Sequence[int]) -> str:
    """What is stored, as a function of the claim's coordinates; empty if it is long."""
    if written_size(value) > _LONGEST:
        return ""
    names = {at[axis].symbol: algebra.coord(number) for number, axis in enumerate(order)}
    text = formula_text(substitute(value, names), len(order))
    return f", `{text}`," if len(text) <= _LONGEST else ""


def _equal_places(given: Iterable[Cond], at: Sequence[Sym]) -> Iterator[tuple[Symbol, Index]]:
    """The coordinates that conditions equate with a block's own expression."""
    mine = {each.symbol for each in at}
    for cond in given:
        if isinstance(cond, Cmp) and cond.op == "==" and len(symbols(cond) & mine) == 1:
            terms, _ = linear_terms(algebra.sub(cond.left, cond.right))
            for atom, factor in terms:
                if isinstance(atom, Sym) and atom.symbol in mine and abs(factor) == 1:
                    rest = algebra.sub(algebra.sub(cond.left, cond.right), algebra.mul(atom, factor))
                    if atom.symbol not in symbols(rest):
                        yield atom.symbol, algebra.mul(rest, -factor)


def _fixed_sizes(assumptions: Iterable[Cond]) -> Iterator[tuple[Symbol, Index]]:
    """The sizes that the kernel assumes to be one number."""
    for cond in assumptions:
        if isinstance(cond, Cmp) and cond.op == "==":
            terms, constant = linear_terms(algebra.sub(cond.left, cond.right))
            if len(terms) == 1 and isinstance(terms[0][0], Sym) and abs(terms[0][1]) == 1:
                yield terms[0][0].symbol, algebra.const(-constant * terms[0][1])


def _multiples(known: Known, value: Expr) -> dict[Symbol, Index]:
    """Sizes that the value divides by numbers that divide them, as multiples of symbols of their own."""
    found: dict[Symbol, int] = {}
    for node in topological(integers(value)):
        if isinstance(node, Bin) and node.op == "//" and isinstance(node.left, Sym) and isinstance(node.right, Const):
            size, divisor = node.left.symbol, node.right.value
            if size.kind == "size" and divisor > 1 and known.holds(algebra.eq(algebra.mod(node.left, divisor), 0)):
                found[size] = lcm(found.get(size, 1), divisor)
    return {size: algebra.mul(algebra.sym(Symbol(f"{size.name}/{by}", "fresh", 0)), by) for size, by in found.items()}


def _in_blocks(formula: Expr, known: Known) -> Expr:
    """The formula with quotients and remainders of coordinates replaced by the blocks' own expressions for them.

    A program names the block that an element lies in; a formula computes it from the coordinate.
    """
    least = {at.symbol: low for low, at in _lower_ends(known.context)}

    def on_index(index: Index) -> Index:
        return fold(index, visit)  # pyright: ignore[reportReturnType]  # an index stays one

    def on_cond(cond: Cond) -> Cond:
        return fold(cond, visit)  # pyright: ignore[reportReturnType]  # a condition stays one

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        made = rebuild(node, parts) if parts else node
        if not isinstance(made, Bin) or made.op not in ("//", "%") or not isinstance(made.right, Const):
            return made
        block = algebra.floordiv(substitute_index(made.left, least), made.right)
        guess = block if made.op == "//" else algebra.sub(made.left, algebra.mul(block, made.right))
        return guess if known.holds(algebra.eq(made, guess)) else made

    return mapped(formula, on_index, on_cond) if least else formula


def _lower_ends(conds: Iterable[Cond]) -> Iterator[tuple[Index, Sym]]:
    """(a, y) for each condition a <= y on a coordinate."""
    for cond in conds:
        if (
            isinstance(cond, Cmp)
            and cond.op == "<="
            and isinstance(cond.right, Sym)
            and cond.left is not algebra.const(0)
        ):
            yield cond.left, cond.right


def _reads(claim: Equals) -> frozenset[str]:
    return frozenset(each.tensor for each in elements(claim.formula))


def _over(claim: Equals, at: Sequence[Index], order: Sequence[int]) -> Expr:
    """The formula at these coordinates of the tensor: the claim's axis `a` is the tensor's axis `order[a]`."""
    return substitute(claim.formula, {}, tuple(at[axis] for axis in order))


def stated(claim: Equals, roundings: Iterable[Rounding], cases: Iterable[Stored] = ()) -> str:
    """The claim, for the results of the proof, with what the program rounds, and rounded constants."""
    rounded = in_words(roundings)
    said = [*([f"the program rounds {rounded}"] if rounded else ()), *_stand_for(claim, cases)]
    return claim_in_brief(claim) + (f", over the reals; {'; '.join(said)}" if said else "")


def _stand_for(claim: Equals, cases: Iterable[Stored]) -> Iterator[str]:
    """Which literals of the program stand for irrational numbers, if the formula has no such literals."""
    words = frozenset[str]().union(*(named_literals(case.value)[1] for case in cases))
    more = sorted(words - named_literals(claim.formula)[1])
    if more:
        yield f"it has {', '.join(more)}"


def undecided(stmt: Assert, claim: Equals, why: str) -> Obligation:
    """The obligation of a claim that is not proved."""
    what = f"`{claim_in_brief(claim)}` holds"
    return Obligation("I39", what, stmt, algebra.FALSE, unknown=why, instead=_MORE if TOO_LONG in why else _INSTEAD)
