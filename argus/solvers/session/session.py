"""Where questions are asked: fast paths first, then queries, as few and as easy as will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from argus.core.algebra import FALSE, TRUE, all_of, negate
from argus.core.index import And, Cond, Index
from argus.core.query import STEPS_PER_SECOND, Answer, Budget, Unsat
from argus.solvers.base import Solver, definedness
from argus.solvers.cache import Asked, Cache
from argus.solvers.session.answers import Answers, Stats
from argus.solvers.session.deciding import Deciding
from argus.solvers.session.minimal import minimal
from argus.solvers.session.pinned import contradictory
from argus.solvers.session.slicing import multiplies

_NORMAL_FORM = "normal form"
_TOGETHER = 128
"""How many conditions one query asks of at most, for `prove_each`."""
_TOGETHER_STEPS = STEPS_PER_SECOND


@define
class Session:
    """A solver with a budget a query, a memory and, if given, a disk cache. Not to be shared by threads.

    Raises InternalError when a solver's model does not satisfy its query.
    """

    solver: Solver
    budget: Budget = field(factory=Budget)
    cache: Cache | None = None
    _answers: Answers = field(init=False, repr=False)
    _deciding: Deciding = field(init=False, repr=False)
    _put: dict[Asked, Answer] = field(factory=dict["Asked", Answer], init=False, repr=False)
    _shown: dict[Asked, Answer] = field(factory=dict["Asked", Answer], init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._answers = Answers(self.solver, self.budget, self.cache)
        self._deciding = Deciding(self._answers)

    @property
    def stats(self) -> Stats:
        """Where the answers given so far came from."""
        return self._answers.stats

    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        """Unsat if the goal holds whenever the hypotheses do; Sat is a counterexample to that.

        The counterexample assigns the symbols of the goal and of all hypotheses, and is the same whatever else was
        asked.
        """
        return self._recalled((tuple(hypotheses), goal)) or self._asked((tuple(hypotheses), goal))

    def follows(self, hypotheses: Sequence[Cond], goal: Cond) -> bool:
        """Whether `prove` proves it, for those who need no counterexample: one found for another question will do."""
        asked = (tuple(hypotheses), goal)
        known = self._recalled(asked, any_model=True) or self._asked(asked, any_model=True)
        return isinstance(known, Unsat)

    def prove_each(self, hypotheses: Sequence[Cond], goals: Sequence[Cond]) -> tuple[Answer, ...]:
        """What `prove` answers to each goal; those that need a query are asked together, and apart if one fails."""
        given = tuple(hypotheses)
        pieces = _pieces(given)
        found: dict[Cond, Answer | None] = {}
        for goal in dict.fromkeys(goals):
            known = self._recalled((given, goal))
            if known is None and _evident(pieces, goal, negate(goal)):
                known = self._by_form((given, goal))
            found[goal] = known
        open_ = [goal for goal, known in found.items() if known is None]
        if len(open_) > 1:
            found |= {goal: self._keep((given, goal), proof) for goal, proof in self._together(pieces, open_).items()}
        return tuple(found[goal] or self._asked((given, goal)) for goal in goals)

    def _together(self, pieces: tuple[Cond, ...], goals: Sequence[Cond]) -> dict[Cond, Unsat]:
        """Proofs of goals whose parts are proved in as few queries as their forms allow.

        Those that multiply are asked apart from others: they may take another way. A query says nothing of where some
        divisor in it is not positive, so a part has company only if its own divisors are.
        """
        proofs: dict[Cond, Unsat] = {}
        defined: dict[Cond, bool] = {}
        parts = [part for part in _pieces(goals) if self._is_defined(pieces, part, defined)]
        for hard in (False, True):
            alike = [part for part in parts if multiplies(part) is hard]
            for start in range(0, len(alike), _TOGETHER):
                some = alike[start : start + _TOGETHER]
                answer = self._deciding.decide(pieces, negate(all_of(some)), steps=_TOGETHER_STEPS)
                if isinstance(answer, Unsat):
                    proofs |= dict.fromkeys(some, answer)
        return {goal: proofs[_first(goal)] for goal in goals if all(part in proofs for part in _conjuncts(goal))}

    def _is_defined(self, pieces: tuple[Cond, ...], part: Cond, known: dict[Cond, bool]) -> bool:
        """Whether the pieces imply, innermost first, that each operator in the part is defined."""
        for condition in definedness([part]):
            if condition not in known:
                denied = negate(condition)
                known[condition] = _evident(pieces, condition, denied) or isinstance(
                    self._deciding.decide(pieces, denied, any_model=True, steps=_TOGETHER_STEPS), Unsat
                )
            if not known[condition]:
                return False
        return True

    def _recalled(self, asked: Asked, *, any_model: bool = False) -> Answer | None:
        self._answers.count("asked")
        if asked[1] is TRUE:
            self._answers.count("by_normal_form")
            return Unsat(_NORMAL_FORM)
        known = self._put.get(asked) or (self._shown.get(asked) if any_model else None)
        if known is None and self.cache is not None:
            known = self.cache.recall(asked, any_model=any_model)
        if known is not None:
            self._answers.count("memory_hits")
        return known

    def _asked(self, asked: Asked, *, any_model: bool = False) -> Answer:
        hypotheses, goal = asked
        pieces = _pieces(hypotheses)
        denied = negate(goal)
        if _evident(pieces, goal, denied):
            return self._by_form(asked)
        answer = self._deciding.decide(pieces, denied, any_model=any_model)
        return self._keep(asked, answer, any_model=any_model and not isinstance(answer, Unsat))

    def _by_form(self, asked: Asked) -> Answer:
        self._answers.count("by_normal_form")
        return self._keep(asked, Unsat(_NORMAL_FORM))

    def _keep(self, asked: Asked, answer: Answer, *, any_model: bool = False) -> Answer:
        (self._shown if any_model else self._put)[asked] = answer
        if self.cache is not None:
            self.cache.remember(asked, answer, any_model=any_model)
        return answer

    def check(self, assertions: Sequence[Cond]) -> Answer:
        """Whether all assertions can hold at once."""
        self._answers.count("asked")
        pieces = _pieces(assertions)
        if all_of(pieces) is FALSE:
            self._answers.count("by_normal_form")
            return Unsat(_NORMAL_FORM)
        return self._deciding.whole(pieces)

    def minimise(self, assertions: Sequence[Cond], order: Sequence[Index]) -> Answer:
        """A model that makes the first expression least, then the second among those, and so on (`minimal`)."""
        return minimal(self.check, assertions, order)


def _pieces(conditions: Sequence[Cond]) -> tuple[Cond, ...]:
    """The conjuncts, each once, in the order given."""
    return tuple(dict.fromkeys(piece for condition in conditions for piece in _conjuncts(condition)))


def _conjuncts(condition: Cond) -> Iterator[Cond]:
    if isinstance(condition, And):
        yield from condition.parts
    else:
        yield condition


def _first(condition: Cond) -> Cond:
    return next(_conjuncts(condition))


def _evident(pieces: tuple[Cond, ...], goal: Cond, denied: Cond) -> bool:
    """Whether normal forms alone show that the goal follows."""
    if goal is TRUE or all(part in pieces for part in _conjuncts(goal)):
        return True
    return all_of((*pieces, denied)) is FALSE or contradictory(pieces, denied)
