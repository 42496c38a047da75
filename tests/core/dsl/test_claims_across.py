"""Claims across iterations, blocks and subtiles: the traced IR, and errors of ill-formed claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from attrs import frozen

from argus.core import algebra
from argus.core.diagnostic import ArgusError
from argus.core.dsl.handles import Int
from argus.core.ir import Assert, Distinct, Kernel, Order, Relation, TagOf, walk
from argus.core.ir.pretty import claim_text
from argus.language import (
    Fragment,
    Tensor,
    assert_distinct,
    assert_order,
    assert_relation,
    bf16,
    block_id,
    ceil_div,
    copy,
    earlier,
    eq,
    f32,
    gfx942,
    global_load,
    kernel,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    registers,
    spread,
    tag,
    where,
    zeros,
)


@frozen
class At:
    """A tile, the block coordinate and the loop variable at a claim."""

    a: Fragment
    m: Int
    k: Int


Claims = Callable[[At], None]
BY = spread((64, 32), threads=256, vector=8)


def traced(claims: Claims) -> Kernel:
    @kernel(target=gfx942, threads=256)
    def looks(A: Tensor["M K", bf16]) -> None:
        tag(A, lambda m, k: dict(m=m, k=k))
        (m,) = block_id((ceil_div(A.shape[0], 64),))
        held = registers(bf16, BY)
        for k in loop(ceil_div(A.shape[1], 32)):
            copy(A.tile((64, 32), (m, k)), held, via=global_load, edge=0)
            claims(At(held, m, k))

    return looks.trace()


def claimed(claims: Claims) -> list[object]:
    return [stmt.claim for stmt in walk(traced(claims).body) if isinstance(stmt, Assert)]


def test_distinct_over_iterations_and_blocks() -> None:
    (found,) = claimed(lambda at: assert_distinct(at.a.tag.m, at.a.tag.k, over=(at.k, at.m)))

    assert isinstance(found, Distinct)
    assert [symbol.kind for symbol in found.over] == ["loop", "block"]
    assert claim_text(found).endswith(f"over {found.over[0].name}, {found.over[1].name}")


def test_earlier_binds_another_symbol_than_the_current_tile() -> None:
    (found,) = claimed(lambda at: assert_relation(earlier(at.a, 2), at.a, lambda was, now: eq(now.k, was.k + 64)))

    assert isinstance(found, Relation)
    assert [of.back for _, of in found.names] == [0, 2] or [of.back for _, of in found.names] == [2, 0]
    assert {symbol.name for symbol, _ in found.names} == {"held.k", "held.k 2 before"}
    assert "held.tag.k 2 before" in claim_text(found)


def test_a_subtile_has_its_own_layout() -> None:
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    (found,) = claimed(lambda _: assert_distinct(zeros(bf16, mm.A).tile((64, 16), (0, 1)).tag.m))

    assert isinstance(found, Distinct)
    assert found.components[0].by is not None
    assert found.components[0].by.tile == (64, 16)


def test_assert_order_takes_a_component() -> None:
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    (found,) = claimed(lambda _: assert_order(zeros(f32, mm.C).tag.k))

    assert isinstance(found, Order)
    assert found.of.name == "k"


def test_where_of_integers_is_an_integer() -> None:
    m = Int(algebra.coord(0))
    chosen = where(m < 3, m + 1, 0)

    assert isinstance(chosen, Int)
    assert chosen.node is algebra.pick(algebra.lt(m.node, 3), algebra.add(m.node, 1), 0)


def over_a_sum(at: At) -> None:
    assert_distinct(at.a.tag.m, over=at.k + 1)


def over_a_number(at: At) -> None:
    assert_distinct(at.a.tag.m, over=cast(Int, 3))


def earlier_of_a_number(_: At) -> None:
    assert_relation(earlier(cast(Fragment, 3)), lambda x: eq(x.k, 1))


def earlier_by_nothing(at: At) -> None:
    assert_relation(earlier(at.a, 0), lambda x: eq(x.k, 1))


def order_of_a_tile(at: At) -> None:
    assert_order(cast(TagOf, at.a))


@pytest.mark.parametrize("wrong", [over_a_sum, over_a_number, earlier_of_a_number, earlier_by_nothing, order_of_a_tile])
def test_ill_formed_claims_are_refused(wrong: Claims) -> None:
    with pytest.raises(ArgusError) as caught:
        traced(wrong)

    assert caught.value.diagnostic.code == "E106"
