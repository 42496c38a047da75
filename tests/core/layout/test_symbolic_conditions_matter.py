"""Drop one kind of condition, and a result is wrong at sizes that the remaining conditions allow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as every
from typing import Any, cast

import pytest

from argus import layout as concrete
from argus.core.index import Cond
from argus.core.layout import Layout, LayoutError
from argus.core.layout.inverse import left_inverse_of_layout
from argus.core.layout.symbolic import Claim, Conditional, Operations, SymbolicLayout, symbols
from argus.core.layout.symbolic.side_conditions import Context
from argus.core.walk import evaluate
from argus.core.walk import symbols as symbols_of

M, K, N = symbols("M K N")
D = symbols("D", low=None)[0]
Case = tuple[tuple[Claim, ...], Callable[[Operations], Conditional], Callable[[Callable[[Any], Any]], Layout]]

CASES: dict[str, Case] = {
    "tiles fill the extent without a rest": (
        (),
        lambda on: on.logical_divide(SymbolicLayout(M), 4),
        lambda at: concrete.logical_divide(Layout(at(M)), 4),
    ),
    "blocks fill the extent without a rest": (
        (),
        lambda on: on.tile_to_shape(SymbolicLayout(4), (M,)),
        lambda at: concrete.tile_to_shape(Layout(4), (at(M),)),
    ),
    "each stride is a multiple of stride times extent of the one below it": (
        (D >= 1, M >= 2),
        lambda on: on.complement(SymbolicLayout((2, M), (1, D)), 1),
        lambda at: concrete.complement(Layout((2, at(M)), (1, at(D))), 1),
    ),
    "strides that are inverted are positive": (
        (M >= 2,),
        lambda on: on.left_inverse(SymbolicLayout(M, D)),
        lambda at: left_inverse_of_layout(Layout(at(M), at(D))),
    ),
    "a last mode of extent 1 leaves no gap below it": (
        (),
        lambda on: on.complement(SymbolicLayout(M, 4), N),
        lambda at: concrete.complement(Layout(at(M), 4), at(N)),
    ),
    "parts together stay within the extents before them": (
        (N <= M, K >= 2, N >= 2),
        lambda on: on.composition(SymbolicLayout((M, K), (K, 1)), SymbolicLayout((N, 2), (1, N - 1))),
        lambda at: concrete.composition(Layout((at(M), at(K)), (at(K), 1)), Layout((at(N), 2), (1, at(N) - 1))),
    ),
    "strides of the right layout are not negative": (
        (3 * D <= M - 1,),
        lambda on: on.composition(SymbolicLayout((M, K), (K, 1)), SymbolicLayout(4, D)),
        lambda at: concrete.composition(Layout((at(M), at(K)), (at(K), 1)), Layout(4, at(D))),
    ),
    "strides of the layout of copies are not negative": (
        (),
        lambda on: on.logical_product(SymbolicLayout(2), SymbolicLayout(3, D)),
        lambda at: concrete.logical_product(Layout(2), Layout(3, at(D))),
    ),
    "the stride divides the extents before a mode": (
        (N == 5, M >= 6, M <= 7, K <= 2),
        lambda on: on.composition(SymbolicLayout((M, K), (1, 8)), SymbolicLayout((6, 1), (3, 0))),
        lambda at: concrete.composition(Layout((at(M), at(K)), (1, 8)), Layout((6, 1), (3, 0))),
    ),
}


def number(node: Any, values: dict[str, int]) -> int:  # noqa: ANN401 reason: any node
    return int(cast(int, evaluate(node, {symbol: values[symbol.name] for symbol in symbols_of(node)})))


def wrong_somewhere(case: Case) -> bool:
    assumed, symbolic, numbers = case
    facts = tuple(claim.node for claim in assumed)
    result = symbolic(Operations(facts))
    conditions = (*facts, *(condition.formula for condition in result.conditions))
    return any(_wrong(result, numbers, values) for values in _allowed(conditions))


def _allowed(conditions: tuple[Cond, ...]) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for m, k, n, d in every((1, 2, 3, 4, 6, 7, 9), (1, 2, 3), (1, 2, 3, 5), (-2, 0, 1, 3)):
        values: dict[str, int] = {"M": m, "K": k, "N": n, "D": d}
        if all(number(condition, values) for condition in conditions):
            found.append(values)
    return found


def _wrong(result: Conditional, numbers: Callable[[Callable[[Any], Any]], Layout], values: dict[str, int]) -> bool:
    try:
        wanted = numbers(lambda size: number(size.node, values))
        return concrete.coalesce(result.layout.substitute(values)) != concrete.coalesce(wanted)
    except LayoutError:
        return True


@pytest.mark.parametrize("reason", CASES)
def test_a_result_is_right_with_its_conditions_and_wrong_without_one(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not wrong_somewhere(CASES[reason])
    require = Context.require

    def forgetful(context: Context, condition: Cond, why: str) -> None:
        if why != reason:
            require(context, condition, why)

    monkeypatch.setattr(Context, "require", forgetful)
    assert wrong_somewhere(CASES[reason])
