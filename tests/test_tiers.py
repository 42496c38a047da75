"""The default tier leaves out what it should, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiers import FEW, LEAST, commit, drawn, few_of, share_of

CASES = [(f"test[{number}]", number) for number in range(17)]
SUITE = """
import pytest

@pytest.mark.share(4)
@pytest.mark.parametrize("number", range(8))
def test_many(number): pass

@pytest.mark.parametrize("solver", ["z3", pytest.param("cvc5", marks=pytest.mark.share(8))])
@pytest.mark.parametrize("number", range(16))
def test_both(number, solver): pass

@pytest.mark.share(3, among="pairs")
def test_one(): pass

@pytest.mark.share(3, among="pairs")
@pytest.mark.parametrize("number", range(4))
def test_other(number): pass

@pytest.mark.nightly
def test_dear(): pass

@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_many_dear(number): pass

@pytest.mark.nightly(4)
@pytest.mark.parametrize("number", range(8))
def test_dear_cases(number): pass

@pytest.mark.share(128, among="a large family")
@pytest.mark.parametrize("number", range(256))
def test_family(number): pass

def test_cheap(): pass
"""
pytest_plugins = ("pytester",)


def test_one_in_so_many_is_drawn() -> None:
    assert len(list(drawn(CASES, 8, "a"))) == 3
    assert len(list(drawn(CASES[:8], 8, "a"))) == 1
    assert sorted(drawn(CASES, 1, "a")) == list(range(17))


@pytest.mark.parametrize(("cases", "one_in", "often"), [(2, 3, 2 / 3), (1, 2, 1 / 2), (2, 8, LEAST), (1, 900, LEAST)])
def test_few_cases_have_one_drawn_as_often_as_they_are_one_in_so_many(cases: int, one_in: int, often: float) -> None:
    found = [list(drawn(CASES[:cases], one_in, str(seed))) for seed in range(2000)]
    assert {len(each) for each in found} == {0, 1}
    assert abs(sum(map(len, found)) / 2000 - often) < 0.04
    assert {each for some in found for each in some} == set(range(cases))


def test_groups_of_few_cases_have_their_turns_at_different_commits() -> None:
    turns = {tuple(bool(list(drawn([(name, 0)], 4, str(seed)))) for seed in range(40)) for name in "abcdefgh"}
    assert len(turns) == 8


def test_each_commit_draws_others_and_itself_the_same() -> None:
    assert list(drawn(CASES, 4, "a")) == list(drawn(CASES[::-1], 4, "a"))
    assert len({frozenset(drawn(CASES, 4, str(seed))) for seed in range(8)}) > 4


def test_every_case_is_drawn_sooner_or_later() -> None:
    assert {case for seed in range(60) for case in drawn(CASES, 8, str(seed))} == set(range(17))


def test_the_tier_all_draws_8_times_as_many_and_one_at_least() -> None:
    assert [share_of(number, "all") for number in (4, 8, 9, 1400)] == [(1, 1.0), (1, 1.0), (2, 1.0), (175, 1.0)]
    assert share_of(1400, "default") == (1400, LEAST)
    assert share_of(1400, "every") == (1, 1.0)
    assert all(len(list(drawn(CASES[:2], 44, str(seed), 1.0))) == 1 for seed in range(50))


def test_the_tier_all_draws_few_cases_of_a_nightly_test() -> None:
    assert [few_of(number) for number in (1, FEW, FEW + 1, 250)] == [1, 1, 2, 63]
    assert all(len(list(drawn([(str(n), n) for n in range(k)], few_of(k), "a"))) <= FEW for k in range(1, 100))


def test_no_commit_without_git(tmp_path: Path) -> None:
    assert commit(tmp_path) == ""


@pytest.mark.share(8, among="suites of their own")
@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ((), 2 + 16 + 2 + 2 + 2 + 1),
        (("--tier", "all"), 8 + 32 + 5 + 1 + 4 + 2 + 16 + 1),
        (("--tier", "every"), 8 + 32 + 5 + 1 + 20 + 8 + 256 + 1),
        (("test_suite.py::test_dear",), 1),
        (("test_suite.py::test_many",), 8),
    ],
)
def test_what_each_tier_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], passed: int
) -> None:
    _give_conftest(pytester, monkeypatch)
    pytester.makepyfile(test_suite=SUITE)
    pytester.makeini("[pytest]\nmarkers = nightly\n    share\n")

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *given)

    result.assert_outcomes(passed=passed)


@pytest.mark.share(8, among="suites of their own")
def test_examples_of_modules_are_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    _give_conftest(pytester, monkeypatch)
    pytester.makepyfile(wrong='def one():\n    """\n    >>> 1\n    2\n    """', none="assert __name__ != 'none'")
    pytester.maketxtfile(page="None here.")

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--doctest-modules", "--doctest-glob=*.txt")

    result.assert_outcomes(failed=1)  # and the module without examples is not even imported


def _give_conftest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", str(root))
    pytester.makeconftest((root / "conftest.py").read_text(encoding="utf-8"))
