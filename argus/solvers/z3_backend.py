"""The Z3 backends, by API and by SMT-LIB text; the only module that imports z3."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# z3 ships no types; what this module returns is typed.

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import z3
from attrs import frozen

from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.allocation import keep_freed_memory
from argus.solvers.base import Capabilities
from argus.solvers.smtlib.build import Term, build_terms, milliseconds, read_model
from argus.solvers.smtlib.form import Inexpressible, Lowered
from argus.solvers.smtlib.lowering import lower
from argus.solvers.smtlib.script import export, symbol_name
from argus.solvers.smtlib.sexpr import unquoted

_CANCELLED = ("canceled", "interrupted from keyboard")
_EARLY = 0.9
"""A check that stopped below this fraction of its limits did not stop because of them."""
_CAPABILITIES = Capabilities(unbounded=True, nonlinear=True, bitwise=False, reads=True)


@frozen
class Z3:
    """Integer arithmetic by Z3; each check has its own context, so neither threads nor earlier checks affect it."""

    name: str = "z3"
    version: str = str(z3.get_full_version())
    capabilities: Capabilities = _CAPABILITIES

    def check(self, query: Query, budget: Budget) -> Answer:
        lowered = lower(query)
        if isinstance(lowered, Inexpressible):
            return GaveUp(self.name, lowered.reason)
        try:
            return self._decide(lowered, budget)
        except z3.Z3Exception as error:
            return GaveUp(self.name, f"z3 failed: {error}")

    def _decide(self, lowered: Lowered, budget: Budget) -> Answer:
        context = _context()
        solver = _solver(budget, context)
        terms = build_terms(lowered.steps, _Maker(context))
        for position in lowered.asserted:
            # `Solver.add` would inspect the sort of each assertion, which is known here.
            z3.Z3_solver_assert(context.ref(), solver.solver, terms[position].ast)
        outcome = _check(solver, budget)
        if outcome == z3.unsat:
            return Unsat(self.name)
        if outcome == z3.sat:
            return read_model(self.name, lowered, terms, partial(_value, solver.model()))
        return _gave_up(self.name, solver)


@frozen
class Z3Text:
    """Z3 on the query exported as an SMT-LIB script: it uses Z3's parser and none of our lowering."""

    name: str = "z3-text"
    version: str = str(z3.get_full_version())
    capabilities: Capabilities = _CAPABILITIES

    def check(self, query: Query, budget: Budget) -> Answer:
        text = export(query)
        if isinstance(text, Inexpressible):
            return GaveUp(self.name, text.reason)
        try:
            return self._decide(query, text, budget)
        except z3.Z3Exception as error:
            return GaveUp(self.name, f"z3 failed: {error}")

    def _decide(self, query: Query, text: str, budget: Budget) -> Answer:
        context = _context()
        solver = _solver(budget, context)
        solver.from_string(text)
        outcome = _check(solver, budget)
        if outcome == z3.unsat:
            return Unsat(self.name)
        if outcome == z3.unknown:
            return _gave_up(self.name, solver)
        model = solver.model()
        terms = {symbol: z3.Int(unquoted(symbol_name(symbol)), context) for symbol in query.symbols}
        return Sat(self.name, {symbol: _value(model, term) for symbol, term in terms.items()})


def _context() -> z3.Context:
    keep_freed_memory()
    return z3.Context()


def _solver(budget: Budget, context: z3.Context) -> z3.Solver:
    # SimpleSolver is faster than the logic's tactic on these queries, above all on those with products.
    solver = z3.SimpleSolver(ctx=context)
    solver.set("rlimit", budget.steps)
    solver.set("timeout", milliseconds(budget))
    solver.set("random_seed", budget.seed % (1 << 30))
    return solver


def _check(solver: z3.Solver, budget: Budget) -> z3.CheckSatResult:
    """Raises KeyboardInterrupt where Z3 caught the interrupt: it then answers unknown, as it does at a limit."""
    begun = time.monotonic()
    outcome = solver.check()
    if outcome == z3.unknown and solver.reason_unknown() in _CANCELLED:
        early = time.monotonic() - begun < _EARLY * milliseconds(budget) / 1000
        if early and _spent(solver) < _EARLY * budget.steps:
            raise KeyboardInterrupt
    return outcome


def _spent(solver: z3.Solver) -> int:
    """The resource units that the solver's context has used."""
    pairs: list[tuple[str, int]] = list(cast("Any", solver.statistics()))
    return next((count for name, count in pairs if name == "rlimit count"), 0)


def _gave_up(name: str, solver: z3.Solver) -> GaveUp:
    reason = solver.reason_unknown()
    exhausted = reason in _CANCELLED or "limit" in reason or "timeout" in reason
    return GaveUp(
        name, "z3 answers unknown: out of budget" if exhausted else f"z3 answers unknown: {reason}", exhausted
    )


class _Maker:
    """Z3's C constructors, called directly: its Python operators inspect the sorts of all operands on each call."""

    def __init__(self, context: z3.Context) -> None:
        self.context = context
        self._numbers: dict[int, Term] = {}

    def number(self, value: int) -> Term:
        if value not in self._numbers:
            self._numbers[value] = z3.IntVal(value, self.context)
        return self._numbers[value]

    def variable(self, ordinal: int) -> Term:
        return z3.Int(f"v{ordinal}", self.context)

    def total(self, terms: Sequence[tuple[Term, int]], constant: int) -> Term:
        scaled = [term if factor == 1 else self.product(term, self.number(factor)) for term, factor in terms]
        return z3.ArithRef(self._apply(z3.Z3_mk_add, (*scaled, self.number(constant))), self.context)

    def product(self, left: Term, right: Term) -> Term:
        return z3.ArithRef(self._apply(z3.Z3_mk_mul, (left, right)), self.context)

    def choice(self, condition: Term, then: Term, other: Term) -> Term:
        return z3.If(condition, then, other, self.context)

    def at_most(self, left: Term, right: Term) -> Term:
        return z3.BoolRef(z3.Z3_mk_le(self.context.ref(), left.ast, right.ast), self.context)

    def equal(self, left: Term, right: Term) -> Term:
        return z3.BoolRef(z3.Z3_mk_eq(self.context.ref(), left.ast, right.ast), self.context)

    def conjunction(self, parts: Sequence[Term]) -> Term:
        if not parts:
            return z3.BoolVal(True, self.context)
        return z3.BoolRef(self._apply(z3.Z3_mk_and, parts), self.context)

    def disjunction(self, parts: Sequence[Term]) -> Term:
        if not parts:
            return z3.BoolVal(False, self.context)
        return z3.BoolRef(self._apply(z3.Z3_mk_or, parts), self.context)

    def negation(self, part: Term) -> Term:
        return z3.Not(part, self.context)

    def _apply(self, make: Callable[..., Any], operands: Sequence[Term]) -> Term:
        return make(self.context.ref(), len(operands), (z3.Ast * len(operands))(*(each.ast for each in operands)))


def _value(model: z3.ModelRef, term: Term) -> int:
    return int(cast(Term, model.eval(term, model_completion=True)).as_long())
