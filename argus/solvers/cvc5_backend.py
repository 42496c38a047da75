"""cvc5 as a backend: the only file that imports it."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false
# cvc5 ships no types; what leaves this file is typed.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never, cast

import cvc5
from attrs import frozen
from cvc5 import Kind, UnknownExplanation

from argus.core.index import Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities
from argus.solvers.smtlib.form import (
    AtMost,
    Choice,
    Equal,
    Every,
    Inexpressible,
    Lowered,
    Number,
    Opposite,
    Product,
    Some,
    Step,
    Total,
    Variable,
)
from argus.solvers.smtlib.lowering import lower
from argus.solvers.smtlib.script import export, symbol_name
from argus.solvers.smtlib.sexpr import plain

Term = Any


_STEPS_PER_UNIT = 20
"""Z3's resource units for one of cvc5's: what each spends in a second on an idle core."""
_WEIGHTS = ("ARITH_BB_LEMMA=500",)
"""Resource units by kind of step, where not 1. A lemma of branch and bound on integers is followed by a full check of
the tableau, which costs some hundred times a rewrite step; uncounted, such queries run 50 times over their budget."""
_EXHAUSTED = (UnknownExplanation.RESOURCEOUT, UnknownExplanation.TIMEOUT)
_CAPABILITIES = Capabilities(unbounded=True, nonlinear=True, bitwise=False, reads=True)


@frozen
class Cvc5:
    """Integer arithmetic by cvc5; each check has its own term manager and solver."""

    name: str = "cvc5"
    capabilities: Capabilities = _CAPABILITIES

    def check(self, query: Query, budget: Budget) -> Answer:
        lowered = lower(query)
        if isinstance(lowered, Inexpressible):
            return GaveUp(self.name, lowered.reason)
        manager = cvc5.TermManager()
        solver = _solver(manager, budget)
        solver.setLogic(lowered.logic)
        terms = _terms(lowered.steps, manager)
        for position in lowered.asserted:
            solver.assertFormula(terms[position])
        outcome = solver.checkSat()
        if outcome.isUnsat():
            return Unsat(self.name)
        if outcome.isSat():
            return Sat(self.name, _model(solver, lowered, terms))
        why = outcome.getUnknownExplanation()
        exhausted = why in _EXHAUSTED
        return GaveUp(
            self.name, f"cvc5 answers unknown: {'out of budget' if exhausted else why.name.lower()}", exhausted
        )


@frozen
class Cvc5Text:
    """cvc5 as a reader of the script that a query is exported as: its own parser, and nothing of our lowering."""

    name: str = "cvc5-text"
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
        said = _said(parser, solver)
        if said == "unsat":
            return Unsat(self.name)
        if said != "sat":
            return GaveUp(self.name, f"cvc5 answers {said}", exhausted=said == "unknown")
        terms = {term.getSymbol(): term for term in parser.getSymbolManager().getDeclaredTerms()}
        found = {symbol: terms[plain(symbol_name(symbol))] for symbol in query.symbols}
        return Sat(self.name, {symbol: _value(solver, term) for symbol, term in found.items()})


def _said(parser: cvc5.InputParser, solver: cvc5.Solver) -> str:
    """What the last command that says anything says."""
    said = "nothing"
    symbols = parser.getSymbolManager()
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols).strip() or said
    return said


def _solver(manager: cvc5.TermManager, budget: Budget) -> cvc5.Solver:
    solver = cvc5.Solver(manager)
    solver.setOption("produce-models", "true")
    solver.setOption("rlimit-per", str(max(1, budget.steps // _STEPS_PER_UNIT)))
    for weight in _WEIGHTS:
        solver.setOption("rweight", weight)
    solver.setOption("tlimit-per", str(max(1, round(budget.seconds * 1000))))
    solver.setOption("seed", str(budget.seed))
    return solver


def _terms(steps: tuple[Step, ...], manager: cvc5.TermManager) -> list[Term]:
    terms: list[Term] = []
    for step in steps:
        terms.append(_term(step, terms, manager))
    return terms


def _term(step: Step, terms: list[Term], manager: cvc5.TermManager) -> Term:
    match step:
        case Number(value=value):
            return _number(value, manager)
        case Variable(ordinal=ordinal):
            return manager.mkConst(manager.getIntegerSort(), f"v{ordinal}")
        case Total():
            return _total(step, terms, manager)
        case Product(left, right):
            return manager.mkTerm(Kind.MULT, terms[left], terms[right])
        case Choice(condition, then, other):
            return manager.mkTerm(Kind.ITE, terms[condition], terms[then], terms[other])
        case AtMost(left, right):
            return manager.mkTerm(Kind.LEQ, terms[left], terms[right])
        case Equal(left, right):
            return manager.mkTerm(Kind.EQUAL, terms[left], terms[right])
        case Every(parts):
            return _junction(Kind.AND, [terms[part] for part in parts], manager)
        case Some(parts):
            return _junction(Kind.OR, [terms[part] for part in parts], manager)
        case Opposite(part):
            return manager.mkTerm(Kind.NOT, terms[part])
        case _:
            assert_never(step)


def _number(value: int, manager: cvc5.TermManager) -> Term:
    # As an int, cvc5 takes 32 bits at most; as text, any number.
    return manager.mkInteger(str(value))


def _total(step: Total, terms: list[Term], manager: cvc5.TermManager) -> Term:
    addends = [
        terms[part] if factor == 1 else manager.mkTerm(Kind.MULT, _number(factor, manager), terms[part])
        for part, factor in step.terms
    ]
    if step.constant != 0 or not addends:
        addends.append(_number(step.constant, manager))
    return addends[0] if len(addends) == 1 else manager.mkTerm(Kind.ADD, *addends)


def _junction(kind: Kind, parts: list[Term], manager: cvc5.TermManager) -> Term:
    if len(parts) > 1:
        return manager.mkTerm(kind, *parts)
    return parts[0] if parts else manager.mkBoolean(kind == Kind.AND)


def _model(solver: cvc5.Solver, lowered: Lowered, terms: list[Term]) -> Mapping[Symbol, int]:
    return {symbol: _value(solver, terms[position]) for symbol, position in lowered.symbols}


def _value(solver: cvc5.Solver, term: Term) -> int:
    return cast(int, solver.getValue(term).getIntegerValue())
