from __future__ import annotations

from pathlib import Path

import pytest

from argus.cli import doctor, doctor_amd
from argus.cli.checks import Check
from argus.cli.doctor import as_data, examine, table
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

    assert named(examine(tmp_path), "GPUs").keys() == {"NVIDIA", "AMD driver", "AMD", "AMD torch"}


@pytest.mark.share(3)
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


def amd_machine(root: Path) -> Path:
    """The files of a machine with a CPU and two MI300X."""
    device = root / "sys/bus/pci/devices/0000:05:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1002\n", encoding="utf-8")
    (device / "class").write_text("0x120000\n", encoding="utf-8")
    for number, version in enumerate((0, 90402, 90402)):
        node = root / "sys/class/kfd/kfd/topology/nodes" / str(number)
        node.mkdir(parents=True)
        (node / "properties").write_text(f"simd_count 304\ngfx_target_version {version}\n", encoding="utf-8")
    (root / "sys/module/amdgpu").mkdir(parents=True)
    (root / "sys/module/amdgpu/version").write_text("6.10.5\n", encoding="utf-8")
    (root / "dev/dri").mkdir(parents=True)
    for name in ("kfd", "dri/renderD128"):
        (root / "dev" / name).touch()
    return root


def test_an_amd_machine_is_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = amd_machine(tmp_path)
    found = named(examine(root), "GPUs")["AMD driver"]
    assert (found.state, found.found) == ("good", "amdgpu 6.10.5; 2 of gfx942")

    def opens(path: Path, _mode: int) -> bool:
        return path.name != "kfd"

    monkeypatch.setattr(doctor_amd.os, "access", opens)
    closed = named(examine(root), "GPUs")["AMD driver"]
    assert (closed.state, closed.found) == ("degraded", "this user may not open /dev/kfd")
    assert "usermod -aG render,video" in closed.repair

    (root / "dev/kfd").unlink()
    lacking = named(examine(root), "GPUs")["AMD driver"]
    assert (lacking.state, "no /dev/kfd" in lacking.found) == ("degraded", True)
    assert "--device=/dev/kfd" in lacking.repair


@pytest.mark.parametrize(("version", "state"), [(None, "absent"), ("2.9.1+rocm6.4", "good"), ("2.9.1", "degraded")])
def test_torch_has_to_be_built_for_rocm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str | None, state: str
) -> None:
    def told(_package: str) -> str | None:
        return version

    monkeypatch.setattr(doctor_amd, "version_of", told)
    assert named(examine(amd_machine(tmp_path)), "GPUs")["AMD torch"].state == state


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
