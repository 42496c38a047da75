"""The GPU lock: one process at a time, released when its holder is killed; and GPUs of one model for a search."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.runtime.gpu.find import VISIBLE, open_gpu, visible_gpus
from argus.runtime.gpu_lock import GpuLock
from tests.runtime.fake_driver import FakeDriver

GPU = "0000:0B:00.0"
HOLDS = """
import sys, time
from pathlib import Path
from argus.runtime.gpu_lock import GpuLock
assert GpuLock(sys.argv[1], 1.0, Path(sys.argv[2])).acquire()
print("taken", flush=True)
time.sleep(600)
"""


def lock(folder: Path, gpu: str = GPU, moment: float = 0.0) -> GpuLock:
    return GpuLock(gpu, moment, folder)


def test_a_lock_excludes_others_on_its_own_gpu_only(tmp_path: Path) -> None:
    first, second = lock(tmp_path), lock(tmp_path)
    assert first.acquire()
    assert not second.acquire()
    assert lock(tmp_path, "0000:1B:00.0").acquire()
    first.release()
    assert second.acquire()
    assert not first.acquire()


def test_acquire_waits_for_a_moment_and_no_longer(tmp_path: Path) -> None:
    assert lock(tmp_path).acquire()
    before = time.monotonic()
    assert not lock(tmp_path, moment=0.2).acquire()
    assert 0.2 <= time.monotonic() - before < 5.0


def test_a_killed_process_releases_its_lock(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", HOLDS, GPU, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)  # noqa: S603 reason: our own
    assert process.stdout is not None
    assert process.stdout.readline() == b"taken\n"
    assert not lock(tmp_path).acquire()
    process.kill()
    process.communicate()
    assert lock(tmp_path, moment=10.0).acquire()


def a_link(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(path.parent / "elsewhere")


def no_folder(path: Path) -> None:
    assert not path.parent.exists()


@pytest.mark.parametrize("spoiled", [a_link, no_folder])
def test_a_lock_file_that_cannot_be_opened_is_reported(tmp_path: Path, spoiled: Callable[[Path], None]) -> None:
    mine = lock(tmp_path / "folder")
    spoiled(mine.path)
    with pytest.raises(ArgusError) as told:
        mine.acquire()
    assert told.value.diagnostic.code == "E302"
    assert str(mine.path) in told.value.diagnostic.message


def test_a_lock_is_named_after_the_pci_bus_id(tmp_path: Path) -> None:
    device = open_gpu(FakeDriver().driver)
    assert device.bus == GPU
    assert lock(tmp_path, device.bus).path.name == "argus-gpu-0000-0B-00-0.lock"


@pytest.mark.parametrize(
    ("names", "named", "expected"),
    [
        ((b"One", b"One", b"Other", b"One"), None, ("0", "1", "3")),
        ((b"One", b"One"), "5, 2", ("5", "2")),
        ((b"One", b"Other"), "GPU-3f,GPU-77", ("GPU-3f",)),
        ((), None, ()),
    ],
)
def test_gpus_like_the_first_are_found_by_their_names(
    monkeypatch: pytest.MonkeyPatch, names: tuple[bytes, ...], named: str | None, expected: tuple[str, ...]
) -> None:
    monkeypatch.delenv(VISIBLE["CUDA"], raising=False)
    if named is not None:
        monkeypatch.setenv(VISIBLE["CUDA"], named)
    assert visible_gpus(FakeDriver(devices=len(names), names=names).driver) == expected
