from __future__ import annotations

from pathlib import Path

import pytest

from argus.cli import doctor
from argus.cli.doctor import Check, as_data, examine, table
from argus.runtime.hip.driver import LIBRARY
from tests.runtime.hip.stub import compile_stub


def named(checks: tuple[Check, ...], group: str) -> dict[str, Check]:
    return {check.name: check for check in checks if check.group == group}


def test_this_environment_is_described() -> None:
    checks = examine()

    assert {"all", "cvc5", "enumerate", "portfolio", "z3"} <= named(checks, "solvers").keys()
    assert named(checks, "packages")["numpy"].state == "good"
    assert all(check.repair and check.loses for check in checks if check.state == "degraded")


def test_devices_are_seen_without_starting_anything(tmp_path: Path) -> None:
    assert named(examine(tmp_path), "GPUs")["any"].state == "absent"

    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    (tmp_path / "proc" / "driver" / "nvidia" / "gpus" / "0000:01:00.0").mkdir(parents=True)

    assert named(examine(tmp_path), "GPUs").keys() == {"NVIDIA", "AMD"}


def test_an_amd_gpu_needs_the_hip_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    monkeypatch.setenv(LIBRARY, str(tmp_path / "absent.so"))
    lacking = named(examine(tmp_path), "GPUs")["AMD"]
    assert (lacking.state, "cannot be loaded" in lacking.found) == ("degraded", True)
    assert LIBRARY in lacking.repair

    monkeypatch.setenv(LIBRARY, str(compile_stub(tmp_path)))
    found = named(examine(tmp_path), "GPUs")["AMD"]
    assert (found.state, found.found.split("; ")[0]) == ("good", "AMD Instinct MI300X (stand-in) (gfx942), HIP 7.2")


def test_a_missing_compiler_is_named_with_its_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "compiler_present", lambda: False)
    checks = examine()

    assert named(checks, "compilers")["gfx942"].state == "degraded"
    assert "  gfx942: without it there is no `argus build --target gfx942`" in "\n".join(table(checks))
    assert "pip install 'argus[gfx942]'" in "\n".join(table(checks))


def test_each_target_has_its_own_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "cuda_compiler_present", lambda: False)
    compilers = named(examine(), "compilers")

    assert (compilers["gfx942"].state, compilers["sm_90a"].state) == ("good", "degraded")
    assert compilers["sm_90a"].repair == "pip install 'argus[sm90a]'"


def test_a_missing_solver_is_named_with_its_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.registry, "available", lambda: ("cvc5",))
    monkeypatch.setattr(doctor, "_DISTRIBUTIONS", {"nosuch": "nosuch-solver", "cvc5": "cvc5"})
    solvers = named(examine(), "solvers")

    assert solvers["cvc5"].state == "good"
    assert solvers["nosuch"].repair == "pip install nosuch-solver"


def test_an_unusable_cache_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "file"))

    assert named(examine(), "cache")["answers"].state == "degraded"


def test_the_document_holds_every_check() -> None:
    checks = examine()

    document = as_data(checks)

    assert document["schema"] == "argus.doctor/1"
    assert len(list(table(checks))) > len(checks)


def test_a_missing_disassembler_is_named_with_its_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(examine(), "compilers")["sm_90a disassembler"].found.startswith("nvdisasm 13.")

    monkeypatch.setattr(doctor, "disassembler", lambda: None)
    missing = named(examine(), "compilers")["sm_90a disassembler"]
    assert (missing.state, missing.repair) == ("degraded", "pip install 'argus[sm90a]'")
    assert "argus build" in missing.loses
