"""The Z3 backends, by API and by SMT-LIB text; the only module that imports z3."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# z3 ships no types; what this module returns is typed.

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, cast
from weakref import finalize

import z3
from attrs import frozen

from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.allocation import keep_freed_memory
from argus.solvers.base import Capabilities
from argus.solvers.incremental import OnStack
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
        maker = _Maker(context)
        try:
            terms = build_terms(lowered.steps, maker)
            for position in lowered.asserted:
                maker.assert_in(solver, terms[position])
            outcome = _check(solver, budget)
            if outcome == z3.unsat:
                return Unsat(self.name)
            if outcome == z3.sat:
                return read_model(self.name, lowered, terms, partial(maker.number_in, solver.model()))
            return _gave_up(self.name, solver)
        finally:
            maker.release()

    def opened(self) -> OnStack:
        """Z3 with one context and a stack of assertions, for one thread."""
        return OnStack(self.name, self.capabilities, _Z3Stack)


class _Z3Stack:
    """A context with one solver. Its terms are given back once it is collected, before the context is."""

    def __init__(self) -> None:
        self._context = _context()
        self._solver = z3.SimpleSolver(ctx=self._context)
        self._solver.set("ctrl_c", False)  # an interrupt is Python's to raise, after a check of few steps
        self._limits: tuple[int, int, int] | None = None
        self._model: z3.ModelRef | None = None
        self.make = _Maker(self._context)
        finalize(self, self.make.release).atexit = False

    def push(self, terms: Sequence[Term]) -> None:
        self._solver.push()
        for term in terms:
            self.make.assert_in(self._solver, term)

    def pop(self, levels: int) -> None:
        self._solver.pop(levels)

    def check(self, budget: Budget) -> bool | None:
        limits = budget.steps, milliseconds(budget), budget.seed % (1 << 30)
        if limits != self._limits:
            _limit(self._solver, budget)
            self._limits = limits
        self._model = None
        try:
            outcome = self._solver.check()
            self._model = self._solver.model() if outcome == z3.sat else None
        except z3.Z3Exception:
            return None
        return None if outcome == z3.unknown else outcome == z3.sat

    def number(self, term: Term) -> int:
        return self.make.number_in(cast("z3.ModelRef", self._model), term)


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
    _limit(solver, budget)
    return solver


def _limit(solver: z3.Solver, budget: Budget) -> None:
    solver.set("rlimit", budget.steps)
    solver.set("timeout", milliseconds(budget))
    solver.set("random_seed", budget.seed % (1 << 30))


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


_ADDRESS, _COUNT, _TEXT = ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "inc_ref": (None, (_ADDRESS,)),
    "dec_ref": (None, (_ADDRESS,)),
    "mk_int_sort": (_ADDRESS, ()),
    "mk_string_symbol": (_ADDRESS, (_TEXT,)),
    "mk_const": (_ADDRESS, (_ADDRESS, _ADDRESS)),
    "mk_numeral": (_ADDRESS, (_TEXT, _ADDRESS)),
    **{f"mk_{name}": (_ADDRESS, (_COUNT, ctypes.POINTER(_ADDRESS))) for name in ("add", "mul", "and", "or")},
    **{f"mk_{name}": (_ADDRESS, (_ADDRESS, _ADDRESS)) for name in ("le", "eq")},
    "mk_ite": (_ADDRESS, (_ADDRESS, _ADDRESS, _ADDRESS)),
    "mk_not": (_ADDRESS, (_ADDRESS,)),
    "solver_assert": (None, (_ADDRESS, _ADDRESS)),
    "model_eval": (ctypes.c_bool, (_ADDRESS, _ADDRESS, ctypes.c_bool, ctypes.POINTER(_ADDRESS))),
    "get_numeral_string": (_TEXT, (_ADDRESS,)),
}
"""Functions of Z3's C API that are called here: what they return and take after the context, an address."""


@cache
def _functions() -> dict[str, Any]:
    """The same functions as the package's, with argument types that Python takes without code of its own."""
    found: dict[str, Any] = {}
    for name, (result, taken) in _FUNCTIONS.items():
        shared = getattr(z3, f"Z3_{name}").__defaults__[0].f
        made = ctypes.CFUNCTYPE(result, _ADDRESS, *taken)
        found[name] = made(ctypes.cast(shared, _ADDRESS).value or 0)
    return found


def _address(of: Any) -> int:  # noqa: ANN401 reason: z3 ships no types
    return of.value


class _Maker:
    """Terms as addresses: Z3's Python terms inspect all operands on each call, and take several times as long to make.

    They live until `release`, which must precede the end of the context: that is slow if terms are left.
    """

    def __init__(self, context: z3.Context) -> None:
        self._functions = _functions()
        self._owner = context  # lives at least as long as the terms
        self._context = _address(context.ref())
        self._numbers: dict[int, Term] = {}
        self._all: list[Term] = []
        self._integers = self._made("mk_int_sort")

    def release(self) -> None:
        """Gives the terms back."""
        for made in reversed(self._all):
            self._functions["dec_ref"](self._context, made)
        self._all.clear()

    def number(self, value: int) -> Term:
        if value not in self._numbers:
            self._numbers[value] = self._made("mk_numeral", str(value).encode(), self._integers)
        return self._numbers[value]

    def variable(self, ordinal: int) -> Term:
        symbol = self._functions["mk_string_symbol"](self._context, f"v{ordinal}".encode())
        return self._made("mk_const", symbol, self._integers)

    def total(self, terms: Sequence[tuple[Term, int]], constant: int) -> Term:
        scaled = [term if factor == 1 else self.product(term, self.number(factor)) for term, factor in terms]
        return self._of_many("mk_add", (*scaled, self.number(constant)))

    def product(self, left: Term, right: Term) -> Term:
        return self._of_many("mk_mul", (left, right))

    def choice(self, condition: Term, then: Term, other: Term) -> Term:
        return self._made("mk_ite", condition, then, other)

    def at_most(self, left: Term, right: Term) -> Term:
        return self._made("mk_le", left, right)

    def equal(self, left: Term, right: Term) -> Term:
        return self._made("mk_eq", left, right)

    def conjunction(self, parts: Sequence[Term]) -> Term:
        return self._of_many("mk_and", parts)

    def disjunction(self, parts: Sequence[Term]) -> Term:
        return self._of_many("mk_or", parts)

    def negation(self, part: Term) -> Term:
        return self._made("mk_not", part)

    def assert_in(self, solver: z3.Solver, term: Term) -> None:
        self._functions["solver_assert"](self._context, _address(solver.solver), term)

    def number_in(self, model: z3.ModelRef, term: Term) -> int:
        """What the model gives a term."""
        found = _ADDRESS()
        if not self._functions["model_eval"](self._context, _address(model.model), term, True, ctypes.byref(found)):
            raise z3.Z3Exception("the model gives a term no value")
        return int(self._functions["get_numeral_string"](self._context, found))

    def _of_many(self, function: str, operands: Sequence[Term]) -> Term:
        return self._made(function, len(operands), (_ADDRESS * len(operands))(*operands))

    def _made(self, function: str, *taken: Any) -> Term:  # noqa: ANN401 reason: as the C function takes them
        made = self._functions[function](self._context, *taken)
        if not made:
            raise z3.Z3Exception(f"Z3_{function} failed")
        self._functions["inc_ref"](self._context, made)
        self._all.append(made)
        return made


def _value(model: z3.ModelRef, term: Term) -> int:
    return int(cast(Term, model.eval(term, model_completion=True)).as_long())
