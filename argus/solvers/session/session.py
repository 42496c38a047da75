"""A proof session: answers by normal form or from memory where possible, otherwise by as few queries as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from argus.core.algebra import TRUE, all_of, contradict, negate
from argus.core.index import And, Cond, Index
from argus.core.query import STEPS_PER_SECOND, Answer, Budget, GaveUp, Sat, Unsat
from argus.core.values.effort import Effort
from argus.solvers.base import Solver, definedness
from argus.solvers.cache import Cache, Implication
from argus.solvers.session.answers import Answers, Stats
from argus.solvers.session.decider import WITNESS, Decider
from argus.solvers.session.fixed_symbols import contradicts_by_bounds
from argus.solvers.session.minimal import minimal
from argus.solvers.session.slicing import multiplies
from argus.solvers.session.witnesses import Witness

_NORMAL_FORM = "normal form"
_TOGETHER = 128
"""The most goals that `prove_each` puts into one query."""
_TOGETHER_STEPS = STEPS_PER_SECOND
_REFUTING = 8
"""The most counterexamples to keep for each goal."""
_PROVING = 4
"""The most sets of hypotheses to keep that imply a goal."""


@define
class Session:
    """A solver with a budget per query, a memory and an optional cache of its own answers; not thread-safe.

    Its methods raise InternalError when a solver's model does not satisfy its query.
    """

    solver: Solver
    budget: Budget = field(factory=Budget)
    cache: Cache | None = None
    _answers: Answers = field(init=False, repr=False)
    _decider: Decider = field(init=False, repr=False)
    _put: dict[Implication, Answer] = field(factory=dict["Implication", Answer], init=False, repr=False)
    _shown: dict[Implication, Answer] = field(factory=dict["Implication", Answer], init=False, repr=False)
    _refuting: dict[Cond, list[Witness]] = field(factory=dict[Cond, "list[Witness]"], init=False, repr=False)
    """Counterexamples to each goal: the same goal is asked under many hypotheses."""
    _proving: dict[Cond, list[tuple[frozenset[Cond], Unsat]]] = field(
        factory=dict[Cond, "list[tuple[frozenset[Cond], Unsat]]"], init=False, repr=False
    )
    """Hypotheses that imply each goal, with the answer that showed it: more of them imply it too."""
    _unproving: dict[Cond, set[frozenset[Cond]]] = field(
        factory=dict[Cond, "set[frozenset[Cond]]"], init=False, repr=False
    )
    """Such sets that were asked for alone, and do not imply it or are not known to."""
    _soon: dict[tuple[Implication, int | None], Answer] = field(
        factory=dict["tuple[Implication, int | None]", Answer], init=False, repr=False
    )

    effort: Effort = field(init=False, repr=False)
    """What the normal forms of values may still take."""

    def __attrs_post_init__(self) -> None:
        self.effort = Effort(self.budget.terms)
        self._answers = Answers(self.solver, self.budget, self.cache)
        self._decider = Decider(self._answers)

    @property
    def stats(self) -> Stats:
        """Counts of the answers so far, by their source."""
        return self._answers.stats

    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        """Unsat if the hypotheses imply the goal; Sat is a counterexample.

        The counterexample assigns the symbols of the goal and of all hypotheses, and does not depend on the queries
        asked before.
        """
        return self._recall((tuple(hypotheses), goal)) or self._decide((tuple(hypotheses), goal))

    def follows(self, hypotheses: Sequence[Cond], goal: Cond, *, steps: int | None = None) -> bool:
        """Whether the hypotheses imply the goal, for callers that need no counterexample.

        Cheaper than `prove`, since a model of an earlier query may serve as the counterexample. steps: a lower step
        limit than the budget's, for each query.
        """
        asked = (tuple(hypotheses), goal)
        known = self._recall(asked, any_model=True) or self._soon.get((asked, steps))
        return isinstance(known or self._decide(asked, any_model=True, steps=steps), Unsat)

    def prove_each(self, hypotheses: Sequence[Cond], goals: Sequence[Cond]) -> tuple[Answer, ...]:
        """`prove` for each goal; goals that need a query share one, and are asked separately if it does not succeed."""
        given = tuple(hypotheses)
        pieces = _pieces(given)
        found: dict[Cond, Answer | None] = {}
        for goal in dict.fromkeys(goals):
            known = self._recall((given, goal))
            if known is None and _follows_by_form(pieces, goal, negate(goal)):
                known = self._by_form((given, goal))
            found[goal] = known
        open_ = [goal for goal, known in found.items() if known is None]
        if len(open_) > 1:
            found |= {goal: self._keep((given, goal), proof) for goal, proof in self._together(pieces, open_).items()}
        return tuple(found[goal] or self._decide((given, goal)) for goal in goals)

    def _together(self, pieces: tuple[Cond, ...], goals: Sequence[Cond]) -> dict[Cond, Unsat]:
        """Proofs of the goals all of whose conjuncts are proved by shared queries.

        Conjuncts with products go into separate queries, since those may be decided differently. A query ignores
        assignments under which any of its divisors is not positive, so a conjunct may share a query only if the
        hypotheses imply that its own divisors are positive.
        """
        proofs: dict[Cond, Unsat] = {}
        defined: dict[Cond, bool] = {}
        parts = [part for part in _pieces(goals) if self._is_defined(pieces, part, defined)]
        for nonlinear in (False, True):
            group = [part for part in parts if multiplies(part) is nonlinear]
            for start in range(0, len(group), _TOGETHER):
                batch = group[start : start + _TOGETHER]
                answer = self._decider.decide(pieces, negate(all_of(batch)), steps=_TOGETHER_STEPS)
                if isinstance(answer, Unsat):
                    proofs |= dict.fromkeys(batch, answer)
        return {goal: proofs[_first(goal)] for goal in goals if all(part in proofs for part in _conjuncts(goal))}

    def _is_defined(self, pieces: tuple[Cond, ...], part: Cond, known: dict[Cond, bool]) -> bool:
        """Whether the hypotheses imply, innermost first, that each operator in the conjunct is defined."""
        for condition in definedness([part]):
            if condition not in known:
                denied = negate(condition)
                known[condition] = _follows_by_form(pieces, condition, denied) or isinstance(
                    self._decider.decide(pieces, denied, any_model=True, steps=_TOGETHER_STEPS), Unsat
                )
            if not known[condition]:
                return False
        return True

    def _recall(self, asked: Implication, *, any_model: bool = False) -> Answer | None:
        """The answer by normal form, or from the session's or the process's memory."""
        self._answers.asked()
        if asked[1] is TRUE:
            self._answers.count("by_normal_form")
            return Unsat(_NORMAL_FORM)
        known = self._put.get(asked) or (self._shown.get(asked) if any_model else None)
        if known is None and self.cache is not None and self._answers.identity:
            known = self.cache.recall(self._answers.identity, asked, any_model=any_model)
        if known is not None:
            self._answers.count("memory_hits")
        return known

    def _decide(self, asked: Implication, *, any_model: bool = False, steps: int | None = None) -> Answer:
        hypotheses, goal = asked
        pieces = _pieces(hypotheses)
        denied = negate(goal)
        refuting = self._refuting.setdefault(goal, []) if any_model else []
        witness = next((each for each in refuting if each.satisfies(pieces)), None)
        if witness is not None:
            self._answers.count("memory_hits")
            return self._keep(asked, witness.answer(WITNESS), any_model=True)
        if _follows_by_form(pieces, goal, denied):
            return self._by_form(asked)
        if any_model and (proof := self._by_fewer(pieces, goal, denied, steps)) is not None:
            return self._keep(asked, proof)
        answer = self._decider.decide(pieces, denied, any_model=any_model, steps=steps)
        if any_model and isinstance(answer, Unsat):
            self._learn(goal, frozenset(pieces), answer)
        if steps is not None and isinstance(answer, GaveUp):
            self._soon[asked, steps] = answer
            return answer
        newest = self._answers.witnesses.newest_of((denied,)) if any_model and isinstance(answer, Sat) else None
        if newest is not None:
            refuting[:] = [newest, *refuting[: _REFUTING - 1]]
        return self._keep(asked, answer, any_model=any_model and not isinstance(answer, Unsat))

    def _by_fewer(self, pieces: tuple[Cond, ...], goal: Cond, denied: Cond, steps: int | None) -> Unsat | None:
        """A proof from hypotheses that are known to imply the goal, or from those that one such set shares with these.

        Two proofs of a goal under unlike hypotheses mostly use those that they share, as the next ones will, too.
        """
        known, given = self._proving.get(goal, []), frozenset(pieces)
        if (found := next((answer for each, answer in known if each <= given), None)) is not None:
            self._answers.count("memory_hits")
            return found
        shared = known[0][0] & given if known else None
        if shared is None or shared in self._unproving.setdefault(goal, set()):
            return None
        some = tuple(piece for piece in pieces if piece in shared)
        if isinstance(answer := self._decider.decide(some, denied, any_model=True, steps=steps), Unsat):
            self._learn(goal, shared, answer)
            return answer
        self._unproving[goal].add(shared)
        return None

    def _learn(self, goal: Cond, hypotheses: frozenset[Cond], answer: Unsat) -> None:
        known = self._proving.setdefault(goal, [])
        known[:] = [(hypotheses, answer), *known[: _PROVING - 1]]

    def _by_form(self, asked: Implication) -> Answer:
        self._answers.count("by_normal_form")
        return self._keep(asked, Unsat(_NORMAL_FORM))

    def _keep(self, asked: Implication, answer: Answer, *, any_model: bool = False) -> Answer:
        (self._shown if any_model else self._put)[asked] = answer
        if self.cache is not None and self._answers.identity:
            self.cache.remember(self._answers.identity, asked, answer, any_model=any_model)
        return answer

    def check(self, assertions: Sequence[Cond]) -> Answer:
        """Whether all assertions are satisfiable together."""
        self._answers.asked()
        pieces = _pieces(assertions)
        if contradict(pieces):
            self._answers.count("by_normal_form")
            return Unsat(_NORMAL_FORM)
        return self._decider.whole(pieces)

    def minimise(self, assertions: Sequence[Cond], order: Sequence[Index]) -> Answer:
        """A model that minimises the first expression, then the second, and so on (see `minimal`)."""
        return minimal(self.check, assertions, order)


def _pieces(conditions: Sequence[Cond]) -> tuple[Cond, ...]:
    """The conjuncts of the conditions in order, without duplicates."""
    found: dict[Cond, None] = {}
    for condition in conditions:
        for piece in condition.parts if isinstance(condition, And) else (condition,):
            found[piece] = None
    return tuple(found)


def _conjuncts(condition: Cond) -> Iterator[Cond]:
    if isinstance(condition, And):
        yield from condition.parts
    else:
        yield condition


def _first(condition: Cond) -> Cond:
    return next(_conjuncts(condition))


def _follows_by_form(pieces: tuple[Cond, ...], goal: Cond, denied: Cond) -> bool:
    """Whether normal forms alone show that the hypotheses imply the goal."""
    if goal is TRUE or all(part in pieces for part in _conjuncts(goal)):
        return True
    return contradict((*pieces, denied)) or contradicts_by_bounds(pieces, denied)
