"""Claims about sizes, such as laws of one's own, are proved for all values or refuted at values that were put in."""

from __future__ import annotations

import pytest

from argus.layout import Assumptions, LayoutError, SymbolicLayout, symbols, under

s, d, m = symbols("s d m")
(i,) = symbols("i", low=0)
ROWS = SymbolicLayout((4, s), (1, d))


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_a_law_is_proved_and_its_false_neighbour_refuted(solver: str) -> None:
    inside = under(i < 4 * s, d == 4 * m, solver=solver)
    proved, refuted = inside.decide(ROWS(i) <= 4 * s * m), inside.decide(ROWS(i) <= 4 * m)

    assert (proved.holds, proved.by) == (True, solver)
    assert refuted.holds is False
    assert refuted.counterexample is not None
    at = refuted.counterexample
    assert at["d"] == 4 * at["m"]
    assert at["i"] < 4 * at["s"]
    assert at["i"] % 4 + at["d"] * (at["i"] // 4) > 4 * at["m"]
    assert str(refuted).startswith("refuted at d=4, i=")


def test_normal_forms_and_gaps_are_told_apart() -> None:
    assert under().decide(s * d == d * s).by == "normal form"
    unknown = Assumptions((), seconds=0.001).decide((s * s * d - m * m * m) % 7 != 3)
    assert unknown.holds is not True
    with pytest.raises(LayoutError, match="E811"):
        under(s < 1).decide(s == d)
    with pytest.raises(LayoutError, match="E801"):
        under().decide(3)  # pyright: ignore[reportArgumentType] reason: tests bad input
