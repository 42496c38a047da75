"""The wheel, installed in a fresh environment with its dependencies: what a user gets from `pip install`."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str, folder: Path) -> str:
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True, timeout=900, check=False)  # noqa: S603 reason: pip and the installed command
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
def test_the_wheel_works_in_a_fresh_environment(tmp_path: Path) -> None:
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "-w",
        str(tmp_path / "dist"),
        str(ROOT),
        folder=tmp_path,
    )
    (wheel,) = (tmp_path / "dist").glob("argus-*.whl")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = str(tmp_path / "fresh" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", str(wheel), folder=tmp_path)

    version = wheel.name.split("-")[1]
    assert run(str(tmp_path / "fresh" / "bin" / "argus"), "--version", folder=tmp_path) == f"argus {version}\n"
    assert str(tmp_path / "fresh") in run(python, "-c", "import argus; print(argus.__file__)", folder=tmp_path)
    proved = run(python, "-m", "argus", "verify", "argus.kernels.gemm:gemm_small", folder=tmp_path)
    assert "proved for all sizes that meet the assumptions" in proved
    shown = run(
        python, "-c", "from argus.layout import *; print(composition(Layout(8), Layout(4, 2)))", folder=tmp_path
    )
    assert shown == "4:2\n"
