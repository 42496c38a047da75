from __future__ import annotations

import copy
import pickle
from typing import cast

import numpy as np
import pytest

from argus.core import algebra
from argus.core.index_text import show
from argus.core.layout import Layout, LayoutError
from argus.core.layout.symbolic import Claim, Operations, Size, SymbolicLayout, symbols
from argus.core.layout.symbolic.facts import facts_from
from argus.core.layout.symbolic.polynomial import exact_quotient, lower_bound

M, K, N = symbols("M K N")
D = symbols("D", low=None)[0]
ROWS = SymbolicLayout((M, K), (K, 1))


def test_it_prints_in_the_notation_of_layouts() -> None:
    assert str(ROWS) == "(M,K):(K,1)"
    assert str(SymbolicLayout((M, (K // 64, 64)))) == "(M,(K//64,64)):(1,(M,M*(K//64)))"
    assert str(SymbolicLayout((M,), (2 * K + 1,))) == "(M,):(2*K+1,)"


def test_images_sizes_and_modes() -> None:
    assert str(ROWS(3, 4)) == "3*K + 4"
    assert (ROWS(M + 1) == K * ((M + 1) % M) + (M + 1) // M).node is algebra.TRUE
    assert str(ROWS.size()) == str(ROWS.cosize()) == "K*M"
    assert SymbolicLayout(M, D).cosize().node is (1 + (M - 1) * Size(algebra.maximum(D.node, 0))).node
    assert (str(ROWS[-1]), len(ROWS), [str(mode) for mode in ROWS]) == ("K:1", 2, ["M:K", "K:1"])


def test_substitution_gives_a_layout() -> None:
    assert ROWS.substitute({M: 4, K: 8}) == ROWS.substitute({"M": 4, "K": 8}) == Layout((4, 8), (8, 1))
    with pytest.raises(LayoutError, match="no value for K") as missing:
        ROWS.substitute({M: 4})
    with pytest.raises(LayoutError, match=r"M is 0 .* not within 1") as outside:
        ROWS.substitute({M: 0, K: 1})
    with pytest.raises(LayoutError, match="extent 0") as empty:
        SymbolicLayout(M // 4).substitute({M: 3})
    assert (missing.value.code, outside.value.code, empty.value.code) == ("E811", "E811", "E801")


def test_what_is_no_layout_is_refused() -> None:
    for make in (
        lambda: SymbolicLayout((M, K), (1,)),
        lambda: SymbolicLayout((M, 0)),
        lambda: SymbolicLayout((M, 1.5), (1, 1)),  # pyright: ignore[reportArgumentType] reason: the mistake
        lambda: symbols("M 2K"),
        lambda: M // 0,
    ):
        with pytest.raises(LayoutError) as refused:
            make()
        assert refused.value.code == "E801"
    with pytest.raises(LayoutError, match="does not fit"):
        ROWS((1, 2), 3)
    with pytest.raises(LayoutError, match="no mode 2"):
        ROWS[2]


def test_a_claim_has_no_truth_value_unless_it_is_evident() -> None:
    assert M >= 1
    assert not M < 1
    with pytest.raises(LayoutError, match="has no truth value") as undecided:
        bool(M % 128 == 0)
    with pytest.raises(LayoutError, match="has no value") as valueless:
        range(M)
    assert undecided.value.code == valueless.value.code == "E811"


def test_a_divide_lists_what_it_needs() -> None:
    result = Operations().logical_divide(ROWS, (128, 64))
    assert str(result.layout) == "((128,M//128),(64,K//64)):((K,128*K),(1,64))"
    assert [show(condition.formula) for condition in result.conditions] == ["M % 128 == 0", "K % 64 == 0"]


def test_without_its_condition_a_divide_would_be_wrong() -> None:
    result = Operations().logical_divide(SymbolicLayout(M, K), 4)
    [condition] = result.conditions
    assert show(condition.formula) == "M % 4 == 0"
    from_numbers = Layout(((4, 2)), ((3, 12)))
    assert result.layout.substitute({M: 8, K: 3}) == from_numbers
    assert result.layout.substitute({M: 11, K: 3}) == from_numbers


def test_no_divisibility_is_asked_twice_or_where_it_is_evident() -> None:
    assert Operations().logical_divide(SymbolicLayout(64 * M), 16).conditions == ()
    twice = Operations().logical_divide(SymbolicLayout((M, M)), (16, 4))
    assert [show(condition.formula) for condition in twice.conditions] == ["M % 16 == 0"]


def test_quotients_are_exact_under_assumptions() -> None:
    under = Operations(((M % 128 == 0).node,))
    assert str(under.logical_divide(ROWS, 128).layout) == "(128,(M//128,K)):(K,(128*K,1))"
    assert str(under.coalesce(SymbolicLayout((128, M // 128, K))).layout) == "K*M:1"
    named = Operations(((M == 128 * N).node,))
    assert str(named.logical_divide(SymbolicLayout((M, K)), 128).layout) == "(128,K*N):(1,128)"
    by_symbol = Operations(((M % N == 0).node,))
    assert str(by_symbol.logical_divide(SymbolicLayout((M, K)), (N, None)).layout) == "((N,M//N),K):((1,N),M)"


def test_undecided_forms_are_refused_and_named() -> None:
    with pytest.raises(LayoutError, match=r"`M >= 128` or .*`128 % M == 0`") as split:
        Operations().composition(ROWS, 128)
    with pytest.raises(LayoutError, match=r"`2\*K <= M`"):
        Operations().complement(SymbolicLayout((M, 4), (2 * K, M)), 64)
    with pytest.raises(LayoutError, match="`K == 1`"):
        Operations().right_inverse(SymbolicLayout((M, 4), (K, 2)))
    assert split.value.code == "E811"


def test_conditions_that_never_hold_are_refused() -> None:
    with pytest.raises(LayoutError, match="false for all sizes") as odd:
        Operations(((M == 2 * N + 1).node,)).logical_divide(SymbolicLayout(M), 2)
    with pytest.raises(LayoutError, match="positive"):
        Operations(((D <= -1).node,)).left_inverse(SymbolicLayout(M, D))
    assert odd.value.code == "E811"


def test_products_and_inverses() -> None:
    nothing = Operations()
    block = SymbolicLayout((8, 8), (8, 1))
    assert str(nothing.blocked_product(block, ROWS).layout) == "((8,M),(8,K)):((8,64*K),(1,64))"
    assert str(nothing.raked_product(block, ROWS).layout) == "((M,8),(K,8)):((64*K,8),(64,1))"
    assert str(nothing.logical_product(ROWS, 3).layout) == "((M,K),3):((K,1),K*M)"
    assert str(nothing.right_inverse(ROWS).layout) == str(nothing.left_inverse(ROWS).layout) == "(K,M):(M,1)"
    tiles = nothing.tile_to_shape(SymbolicLayout((8, 64), (64, 1)), (M, K), (1, 0))
    assert str(tiles.layout) == "((8,M//8),(64,K//64)):((64,8*K),(1,512))"
    assert [show(condition.formula) for condition in tiles.conditions] == ["M % 8 == 0", "K % 64 == 0"]


def test_a_last_mode_that_may_have_one_element_is_a_condition() -> None:
    result = Operations().left_inverse(SymbolicLayout(M, 4))
    assert (str(result.layout), [show(c.formula) for c in result.conditions]) == ("(4,M):(M,1)", ["M >= 2"])
    rounded = Operations().complement(SymbolicLayout(M, 4), N)
    assert show(rounded.conditions[0].formula) in {"M >= 2 or N % 4 == 0", "(M >= 2) or (N % 4 == 0)"}
    assert Operations(((M >= 2).node,)).complement(SymbolicLayout(M, 4), 4 * M * N).conditions == ()


def test_strides_of_the_right_operand_are_not_negative() -> None:
    below = Operations(((D >= -2).node, (M >= 64).node))
    result = below.composition(ROWS, SymbolicLayout((4, 2), (1, 4)))
    assert str(result.layout) == "(4,2):(K,4*K)"
    signed = Operations(((3 * D <= M - 1).node,)).composition(ROWS, SymbolicLayout(4, D))
    assert "D >= 0" in {show(condition.formula) for condition in signed.conditions}


def test_equality_is_a_condition() -> None:
    nothing = Operations()
    assert nothing.functionally_equal(SymbolicLayout((M, K)), SymbolicLayout(M * K)) is algebra.TRUE
    assert show(nothing.functionally_equal(SymbolicLayout(M, K), SymbolicLayout(M, N))) == "(M <= 1) or (K == N)"
    with pytest.raises(LayoutError, match="`K == M`"):
        nothing.functionally_equal(SymbolicLayout((M, 2), (K, 1)), SymbolicLayout((K, 2), (K, 1)))


def test_polynomials_divide_and_have_lower_bounds() -> None:
    m, k = M.node, K.node
    whole = ((M + 1) * (K + 2)).node
    assert exact_quotient(whole, (M + 1).node) is (K + 2).node
    assert exact_quotient(whole, (M + 2).node) is None
    assert exact_quotient((6 * M * K).node, (4 * M).node) is None
    assert exact_quotient(m, algebra.const(0)) is None
    assert lower_bound(algebra.sub(algebra.mul(m, k), m)) == 0
    assert lower_bound(algebra.sub(m, k)) is None


def test_facts_change_symbols_and_back() -> None:
    facts = facts_from(((M % 128 == 0) & (M % 192 == 0) & (K >= 5) & (N == 2 * M)).node for _ in range(1))
    assert show(facts.normal((128 * (M // 128) + N).node)) == "3*M"
    assert facts.quotient((M * K).node, (384 * K).node) is (M // 384).node
    assert facts.decide((M >= 384).node) is True
    assert facts.decide((K <= 4).node) is False
    assert facts.decide((K <= 5).node) is None
    assert facts.decide((N % 768 == 0).node) is True


def test_bounds_of_symbols_are_integers_with_room_between_them() -> None:
    refusals = (
        lambda: symbols("M", low=5, high=2),
        lambda: symbols("M", high=0),
        lambda: symbols("M", low=1.5),  # pyright: ignore[reportArgumentType] reason: the mistake
        lambda: symbols("M", low="a"),  # pyright: ignore[reportArgumentType] reason: the mistake
        lambda: symbols("M", low=True),
        lambda: symbols("M", high=2.0),  # pyright: ignore[reportArgumentType] reason: the mistake
    )
    for make in refusals:
        with pytest.raises(LayoutError) as refused:
            make()
        assert refused.value.code == "E801"
    assert symbols("M", low=np.int64(3), high=3)[0].node is symbols("M", low=3, high=3)[0].node


def test_values_of_symbols_are_integers() -> None:
    for value in (1.5, 2.0, True, "x", None):
        with pytest.raises(LayoutError, match="is no integer") as refused:
            SymbolicLayout(M).substitute({"M": value})  # pyright: ignore[reportArgumentType] reason: the mistake
        assert refused.value.code == "E801"
    found = SymbolicLayout(M).substitute({"M": np.int32(7)})  # pyright: ignore[reportArgumentType] reason: like an int
    assert (found, type(found.shape)) == (Layout(7), int)


def test_integers_of_numpy_are_integers() -> None:
    m, two = M, np.int64(2)
    assert SymbolicLayout((M, two), (two, 1)) == SymbolicLayout((M, 2), (2, 1))
    assert [each.node for each in (M * two, two * M, M + two, two - M, M // two, two % M)] == [
        each.node for each in (M * 2, 2 * M, M + 2, 2 - M, M // 2, 2 % M)
    ]
    below = cast(Claim, two <= m)
    assert [each.node for each in (m <= two, below, m == two)] == [each.node for each in (m <= 2, m >= 2, m == 2)]
    exact_quotient = Operations(((M % 2 == 0).node,)).logical_divide(SymbolicLayout(M), two)
    assert exact_quotient.layout == Operations(((M % 2 == 0).node,)).logical_divide(SymbolicLayout(M), 2).layout
    for value in (np.bool_(1), np.float64(2), True):
        with pytest.raises(LayoutError):
            SymbolicLayout((M, value))  # pyright: ignore[reportArgumentType] reason: the mistake


def test_copies_and_pickles_are_equal() -> None:
    size = (M * K + 3) // 4 % N - Size(algebra.pick((M <= K).node, algebra.minimum(M.node, 8), K.node))
    claim = ((M % 128 == 0) & (K != 4)) | (N <= M)
    layout = SymbolicLayout((size, (M, 2)), (1, (K, D)))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        sizes, claims, layouts = pickle.loads(pickle.dumps((size, claim, layout), protocol))  # noqa: S301 reason: ours
        assert (sizes.node, claims.node, layouts) == (size.node, claim.node, layout)
    assert copy.copy(size).node is copy.deepcopy(size).node is size.node
    assert copy.deepcopy(layout) == layout
    exact_quotient = Operations().logical_divide(ROWS, (128, 64))
    assert copy.deepcopy(exact_quotient) == pickle.loads(pickle.dumps(exact_quotient)) == exact_quotient  # noqa: S301 reason: ours
