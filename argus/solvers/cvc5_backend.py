"""The cvc5 backends, by API and by SMT-LIB text; the only module that imports cvc5."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false
# cvc5 ships no types; what this module returns is typed.

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import cvc5
from attrs import frozen
from cvc5 import Kind, UnknownExplanation

from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities
from argus.solvers.smtlib.build import Term, build_terms, milliseconds, read_model
from argus.solvers.smtlib.form import Inexpressible
from argus.solvers.smtlib.lowering import lower
from argus.solvers.smtlib.script import export, symbol_name
from argus.solvers.smtlib.sexpr import unquoted

_STEPS_PER_UNIT = 20
"""Z3 resource units per cvc5 resource unit: the ratio of what each spends in a second on an idle core."""
_WEIGHTS = ("ARITH_BB_LEMMA=500",)
"""Resource units by kind of step, where not 1. A full check of the tableau follows each lemma of branch and bound on
integers and costs some hundred times a rewrite step; unweighted, such queries run 50 times over their budget."""
_EXHAUSTED = (UnknownExplanation.RESOURCEOUT, UnknownExplanation.TIMEOUT)
_CAPABILITIES = Capabilities(unbounded=True, nonlinear=True, bitwise=False, reads=True)


@frozen
class Cvc5:
    """Integer arithmetic by cvc5; each check has its own term manager and solver."""

    name: str = "cvc5"
    version: str = str(cvc5.__version__)
    capabilities: Capabilities = _CAPABILITIES

    def check(self, query: Query, budget: Budget) -> Answer:
        lowered = lower(query)
        if isinstance(lowered, Inexpressible):
            return GaveUp(self.name, lowered.reason)
        manager = cvc5.TermManager()
        solver = _solver(manager, budget)
        solver.setLogic(lowered.logic)
        terms = build_terms(lowered.steps, _Maker(manager))
        for position in lowered.asserted:
            solver.assertFormula(terms[position])
        outcome = solver.checkSat()
        if outcome.isUnsat():
            return Unsat(self.name)
        if outcome.isSat():
            return read_model(self.name, lowered, terms, partial(_value, solver))
        why = outcome.getUnknownExplanation()
        exhausted = why in _EXHAUSTED
        return GaveUp(
            self.name, f"cvc5 answers unknown: {'out of budget' if exhausted else why.name.lower()}", exhausted
        )


@frozen
class Cvc5Text:
    """cvc5 on the query exported as an SMT-LIB script: it uses cvc5's parser and none of our lowering."""

    name: str = "cvc5-text"
    version: str = str(cvc5.__version__)
    capabilities: Capabilities = _CAPABILITIES

    def check(self, query: Query, budget: Budget) -> Answer:
        text = export(query)
        if isinstance(text, Inexpressible):
            return GaveUp(self.name, text.reason)
        try:
            return self._decide(query, text, budget)
        except RuntimeError as error:
            return GaveUp(self.name, f"cvc5 failed: {error}")

    def _decide(self, query: Query, text: str, budget: Budget) -> Answer:
        solver = _solver(cvc5.TermManager(), budget)
        parser = cvc5.InputParser(solver)
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, query.key)
        output = _last_output(parser, solver)
        if output == "unsat":
            return Unsat(self.name)
        if output != "sat":
            return GaveUp(self.name, f"cvc5 answers {output}", exhausted=output == "unknown")
        terms = {term.getSymbol(): term for term in parser.getSymbolManager().getDeclaredTerms()}
        found = {symbol: terms[unquoted(symbol_name(symbol))] for symbol in query.symbols}
        return Sat(self.name, {symbol: _value(solver, term) for symbol, term in found.items()})


def _last_output(parser: cvc5.InputParser, solver: cvc5.Solver) -> str:
    """Run all commands; the output of the last that prints anything."""
    output = "nothing"
    symbols = parser.getSymbolManager()
    while not (command := parser.nextCommand()).isNull():
        output = command.invoke(solver, symbols).strip() or output
    return output


def _solver(manager: cvc5.TermManager, budget: Budget) -> cvc5.Solver:
    solver = cvc5.Solver(manager)
    solver.setOption("produce-models", "true")
    solver.setOption("rlimit-per", str(max(1, budget.steps // _STEPS_PER_UNIT)))
    for weight in _WEIGHTS:
        solver.setOption("rweight", weight)
    solver.setOption("tlimit-per", str(milliseconds(budget)))
    solver.setOption("seed", str(budget.seed))
    return solver


class _Maker:
    """Terms made by one term manager."""

    def __init__(self, manager: cvc5.TermManager) -> None:
        self.manager = manager

    def number(self, value: int) -> Term:
        # mkInteger takes an int of 32 bits at most, but text of any length.
        return self.manager.mkInteger(str(value))

    def variable(self, ordinal: int) -> Term:
        return self.manager.mkConst(self.manager.getIntegerSort(), f"v{ordinal}")

    def total(self, terms: Sequence[tuple[Term, int]], constant: int) -> Term:
        addends = [term if factor == 1 else self.product(self.number(factor), term) for term, factor in terms]
        if constant != 0 or not addends:
            addends.append(self.number(constant))
        return addends[0] if len(addends) == 1 else self.manager.mkTerm(Kind.ADD, *addends)

    def product(self, left: Term, right: Term) -> Term:
        return self.manager.mkTerm(Kind.MULT, left, right)

    def choice(self, condition: Term, then: Term, other: Term) -> Term:
        return self.manager.mkTerm(Kind.ITE, condition, then, other)

    def at_most(self, left: Term, right: Term) -> Term:
        return self.manager.mkTerm(Kind.LEQ, left, right)

    def equal(self, left: Term, right: Term) -> Term:
        return self.manager.mkTerm(Kind.EQUAL, left, right)

    def conjunction(self, parts: Sequence[Term]) -> Term:
        return self._junction(Kind.AND, parts)

    def disjunction(self, parts: Sequence[Term]) -> Term:
        return self._junction(Kind.OR, parts)

    def negation(self, part: Term) -> Term:
        return self.manager.mkTerm(Kind.NOT, part)

    def _junction(self, kind: Kind, parts: Sequence[Term]) -> Term:
        if len(parts) > 1:
            return self.manager.mkTerm(kind, *parts)
        return parts[0] if parts else self.manager.mkBoolean(kind == Kind.AND)


def _value(solver: cvc5.Solver, term: Term) -> int:
    return cast(int, solver.getValue(term).getIntegerValue())
