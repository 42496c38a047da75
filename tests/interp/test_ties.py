"""Sizes that equations tie to others are computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from argus.core import algebra
from argus.core.index import Cond, Symbol
from argus.interp.search import search
from argus.interp.search.search import sizes_in_order
from argus.interp.search.ties import tied
from argus.language import Tensor, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread

K, B, N = (Symbol(name, "size", 0) for name in "KBN")


def test_a_tied_size_follows_the_others() -> None:
    whole = algebra.eq(algebra.sym(K), algebra.mul(algebra.sym(B), 40))
    found = list(tied(whole, [{"K": 64, "B": 3, "N": 1}]))
    assert found == [{"K": 64, "B": 3, "N": 1}, {"K": 120, "B": 3, "N": 1}]


def test_ties_follow_each_other() -> None:
    both = algebra.all_of(
        (
            algebra.eq(algebra.sym(K), algebra.mul(algebra.sym(B), 40)),
            algebra.eq(algebra.mul(algebra.sym(K), 2), algebra.sym(N)),
        )
    )
    assert {"K": 120, "B": 3, "N": 240} in list(tied(both, [{"K": 1, "B": 3, "N": 1}]))


def test_sizes_without_an_equation_stay_as_they_are() -> None:
    sizes = [{"K": 64, "B": 3, "N": 1}]
    assert list(tied(algebra.le(algebra.sym(K), algebra.sym(B)), sizes)) == sizes


def untied(_: Cond, sizes: Iterable[Mapping[str, int]]) -> Iterable[Mapping[str, int]]:
    return sizes


@kernel(target=sm_90a, threads=64)
def scaled(X: Tensor["M K", f32], S: Tensor["M B", f32], Y: Tensor["M K", f32]) -> None:
    (M, K), (_, B) = X.shape, S.shape
    assume(K == 40 * B)
    m, k = block_id((ceil_div(M, 16), ceil_div(K, 64)))
    by = spread((16, 64), threads=64, vector=4)
    copy(load(X.tile((16, 64), (m, k)), by, edge=0), Y.tile((16, 64), (m, k)), edge=0)


def test_several_blocks_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    made = scaled.trace()
    assert {0, 1, 2, 4} == {size["B"] for size in sizes_in_order(made)}

    monkeypatch.setattr(search, "tied", untied)

    assert list(sizes_in_order(made)) == []
