from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.core.query import Budget, Query, Sat, Unsat
from argus.solvers.base import Capabilities
from argus.solvers.registry import Deferred, available, get


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of somebody else that declares three solvers."""
    info = tmp_path / "someone-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someone\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[argus.solvers]\nsomeones = someones_solver:Theirs\nbroken = not_there_at_all:X\nz3 = someones_solver:Theirs\n"
    )
    (tmp_path / "someones_solver.py").write_text("from argus.solvers.enumeration import Enumerate as Theirs\n")
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    get.cache_clear()
    yield
    get.cache_clear()


def test_built_in_solvers_are_declared() -> None:
    assert set(available()) >= {"z3", "cvc5", "enumerate", "portfolio", "all"}


@pytest.mark.parametrize("name", ["z3", "cvc5", "enumerate", "portfolio", "all"])
def test_get_loads_once(name: str) -> None:
    solver = get(name)

    assert solver.name == name
    assert get(name) is solver
    assert solver.check(Query(()), Budget()) == Sat(solver.check(Query(()), Budget()).solver, {})


@pytest.mark.usefixtures("plugin")
def test_third_party_solvers_are_found_and_cannot_replace_ours() -> None:
    assert "someones" in available()
    assert get("someones").check(Query(()), Budget()) == Sat("enumerate", {})
    assert get("z3").name == "z3"


@pytest.mark.usefixtures("plugin")
def test_solver_that_does_not_import_is_a_diagnostic() -> None:
    with pytest.raises(ArgusError) as raised:
        get("broken")

    assert raised.value.diagnostic.code == "E602"
    assert "not_there_at_all" in raised.value.diagnostic.message


def test_unknown_name_lists_the_names_and_the_nearest() -> None:
    with pytest.raises(ArgusError) as raised:
        get("cvc4")

    diagnostic = raised.value.diagnostic
    assert diagnostic.code == "E601"
    assert all(name in diagnostic.message for name in available())
    assert diagnostic.help == "did you mean `cvc5`?"


def test_name_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(ArgusError) as raised:
        get("qqqqqq")

    assert raised.value.diagnostic.help == "choose one of these names"


def test_deferred_is_the_solver_it_names() -> None:
    deferred = Deferred("enumerate")

    assert deferred.capabilities == Capabilities(unbounded=False, nonlinear=True, bitwise=True, reads=False)
    assert not isinstance(deferred.check(Query(()), Budget()), Unsat)
    assert Deferred("nobody").name == "nobody"
