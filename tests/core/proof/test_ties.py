"""Names that relations decide: which relations do, and what they ask of elements that are multiplied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest

from argus.core import algebra
from argus.core.dtype import f32
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Buffer, Relation, Staged, TagOf, whole
from argus.core.layout import row_major
from argus.core.proof.values.made_of import MadeOf, Reading
from argus.core.proof.values.named_parts import Part
from argus.core.proof.values.ties import ties
from argus.core.values.expr import Expr, choose, element, fn, reduce_
from argus.core.walk import substitute, symbols

TAGS = {"A": (("k", algebra.coord(0)),), "S": (("kb", algebra.coord(0)),)}
J, BLOCK = Symbol("j", "fresh", 0), Symbol("i", "fresh", 0)
j, block = algebra.sym(J), algebra.sym(BLOCK)
SUM, SCALE = Symbol("p.k", "fresh"), Symbol("r.kb", "fresh")
p, r = algebra.sym(SUM), algebra.sym(SCALE)
OF_K = algebra.eq(r, algebra.floordiv(p, 4))
VIEW = whole(Buffer("tile", "shared", f32, (algebra.const(4),), Staged(row_major((4,)))))


def relation(cond: Cond, back: int = 0) -> Relation:
    return Relation(((SUM, TagOf(VIEW, "k", back=back)), (SCALE, TagOf(VIEW, "kb"))), cond)


def follows(given: Sequence[Cond], goal: Cond) -> bool:
    """Whether a goal follows for all numbers below 8."""
    names = sorted(symbols(goal, *given), key=lambda each: each.name)
    for at in product(range(8), repeat=len(names)):
        case: dict[Symbol, Index] = {name: algebra.const(x) for name, x in zip(names, at, strict=True)}
        if all(substitute(cond, case) is algebra.TRUE for cond in given) and substitute(goal, case) is not algebra.TRUE:
            return False
    return True


@pytest.mark.parametrize(
    ("claim", "decided"),
    [
        (relation(OF_K), ["kb"]),
        (relation(algebra.eq(r, p)), ["k", "kb"]),
        (relation(algebra.le(r, algebra.floordiv(p, 4))), []),
        (relation(algebra.all_of((OF_K, algebra.le(p, 5)))), ["kb"]),
        (relation(algebra.eq(r, 0)), []),
        (relation(OF_K, back=1), []),
    ],
)
def test_which_names_a_relation_decides(claim: Relation, decided: list[str]) -> None:
    assert sorted(tie.name for tie in ties([claim], follows)) == decided


def read(of: Expr) -> MadeOf:
    def agree(one: Part, two: Part) -> bool:
        return one.value is two.value

    return Reading(TAGS, agree, ties([relation(OF_K)], follows)).of(of)


def scaled(k: Index, kb: Index | int) -> Expr:
    """Sums of 4 elements, each scaled, for 2 blocks."""
    return reduce_("sum", BLOCK, 0, 2, fn("mul", reduce_("sum", J, 0, 4, element("A", k)), element("S", kb)))


def inside(k: Index, kb: Index | int) -> Expr:
    """The same, element by element."""
    body = fn("mul", element("S", kb), element("A", k))
    return reduce_("sum", BLOCK, 0, 2, reduce_("sum", J, 0, 4, body))


K = algebra.add(algebra.mul(block, 4), j)


@pytest.mark.parametrize("form", [scaled, inside])
@pytest.mark.parametrize(
    ("k", "kb", "holds"),
    [(K, block, True), (K, 0, False), (K, algebra.sub(1, block), False), (algebra.add(K, 1), block, False)],
)
def test_a_relation_is_asked_of_all_products(
    form: Callable[[Index, Index | int], Expr], k: Index, kb: Index | int, holds: bool
) -> None:
    (part,) = read(form(k, kb)).names["kb"]
    assert part.tie is not None
    assert follows([], part.tie) == holds


def test_nothing_is_asked_of_what_no_relation_ties() -> None:
    alone = reduce_("sum", BLOCK, 0, 2, element("S", block))
    added = fn("add", alone, reduce_("sum", J, 0, 4, element("A", j)))
    closed = fn("mul", fn("exp", reduce_("sum", J, 0, 4, element("A", j))), element("S", block))
    for of in (alone, added, closed):
        assert all(part.tie is None for part in read(of).names["kb"])


def test_a_relation_is_asked_where_there_are_elements() -> None:
    first = choose(algebra.lt(j, 4), element("A", j), 0)
    body = fn("mul", reduce_("sum", J, 0, 8, first), element("S", 0))
    (part,) = read(body).names["kb"]
    assert part.tie is not None
    assert follows([], part.tie)
