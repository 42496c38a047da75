"""Decides whether hypotheses and a negated goal are satisfiable together, trying the cheapest queries first."""

from __future__ import annotations

from attrs import define, field

from argus.core.index import Cond, Or, Symbol
from argus.core.query import STEPS_PER_SECOND, Answer, GaveUp, Query, Sat, Unsat
from argus.core.walk import below
from argus.solvers.session.answers import Answers
from argus.solvers.session.linear_instance import linear_instance
from argus.solvers.session.product_facts import has_product_facts, product_facts
from argus.solvers.session.slicing import abstract_products, cone, multiplies
from argus.solvers.session.witnesses import Witness, Witnesses

WITNESS = "an earlier model"
_TRIED = 3
"""How many earlier models to try as a source of sizes for a query."""
_SOON = STEPS_PER_SECOND
"""The step limit for a query with related products before facts about the products are tried."""
_MANY = 4
"""A disjunction with at least this many parts is first replaced by its smallest part."""


@define(eq=False)
class Decider:
    """Decides one session's implications by queries."""

    answers: Answers
    _general: Witnesses = field(factory=Witnesses, init=False)
    _hard: dict[tuple[tuple[Cond, ...], bool], Answer] = field(
        factory=dict["tuple[tuple[Cond, ...], bool]", Answer], init=False
    )
    """Answers to queries that no solver decides within _SOON steps, apart for any model and for the one model."""

    def decide(
        self, pieces: tuple[Cond, ...], denied: Cond, *, any_model: bool = False, steps: int | None = None
    ) -> Answer:
        """Whether the hypotheses' conjuncts and the negated goal are satisfiable together.

        any_model: a counterexample may be a model of an earlier query. steps: a lower step limit than the budget's.
        """
        connected, others = cone(pieces, denied)
        witness = self.answers.witnesses.of((denied, *connected)) if any_model else None
        if witness is None:
            refuted = self._refuted_without_products(connected, denied, steps)
            if refuted is not None:
                return refuted
        else:
            self.answers.count("memory_hits")
        if any_model:
            # The model of a query without the products is often one with them.
            witness = witness or self.answers.witnesses.newest_of((denied, *connected))
            witness = witness or self._model_with_earlier_sizes(connected, denied)
            witness = witness or self._model_of_one_disjunct(connected, denied)
        answer = witness.answer(WITNESS) if witness else self.whole((*connected, denied), steps, hint=any_model)
        if not isinstance(answer, Sat) or not others:
            return answer
        if any_model and self.answers.witnesses.of(others) is not None:
            return answer
        rest = self.whole(others, hint=any_model)
        if not isinstance(rest, Sat) or any_model:
            return answer if isinstance(rest, Sat) else rest
        both = Sat(answer.solver, {**rest.model, **answer.model}, {**rest.elements, **answer.elements})
        return self.answers.checked(Query((*pieces, denied)), both)

    def whole(self, assertions: tuple[Cond, ...], steps: int | None = None, *, hint: bool = False) -> Answer:
        """Whether all assertions are satisfiable together, sliced no further.

        Where products share factors and the solver gives up within _SOON steps, the products are replaced by unknowns,
        related only by facts about how they compare; a model of that query supplies sizes to try. hint: if that fails
        too, give up instead of asking again with the full step limit, and take any model.
        """
        if (assertions, hint) in self._hard:
            return self._hard[assertions, hint]
        related = has_product_facts(assertions)
        limit = self.answers.budget.steps if steps is None else min(steps, self.answers.budget.steps)
        soon = min(_SOON, limit)
        answer = self._ask(assertions, soon if related else steps, any_model=hint)
        if not related or not isinstance(answer, GaveUp):
            return answer
        answer = self._by_facts(assertions, product_facts(assertions), any_model=hint) or answer
        if isinstance(answer, GaveUp):
            return answer if hint or soon >= limit else self._ask(assertions, steps)
        self._hard[assertions, hint] = answer
        return answer

    def _by_facts(self, assertions: tuple[Cond, ...], facts: tuple[Cond, ...], *, any_model: bool) -> Answer | None:
        """A definite answer from the facts about products, or None."""
        general = Query(tuple(map(abstract_products, (*assertions, *facts))))
        abstract = self.answers.answer(general, store=self._general, any_model=any_model)
        if not isinstance(abstract, Sat):
            return abstract if isinstance(abstract, Unsat) else None
        made = linear_instance(assertions, abstract.model, all_symbols=True)
        found = None if made is None else self._extended_model(*made, assertions, any_model=any_model)
        return None if found is None else found.answer(WITNESS)

    def _ask(self, assertions: tuple[Cond, ...], steps: int | None = None, *, any_model: bool = False) -> Answer:
        return self.answers.answer(Query(assertions), steps=steps, any_model=any_model)

    def _refuted_without_products(self, connected: tuple[Cond, ...], denied: Cond, steps: int | None) -> Unsat | None:
        """A proof by linear arithmetic, or None.

        For a linear goal it leaves out the hypotheses with products; otherwise it replaces each product by an unknown.
        """
        linear = tuple(piece for piece in connected if not multiplies(piece))
        if not multiplies(denied):
            # Solvers give up mostly on products of symbols, and a linear goal rarely needs those hypotheses.
            if len(linear) == len(connected) or self.answers.witnesses.of((denied, *linear)) is not None:
                return None
            answer = self._ask((*linear, denied), steps, any_model=True)
            return answer if isinstance(answer, Unsat) else None
        # A proof that uses a product only as an opaque number needs no nonlinear arithmetic.
        general = tuple(map(abstract_products, (*connected, denied)))
        if self._general.of(general) is not None:
            return None
        answer = self.answers.answer(Query(general), steps=steps, store=self._general, any_model=True)
        return answer if isinstance(answer, Unsat) else None

    def _model_with_earlier_sizes(self, connected: tuple[Cond, ...], denied: Cond) -> Witness | None:
        """A model in which the sizes that occur in products have an earlier model's values: a linear query."""
        if not any(map(multiplies, (*connected, denied))):
            return None
        for witness in self.answers.witnesses.latest(_TRIED):
            made = linear_instance((denied, *connected), witness.model)
            found = None if made is None else self._extended_model(made[0], made[1], (denied, *connected))
            if found is not None:
                return found
        return None

    def _model_of_one_disjunct(self, connected: tuple[Cond, ...], denied: Cond) -> Witness | None:
        """A model of the connected hypotheses and the smallest disjunct of the negated goal."""
        if not isinstance(denied, Or) or len(denied.parts) < _MANY:
            return None
        part = min(denied.parts, key=lambda each: len(below(each)))
        return self._extended_model((*connected, part), {}, (denied, *connected))

    def _extended_model(
        self,
        narrower: tuple[Cond, ...],
        numbers: dict[Symbol, int],
        assertions: tuple[Cond, ...],
        *,
        any_model: bool = True,
    ) -> Witness | None:
        """A model of the narrower conditions, extended by the numbers, if it satisfies all assertions; else None."""
        answer = self._ask(narrower, any_model=any_model)
        if not isinstance(answer, Sat):
            return None
        found = Witness({**answer.model, **numbers}, answer.elements)
        if not found.satisfies(assertions):
            return None
        self.answers.witnesses.add(found)
        return found
