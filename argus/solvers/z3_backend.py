"""Z3 as a backend: the only file that imports it."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# z3 ships no types; what leaves this file is typed.

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never, cast

import z3
from attrs import frozen

from argus.core.index import Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.allocation import keep_freed_memory
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


_CANCELLED = ("canceled", "interrupted from keyboard")
_EARLY = 0.9
"""Of a limit, by when it has certainly not been reached."""
_CAPABILITIES = Capabilities(unbounded=True, nonlinear=True, bitwise=False, reads=True)


@frozen
class Z3:
    """Integer arithmetic by Z3; each check has its own context, so that threads and history cannot interfere."""

    name: str = "z3"
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
        terms = _terms(lowered.steps, context)
        for position in lowered.asserted:
            # `add` looks at the sort of what it is given, which is known here.
            z3.Z3_solver_assert(context.ref(), solver.solver, terms[position].ast)
        outcome = _checked(solver, budget)
        if outcome == z3.unsat:
            return Unsat(self.name)
        if outcome == z3.sat:
            return Sat(self.name, _model(solver.model(), lowered, terms))
        return _gave_up(self.name, solver)


@frozen
class Z3Text:
    """Z3 as a reader of the script that a query is exported as: its own parser, and nothing of our lowering."""

    name: str = "z3-text"
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
        outcome = _checked(solver, budget)
        if outcome == z3.unsat:
            return Unsat(self.name)
        if outcome == z3.unknown:
            return _gave_up(self.name, solver)
        model = solver.model()
        terms = {symbol: z3.Int(plain(symbol_name(symbol)), context) for symbol in query.symbols}
        return Sat(self.name, {symbol: _value(model, term) for symbol, term in terms.items()})


def _context() -> z3.Context:
    keep_freed_memory()
    return z3.Context()


def _solver(budget: Budget, context: z3.Context) -> z3.Solver:
    # The plain solver beats the tactic of the logic on these queries, most of all where there are products.
    solver = z3.SimpleSolver(ctx=context)
    solver.set("rlimit", budget.steps)
    solver.set("timeout", _milliseconds(budget))
    solver.set("random_seed", budget.seed % (1 << 30))
    return solver


def _checked(solver: z3.Solver, budget: Budget) -> z3.CheckSatResult:
    """Raises KeyboardInterrupt for one that Z3 has taken for itself: it answers as it does at the end of a limit."""
    begun = time.monotonic()
    outcome = solver.check()
    if outcome == z3.unknown and solver.reason_unknown() in _CANCELLED:
        early = time.monotonic() - begun < _EARLY * _milliseconds(budget) / 1000
        if early and _spent(solver) < _EARLY * budget.steps:
            raise KeyboardInterrupt
    return outcome


def _spent(solver: z3.Solver) -> int:
    """Resource units that the context of a solver has used."""
    pairs: list[tuple[str, int]] = list(cast("Any", solver.statistics()))
    return next((count for name, count in pairs if name == "rlimit count"), 0)


def _gave_up(name: str, solver: z3.Solver) -> GaveUp:
    reason = solver.reason_unknown()
    exhausted = reason in _CANCELLED or "limit" in reason or "timeout" in reason
    return GaveUp(
        name, "z3 answers unknown: out of budget" if exhausted else f"z3 answers unknown: {reason}", exhausted
    )


def _milliseconds(budget: Budget) -> int:
    return max(1, round(budget.seconds * 1000))


def _terms(steps: tuple[Step, ...], context: z3.Context) -> list[Term]:
    maker = _Maker(context)
    terms: list[Term] = []
    for step in steps:
        terms.append(_term(step, terms, maker))
    return terms


class _Maker:
    """Terms made by Z3's own constructors: its Python operators look at the sorts of all operands each time."""

    def __init__(self, context: z3.Context) -> None:
        self.context = context
        self._numbers: dict[int, Term] = {}

    def number(self, value: int) -> Term:
        if value not in self._numbers:
            self._numbers[value] = z3.IntVal(value, self.context)
        return self._numbers[value]

    def integer(self, make: Callable[..., Any], *operands: Term) -> Term:
        """A sum or a product of integers."""
        return z3.ArithRef(self._of_many(make, operands), self.context)

    def compared(self, make: Callable[..., Any], left: Term, right: Term) -> Term:
        return z3.BoolRef(make(self.context.ref(), left.ast, right.ast), self.context)

    def junction(self, make: Callable[..., Any], parts: Sequence[Term]) -> Term:
        return z3.BoolRef(self._of_many(make, parts), self.context)

    def _of_many(self, make: Callable[..., Any], operands: Sequence[Term]) -> Term:
        return make(self.context.ref(), len(operands), (z3.Ast * len(operands))(*(each.ast for each in operands)))


def _term(step: Step, terms: list[Term], maker: _Maker) -> Term:
    match step:
        case Number(value=value):
            return maker.number(value)
        case Variable(ordinal=ordinal):
            return z3.Int(f"v{ordinal}", maker.context)
        case Total(parts, constant):
            scaled = [_scaled(terms[part], factor, maker) for part, factor in parts]
            return maker.integer(z3.Z3_mk_add, *scaled, maker.number(constant))
        case Product(left, right):
            return maker.integer(z3.Z3_mk_mul, terms[left], terms[right])
        case Choice(condition, then, other):
            return z3.If(terms[condition], terms[then], terms[other], maker.context)
        case AtMost(left, right):
            return maker.compared(z3.Z3_mk_le, terms[left], terms[right])
        case Equal(left, right):
            return maker.compared(z3.Z3_mk_eq, terms[left], terms[right])
        case Every(parts):
            if not parts:
                return z3.BoolVal(True, maker.context)
            return maker.junction(z3.Z3_mk_and, [terms[part] for part in parts])
        case Some(parts):
            if not parts:
                return z3.BoolVal(False, maker.context)
            return maker.junction(z3.Z3_mk_or, [terms[part] for part in parts])
        case Opposite(part):
            return z3.Not(terms[part], maker.context)
        case _:
            assert_never(step)


def _scaled(term: Term, factor: int, maker: _Maker) -> Term:
    return term if factor == 1 else maker.integer(z3.Z3_mk_mul, term, maker.number(factor))


def _model(model: z3.ModelRef, lowered: Lowered, terms: list[Term]) -> Mapping[Symbol, int]:
    return {symbol: _value(model, terms[position]) for symbol, position in lowered.symbols}


def _value(model: z3.ModelRef, term: Term) -> int:
    return int(cast(Term, model.eval(term, model_completion=True)).as_long())
