"""Every change of a delivery fails a check or is reported as not checked, never as ok."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import pytest
from attrs import evolve
from jsonschema import Draft202012Validator

import argus.search.certificates.check as steps
import argus.search.certificates.check_product as products
import argus.search.certificates.check_steps as parts
import argus.search.certificates.check_times as times
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.search.certificates import claims, product_claims
from argus.search.certificates.certificate import open_certificate, schema
from argus.search.certificates.check import check_certificate
from argus.search.certificates.check_code import Rebuilt, rebuild_all
from argus.search.certificates.check_result import Check
from argus.search.certificates.check_steps import CheckOptions
from argus.search.certificates.delivery import deliver
from argus.verifier.kernel import verify
from tests.search.certificates import deliveries
from tests.search.certificates.deliveries import DESIGNS, best, claim, claimed, delivery
from tests.tiers import Tier, commit, drawn

Path_ = tuple[str | int, ...]
P = ParamSpec("P")
T = TypeVar("T")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deliveries")


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache slow computations for one kernel; they do not depend on the claims."""
    monkeypatch.setattr(parts, "verify", once(verify))
    monkeypatch.setattr(steps, "rebuild_all", once(rebuild_all))
    monkeypatch.setattr(times, "rebuild_all", once(rebuild_all))
    monkeypatch.setattr(product_claims, "runs", once(product_claims.runs))
    monkeypatch.setattr(claims, "emit_sources", once(claims.emit_sources))
    monkeypatch.setattr(times, "predict_time", once(times.predict_time))


KEPT: dict[str, Any] = {}


def once(reading: Callable[P, T]) -> Callable[P, T]:
    def found(*given: P.args, **named: P.kwargs) -> T:
        kernel, *rest = given
        assert isinstance(kernel, Kernel)
        key = f"{reading} {rest} {named} {pretty(kernel)}"
        if key not in KEPT:
            KEPT[key] = reading(*given, **named)
        return KEPT[key]

    return found


def checks(folder: Path) -> dict[str, Check]:
    return {each.name: each for each in check_certificate(*open_certificate(folder))}


def states(folder: Path) -> dict[str, str]:
    return {name: each.state for name, each in checks(folder).items()}


def leaves(data: object, at: Path_ = ()) -> Iterator[Path_]:
    """Paths of leaf values, and of empty lists and objects; only the first and last entry of each list."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        entries = list(cast("dict[str, object]", data).items())
    elif isinstance(data, list):
        numbered = list(enumerate(cast("list[object]", data)))
        entries = [*numbered[:1], *numbered[1:][-1:]]
    if not entries:
        yield at
    for key, value in entries:
        yield from leaves(value, (*at, key))


def holder(data: dict[str, Any], at: Path_) -> dict[str | int, Any]:
    """The container of the value at a path."""
    found: Any = data
    for key in at[:-1]:
        found = found[key]
    return cast("dict[str | int, Any]", found)


def changed(value: object) -> object:
    match value:
        case str():
            return f"{value}x"
        case int():
            return value + 1
        case float():
            return value * 1.5 + 1
        case None:
            return 1.0
        case _:
            return ["x"]


def middle(whole: bytearray, role: str) -> int:
    """A position of a significant byte; the middle of the IR may be a line number."""
    return whole.index(b'["Kernel"') + len('["Kernel", "g') if role == "ir" else len(whole) // 2


def suspected(folder: Path, before: dict[str, str], *, told: set[str]) -> bool:
    """Whether a changed delivery is refused, fails a check, or has fewer ok checks."""
    try:
        after = states(folder)
    except ArgusError as refused:
        return refused.diagnostic.code in ("E930", "E931")
    worse = [name for name, state in after.items() if state != "ok" and before.get(name) == "ok"]
    new = [name for name, state in after.items() if state == "FAILED" and name not in before]
    return bool(worse or new) or any(after.get(name) == "not checked" for name in told)


@pytest.mark.share(132, among="deliveries")
@pytest.mark.parametrize("target", DESIGNS)
def test_a_delivery_satisfies_its_claims(target: str, tmp_path: Path, home: Path) -> None:
    folder = delivery(target, tmp_path / "out", home)

    shown = checks(folder)

    assert {name: each for name, each in shown.items() if each.state != "ok"}.keys() == {"run"}
    assert {"verdict", "source", "code", "fresh inputs", "assumptions", "time", "loader"} < shown.keys()
    validator: Any = Draft202012Validator(cast("Any", schema()))
    validator.validate(claimed(folder))


def missed(folder: Path, reward: str, suspected: Callable[[set[str]], bool], tier: Tier) -> list[Path_]:
    """Mutations of a certificate's values, in the default tier of a quarter of them.

    suspected: whether a check must find it.
    """
    whole, found = claimed(folder), list[Path_]()
    every = [(str(place), place) for place in leaves(whole)]
    for place in drawn(every, 4 if tier == "default" else 1, commit(Path(__file__).parent)):
        if reward == "measured" and place[0] not in ("time", "baseline"):
            continue
        data = copy.deepcopy(whole)
        at = holder(data, place)
        at[place[-1]] = changed(at[place[-1]])
        claim(folder, data)
        if not suspected({str(place[0])} & ({"run", "time", "baseline"} if reward == "measured" else {"run"})):
            found.append(place)
    return found


@pytest.mark.share(132, among="deliveries")
@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("reward", ["predicted", "measured"])
def test_every_value_that_is_changed_is_found(reward: str, tmp_path: Path, home: Path, tier: Tier) -> None:
    folder = delivery("sm_90a", tmp_path / "out", home, reward)
    before = states(folder)

    assert missed(folder, reward, lambda told: suspected(folder, before, told=told), tier) == []


@pytest.mark.nightly
@pytest.mark.usefixtures("remembered")
def test_every_value_that_is_left_out_is_found(tmp_path: Path, home: Path) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)
    whole, before = claimed(folder), states(folder)
    missed: list[Path_] = []
    for place in dict.fromkeys(leaf[:cut] for leaf in leaves(whole) for cut in range(1, len(leaf) + 1)):
        data = copy.deepcopy(whole)
        del holder(data, place)[place[-1]]
        claim(folder, data)
        if not suspected(folder, before, told=set()):
            missed.append(place)

    assert missed == []


@pytest.mark.share(132, among="deliveries")
@pytest.mark.parametrize("target", DESIGNS)
@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("role", ["source", "code", "description", "ir", "loader"])
def test_every_file_that_is_changed_is_found(role: str, target: str, tmp_path: Path, home: Path) -> None:
    """With the old digest, and with the digest of the new contents."""
    folder = delivery(target, tmp_path / "out", home)
    data = claimed(folder)
    path = folder / data["files"][role]["name"]
    whole = bytearray(path.read_bytes())
    whole[middle(whole, role)] ^= 1
    path.write_bytes(whole)

    shown = states(folder)
    assert shown[f"{role} file"] == "FAILED"

    of = claims.file_entry(path)
    data["files"][role] = {"name": of.name, "bytes": of.bytes, "sha256": of.sha256}
    claim(folder, data)
    shown = states(folder)
    assert shown[f"{role} file"] == "ok"
    assert shown["traced" if role == "ir" and "traced" in shown else role] == "FAILED"


@pytest.mark.usefixtures("remembered")
@pytest.mark.share(132, among="deliveries")
@pytest.mark.parametrize("role", ["source", "code", "description", "ir", "loader"])
def test_a_file_under_another_name_is_found(role: str, tmp_path: Path, home: Path) -> None:
    """The loader would load the file of the old name, which was not checked."""
    folder = delivery("sm_90a", tmp_path / "out", home)
    data = claimed(folder)
    path = folder / data["files"][role]["name"]
    shutil.copy(path, folder / f"true.{path.name}")
    path.write_bytes(b"something else")
    data["files"][role]["name"] = f"true.{path.name}"
    claim(folder, data)

    shown = states(folder)

    assert shown[f"{role} file"] == "ok"
    assert {name for name, state in shown.items() if state == "FAILED"} == {"names"}


@pytest.mark.share(3)
@pytest.mark.usefixtures("remembered")
def test_a_file_that_is_gone_is_found(tmp_path: Path, home: Path) -> None:
    folder = delivery("sm_90a", tmp_path / "out", home)
    (folder / "gemm_cooperative.cubin").unlink()
    (folder / "load.py").unlink()

    shown = states(folder)

    assert {name for name, state in shown.items() if state == "FAILED"} == {
        "code file",
        "loader file",
        "code",
        "loader",
    }


@pytest.mark.share(3)
@pytest.mark.usefixtures("remembered")
def test_another_kernel_under_the_same_certificate_is_found(tmp_path: Path, home: Path) -> None:
    """It is proved, correct and consistent with its source and code, but not the claimed design."""
    folder = delivery("sm_90a", tmp_path / "out", home)
    other = claims.kernel_document(_traced("small"))
    (folder / "kernel.json").write_text(json.dumps(other) + "\n", encoding="utf-8")

    shown = states(folder)

    assert {"ir file", "traced", "source", "code"} <= {name for name, state in shown.items() if state == "FAILED"}
    assert shown["verdict"] == "ok"


@cache
def _traced(design: str) -> Kernel:
    return products.gemm_of("gemm:512x512x512:bf16", "sm_90a").kernel(design)


@pytest.mark.usefixtures("remembered")
@pytest.mark.share(12, among="certificates of kernels")
def test_a_kernel_that_is_refuted_is_found(tmp_path: Path, home: Path) -> None:
    """Remove one barrier wait in the IR only."""
    folder = delivery("gfx942", tmp_path / "out", home)
    data = json.loads((folder / "kernel.json").read_text(encoding="utf-8"))
    numbers = [number for number, row in enumerate(data["rows"]) if row[0] == "Sync"]
    kernel = next(row for row in data["rows"] if row[0] == "Kernel")
    assert numbers
    assert kernel
    for row in data["rows"]:
        for place, value in enumerate(row):
            if isinstance(value, list):
                row[place] = [each for each in cast("list[object]", value) if each not in numbers]
    (folder / "kernel.json").write_text(json.dumps(data), encoding="utf-8")

    shown = checks(folder)

    assert shown["verdict"].state == "FAILED"
    assert "refuted" in shown["verdict"].why
    assert shown["traced"].state == "FAILED"


@pytest.mark.share(48, among="certificates")
@pytest.mark.usefixtures("remembered")
def test_a_measured_time_is_not_checked_and_an_impossible_one_fails(tmp_path: Path, home: Path) -> None:
    folder = delivery("sm_90a", tmp_path / "out", home, "measured")
    data = claimed(folder)
    assert checks(folder)["time"].state == "not checked"
    assert "NVIDIA H200" in checks(folder)["time"].why

    data["time"]["microseconds"] *= 2
    data["time"]["share"] /= 2
    claim(folder, data)
    assert states(folder)["time"] == "not checked"

    data["time"] |= {"microseconds": 0.01, "share": data["time"]["light"] / 0.01}
    claim(folder, data)
    assert states(folder)["time"] == "FAILED"


@pytest.mark.usefixtures("remembered")
def test_code_of_another_compiler_is_not_compared(tmp_path: Path, home: Path) -> None:
    folder = delivery("sm_90a", tmp_path / "out", home)
    data = claimed(folder)
    data["versions"]["nvidia-cuda-nvrtc"] = "12.9.0"
    claim(folder, data)

    shown = states(folder)

    assert {shown[name] for name in ("code", "description", "resources", "versions")} == {"not checked"}
    assert shown["source"] == "ok"


def test_without_a_compiler_code_is_not_checked(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, remembered: None
) -> None:
    del remembered
    folder = delivery("sm_90a", tmp_path / "out", home)
    source = (folder / "gemm_cooperative.cu").read_text(encoding="utf-8")

    def without(_kernel: Kernel) -> tuple[Rebuilt, ...]:
        return (Rebuilt((source,), {}, {}, lack="no compiler"),)

    monkeypatch.setattr(steps, "rebuild_all", without)

    shown = states(folder)

    assert (shown["code"], shown["time"], shown["source"]) == ("not checked", "not checked", "ok")


@pytest.mark.share(48, among="certificates")
def test_another_solver_is_asked_anew(tmp_path: Path, home: Path) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)

    shown = {each.name: each for each in check_certificate(*open_certificate(folder), CheckOptions(solver="z3"))}

    assert shown["verdict"].state == "ok"
    assert shown["verdict"].why.startswith("z3 proves it")
    assert shown["solver"].state == "not checked"


@pytest.mark.share(12, among="certificates of kernels")
def test_a_copy_elsewhere_is_certified_too(tmp_path: Path, home: Path) -> None:
    first = delivery("gfx942", tmp_path / "out", home)
    moved = tmp_path / "elsewhere" / "deep"
    shutil.copytree(first, moved)

    assert states(moved)["fresh inputs"] == "ok"
    assert str(first) not in "".join(
        path.read_text(encoding="utf-8") for path in moved.iterdir() if path.suffix in {".json", ".py", ".hip"}
    )


WRITTEN = """
from argus.language import *

from argus.kernels.schedules.cdna3 import Cdna3, cdna3_double_buffer
from argus.kernels.schedules.contraction import Contraction


@kernel(target=gfx942, threads=256)
def mine(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
    problem = Contraction(A, B, C)
    cdna3_double_buffer(problem, Cdna3())
    problem.finish()
"""


@pytest.mark.share(12, among="certificates of kernels")
def test_a_written_kernel_must_satisfy_the_problem(tmp_path: Path) -> None:
    """Its name proves nothing; its parameters and its proof do."""
    judgement = evolve(best("gfx942"), name="mine")
    deliver(evolve(deliveries.found("gfx942", judgement), text=WRITTEN), tmp_path / "out")

    told = checks(tmp_path / "out")

    assert {each.name for each in told.values() if each.state == "FAILED"} == set()
    assert told["design"].state == "not checked"
    assert (told["product"].state, told["parameters"].state, told["fresh inputs"].state) == ("ok", "ok", "ok")
