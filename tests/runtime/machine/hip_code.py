"""Code objects for tests from plain HIP, made by the clang of `ziglang` without any header of ROCm."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from argus.emit.tool import run_tool

_CLANG = (
    *("clang", "-x", "hip", "--offload-arch=gfx942", "-nogpulib", "-nogpuinc", "--cuda-device-only", "-O3"),
    *("-std=c++17", "-fuse-cuid=none", "-gline-tables-only", "-S", "-o", "k.s"),
)
_ASSEMBLER = ("clang", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-x", "assembler", "-c", "k.s", "-o", "k.o")
_LINKER = ("ld.lld", "-shared", "k.o", "-o", "k.hsaco")


def compiled(source: Path, folder: Path, options: Sequence[str] = ()) -> Path:
    """The code object of a .hip file, in the folder."""
    for command in ((*_CLANG, *options, str(source)), _ASSEMBLER, _LINKER):
        done = run_tool((sys.executable, "-m", "ziglang", *command), folder, 120)
        assert done is not None
        assert done.status == 0, done.errors[:2000]
    return folder / "k.hsaco"
