"""The part of `argus doctor` for AMD GPUs: driver, permissions, HIP runtime, instruction set, torch.

It reads files of the kernel and asks the HIP runtime; it starts no program and creates no context.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from argus.cli.checks import Check, version_of
from argus.core.diagnostic import ArgusError
from argus.runtime.gpu.find import find_gpu
from argus.runtime.hip.driver import find_driver as find_hip

_GROUP = "GPUs"
_AMD, _CLASSES = "0x1002", ("0x03", "0x12")
"""PCI's number of the vendor, and the beginnings of the classes of display controllers and accelerators."""
_LOSES = "`argus run --on gpu` of kernels for gfx942; verification and interpretation work without it"


def amd_checks(root: Path) -> Iterator[Check]:
    """What an AMD GPU needs; nothing where there is none. root: the folder with `dev` and `sys`."""
    kfd = root / "dev/kfd"
    if not kfd.exists() and not _on_the_bus(root):
        return
    yield _driver(root, kfd)
    yield _runtime()
    yield _torch()


def _on_the_bus(root: Path) -> bool:
    """Whether a GPU of AMD is connected, whatever drives it."""
    places = (root / "sys/bus/pci/devices").glob("*")
    return any(_read(each / "vendor") == _AMD and _read(each / "class").startswith(_CLASSES) for each in places)


def _driver(root: Path, kfd: Path) -> Check:
    """The kernel's driver, and whether this user may open its devices."""
    name = "AMD driver"
    if not kfd.exists():
        repair = "load it (`modprobe amdgpu`), or start the container with `--device=/dev/kfd --device=/dev/dri`"
        return Check(_GROUP, name, "degraded", "an AMD GPU, but no /dev/kfd: its driver is not here", _LOSES, repair)
    nodes = [kfd, *sorted((root / "dev/dri").glob("renderD*"))]
    closed = [f"/{each.relative_to(root)}" for each in nodes if not os.access(each, os.R_OK | os.W_OK)]
    if closed:
        found = f"this user may not open {', '.join(closed)}"
        repair = "`sudo usermod -aG render,video $USER`, then log in again; in a container, `--group-add render`"
        return Check(_GROUP, name, "degraded", found, _LOSES, repair)
    kinds = _instruction_sets(root)
    version = _read(root / "sys/module/amdgpu/version") or "of the kernel"
    return Check(_GROUP, name, "good", f"amdgpu {version}; {', '.join(kinds) or 'no GPU listed'}")


def _instruction_sets(root: Path) -> list[str]:
    """The instruction sets that the driver lists, each once with the number of its GPUs; CPUs are listed as 0."""
    found: dict[str, int] = {}
    for properties in sorted((root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties")):
        listed = dict(line.split(maxsplit=1) for line in _read(properties).splitlines() if " " in line)
        number = int(listed.get("gfx_target_version", "0"))
        if number:
            name = f"gfx{number // 10_000}{number // 100 % 100:x}{number % 100:x}"
            found[name] = found.get(name, 0) + 1
    return [f"{count} of {name}" for name, count in found.items()]


def _runtime() -> Check:
    """The first GPU, as the HIP runtime sees it."""
    try:
        found = find_gpu(find_hip())
        found.check_runs("gfx942")
    except ArgusError as problem:
        return Check(_GROUP, "AMD", "degraded", problem.diagnostic.message, _LOSES, problem.diagnostic.help)
    about = f"{found.name} ({found.architecture}), HIP {found.driver.version()}; `argus run` uses it"
    return Check(_GROUP, "AMD", "good", about)


def _torch() -> Check:
    """Whether torch, if it is installed, is built for AMD GPUs: its version says so."""
    name, found = "AMD torch", version_of("torch")
    if found is None:
        return Check(_GROUP, name, "absent", "not installed: optional, for operators such as `argus.matmul`")
    if "rocm" in found:
        return Check(_GROUP, name, "good", found)
    loses = "operators such as `argus.matmul` on this GPU; `argus run` works without it"
    repair = "pip install torch --index-url https://download.pytorch.org/whl/rocm6.4"
    return Check(_GROUP, name, "degraded", f"{found}, which is not built for ROCm", loses, repair)


def _read(path: Path) -> str:
    """The text of a file of the kernel; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
