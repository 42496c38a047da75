"""Every change of a delivered user kernel fails a check or is reported as not checked, never as ok."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve
from jsonschema import Draft202012Validator

import argus.search.certificates.check as checking
import argus.search.certificates.check_file as steps
import argus.search.certificates.check_steps as parts
import argus.search.certificates.check_times as times
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.sandbox import Refused, evaluate_reference, trace_text
from argus.search.certificates import claims
from argus.search.certificates.certificate import open_certificate, schema
from argus.search.certificates.check import check_certificate
from argus.search.certificates.check_code import rebuild_all
from argus.search.certificates.check_result import Check
from argus.search.certificates.check_steps import CheckOptions
from argus.search.certificates.delivery import deliver
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.judgement import Judgement
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import problem_of
from argus.search.run import SearchResult
from argus.verifier.kernel import verify
from tests.search.certificates.deliveries import claim, claimed
from tests.search.certificates.test_certifying import middle, missed, once
from tests.search.certificates.test_delivery import complaints, printed
from tests.search.problems.test_files import RIGHT, SIZES, SMALL, kernel_file
from tests.tiers import Tier

ROOT = Path(__file__).parents[3]
DESIGNS = {"gfx942": "matmul+loop-unrolling", "sm_90a": "gemm"}
WORK = '\n\ndef work(M, N, K):\n    return {"flops": {"bf16": 2 * M * N * K}, "reads": 2 * (M + N) * K}\n'


def test_the_name_of_a_users_file_makes_no_difference_to_its_kernel(tmp_path: Path) -> None:
    """A delivery holds the file under a name of its own, and emitted sources name the file in comments."""
    path = kernel_file(tmp_path)
    renamed = path.rename(tmp_path / "mine.py")
    shutil.copy(renamed, path)
    found = [problem_of(str(each), "gfx942", SIZES) for each in (path, renamed)]
    here, there = (each.kernel("matmul") for each in found if isinstance(each, KernelFile))
    other = problem_of(str(path), "gfx942", SIZES)
    assert isinstance(other, KernelFile)

    assert claims.emit_sources(here) != claims.emit_sources(there)
    assert parts.check_trace(here, there).state == "ok"
    assert parts.check_trace(here, other.kernel(DESIGNS["gfx942"])).state == "FAILED"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deliveries")


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache slow computations; they do not depend on the claims."""
    monkeypatch.setattr(parts, "verify", once(verify))
    monkeypatch.setattr(checking, "rebuild_all", once(rebuild_all))
    monkeypatch.setattr(times, "rebuild_all", once(rebuild_all))
    monkeypatch.setattr(times, "predict_time", once(times.predict_time))
    monkeypatch.setattr(steps, "trace_text", remember(trace_text))
    monkeypatch.setattr(steps, "evaluate_reference", remember(evaluate_reference))


KEPT: dict[str, Any] = {}


def remember(reading: Callable[..., Any]) -> Callable[..., Any]:
    def found(*given: object) -> object:
        key = f"{reading} {given}"
        if key not in KEPT:
            KEPT[key] = reading(*given)
        return KEPT[key]

    return found


def found_in(folder: Path, target: str, *, reference: str = RIGHT, reward: str = "predicted") -> SearchResult:
    """A run of one candidate on a file in its own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    problem = problem_of(str(kernel_file(folder, target, reference)), target, SIZES)
    judged = GateTask(str(problem), target)(DESIGNS[target])
    assert judged.outcome == "timed", judged.why
    return found_of(problem, evolve(judged, reward="measured") if reward == "measured" else judged)


def found_of(problem: object, judged: Judgement, text: str = "") -> SearchResult:
    assert isinstance(problem, KernelFile)
    return SearchResult(problem, "run-0001", Path("runs.db"), judged, (judged,), "trials spent", 3, text)


def delivery(home: Path, to: Path, target: str = "gfx942", reward: str = "predicted") -> Path:
    """A copy of a delivery; the original user file is removed."""
    made = home / f"{target}-{reward}"
    if not made.exists():
        source = home / f"file-{target}-{reward}"
        deliver(found_in(source, target, reward=reward), made, device="Imagined" if reward == "measured" else "")
        shutil.rmtree(source)
    shutil.copytree(made, to)
    return to


def checks(folder: Path, means: CheckOptions = CheckOptions()) -> dict[str, Check]:  # noqa: B008 reason: frozen
    return {each.name: each for each in check_certificate(*open_certificate(folder), means)}


def states(folder: Path) -> dict[str, str]:
    return {name: each.state for name, each in checks(folder).items()}


def failing(folder: Path) -> set[str]:
    return {name for name, state in states(folder).items() if state == "FAILED"}


def rewritten(folder: Path, role: str, text: bytes) -> dict[str, Any]:
    """Replace the file of a role, with a matching digest."""
    data = claimed(folder)
    path = folder / data["files"][role]["name"]
    path.write_bytes(text)
    of = claims.file_entry(path)
    data["files"][role] = {"name": of.name, "bytes": of.bytes, "sha256": of.sha256}
    claim(folder, data)
    return data


def suspected(folder: Path, before: dict[str, str], *, told: set[str]) -> bool:
    try:
        after = states(folder)
    except ArgusError as refused:
        return refused.diagnostic.code in ("E930", "E931")
    worse = [name for name, state in after.items() if state != "ok" and before.get(name) == "ok"]
    new = [name for name, state in after.items() if state == "FAILED" and name not in before]
    return bool(worse or new) or any(after.get(name) == "not checked" for name in told)


@pytest.mark.share(132, among="deliveries")
@pytest.mark.parametrize("target", DESIGNS)
def test_a_delivery_of_a_file_satisfies_its_claims(target: str, tmp_path: Path, home: Path) -> None:
    folder = delivery(home, tmp_path / "out", target)

    shown = checks(folder)

    assert {name for name, each in shown.items() if each.state != "ok"} == {"run"}
    assert {"problem text", "traced", "verdict", "source", "code", "fresh inputs", "claims", "light"} < shown.keys()
    validator: Any = Draft202012Validator(cast("Any", schema()))
    validator.validate(claimed(folder))


@pytest.mark.share(48, among="certificates")
@pytest.mark.parametrize("target", DESIGNS)
def test_no_path_is_delivered_and_the_loader_keeps_the_rules(target: str, tmp_path: Path, home: Path) -> None:
    folder = delivery(home, tmp_path / "out", target)

    for path in folder.iterdir():
        assert str(home).encode() not in path.read_bytes(), path.name
        assert str(ROOT).encode() not in path.read_bytes(), path.name
    assert complaints(folder / "load.py") == ""


@pytest.mark.share(48, among="certificates")
def test_the_loader_of_a_file_compares_with_its_reference(tmp_path: Path, home: Path) -> None:
    folder = delivery(home, tmp_path / "out")

    shown = printed(folder / "load.py")

    assert shown.startswith("matmul, interpreted, as there is no runtime for gfx942: C (64, 64), ")
    assert float(shown.split()[-5]) < 2.0**-7


@pytest.mark.share(132, among="deliveries")
@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("reward", ["predicted", "measured"])
def test_every_value_that_is_changed_is_found(reward: str, tmp_path: Path, home: Path, tier: Tier) -> None:
    folder = delivery(home, tmp_path / "out", reward=reward)
    before = states(folder)

    assert missed(folder, reward, lambda told: suspected(folder, before, told=told), tier) == []


@pytest.mark.share(132, among="deliveries")
@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("role", ["source", "code", "description", "ir", "loader", "assembly", "problem"])
def test_every_file_that_is_changed_is_found(role: str, tmp_path: Path, home: Path) -> None:
    """With the old digest, and with the digest of the new contents."""
    folder = delivery(home, tmp_path / "out")
    path = folder / claimed(folder)["files"][role]["name"]
    whole = bytearray(path.read_bytes())
    whole[middle(whole, role)] ^= 1
    path.write_bytes(whole)
    assert states(folder)[f"{role} file"] == "FAILED"

    rewritten(folder, role, bytes(whole))

    shown = states(folder)
    assert shown[f"{role} file"] == "ok"
    assert shown[{"problem": "problem text", "ir": "traced" if "traced" in shown else "ir"}.get(role, role)] == "FAILED"


@pytest.mark.share(4)
@pytest.mark.usefixtures("remembered")
def test_without_the_file_claims_that_need_it_are_not_checked(tmp_path: Path, home: Path) -> None:
    folder = delivery(home, tmp_path / "out")
    (folder / "problem.py").unlink()

    shown = states(folder)

    left = {name for name, state in shown.items() if state == "not checked"}
    expected = {
        "problem file",
        "problem text",
        "parameters",
        "design",
        "runs",
        "fresh inputs",
        "light",
        "baseline",
        "run",
    }
    assert left == expected
    assert {"FAILED"}.isdisjoint(shown.values())
    assert {shown[name] for name in ("verdict", "source", "code", "loader", "claims", "time")} == {"ok"}


@pytest.mark.share(48, among="certificates")
@pytest.mark.usefixtures("remembered")
def test_the_file_under_another_name_is_found(tmp_path: Path, home: Path) -> None:
    """The loader would run the file of the old name, which was not checked."""
    folder = delivery(home, tmp_path / "out")
    (folder / "problem.py").rename(folder / "true.py")
    (folder / "problem.py").write_text("print('another')\n", encoding="utf-8")
    data = claimed(folder)
    data["files"]["problem"]["name"] = "true.py"
    claim(folder, data)

    assert failing(folder) == {"names"}


@pytest.mark.usefixtures("remembered")
def test_a_file_that_must_not_run_here_is_not_checked(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = delivery(home, tmp_path / "out")
    missing = Diagnostic("E941", "error", "nothing here keeps it apart", help="install it")

    def refused(*_: object) -> Refused:
        return Refused(missing, {}, "", "", 0.0)

    monkeypatch.setattr(steps, "trace_text", refused)
    monkeypatch.setattr(steps, "evaluate_reference", refused)

    shown = checks(folder)

    assert {shown[name].state for name in ("design", "runs", "fresh inputs", "light")} == {"not checked"}
    assert "E941" in shown["runs"].why
    assert shown["problem text"].state == "ok"


@pytest.mark.share(132, among="deliveries")
@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"A @ B.T + 1", {"runs", "fresh inputs"}),
        (b"__import__('os')._exit(0)", set[str]()),
        (b"(open('/etc/passwd'), A @ B.T)[1]", set[str]()),
    ],
)
def test_another_reference_under_its_own_name_is_found_or_not_checked(
    text: bytes, found: set[str], tmp_path: Path, home: Path
) -> None:
    """All digests and the problem's name are consistent with the changed reference."""
    folder = delivery(home, tmp_path / "out")
    other = (folder / "problem.py").read_bytes().replace(b"A @ B.T\n", text + b"\n")
    before = claimed(folder)["problem"]["name"]
    data = rewritten(folder, "problem", other)
    data["problem"]["name"] = before.replace(before.split(":")[1], sha256(other).hexdigest()[:16])
    claim(folder, data)

    shown = checks(folder)

    assert shown["problem text"].state == "ok"
    assert {name for name, each in shown.items() if each.state == "FAILED"} == found
    assert {shown["runs"].state, shown["fresh inputs"].state} <= ({"FAILED"} if found else {"not checked"})


@pytest.mark.share(48, among="certificates")
@pytest.mark.usefixtures("remembered")
def test_another_kernel_under_the_same_certificate_is_found(tmp_path: Path, home: Path) -> None:
    """It is proved, correct and consistent with its source and code, but not the claimed design."""
    source = home / "other"
    found = found_in(source, "gfx942")
    assert isinstance(found.problem, KernelFile)
    folder = delivery(home, tmp_path / "out")
    other = claims.kernel_document(found.problem.kernel("matmul"))
    rewritten(folder, "ir", json.dumps(other).encode())

    shown = states(folder)

    assert shown["ir file"] == "ok"
    assert {"traced", "source"} <= {name for name, state in shown.items() if state == "FAILED"}
    assert shown["verdict"] == "ok"


@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize(
    "name", ["file:0123456789abcdef:M=256,K=64,N=128:problem.py", "gemm:256x128x64:bf16", "file:zz:M=1:k.py", "file:"]
)
def test_another_problem_is_found(name: str, tmp_path: Path, home: Path) -> None:
    folder = delivery(home, tmp_path / "out")
    data = claimed(folder)
    data["problem"]["name"] = name
    claim(folder, data)

    assert failing(folder) & {"problem", "problem text", "files"}


@pytest.mark.usefixtures("remembered")
def test_sizes_that_the_kernel_does_not_take_are_found(tmp_path: Path, home: Path) -> None:
    folder = delivery(home, tmp_path / "out")
    data = claimed(folder)
    data["problem"]["name"] = data["problem"]["name"].replace("K=64", "K=63")
    data["problem"]["sizes"]["K"] = 63
    claim(folder, data)

    assert "admitted" in failing(folder)


@pytest.mark.share(48, among="certificates")
@pytest.mark.usefixtures("remembered")
def test_a_time_below_what_the_kernel_does_fails_and_a_measured_one_is_not_checked(tmp_path: Path, home: Path) -> None:
    folder = delivery(home, tmp_path / "out", reward="measured")
    assert states(folder)["time"] == "not checked"
    data = claimed(folder)
    data["time"] |= {"microseconds": 1e-3, "share": data["time"]["light"] / 1e-3}
    claim(folder, data)
    (folder / "problem.py").unlink()

    assert "time" in failing(folder)


@pytest.mark.nightly
def test_declared_work_sets_the_light_and_is_declared_again(tmp_path: Path) -> None:
    found = found_in(tmp_path / "in", "gfx942", reference=RIGHT + WORK.replace("2 * M * N * K", "4e9 * M * N * K"))
    deliver(found, tmp_path / "out")

    assert states(tmp_path / "out")["light"] == "ok"
    assert found.problem.bounds.tensor > 1e6
    data = claimed(tmp_path / "out")
    data["time"]["light"] /= 2
    data["time"]["share"] /= 2
    claim(tmp_path / "out", data)
    assert states(tmp_path / "out")["light"] == "FAILED"


@pytest.mark.nightly
def test_a_written_kernel_for_a_file_must_match_its_reference(tmp_path: Path) -> None:
    found = found_in(tmp_path / "in", "gfx942")
    text = SMALL["gfx942"].read_text(encoding="utf-8").replace("def matmul", "def mine").replace("(matmul)", "(mine)")
    assert found.best is not None
    deliver(found_of(found.problem, evolve(found.best, name="mine"), text), tmp_path / "out")

    told = checks(tmp_path / "out")

    assert {each.name for each in told.values() if each.state == "FAILED"} == set()
    assert told["design"].state == "not checked"
    assert {told[name].state for name in ("parameters", "runs", "fresh inputs", "claims")} == {"ok"}


@pytest.mark.share(3)
def test_a_file_that_has_changed_is_not_delivered(tmp_path: Path) -> None:
    found = found_in(tmp_path / "in", "gfx942")
    (tmp_path / "in" / "kernel.py").write_text("# another\n", encoding="utf-8")

    with pytest.raises(ArgusError) as refused:
        deliver(found, tmp_path / "out")
    assert refused.value.diagnostic.code == "E903"
    assert "has changed since" in refused.value.diagnostic.message
