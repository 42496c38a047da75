"""Products and sums are contracted to fused multiply-adds only where the program says `fma`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argus.core.ir import Kernel
from argus.core.target import Target
from argus.emit.build import build
from argus.emit.cuda import nvrtc
from argus.emit.cuda.text import cuda_text
from argus.emit.hip import toolchain
from argus.language import Tensor, copy, f32, fma, gfx942, kernel, load, sm_90a, spread, vmem


def made(target: Target, *, fused: bool) -> Kernel:
    def body(A: Tensor["256 4", f32], B: Tensor["256 4", f32], Y: Tensor["256 4", f32]) -> None:
        tv = spread((256, 4), threads=256, vector=4)
        a, b = load(A, tv), load(B, tv)
        if target == gfx942:
            vmem.wait(0)
        copy(fma(a, b, a) if fused else a * b + a, Y)

    return kernel(target=target, threads=256)(body).trace()


def ptx(text: str, options: tuple[bytes, ...]) -> str:
    api = nvrtc.bindings()
    _, program = api.nvrtcCreateProgram(text.encode(), b"k.cu", 0, None, None)
    wanted = [b"--gpu-architecture=compute_90a" if b"architecture" in each else each for each in options]
    wanted = [each for each in wanted if b"ptxas" not in each]
    (status,) = api.nvrtcCompileProgram(program, len(wanted), wanted)
    assert int(status) == 0
    _, size = api.nvrtcGetPTXSize(program)
    found = bytearray(size)
    api.nvrtcGetPTX(program, found)
    return found.decode()


@pytest.mark.skipif(not nvrtc.compiler_present(), reason="compiles with NVRTC")
@pytest.mark.parametrize("fused", [False, True])
def test_on_sm_90a(fused: bool) -> None:
    text = cuda_text(made(sm_90a, fused=fused)).text

    assert (ptx(text, nvrtc.OPTIONS).count("fma.rn.f32") > 0) == fused
    if not fused:
        allowed = tuple(each for each in nvrtc.OPTIONS if each != b"--fmad=false")
        assert "fma.rn.f32" in ptx(text, allowed)


@pytest.mark.skipif(not toolchain.compiler_present(), reason="compiles with clang")
@pytest.mark.parametrize("fused", [False, True])
def test_on_gfx942(fused: bool, tmp_path: Path) -> None:
    assembly = build(made(gfx942, fused=fused), directory=tmp_path).assembly

    assert assembly is not None
    assert (re.search(r"^\s+v_(pk_)?(fma|fmac|mad|mac)_", assembly.read_text(), re.MULTILINE) is not None) == fused
