"""Claims that outputs equal formulas: what the analysis finds that a kernel stores, in the language's own syntax."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.ir import Assert, Buffer, Copy, Equals, Kernel, walk, whole
from argus.core.proof.analysis import analyse
from argus.core.proof.values.held.between import Left, value_left
from argus.core.proof.values.held.terms import all_symbols, replaced
from argus.core.values.expr import Expr, Reduce, expr, reduce_
from argus.core.values.rewriting import elements, map_parts, written_size
from argus.core.walk import substitute
from argus.solvers.session.session import Session
from argus.verifier.kernel import first_unproved
from argus.verifier.suggest.program import with_statements, without_claims

_LONGEST = 300
"""Parts of a formula that is proposed."""
_LETTERS = "jklpqstuvwxyz"


def proved_formulas(kernel: Kernel, session: Session) -> tuple[Assert, ...]:
    """For each output without a claimed formula the claim that it equals what it holds, if that is proved.

    All together, or else each by itself, of the kernel without its own claims.
    """
    bare = without_claims(kernel)
    claimed = {s.claim.view.buffer for s in walk(kernel.body) if isinstance(s, Assert) and isinstance(s.claim, Equals)}
    made = tuple(Assert(Equals(whole(output), value)) for output, value in stored_values(bare, session))
    if first_unproved(with_statements(bare, (), {}, made), session) is not None:
        made = tuple(one for one in made if first_unproved(with_statements(bare, (), {}, [one]), session) is None)
    return tuple(one for one in made if isinstance(one.claim, Equals) and one.claim.view.buffer not in claimed)


def stored_values(bare: Kernel, session: Session) -> Iterator[tuple[Buffer, Expr]]:
    """What each output holds, in terms of tensors that the kernel only reads."""
    written = {stmt.target.buffer for stmt in walk(bare.body) if isinstance(stmt, Copy)}
    flows = analyse(bare, session).flows
    for output in (each for each in bare.parameters if each in written):
        left = value_left(flows[0], output, {}) if len(flows) == 1 else ""
        if not isinstance(left, Left) or written_size(left.value) > _LONGEST:
            continue
        if not {each.tensor for each in elements(left.value)} & {each.name for each in written}:
            yield output, named(left.value, bare)


def named(value: Expr, kernel: Kernel) -> Expr:
    """The value with variables of reductions named as a person would: letters that the kernel does not use."""
    bound = sorted({node.name for node in all_symbols(value) if node.name.startswith("~")})
    taken = {each.name for each in (*kernel.sizes, *kernel.parameters)}
    letters = [each for each in (*_LETTERS, *(f"j{n}" for n in range(len(bound)))) if each not in taken]
    names = dict(zip(bound, letters, strict=False))

    def visit(of: Expr) -> Expr:
        if not isinstance(of, Reduce):
            return map_parts(of, visit, lambda index: index, lambda cond: cond)
        own = Symbol(names[of.variable.name], "fresh")
        here = {of.variable: algebra.sym(own)}
        return reduce_(of.op, own, of.low, of.high, visit(replaced(of.body, here)), substitute(of.where, here))

    return visit(expr(value))
