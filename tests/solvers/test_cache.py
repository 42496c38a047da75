from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argus.core.algebra import le, lt, sym
from argus.core.index import Symbol
from argus.core.query import GaveUp, Query, Sat, Unsat
from argus.solvers.cache import Cache, default_folder

n = sym(Symbol("n", "size", 1, None))
twin = sym(Symbol("n", "loop", 0, 9))
QUERY = Query((lt(n, twin),))
OTHER = Query((le(n, twin),))
ASKED = "portfolio (z3 1)"
MODEL = Sat("z3", {n.symbol: 1 << 80, twin.symbol: -2})


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    made = Cache(tmp_path / "some" / "folder")
    yield made
    made.close()


def test_definite_answers_come_back(cache: Cache) -> None:
    cache.put(QUERY, MODEL, ASKED)
    cache.put(OTHER, Unsat("cvc5"), ASKED)
    cache.close()
    again = Cache(cache.folder)

    assert again.get(QUERY, ASKED) == MODEL
    assert again.get(OTHER, ASKED) == Unsat("cvc5")
    assert again.problem == ""
    again.close()


def test_an_answer_is_that_of_the_solver_asked_and_of_its_version(cache: Cache) -> None:
    cache.put(QUERY, Unsat("z3"), "z3 1")
    cache.remember("z3 1", ((), le(n, twin)), Unsat("z3"))

    assert cache.get(QUERY, "z3 1") == Unsat("z3")
    assert cache.recall("z3 1", ((), le(n, twin))) == Unsat("z3")
    for other in ("z3 2", "cvc5 1", "all (z3 1)"):
        assert cache.get(QUERY, other) is None
        assert cache.recall(other, ((), le(n, twin))) is None


def test_giving_up_is_not_cached(cache: Cache) -> None:
    cache.put(QUERY, GaveUp("z3", "tired"), ASKED)

    assert cache.get(QUERY, ASKED) is None


def test_folder_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    assert default_folder() == tmp_path

    monkeypatch.delenv("ARGUS_CACHE_DIR")
    assert default_folder().name == "argus"


@pytest.mark.parametrize("content", [b"this is no database" * 500, b"\x00" * 10_000, b""])
def test_damaged_file_is_replaced(cache: Cache, content: bytes) -> None:
    cache.folder.mkdir(parents=True)
    cache.path.write_bytes(content)

    assert cache.get(QUERY, ASKED) is None
    cache.put(QUERY, MODEL, ASKED)
    assert cache.get(QUERY, ASKED) == MODEL
    assert cache.problem == ""


def test_unreadable_row_is_no_answer(cache: Cache) -> None:
    cache.put(QUERY, MODEL, ASKED)
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE answers SET model = '[[1, 2]]'")
    db.close()

    assert cache.get(QUERY, ASKED) is None


def test_folder_that_cannot_be_made_disables_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "folder")
    cache.put(QUERY, MODEL, ASKED)

    assert cache.get(QUERY, ASKED) is None
    assert "file" in cache.problem


def test_file_that_cannot_be_written_disables_the_cache(cache: Cache) -> None:
    cache.path.mkdir(parents=True)
    cache.put(QUERY, MODEL, ASKED)

    assert cache.get(QUERY, ASKED) is None
    assert cache.problem.endswith("unable to open database file")


@pytest.mark.nightly
def test_processes_share_one_folder(cache: Cache) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom argus.core.algebra import le, sym\n"
        "from argus.core.index import Symbol\nfrom argus.core.query import Query, Unsat\n"
        "from argus.solvers.cache import Cache\n"
        "cache = Cache(Path(sys.argv[1]))\n"
        "x = sym(Symbol('x', 'fresh'))\n"
        "for i in range(50): cache.put(Query((le(x, int(sys.argv[2]) + i),)), Unsat('z3'), 'z3 1')\n"
        "assert not cache.problem, cache.problem\ncache.close()\n"
    )
    command = [sys.executable, "-c", code, str(cache.folder)]
    running = [subprocess.Popen([*command, str(start)]) for start in (0, 25, 50)]  # noqa: S603 reason: our own interpreter

    assert [process.wait(30) for process in running] == [0, 0, 0]
    x = sym(Symbol("x", "fresh"))
    assert all(cache.get(Query((le(x, i),)), "z3 1") == Unsat("z3") for i in range(100))
