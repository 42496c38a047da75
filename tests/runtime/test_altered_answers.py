"""One answer on disk altered from Sat to Unsat: who proves a misaligned kernel with it, and who asks again."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from argus.core.verdict import ProgramReport, Proved, Refuted, Report
from argus.language import (
    Tensor,
    assert_written_once,
    block_id,
    ceil_div,
    copy,
    f32,
    kernel,
    registers,
    sm_90a,
    spread,
    tag,
)
from argus.runtime.kernel_cache import verify_cached
from argus.search.certificates import claims
from argus.search.certificates.check_steps import CheckOptions, check_proof
from argus.search.evaluation import gate_task
from argus.search.evaluation.gate import Tools
from argus.search.evaluation.gate_task import GateTask
from argus.solvers import registry
from argus.solvers.base import Solver, identity
from argus.solvers.cache import Cache
from argus.solvers.session import answers
from argus.verifier.kernel import verify

PAIR = 2


@kernel(target=sm_90a, threads=128)
def misaligned(X: Tensor["M N", f32], Y: Tensor["M N", f32]) -> None:
    """Rows of odd length are copied by vectors of two elements."""
    (M, N) = X.shape
    tag(X, lambda m, n: dict(m=m, n=n))
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 16)))
    x = registers(f32, spread((16, 16), threads=128, vector=PAIR))
    copy(X.tile((16, 16), (m, n)), x, edge=0)
    copy(x, Y.tile((16, 16), (m, n)), edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, n=n))


KERNEL = misaligned.trace()


@contextmanager
def disk() -> Generator[Cache]:
    """The cache as another process opens it."""
    opened = Cache()
    try:
        yield opened
    finally:
        opened.close()


def by(solver: str | None = None) -> Report:
    with disk() as cache:
        return verify(KERNEL, solver=solver, cache=cache)


@pytest.fixture
def altered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk cache in which one altered row makes the portfolio prove the kernel."""
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ARGUS_STATE_DIR", str(tmp_path / "state"))
    assert isinstance(by().verdict, Refuted)
    with closing(sqlite3.connect(Cache().path, isolation_level=None)) as db:
        models = db.execute("SELECT key, model FROM answers WHERE model IS NOT NULL").fetchall()
        for key, model in models:
            db.execute("UPDATE answers SET model = NULL WHERE key = ?", (key,))
            if isinstance(by().verdict, Proved):
                return
            db.execute("UPDATE answers SET model = ? WHERE key = ?", (model, key))
    pytest.fail("no altered row makes the portfolio prove the kernel")


@pytest.mark.share(3)
@pytest.mark.usefixtures("altered")
def test_a_named_solver_and_all_ask_again() -> None:
    for solver in ("z3", "cvc5", "all"):
        assert isinstance(by(solver).verdict, Refuted), solver
    assert isinstance(by("portfolio").verdict, Proved), "what the cache may be trusted for: docs/soundness.md"


@pytest.mark.share(3)
@pytest.mark.usefixtures("altered")
def test_certify_asks_again() -> None:
    claimed = claims.proof(by())
    found = {check.name: check for check in check_proof(claimed, KERNEL, CheckOptions(), None)}

    assert claimed.verdict == "proved"
    assert found["verdict"].state == "FAILED"
    assert "refuted" in found["verdict"].why


@pytest.mark.share(3)
@pytest.mark.usefixtures("altered")
def test_a_first_launch_asks_again() -> None:
    assert verify_cached(KERNEL).verdict == "refuted"


@pytest.mark.share(3)
@pytest.mark.usefixtures("altered")
def test_a_search_asks_again_before_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Report | ProgramReport] = []

    def evaluate(_problem: object, _name: str, tools: Tools, _text: str) -> None:
        seen.append(tools.verify(KERNEL))

    monkeypatch.setattr(gate_task, "evaluate", evaluate)
    for gpu in (True, False):
        GateTask("gemm:64x64x64:bf16", "sm_90a", gpu)("cooperative")

    assert [type(each.verdict) for each in seen] == [Refuted, Proved]


@pytest.mark.usefixtures("altered")
def test_a_solver_that_believed_the_disk_would_prove_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutation; the altered answer is in the name and version of the solver that is asked."""
    names = identity(registry.get("portfolio")), identity(registry.get("z3"))
    with closing(sqlite3.connect(Cache().path, isolation_level=None)) as db:
        db.execute("UPDATE answers SET key = replace(key, ?, ?)", names)
    assert isinstance(by("z3").verdict, Refuted)

    def believes(_solver: Solver) -> bool:
        return True

    monkeypatch.setattr(answers, "believes_stored", believes)
    assert isinstance(by("z3").verdict, Proved)
    assert isinstance(by("cvc5").verdict, Refuted), "the key names the solver"
