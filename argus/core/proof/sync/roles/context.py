"""The context of the role analysis: a prover under the kernel's facts, and ghost variables that count ring uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, cast

from attrs import define, field

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index, Node, Pick, Symbol
from argus.core.ir import For, Kernel, Stmt
from argus.core.proof.prover import Prover
from argus.core.walk import fold, rebuild, substitute


class RefusedError(Exception):
    """The program is outside the model of the role analysis; caught in `sequentialise`.

    advice: what to write instead, if that is known.
    """

    def __init__(self, stmt: Stmt, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.stmt = stmt
        self.reason = reason
        self.advice = advice


def refuse(stmt: Stmt, reason: str, advice: str = "") -> NoReturn:
    raise RefusedError(stmt, reason, advice)


TILE = Symbol("tile'", "loop", 0, None)
"""The index of a tile among its block's tiles, common to all roles."""


def fresh_block_symbol(kernel: Kernel, wanted: str, high: int | None = None) -> Symbol:
    """A block coordinate with a name that the kernel does not use: the wanted one, or that with underscores."""
    taken = {block.name for block in kernel.blocks}
    while wanted in taken:
        wanted += "_"
    return Symbol(wanted, "block", 0, high)


@define(eq=False)
class ProofContext:
    """The prover and the ghost variables of one kernel.

    base(D): the uses of a ring before the current tile, where each tile has D uses (a function of the tile); equal for
    all roles at the same tile. total(D): the uses after all tiles. rounds(loop): the tiles that an agent has finished.
    """

    prover: Prover
    facts: tuple[Cond, ...]
    _ghosts: dict[tuple[str, object], Symbol] = field(factory=dict[tuple[str, object], Symbol], init=False)
    _uses: list[Index] = field(factory=list[Index], init=False)

    def holds(self, context: Sequence[Cond], goal: Cond) -> bool:
        if goal is algebra.TRUE:
            return True
        return self.prover.follows([*self.facts, *context], goal)

    def equivalent(self, context: Sequence[Cond], one: Cond, two: Cond) -> bool:
        if one is two:
            return True
        return self.holds([*context, one], two) and self.holds([*context, two], one)

    def equal(self, context: Sequence[Cond], one: Index, two: Index) -> bool:
        return self.holds(context, algebra.eq(one, two))

    def base(self, per_tile: Index, tiles: For | None = None) -> Index:
        return self._ghost("base", self.uses(per_tile, tiles))

    def total(self, per_tile: Index, tiles: For | None = None) -> Index:
        return self._ghost("uses", self.uses(per_tile, tiles))

    def uses(self, per_tile: Index, tiles: For | None = None) -> Index:
        """The representative of D for all roles, over `TILE`: the first known form that equals it in every tile."""
        named = per_tile if tiles is None else substitute(per_tile, {tiles.symbol: algebra.sym(TILE)})
        if any(each is named for each in self._uses):
            return named
        number = algebra.sym(TILE)
        facts = () if tiles is None else (algebra.le(0, number), algebra.lt(number, tiles.stop))
        for each in self._uses:
            if not isinstance(each, Const) and self.equal(facts, each, named):
                return each
        self._uses.append(named)
        return named

    def rounds(self, loop: object) -> Index:
        return self._ghost("rounds", loop)

    def _ghost(self, what: str, key: object) -> Index:
        if (what, key) not in self._ghosts:
            self._ghosts[what, key] = Symbol(f"{what}_{len(self._ghosts)}", "fresh", 0, None)
        return algebra.sym(self._ghosts[what, key])

    def simplify(self, expression: Index, context: Sequence[Cond]) -> Index:
        """The expression without the maxima, minima and conditionals that the context decides."""

        def visit(node: Node, parts: Sequence[Node]) -> Node:
            made = rebuild(node, parts)
            if isinstance(made, Bin) and made.op in ("max", "min"):
                if self.holds(context, algebra.le(made.right, made.left)):
                    return made.left if made.op == "max" else made.right
                if self.holds(context, algebra.le(made.left, made.right)):
                    return made.right if made.op == "max" else made.left
            if isinstance(made, Pick):
                if self.holds(context, made.cond):
                    return made.then
                if self.holds(context, algebra.negate(made.cond)):
                    return made.other
            return made

        return cast(Index, fold(expression, visit))


def exact_quotient(expression: Index, by: int) -> Index | None:
    """The quotient of an expression that is syntactically a multiple of `by`; None otherwise."""
    if isinstance(expression, Const):
        return algebra.const(expression.value // by) if expression.value % by == 0 else None
    made = algebra.floordiv(expression, by)
    return made if algebra.mul(made, by) is expression else None
