"""Tiles of segments as those of one loop: the lemmas, that blocks take each tile once, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, sym
from argus.core.index import Index, Node
from argus.core.ir import Advance, For, If, Kernel, Let
from argus.core.proof.sync.roles import nested_tiles
from argus.core.proof.sync.roles.nested_tiles import in_one_loop
from argus.core.query import Budget, Sat, Unsat
from argus.core.tile_rounds import TileRounds
from argus.core.verdict import Proved, Unknown
from argus.core.walk import evaluate
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates
from tests.core.proof.rings import changed, of_role
from tests.verifier.switched_off_checks import always

both = pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=["z3", "cvc5"])


def products() -> Kernel:
    """Products of sequences: each block takes tiles of all of them, in a zigzag."""
    (template,) = templates(CORPUS / "proved" / "products_of_sequences.py")
    return template.trace()


def lemmas(rounds: TileRounds) -> Iterator[Any]:
    return vars(nested_tiles)["_lemmas"](rounds)


@both
@pytest.mark.parametrize("zigzag", [False, True])
def test_each_number_of_a_segment_is_taken_once(solver: Solver, *, zigzag: bool) -> None:
    for what, goal, hypotheses in lemmas(TileRounds(132, zigzag)):
        assert isinstance(Session(solver).prove(hypotheses, goal), Unsat), what


class Doubled(TileRounds):
    """Rounds in which two blocks have one place."""

    def place(self, block: Index, i: Index) -> Index:
        return algebra.minimum(super().place(block, i), self.blocks - 2)


@both
def test_places_that_two_blocks_have_are_none_of_rounds(solver: Solver) -> None:
    wrong = {what for what, goal, given in lemmas(Doubled(3)) if isinstance(Session(solver).prove(given, goal), Sat)}
    assert wrong == {"each place of a round is one block's"}


class Loops:
    """The statements of one role of `products`."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.outer, self.inner = of_role(kernel, name, For)[:2]
        self.passed, self.advance = of_role(kernel, name, Let)[0], of_role(kernel, name, Advance)[-1]
        (self.branch,) = of_role(kernel, name, If)


@pytest.mark.parametrize("starts", [(0, 0, 1, 500), (0, 64, 192, 193, 193, 1000), (0, 700), (0, 10, 20, 30, 40)])
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_blocks_take_each_tile_of_each_segment_once(starts: tuple[int, ...], columns: int) -> None:
    kernel = products()
    loops, (block,) = Loops(kernel, "math"), kernel.blocks
    assert kernel.roles is not None
    found = vars(nested_tiles)["_segments"](kernel.roles.roles[1], loops.outer, kernel)
    arrays = {"starts": np.array(starts)}
    pairs: list[tuple[int, int]] = []
    for at in range(3):
        env = dict.fromkeys(kernel.sizes, 16 * columns) | {block: at, loops.passed.symbol: 0}

        def value(of: Node, env: dict[Any, int] = env) -> int:
            return int(evaluate(of, env, arrays=arrays))

        for segment in range(len(starts) - 1):
            env[loops.outer.symbol] = segment
            for i in range(value(loops.inner.stop)):
                env[loops.inner.symbol] = i
                pairs += [(segment, value(found.number))] if value(loops.branch.cond) else []
            env[loops.passed.symbol] += value(loops.advance.by)
    totals = [-(-(end - first) // 64) * columns for first, end in pairwise(starts)]
    assert sorted(pairs) == [(segment, n) for segment, total in enumerate(totals) for n in range(total)]


OTHER = "a role that takes its tiles in other segments than another one"


def refused(kernel: Kernel) -> str:
    verdict = verify(kernel, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert isinstance(verdict, Unknown)
    return verdict.reason


def of_another_sum(kernel: Kernel) -> Kernel:
    """Its load role passes on one block more for each sequence, so that it loads other blocks' tiles."""
    advance = Loops(kernel, "load").advance
    return changed(kernel, advance, by=algebra.mod(add(advance.by, 1), 3))


def of_other_rounds(kernel: Kernel) -> Kernel:
    """Its load role takes the tiles of a zigzag as if all blocks began at the first one."""
    loops = Loops(kernel, "load")
    (block,) = kernel.blocks
    names = {loops.passed.symbol: algebra.mul(sym(loops.passed.symbol), 2)}
    moved = vars(nested_tiles)["rewrite_stmt"](loops.inner, names)
    assert block in vars(nested_tiles)["symbols"](moved.body[0].cond)
    return changed(kernel, loops.inner, body=moved.body)


@pytest.mark.share(8)
@pytest.mark.parametrize("edit", [of_another_sum, of_other_rounds])
def test_a_role_in_other_segments_is_not_proved(edit: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 reason: a function above
    kernel = edit(products())
    assert refused(kernel) == OTHER
    monkeypatch.setattr(nested_tiles, "_alike", always)
    assert isinstance(verify(kernel, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)


def by_the_block(kernel: Kernel) -> Kernel:
    """Blocks differ in what they have passed, so that two may take one tile."""
    for name in ("load", "math"):
        advance = Loops(kernel, name).advance
        kernel = changed(kernel, advance, by=add(advance.by, sym(kernel.blocks[0])))
    return kernel


@pytest.mark.share(4)
def test_segments_that_depend_on_the_block_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = by_the_block(products())
    refused(kernel)
    monkeypatch.setattr(nested_tiles, "_is_common", always)
    assert isinstance(verify(kernel, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)


def test_tiles_that_are_counted_otherwise_are_none_of_segments() -> None:
    kernel = products()
    for name in ("load", "math"):
        loops = Loops(kernel, name)
        kernel = changed(kernel, loops.inner, stop=add(loops.inner.stop, 1))
    assert in_one_loop(kernel) is None
    assert in_one_loop(products()) is not None
