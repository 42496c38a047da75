"""Expressions under what is known: tests that a solver decides, and whether two expressions are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from attrs import define, evolve, field

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Bin, Cond, Const, Index, Symbol
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.values.held.conditions_of import free_test, free_tests, inhabited_tests, of_sizes, point
from argus.core.proof.values.held.edges import at_edges, with_fixed_quotients
from argus.core.proof.values.held.folds import NEUTRAL, Range, reduction
from argus.core.proof.values.held.instances import agrees
from argus.core.proof.values.held.kinds_of import has_extremum, is_extremum, is_of_sums, levels
from argus.core.proof.values.held.lemmas import lemmas_of
from argus.core.proof.values.held.named_integers import named, named_in, named_integers
from argus.core.proof.values.held.questions import Questions
from argus.core.proof.values.held.references import References
from argus.core.proof.values.held.relevance import relevant
from argus.core.proof.values.held.signs import decided_by_sign
from argus.core.proof.values.held.terms import all_symbols, chosen, extremum, mapped, plus, replaced, without_remainders
from argus.core.query import STEPS_PER_SECOND
from argus.core.values.conditions import Integers
from argus.core.values.digits import by_digits, without_low_digits
from argus.core.values.effort import Effort
from argus.core.values.equality import Equal, Undecided
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Reduce, compare, expr, fn, reduce_
from argus.core.values.numbers import is_number
from argus.core.values.places import limit
from argus.core.values.rewriting import nodes
from argus.core.walk import children, mentions, rebuild, symbols

_ZERO = expr(0)
_CASES = 4
_STEPS = STEPS_PER_SECOND // 2
"""The step limit of one question: there are many, and most that are not decided soon are not decided at all."""
_LARGEST, _LONG = 300, 3000
"""Distinct parts of two expressions that are compared, and of long sums; beyond, they are not known to be equal."""


@define(eq=False)
class Known:
    """What holds where an expression is used. Answers are kept.

    around: what is known outside of the reduction over a variable, and the variable.
    """

    flow: Flow
    context: tuple[Cond, ...]
    questions: Questions = field(factory=Questions)
    around: tuple[Known, Symbol] | None = None

    @property
    def effort(self) -> Effort:
        """What normal forms may still take in this proof."""
        return self.flow.prover.effort

    def holds(self, goal: Cond) -> bool:
        """Whether the condition provably holds here."""
        if goal is algebra.TRUE or goal is algebra.FALSE or goal in self.context:
            return goal is not algebra.FALSE
        key, kept = (self.context, goal), self.questions.held
        if key not in kept:
            found = self._follows(goal)
            if self.questions.left < 0:
                return found
            kept[key] = found
        return kept[key]

    def _follows(self, goal: Cond) -> bool:
        """The same, from what is known of the goal's own symbols, asked once for many contexts, or from all."""
        named = symbols(goal)
        own = tuple(cond for cond in self.context if symbols(cond) <= named)
        return self._asked(own, goal) or (len(own) < len(self.context) and self._asked(self.context, goal))

    def decided(self, cond: Cond) -> Cond:
        """True or false where that is known, else the condition."""
        if cond is algebra.TRUE or cond is algebra.FALSE:
            return cond
        if self.holds(cond):
            return algebra.TRUE
        if self.holds(algebra.negate(cond)):
            return algebra.FALSE
        return algebra.all_of(part for part in cond.parts if not self.holds(part)) if isinstance(cond, And) else cond

    def within(self, *more: Cond) -> Known:
        """What is known where these conditions hold too."""
        parts = (part for cond in more for part in (cond.parts if isinstance(cond, And) else (cond,)))
        context = (*self.context, *(part for part in parts if part is not algebra.TRUE))
        return Known(self.flow, context, self.questions)

    def simplified(self, root: Expr) -> Expr:
        """The expression without branches that are not taken, and extrema of integers that are decided."""
        key, kept = (self.context, root), self.questions.simplified
        if key not in kept:
            found = _Simplifying(self).of(root) if self.questions.one() else root
            if self.questions.left < 0:
                return found
            kept[key] = found
        return kept[key]

    def settled(self, root: Expr) -> Expr:
        """The expression without choices by sizes and blocks that are decided wherever it is used."""
        done: dict[Expr, Expr] = {}

        def visit(node: Expr) -> Expr:
            if node not in done:
                done[node] = mapped(node, visit, lambda index: index, cond)
            return done[node]

        def cond(of: Cond) -> Cond:
            return self.decided(of) if of_sizes(of) else of

        return visit(root)

    def equal(self, held: Expr, formula: Expr, *, cases: bool = True) -> bool:
        """Whether what is held equals the formula wherever the formula's own conditions hold. cases: also by cases."""
        if not cases:  # long expressions are compared, too
            return self._equal(held, formula, assumed=True, most=_LONG)
        if not self._has_own_test(held, formula) and self._equal(held, formula, assumed=True):
            return True
        digits, rest = ((change(held), change(formula)) for change in (self.in_digits, without_remainders))
        if any(self._equal_or_by_cases(*each, _CASES) for each in dict.fromkeys((digits, (held, formula), rest))):
            return True
        names = named_integers((held, formula), self.holds)
        here = evolve(self, context=tuple(named_in(cond, names) for cond in self.context))
        return bool(names) and here.equal(named(held, names), named(formula, names))

    def in_digits(self, of: Expr) -> Expr:
        """The expression with sums over numbers that are used by quotient and remainder as sums over both."""
        return by_digits(of, lambda extent: self.holds(algebra.le(0, extent)))

    def _equal_or_by_cases(self, one: Expr, two: Expr, left: int, cases: tuple[Cond, ...] = ()) -> bool:
        """The same directly or by cases: whichever is likelier to show it first. cases: those around."""
        ways = [partial(self._equal, one, two, assumed=True), partial(self._equal_by_cases, one, two, left, cases)]
        return any(way() for way in (reversed(ways) if left and self._has_own_test(one, two) else ways))

    def _has_own_test(self, one: Expr, two: Expr) -> bool:
        """Whether the first expression makes a choice by sizes and coordinates that is open, and not the second's.

        The two are then mostly equal in each case alone.
        """
        theirs = set(free_tests(two))
        return any(self.decided(each) is each for each in free_tests(one) if each not in theirs)

    def _equal_by_cases(self, one: Expr, two: Expr, left: int, cases: tuple[Cond, ...] = ()) -> bool:
        """The same where a test of sizes and coordinates holds, and where it does not. cases: those around."""
        test = self._open_test(one, two) if left else None
        if test is None:
            a, b = with_fixed_quotients(self.holds, one, two) if cases else (one, two)
            return (a, b) != (one, two) and self._equal(self.simplified(a), self.simplified(b), assumed=True)
        for cond in both_cases(test):
            here, every = self.within(cond), (*cases, cond)
            decided = map(_Simplifying(here).with_decided_extrema, every)
            a, b = at_edges(here.holds, decided, here.simplified(one), here.simplified(two))
            if not here._equal_or_by_cases(a, b, left - 1, every):
                return False
        return True

    def _open_test(self, one: Expr, two: Expr) -> Cond | None:
        """A test that is decided in neither way: of the second expression alone, if possible."""
        facts = (*self.flow.facts, *self.context)
        left, right = (self.questions.open_tests(each, facts, self.effort) for each in (one, two))
        own = (each for each in right if each not in left)
        some = (each for each in chain(inhabited_tests(two), own) if self.decided(each) is each)
        return next(chain(some, filter(None, map(free_test, (one, two)))), None)

    def same(self, one: Expr, two: Expr) -> bool:
        """Whether both have a value, and that is one."""
        if one is two or self._equal(one, two, assumed=False):
            return True
        return self._equal(self.simplified(one), self.simplified(two), assumed=False)

    def alike(self, one: Expr, two: Expr) -> bool:
        """The same, as far as the forms show it as they are, in each case of sizes and blocks."""
        if one is two:
            return True
        for whole, other in ((one, two), (two, one)):
            if isinstance(whole, Choose) and not isinstance(whole.test, Compare) and of_sizes(whole.test):
                yes, no = self.within(whole.test), self.within(algebra.negate(whole.test))
                cases = (yes, whole.then), (no, whole.other)
                return all(here.alike(here.simplified(case), here.simplified(other)) for here, case in cases)
        return self._equal(one, two, assumed=False, lemmas=False)

    def _equal(self, one: Expr, two: Expr, *, assumed: bool, lemmas: bool = True, most: int = _LARGEST) -> bool:
        if sum(1 for each in (one, two) for _ in nodes(each)) > most:
            return False
        return any(self._by_forms(*pair, assumed=assumed) for pair in self._ways(one, two, lemmas=lemmas))

    def _ways(self, one: Expr, two: Expr, *, lemmas: bool) -> Iterator[tuple[Expr, Expr, tuple[Cond, ...]]]:
        """Forms of both whose equality shows theirs, and facts to use: cheap ones first."""
        facts = (*self.flow.facts, *self.context)
        references = References()
        freed = references.freed(one, self), references.freed(two, self)
        plain = tuple(dict.fromkeys((freed, (one, two))))
        for each in plain:
            yield *each, facts
        if not lemmas:
            return
        for a, b in dict.fromkeys(((self.simplified(freed[0]), self.simplified(freed[1])), (one, two))):
            more = (*lemmas_of(a, self.holds), *lemmas_of(b, self.holds))
            if more or (a, b) not in plain:
                yield a, b, (*facts, *more)

    def _by_forms(self, one: Expr, two: Expr, facts: tuple[Cond, ...], *, assumed: bool) -> bool:
        answer = self.questions.equal(one, two, facts, self.effort)
        if isinstance(answer, Undecided) and answer.reason:
            shown = {each for each in self._shown(one, two, facts) if each not in facts} if assumed else ()
            return bool(shown) and self._by_forms(one, two, (*facts, *shown), assumed=assumed)
        left = () if isinstance(answer, Equal) and assumed else answer.conditions
        return all(isinstance(each, Integers) and self._asked(each.given, each.goal) for each in left)

    def _shown(self, one: Expr, two: Expr, facts: tuple[Cond, ...]) -> Iterator[Cond]:
        """What is shown here of the tests and orders that the facts leave open."""
        tests = (self.questions.open_tests(each, facts, self.effort) for each in (one, two))
        for cond in dict.fromkeys(chain.from_iterable(tests)):
            decided = next((each for each in (cond, algebra.negate(cond)) if self.holds(each)), None)
            if decided is not None:
                yield decided

    def _asked(self, given: Sequence[Cond], goal: Cond) -> bool:
        key, kept = (tuple(given), goal), self.questions.answers
        if key not in kept:
            if not self.questions.one():
                return False
            kept[key] = self.flow.holds(given, goal, steps=_STEPS)
        return kept[key]


def both_cases(test: Cond) -> tuple[Cond, Cond]:
    """A condition, and its opposite."""
    return test, algebra.negate(test)


class _Simplifying:
    """One simplification; bound variables carry their ranges into what is known."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._done: dict[Expr, Expr] = {}
        self._indices: dict[Index, Index] = {}

    def of(self, root: Expr) -> Expr:
        if root not in self._done:
            self._done[root] = self._of(root)
        return self._done[root]

    def _of(self, root: Expr) -> Expr:
        if self._known.around is not None and is_extremum(root):
            around, variable = self._known.around
            if variable not in all_symbols(root):
                return around.simplified(root)
        match root:
            case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
                cond = self._cond(test)
                if cond is algebra.TRUE or cond is algebra.FALSE:
                    return self.of(then if cond is algebra.TRUE else other)
                alike = dict.fromkeys((cond, test))  # solvers that give up on one form may know the other
                yes, no = self._known.within(*alike), self._known.within(*map(algebra.negate, alike))
                first, second = yes.simplified(replaced(then, point(cond))), no.simplified(other)
                if agrees(no, first, second):
                    return first
                if agrees(yes, second, first):
                    return second
                masked = isinstance(first, Choose) and second in (first.then, first.other)
                return first if masked and no.simplified(first) is second else chosen(cond, first, second)
            case Choose(test=Compare(op="==", left=left, right=right), other=other) if right is NEUTRAL[
                "max"
            ] and is_number(left):
                return self.of(other)
            case Choose(test=Compare(op=op, left=left, right=right), then=then, other=other):
                return self._compared(compare(op, self.of(left), self.of(right)), then, other)
            case Reduce():
                return self._reduced(root)
            case Fn(name="add", args=(a, b)):
                return plus(self.of(a), self.of(b))
            case Fn(name="mul", args=(a, b)):
                one, two = self._beside(b, a), self._beside(a, b)
                gone = (one is _ZERO and is_number(two)) or (two is _ZERO and is_number(one))
                return _ZERO if gone else fn("mul", one, two)
            case Fn(name="max" | "min" as name, args=(a, b)):
                one, two = self.of(a), self.of(b)
                found = self._begun(name, one, two) or self._begun(name, two, one)
                return extremum(name, one, two) if found is None else found
            case _:
                return mapped(root, self.of, self._index, self._cond)

    def _cond(self, of: Cond) -> Cond:
        """A condition of integers, decided if that is known, with decided extrema in it."""
        found = self._known.decided(of)
        return self.with_decided_extrema(found) if mentions(found, (Bin,)) else found

    def with_decided_extrema(self, of: Cond) -> Cond:
        """The condition with decided extrema in it."""
        parts = [
            self._index(each) if isinstance(each, Index) else self.with_decided_extrema(each) for each in children(of)
        ]
        return rebuild(of, parts) if parts else of  # pyright: ignore[reportReturnType]  # a condition stays one

    def _beside(self, factor: Expr, of: Expr) -> Expr:
        """An element as a factor beside another, which may be 0 outside of some conditions."""
        conds = tuple(relevant("sum", factor)) if isinstance(of, Element) and is_number(factor) else ()
        return self._known.within(*conds).simplified(of) if conds else self.of(of)

    def _compared(self, test: Compare, then: Expr, other: Expr) -> Expr:
        holds = decided_by_sign(test, self._known.holds)
        return chosen(test, self.of(then), self.of(other)) if holds is None else self.of(then if holds else other)

    def _begun(self, name: str, rest: Expr, first: Expr) -> Expr | None:
        """An extremum over a range, and the element before it, as one over both."""
        if not isinstance(rest, Reduce) or rest.op != name or rest.where is not algebra.TRUE:
            return None
        if rest.low is not algebra.const(0) or replaced(rest.body, {rest.variable: algebra.const(-1)}) is not first:
            return None
        if not self._known.holds(algebra.le(0, rest.high)):
            return None
        number = Symbol("~begun", "fresh", 0)
        body = replaced(rest.body, {rest.variable: algebra.sub(algebra.sym(number), 1)})
        return reduction(rest.op, [Range(number, algebra.add(rest.high, 1))], body)

    def _reduced(self, of: Reduce) -> Expr:
        """A reduction with its range cut to where the body is not neutral, so that no test of that is left."""
        low, high = self._index(of.low), self._index(of.high)
        for cond in relevant(of.op, of.body):
            found = limit(cond, of.variable)
            if found is None:
                continue
            below, end = found[0], self._index(found[1])
            if self._known.holds(algebra.le(end, high)) and self._known.holds(algebra.le(low, end)):
                low, high = (low, end) if below else (end, high)
        if not isinstance(high, Const) and self._known.holds(algebra.le(high, low)):
            return NEUTRAL[of.op]
        here = algebra.sym(of.variable)
        inside = self._known.within(algebra.le(low, here), algebra.lt(here, high), of.where)
        body = evolve(inside, around=(self._known, of.variable)).simplified(of.body)
        if of.where is not algebra.TRUE:
            return reduce_(of.op, of.variable, low, high, body, of.where)
        if of.op == "sum" and is_of_sums(body):
            return plus(*(self._reduced(reduce_("sum", of.variable, low, high, each)) for each in body.args))
        if has_extremum(low):  # a shift by it would leave tests that nothing decides
            return reduce_(of.op, of.variable, low, high, body)
        own = Symbol(f"{of.variable.name}*", "fresh", 0)
        body = replaced(body, {of.variable: algebra.add(algebra.sym(own), low)})
        found = reduction(of.op, [Range(own, algebra.sub(high, low))], body)
        joined = levels(found) < 1 + levels(body)
        return self._reduced(found) if joined and isinstance(found, Reduce) else found

    def _index(self, index: Index) -> Index:
        if index not in self._indices:
            self._indices[index] = self._index_once(index) if mentions(index, (Bin,)) else index
        return self._indices[index]

    def _index_once(self, index: Index) -> Index:
        below = children(index)
        done = [self._index(part) if isinstance(part, Index) else part for part in below]
        if isinstance(index, Bin) and index.op in ("min", "max"):
            left, right = done
            assert isinstance(left, Index)
            assert isinstance(right, Index)
            for low, high in ((left, right), (right, left)):
                if self._known.holds(algebra.le(low, high)):
                    return low if index.op == "min" else high
        found = rebuild(index, done) if below else index
        assert isinstance(found, Index)
        found = without_low_digits(found)
        for atom, factor in linear_terms(found)[0]:
            if isinstance(atom, Bin) and atom.op == "//" and isinstance(divisor := atom.right, Const):
                found = self._undivided(found, atom, factor, divisor)
        return found

    def _undivided(self, index: Index, quotient: Bin, factor: int, divisor: Const) -> Index:
        """The expression with d * (x // d) replaced by x, or d * ceil(x / d), if d divides x."""
        if factor % divisor.value or divisor.value < 1:
            return index
        whole = algebra.mul(quotient, divisor)
        for exact in (quotient.left, algebra.sub(quotient.left, divisor.value - 1)):
            if self._known.holds(algebra.eq(whole, exact)):
                return algebra.sub(index, algebra.mul(algebra.sub(whole, exact), factor // divisor.value))
        return index
