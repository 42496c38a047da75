"""Whether hypotheses and what denies a goal can hold at once: the easiest queries first."""

from __future__ import annotations

from attrs import define, field

from argus.core.index import Cond, Or, Symbol
from argus.core.query import STEPS_PER_SECOND, Answer, GaveUp, Query, Sat, Unsat
from argus.core.walk import below
from argus.solvers.session.answers import Answers
from argus.solvers.session.instances import instance
from argus.solvers.session.multiples import has_multiples, multiples
from argus.solvers.session.slicing import cone, generalised, multiplies
from argus.solvers.session.witnesses import Witness, Witnesses

_WITNESS = "an earlier model"
_TRIED = 3
"""How many earlier models lend their sizes to a query."""
_SOON = STEPS_PER_SECOND
"""Steps for products that a solver is to understand by itself."""
_MANY = 4
"""Of so many parts at least that might fail, one is asked alone before all together."""


@define(eq=False)
class Deciding:
    """The queries that one session's questions come to."""

    answers: Answers
    _general: Witnesses = field(factory=Witnesses, init=False)
    _hard: dict[tuple[Cond, ...], Answer] = field(factory=dict[tuple[Cond, ...], Answer], init=False)
    """Answers to what no solver answers soon."""

    def decide(
        self, pieces: tuple[Cond, ...], denied: Cond, *, any_model: bool = False, steps: int | None = None
    ) -> Answer:
        """Whether the pieces and what denies a goal can hold at once, by queries."""
        connected, others = cone(pieces, denied)
        shown = self.answers.witnesses.of((denied, *connected)) if any_model else None
        if shown is None:
            simply = self._relaxed(connected, denied)
            if simply is not None:
                return simply
        else:
            self.answers.count("memory_hits")
        if any_model:
            shown = shown or self._instantiated(connected, denied) or self._of_one_part(connected, denied)
        answer = Sat(_WITNESS, shown.model) if shown else self.whole((*connected, denied), steps, hint=any_model)
        if not isinstance(answer, Sat) or not others:
            return answer
        if any_model and self.answers.witnesses.of(others) is not None:
            return answer
        rest = self.whole(others, hint=any_model)
        if not isinstance(rest, Sat) or any_model:
            return answer if isinstance(rest, Sat) else rest
        both = Sat(answer.solver, {**rest.model, **answer.model})
        return self.answers.checked(Query((*pieces, denied)), both)

    def whole(self, assertions: tuple[Cond, ...], steps: int | None = None, *, hint: bool = False) -> Answer:
        """Whether all assertions can hold at once, as one question.

        Where products have factors in common, and a solver has no answer soon, the products are first taken for numbers
        of which no more is known than how they compare; sizes that this allows are then tried. hint: no more is done.
        """
        if assertions in self._hard:
            return self._hard[assertions]
        related = has_multiples(assertions)
        soon = _SOON if steps is None else min(_SOON, steps)
        answer = self._ask(assertions, soon if related else steps)
        if not related or not isinstance(answer, GaveUp):
            return answer
        answer = self._by_facts(assertions, multiples(assertions)) or answer
        if isinstance(answer, GaveUp):
            return answer if hint or soon == steps else self._ask(assertions, steps)
        self._hard[assertions] = answer
        return answer

    def _by_facts(self, assertions: tuple[Cond, ...], facts: tuple[Cond, ...]) -> Answer | None:
        general = Query(tuple(map(generalised, (*assertions, *facts))))
        simply = self.answers.answer(general, kept=self._general)
        if not isinstance(simply, Sat):
            return simply if isinstance(simply, Unsat) else None
        made = instance(assertions, simply.model, whatever=True)
        found = None if made is None else self._met(made[0], made[1], assertions)
        return None if found is None else Sat(_WITNESS, found.model)

    def _ask(self, assertions: tuple[Cond, ...], steps: int | None = None) -> Answer:
        return self.answers.answer(Query(assertions), steps=steps)

    def _relaxed(self, connected: tuple[Cond, ...], denied: Cond) -> Unsat | None:
        """A proof that needs no solver that multiplies."""
        linear = tuple(piece for piece in connected if not multiplies(piece))
        if not multiplies(denied):
            # Products of symbols are what solvers give up on, and a linear goal seldom needs them.
            if len(linear) == len(connected) or self.answers.witnesses.of((denied, *linear)) is not None:
                return None
            answer = self._ask((*linear, denied))
            return answer if isinstance(answer, Unsat) else None
        # A product that plays no part but its own number needs no solver that multiplies.
        general = tuple(map(generalised, (*connected, denied)))
        if self._general.of(general) is not None:
            return None
        answer = self.answers.answer(Query(general), kept=self._general)
        return answer if isinstance(answer, Unsat) else None

    def _instantiated(self, connected: tuple[Cond, ...], denied: Cond) -> Witness | None:
        """An assignment that meets these, with sizes that met others: without products it is easily found."""
        if not any(map(multiplies, (*connected, denied))):
            return None
        for witness in self.answers.witnesses.latest(_TRIED):
            made = instance((denied, *connected), witness.model)
            found = None if made is None else self._met(made[0], made[1], (denied, *connected))
            if found is not None:
                return found
        return None

    def _of_one_part(self, connected: tuple[Cond, ...], denied: Cond) -> Witness | None:
        """An assignment that meets these and the shortest part of what any part of denies."""
        if not isinstance(denied, Or) or len(denied.parts) < _MANY:
            return None
        part = min(denied.parts, key=lambda each: len(below(each)))
        return self._met((*connected, part), {}, (denied, *connected))

    def _met(
        self, narrower: tuple[Cond, ...], numbers: dict[Symbol, int], assertions: tuple[Cond, ...]
    ) -> Witness | None:
        """An assignment, with these numbers, that meets the narrower conditions; None if it meets not all of these."""
        answer = self._ask(narrower)
        if not isinstance(answer, Sat):
            return None
        found = Witness({**answer.model, **numbers})
        if not found.satisfies(assertions):
            return None
        self.answers.witnesses.add(found.model)
        return found
