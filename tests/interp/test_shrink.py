"""Counterexamples are shrunk until no single size can be reduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from argus.core.algebra import TRUE, all_of, const, eq, le, mod, sym
from argus.core.index import Cond, Symbol
from argus.core.verdict import Refuted
from argus.interp.run import run
from argus.interp.search.schedule import directed
from argus.interp.search.search import assumed, holds
from argus.interp.search.shrink import Shrunk, descend
from argus.verifier.kernel import verify
from argus.verifier.refute_text import describe_schedule
from property_tests.programs import CORPUS, templates

M, N = Symbol("M", "size", 0, 1 << 30), Symbol("N", "size", 0, 1 << 30)
Sizes = Mapping[str, int]


def descended(fails: Callable[[Sizes], bool | None], assumption: Cond = TRUE, **start: int) -> Shrunk:
    return descend((M, N), assumption, start, fails)


@pytest.mark.parametrize("least", [1, 2, 63, 64, 65, 100])
def test_the_least_value_that_fails_is_found(least: int) -> None:
    found = descended(lambda sizes: sizes["M"] >= least, M=100, N=100)

    assert found == Shrunk({"M": least, "N": 1}, smallest=True)


def test_only_what_is_assumed_is_tried() -> None:
    tried: list[int] = []

    def fails(sizes: Sizes) -> bool:
        tried.append(sizes["M"])
        return sizes["M"] > 17

    found = descended(fails, eq(mod(sym(M), const(8)), const(0)), M=80, N=1)

    assert found.sizes["M"] == 24
    assert all(value % 8 == 0 for value in tried)


def test_a_size_is_lowered_again_after_another() -> None:
    """With N = 4 no M below 8 fails; once N is lowered to 2, M can go to 4."""
    found = descended(lambda sizes: sizes["M"] >= 2 * sizes["N"] and sizes["N"] >= 2, M=8, N=4)

    assert found == Shrunk({"M": 4, "N": 2}, smallest=True)


def test_a_wide_range_is_halved_in_on() -> None:
    asked: list[Sizes] = []

    def fails(sizes: Sizes) -> bool:
        asked.append(sizes)
        return sizes["M"] >= 1_234_567

    assert descended(fails, M=1 << 29, N=1).sizes["M"] == 1_234_567
    assert len(asked) < 40


def test_without_an_answer_the_sizes_are_not_said_to_be_smallest() -> None:
    assert descended(lambda _: None, M=9, N=9) == Shrunk({"M": 9, "N": 9}, smallest=False)


def test_sizes_that_exclude_each_other_are_left_out() -> None:
    found = descended(lambda _: True, all_of((le(const(10), sym(M)), le(sym(N), const(5)))), M=20, N=5)

    assert found == Shrunk({"M": 10, "N": 1}, smallest=True)


TWINS = (
    *("swapped_output", "trip_count_short", "blocks_collide", "relation_too_strong", "wrong_swizzle", "wrong_fragment"),
    *("both_consumers_the_same_rows", "slices_in_another_order", "no_empty_wait", "lag_of_all_stages"),
)


@pytest.mark.share(40)
@pytest.mark.parametrize("name", TWINS)
def test_no_size_of_a_twin_can_be_one_step_smaller(name: str) -> None:
    """Under the schedule that is reported, every single size one admissible step down does not show the fault."""
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    kernel = template.trace()
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    found = verdict.counterexample
    (schedule,) = (each for each in directed(kernel) if describe_schedule(each) == found.schedule)

    def shows(sizes: Sizes) -> bool:
        violations = run(kernel, sizes, None, schedule, values=False).violations
        return any(each.code == found.code and each.stmt.span == found.at for each in violations)

    assert found.smallest
    assert shows(dict(found.sizes))
    for size in kernel.sizes:
        smaller = [dict(found.sizes) | {size.name: value} for value in range(1, dict(found.sizes)[size.name])]
        allowed = [sizes for sizes in smaller if holds(kernel, assumed(kernel), sizes)]
        assert not allowed or not shows(allowed[-1]), allowed[-1]
        assert not allowed or not shows(allowed[0]), allowed[0]
