from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Assert, Kernel
from argus.core.query import Budget
from argus.core.verdict import Report, Unknown
from argus.emit.cuda import nvrtc
from argus.language import (
    Tensor,
    assert_equals,
    assert_written_once,
    block_id,
    ceil_div,
    copy,
    elements,
    f32,
    kernel,
    load,
    registers,
    sm_90a,
    spread,
    tag,
)
from argus.runtime import proof_records
from argus.runtime.kernel_cache import LAUNCH, UNVERIFIED, build_ahead, build_cached, sources_digest, verify_cached
from argus.solvers.choice import use_solver
from argus.verifier.kernel import verify

pytestmark = pytest.mark.share(3, among="cache of kernels")

module = import_module("argus.runtime.kernel_cache")


@kernel(target=sm_90a, threads=128)
def twice(X: Tensor["M N", f32], Y: Tensor["M N", f32]) -> None:
    (M, N) = X.shape
    tag(X, lambda m, n: dict(m=m, n=n))
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 16)))
    x = registers(f32, spread((16, 16), threads=128, vector=1))
    copy(X.tile((16, 16), (m, n)), x, edge=0)
    copy(x + x, Y.tile((16, 16), (m, n)), edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, n=n))


@kernel(target=sm_90a, threads=64)
def claimed(X: Tensor["M N", f32], Y: Tensor["M N", f32]) -> None:
    (M, N) = X.shape
    m, n = block_id((ceil_div(M, 8), ceil_div(N, 8)))
    x = load(X.tile((8, 8), (m, n)), spread((8, 8), threads=64, vector=1), edge=0)
    copy(x * (x + 1.0), Y.tile((8, 8), (m, n)), edge=0)
    assert_equals(Y, lambda m, n: (elements(X)(m, n) + 1) * elements(X)(m, n))


def refused(*_given: object, **_named: object) -> None:
    raise AssertionError("this is to be taken from the disk")


def forgetful(made: Kernel) -> Kernel:
    """The same code without its claims."""
    return evolve(made, prologue=tuple(stmt for stmt in made.prologue if not isinstance(stmt, Assert)))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ARGUS_STATE_DIR", str(tmp_path / "state"))


def test_code_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    description = build_cached(twice.trace(), tmp_path)
    monkeypatch.setattr(module, "build", refused)

    assert build_cached(twice.trace(), tmp_path) == description
    assert json.loads(description.read_text(encoding="utf-8"))["kernel"] == "twice"
    assert description.with_suffix(".cubin").is_file()


def test_code_that_was_begun_ahead_is_built_from(monkeypatch: pytest.MonkeyPatch) -> None:
    made = twice.trace()
    build_ahead(made)
    ahead: dict[object, Any] = vars(nvrtc)["_AHEAD"]
    (begun,) = ahead.values()
    assert begun.result(60).cubin
    monkeypatch.setattr(nvrtc, "_compiled", refused)

    assert build_cached(made).with_suffix(".cubin").read_bytes() == begun.result().cubin
    build_ahead(made)
    assert not ahead, "nothing is begun that is on disk"


def test_a_lost_code_object_is_compiled_again(tmp_path: Path) -> None:
    code = build_cached(twice.trace(), tmp_path).with_suffix(".cubin")
    code.unlink()

    build_cached(twice.trace(), tmp_path)
    assert code.is_file()


def test_a_proof_is_cached_with_its_assumptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = verify_cached(twice.trace(), tmp_path)
    monkeypatch.setattr(module, "verify", refused)

    assert found.verdict == "proved"
    assert "0 <= M <= 1073741824" in found.assumptions
    assert verify_cached(twice.trace(), tmp_path) == found


def test_the_same_code_with_other_claims_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    made = twice.trace()
    verify_cached(made, tmp_path)

    assert verify_cached(forgetful(made), tmp_path).verdict == "unclaimed"


def test_another_version_verifies_and_compiles_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build_cached(twice.trace(), tmp_path)
    monkeypatch.setattr(module, "sources_digest", lambda: "other")

    assert build_cached(twice.trace(), tmp_path) != before
    assert len(sources_digest()) == 64


@pytest.mark.share(3)
@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"verdict": "proved"}', "\udcff"])
def test_a_damaged_verdict_is_recomputed(tmp_path: Path, text: str) -> None:
    verify_cached(twice.trace(), tmp_path)
    (path,) = tmp_path.rglob("verdict-*.json")
    path.write_text(text, encoding="utf-8", errors="surrogateescape")

    assert verify_cached(twice.trace(), tmp_path).verdict == "proved"


def test_a_launch_may_take_more_normal_forms_than_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Budget] = []

    def counted(kernel: Kernel, budget: Budget) -> Report:
        limits.append(budget)
        return verify(kernel, budget=budget)

    monkeypatch.setattr(module, "verify", counted)

    few = evolve(Budget(), terms=10)
    assert verify_cached(claimed.trace(), tmp_path, few).verdict == "unknown"
    assert verify_cached(claimed.trace(), tmp_path).verdict == "proved", "what was given up is asked for again"
    assert limits == [few, LAUNCH]
    assert evolve(LAUNCH, terms=Budget().terms) == Budget()
    assert LAUNCH.terms > Budget().terms


def test_a_verdict_of_another_machine_is_recomputed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify_cached(twice.trace(), tmp_path)
    (theirs,) = tmp_path.rglob("verdict-*.json")
    monkeypatch.setenv("ARGUS_STATE_DIR", str(tmp_path / "other"))
    asked: list[Kernel] = []

    def counted(kernel: Kernel, budget: Budget) -> Report:
        asked.append(kernel)
        return verify(kernel, budget=budget)

    monkeypatch.setattr(module, "verify", counted)

    assert verify_cached(twice.trace(), tmp_path).verdict == "proved"
    assert verify_cached(twice.trace(), tmp_path).verdict == "proved"
    assert len(asked) == 1
    (ours,) = set(tmp_path.rglob("verdict-*.json")) - {theirs}

    ours.write_bytes(theirs.read_bytes())
    verify_cached(twice.trace(), tmp_path)
    assert len(asked) == 2, "another machine's signature under this one's name"


def test_a_forged_verdict_is_recomputed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = twice.trace()
    verify_cached(forgetful(made), tmp_path)
    (path,) = tmp_path.rglob("verdict-*.json")
    path.write_text(path.read_text(encoding="utf-8").replace("unclaimed", "proved"), encoding="utf-8")
    assert verify_cached(forgetful(made), tmp_path).verdict == "unclaimed"

    verify_cached(made, tmp_path)
    (other,) = set(tmp_path.rglob("verdict-*.json")) - {path}
    path.write_bytes(other.read_bytes())
    assert verify_cached(forgetful(made), tmp_path).verdict == "unclaimed", "a true record of another kernel"

    def any_signature(_given: bytes, _expected: bytes) -> bool:
        return True

    monkeypatch.setattr(proof_records.hmac, "compare_digest", any_signature)
    path.write_bytes(other.read_bytes())
    assert verify_cached(forgetful(made), tmp_path).verdict == "proved", "the mutation: unsigned records are believed"


def test_the_key_is_private_and_stays(tmp_path: Path) -> None:
    verify_cached(twice.trace(), tmp_path)
    key = tmp_path / "state" / "proofs.key"
    before = key.read_bytes()
    verify_cached(forgetful(twice.trace()), tmp_path)

    assert (len(before), key.read_bytes()) == (32, before)
    assert key.stat().st_mode & 0o077 == 0
    assert [each.name for each in key.parent.iterdir()] == ["proofs.key"]


def test_without_a_key_no_verdict_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("ARGUS_STATE_DIR", str(tmp_path / "file" / "state"))

    assert verify_cached(twice.trace(), tmp_path).verdict == "proved"
    assert not list(tmp_path.rglob("verdict-*.json"))


def test_without_a_solver_nothing_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_solver(*_given: object, **_named: object) -> None:
        raise ArgusError(Diagnostic("E602", "error", "z3 does not load"))

    monkeypatch.setattr(module, "verify", no_solver)

    assert verify_cached(twice.trace(), tmp_path) is UNVERIFIED
    assert not list(tmp_path.rglob("verdict-*.json"))


def test_errors_other_than_a_missing_solver_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise ArgusError(Diagnostic("E501", "error", "not built yet"))

    monkeypatch.setattr(module, "verify", broken)

    with pytest.raises(ArgusError, match="E501"):
        verify_cached(twice.trace(), tmp_path)


def test_a_proof_that_failed_is_tried_again_with_more_or_by_another_solver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little, asked = Budget(total=0.0), list[Budget]()

    def counted(kernel: Kernel, budget: Budget) -> Report:
        asked.append(budget)
        return verify(kernel, budget=budget)

    monkeypatch.setattr(module, "verify", counted)
    for _ in range(2):
        found = verify_cached(twice.trace(), tmp_path, little)
        assert (found.verdict, found.reason) == ("unknown", "the 0 s for the whole proof are spent")
    assert not list(tmp_path.rglob("verdict-*.json"))
    assert asked == [little]

    with use_solver("z3"):
        assert verify_cached(twice.trace(), tmp_path, little).verdict == "unknown"
    assert asked == [little, little]

    assert verify_cached(twice.trace(), tmp_path).verdict == "proved"
    assert verify_cached(twice.trace(), tmp_path, little).verdict == "proved"
    assert len(asked) == 3


def test_a_damaged_attempt_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = evolve(verify(twice), verdict=Unknown("too hard", "more time"))
    asked: list[Budget] = []

    def undecided(_kernel: Kernel, budget: Budget) -> Report:
        asked.append(budget)
        return report

    monkeypatch.setattr(module, "verify", undecided)
    for text in ("", "{}", "[1]", '{"solver": 1, "budget": {}, "reason": ""}'):
        assert verify_cached(twice.trace(), tmp_path).verdict == "unknown"
        (path,) = tmp_path.rglob("attempt-*.json")
        path.write_text(text, encoding="utf-8")
    assert asked == [LAUNCH] * 4


@pytest.mark.parametrize(("waits", "tries"), [(0.9, 1), (30.0, 2)])
def test_a_proof_that_waited_for_the_processor_is_no_attempt(
    waits: float, tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = evolve(verify(twice), verdict=Unknown("timeout", "more time"))
    asked: list[Budget] = []
    now = 100.0

    def undecided(_kernel: Kernel, budget: Budget) -> Report:
        nonlocal now
        asked.append(budget)
        now += waits
        return report

    monkeypatch.setattr(module, "verify", undecided)
    monkeypatch.setattr(module, "perf_counter", lambda: now)
    monkeypatch.setattr(module, "thread_time", lambda: 5.0)
    for _ in range(2):
        assert verify_cached(twice.trace(), tmp_path).reason == "timeout"
    assert len(asked) == tries
